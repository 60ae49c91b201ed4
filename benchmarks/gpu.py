"""Section of GPUs: large programs on a GPU, against the rate of its memory, JAX, CuPy and torch.compile.

In: names of rows. Out: for each the time of a call, of many that follow each other, what it reads and writes
in that time as a share of a copy's rate, and ratios to the libraries that are installed and find the GPU.
Programs run on `config.default_backend`, or else on "gpu"; on the device in software all are tiny, to see
that they run. Arrays lie on the device; the last result of a batch is awaited.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from time import perf_counter
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.agreement import compute_reference, find_difference
from benchmarks.fresh_process import run_fresh
from benchmarks.inputs import make_normal, make_uniform
from benchmarks.measured import Section
from benchmarks.peers import TracingPeer
from benchmarks.programs import make_increment, make_price, make_selu, make_softmax
from benchmarks.table import align_cells, format_ratio, format_seconds
from benchmarks.timing import Effort
from benchmarks.workload import Workload
from benchmarks.workloads import ROWS as RUN_ROWS

TITLE = "GPU: large programs"
EMULATED = "cuda:emulated"
LARGE = 100_000_000
#: Seconds of a batch of calls, batches, and most calls of one.
BATCH, BATCHES, MOST_CALLS = 0.03, 5, 2000
PEERS = ("jitcore", "JAX", "CuPy", "torch.compile")
#: Seconds after which another library starts no further row.
MOST_SECONDS = 60
#: Of measured processes: memory is for all of them, and what is compiled is.
ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JITCORE_CACHE_DIR": ""}


class Bar(NamedTuple):
    """What a row has to reach: a share of the rate of a copy, or a peer's time divided into ours."""

    peer: str = "copy"
    limit: float = 0.0


def _in_and_out(*arrays: np.ndarray) -> int:
    return sum(x.nbytes for x in arrays) + arrays[0].nbytes


def _in(*arrays: np.ndarray) -> int:
    return sum(x.nbytes for x in arrays)


def _repeat(make: Callable[..., np.ndarray], size: int) -> np.ndarray:
    """A block of random numbers again and again: drawing them all takes longer than everything else."""
    return np.resize(make(min(size, 1 << 20)), size)


def _draw(size: int, dtype: str = "float32") -> np.ndarray:
    return _repeat(lambda n: make_normal(n, dtype=dtype), size)


def _draw_matrix(rows: int, columns: int) -> np.ndarray:
    return _draw(rows * columns).reshape(rows, columns)


def _draw_options(size: int) -> tuple[np.ndarray, ...]:
    limits = (50, 150), (50, 150), (0.1, 2)
    return tuple(_repeat(lambda n, k=k: make_uniform(*limits[k], n, seed=k), size) for k in range(3))


def _make_halving(api: Any) -> Callable:
    """A thousand rounds with one small kernel each, whose end is computed on the device."""

    def run(x):
        def step(carry):
            count, x = carry
            return count + 1, x * 0.5 + 1

        return api.lax.while_loop(lambda carry: carry[0] < 1000 + 0 * carry[1][0], step, (0.0, x))[1]

    return run


def _halve(x: np.ndarray) -> np.ndarray:
    for _ in range(1000):
        x = x * 0.5 + 1
    return x


def _rescale(name: str, new: str, size: int) -> Workload:
    """A row of the run-time section with another size."""
    from dataclasses import replace

    return replace(next(row for row in RUN_ROWS if row.name == name), name=new, size=size)


_COPIED, _SCANNED = Bar("copy", 0.95), Bar("copy", 0.85)
#: (row, bar, the function for torch, whether programs of CuPy can be the same).
TABLE: tuple[tuple[Workload, Bar, Callable | None], ...] = (
    (Workload("selu 1e8 f32", lambda n: (_draw(n),), make_selu, LARGE, 500, bytes_moved=_in_and_out), _COPIED,
     lambda torch: lambda x: 1.05 * torch.where(x > 0, x, 1.67 * torch.exp(x) - 1.67)),
    (Workload("selu 1e8 f64", lambda n: (_draw(n, "float64"),), make_selu, LARGE, 500,
              bytes_moved=_in_and_out), _COPIED,
     lambda torch: lambda x: 1.05 * torch.where(x > 0, x, 1.67 * torch.exp(x) - 1.67)),
    (Workload("black_scholes 5e7 f32", _draw_options, make_price, LARGE // 2, 500,
              bytes_moved=_in_and_out, tolerance=1e-5), _COPIED, None),
    (Workload("sum 1e8 f32", lambda n: (_draw(n),), lambda api: lambda x: x.sum(), LARGE, 5000,
              bytes_moved=_in, tolerance=1e-3), _COPIED, lambda torch: lambda x: x.sum()),
    *((Workload(f"softmax of rows of {n} f32", lambda size, n=n: (_draw_matrix(size // n, n),), make_softmax,
                LARGE, 3 * n, bytes_moved=_in_and_out), _SCANNED, lambda torch: lambda x: torch.softmax(x, 1))
      for n in (1000, 4096, 16384)),
    (Workload("cumsum 1e8 f32", lambda n: (abs(_draw(n)),), lambda api: api.numpy.cumsum, LARGE, 5000,
              bytes_moved=_in_and_out, tolerance=1e-4), _SCANNED, lambda torch: lambda x: torch.cumsum(x, 0)),
    (Workload("sum 10000x10000 axis 0 f32", lambda n: (_draw_matrix(n, n),),
              lambda api: lambda x: x.sum(0), 10_000, 60, bytes_moved=_in), Bar(),
     lambda torch: lambda x: x.sum(0)),
    (Workload("argmax 10000x10000 axis 1 f32", lambda n: (_draw_matrix(n, n),),
              lambda api: lambda x: x.argmax(1).astype("int32"), 10_000, 60, bytes_moved=_in), Bar(), None),
    (Workload("x + y.T 10000x10000 f32", lambda n: (_draw_matrix(n, n), _draw_matrix(n, n)),
              lambda api: lambda x, y: x + y.T, 10_000, 60, bytes_moved=_in_and_out), Bar(),
     lambda torch: lambda x, y: x + y.T),
    (Workload("sort 1e8 u32", lambda n: (np.random.default_rng(0).integers(0, 2**32, n, np.uint32),),
              lambda api: api.numpy.sort, LARGE, 3000, bytes_moved=_in_and_out), Bar("CuPy", 1.0), None),
    (Workload("matmul 8192 f32", lambda n: (_draw_matrix(n, n), _draw_matrix(n, n)),
              lambda api: lambda x, y: x @ y, 8192, 70, tolerance=1e-4, flops=lambda x, y: 2.0 * len(x) ** 3),
     Bar("CuPy", 1.05), lambda torch: lambda x, y: x @ y),
    (Workload("selu 1e6 f32", lambda n: (_draw(n),), make_selu, 1_000_000, 500, bytes_moved=_in_and_out),
     Bar("JAX", 1.0), None),
    (Workload("while of 1000 small rounds f32", lambda n: (_draw(n),), _make_halving, 10_000, 100,
              numpy=_halve), Bar("JAX", 0.2), None),
    (Workload("x + 1, 4 elements f32", lambda n: (_draw(n),), make_increment, 4, 4), Bar("JAX", 0.5), None),
    (_rescale("mandelbrot 2000x2000 f32", "mandelbrot 4000x4000 f32", 4000), Bar("JAX", 0.5), None),
    (_rescale("n-body 1000, 10 steps f32", "n-body 10000, 10 steps f32", 10_000), Bar("JAX", 0.5), None),
    (_rescale("histogram 1e6 into 1000 f32", "histogram 1e8 into 1000 f32", LARGE), Bar(), None),
    (_rescale("gather 1e6 permuted f32", "gather 3e7 permuted f32", 30_000_000), Bar(), None),
)
_ENTRY_OF_NAME = {entry[0].name: entry for entry in TABLE}


def list_names() -> list[str]:
    return list(_ENTRY_OF_NAME)


def run_section(
    names: Sequence[str], peers: Sequence, effort: Effort, show: Callable[[str], None]
) -> Section:
    """Measures the rows with these names. `show` is told the name of each before it starts."""
    show("copy")
    device, rate = run_fresh(measure_copy)
    is_real = "emulated" not in device
    lines = [["row", "time", "of a copy", *(f"to {peer}" for peer in PEERS[1:]), "bar", "result"]]
    others = {peer: _measure_other(peer, names, show) for peer in _OTHERS if is_real}
    failed = False
    for name in names:
        show(name)
        try:
            ours, moved, problem = run_fresh(measure, name, environment=ENVIRONMENT)
        except RuntimeError as error:
            ours, moved, problem = None, 0, str(error)
        failed |= bool(problem)
        bar = _ENTRY_OF_NAME[name][1] if is_real else Bar()
        seconds = {peer: found[name] for peer, found in others.items() if name in found}
        seconds |= {} if ours is None else {"jitcore": ours}
        lines.append([name, *_format_row(seconds, moved, rate, bar), problem or "right"])
    told = f"{device}; a copy reads and writes {rate / 1e9:.0f} GB/s"
    told += "" if is_real else ". Few elements, and no bars: the times of the device in software say nothing."
    return Section(TITLE, f"{told}\n\n{align_cells(lines)}", failed)


def _format_row(seconds: dict[str, float], moved: int, rate: float, bar: Bar) -> list[str]:
    ours = seconds.get("jitcore")
    if ours is None:
        return [""] * (3 + len(PEERS))
    share = moved / ours / rate
    ratios = [format_ratio(ours / seconds[peer]) if peer in seconds else "" for peer in PEERS[1:]]
    if bar.peer == "copy":
        reached = f"{bar.limit:.0%} of a copy: {'yes' if share >= bar.limit else 'no'}" if bar.limit else ""
    else:
        is_within = bar.peer in seconds and ours <= bar.limit * seconds[bar.peer]
        known = ("yes" if is_within else "no") if bar.peer in seconds else "not measured"
        reached = f"{bar.limit:g} of {bar.peer}: {known}"
    return [format_seconds(ours), f"{share:.0%}" if moved else "", *ratios, reached]


# -- in a process of its own ---------------------------------------------------------------------------------
def _find_device() -> Any:
    import jitcore
    from jitcore.config import config

    return jitcore.devices(config.default_backend or "gpu")[0]


def measure_copy() -> tuple[str, float]:
    """(the device, bytes that a copy reads and writes in a second)."""
    import jitcore
    from jitcore.dispatch.backend import find_backend

    device = _find_device()
    runtime = find_backend(device.backend).open(device)
    nbytes = 1 << (20 if device.backend == EMULATED else 30)
    source, target = runtime.allocate(nbytes), runtime.allocate(nbytes)
    seconds = time_calls(lambda: runtime.copy(target, source, nbytes), runtime.synchronize)
    return f"{device.device_kind}, jitcore {jitcore.__version__}", 2 * nbytes / seconds


def measure(name: str) -> tuple[float, int, str]:
    """(seconds, bytes, what is wrong) of one row."""
    row = _ENTRY_OF_NAME[name][0]
    is_emulated = _find_device().backend == EMULATED
    problem = find_problem(row)
    inputs = row.make_inputs(row.tiny if is_emulated else row.size)
    seconds, found = _time_tracing("jitcore", row, inputs)
    if not is_emulated:
        problem = problem or _compare_with_processor(row, inputs, found)
    return seconds, row.bytes_moved(*inputs) if row.bytes_moved else 0, problem


def _compare_with_processor(row: Workload, inputs: tuple, found: Any) -> str:
    """What is wrong with the result for all elements: small ones need few blocks and few rounds."""
    import jitcore

    return find_difference(row, found, jitcore.jit(row.program(jitcore), backend="cpu")(*inputs))


def find_problem(row: Workload) -> str:
    """What is wrong with the result for few elements."""
    import jitcore

    inputs = row.make_inputs(row.tiny)
    return find_difference(row, jitcore.jit(row.program(jitcore), device=_find_device())(*inputs),
                           compute_reference(row, inputs))


def _time_tracing(package: str, row: Workload, inputs: tuple) -> tuple[float, Any]:
    """(seconds, the result)."""
    peer = TracingPeer(package, package)
    api = peer.load_api()
    device = _find_device() if package == "jitcore" else api.devices()[0]
    placed = api.tree.map(lambda x: api.device_put(x, device) if isinstance(x, np.ndarray) else x, inputs)
    function = api.jit(row.program(api))
    last: list = []

    def run():
        last[:] = [function(*placed)]

    return time_calls(run, lambda: api.block_until_ready(last[0])), last[0]


def _measure_other(peer: str, names: Sequence[str], show: Callable[[str], None]) -> dict[str, float]:
    """Seconds of rows by another library; none where it does not work at all."""
    show(peer)
    try:
        return run_fresh(measure_other, peer, *names, environment=ENVIRONMENT)
    except RuntimeError:
        return {}


def measure_other(peer: str, *names: str) -> dict[str, float]:
    """Seconds of the rows that a library can run, by name, of those that it gets to in time."""
    found, end = {}, perf_counter() + MOST_SECONDS
    for name in names:
        row, _, make_torch = _ENTRY_OF_NAME[name]
        if perf_counter() < end:
            try:
                seconds = _OTHERS[peer](row, row.make_inputs(row.size), make_torch)
            except Exception:  # whatever a library raises that lacks something
                continue
            if seconds is not None:
                found[name] = seconds
    return found


def _time_jax(row: Workload, inputs: tuple, make_torch: Callable | None) -> float | None:
    if importlib.util.find_spec("jax") is None:
        return None
    import jax

    if jax.devices()[0].platform != "gpu":
        return None
    with jax.enable_x64(row.dtype == "f64"):
        return _time_tracing("jax", row, inputs)[0]


def _time_cupy(row: Workload, inputs: tuple, make_torch: Callable | None) -> float | None:
    if importlib.util.find_spec("cupy") is None:
        return None
    import cupy

    scipy = SimpleNamespace(special=importlib.import_module("cupyx.scipy.special"))
    function = row.program(SimpleNamespace(numpy=cupy, scipy=scipy))
    placed = [cupy.asarray(x) if isinstance(x, np.ndarray) else x for x in inputs]
    return time_calls(lambda: function(*placed), cupy.cuda.Device().synchronize)


def _time_torch(row: Workload, inputs: tuple, make_torch: Callable | None) -> float | None:
    if make_torch is None or importlib.util.find_spec("torch") is None:
        return None
    import torch

    function = torch.compile(make_torch(torch))
    placed = [torch.from_numpy(x).cuda() for x in inputs]
    return time_calls(lambda: function(*placed), torch.cuda.synchronize)


_OTHERS = {"JAX": _time_jax, "CuPy": _time_cupy, "torch.compile": _time_torch}


def time_calls(run: Callable[[], Any], wait: Callable[[], Any]) -> float:
    """The least seconds of a call, of calls that follow each other without being awaited."""

    def time_batch(count: int) -> float:
        start = perf_counter()
        for _ in range(count):
            run()
        wait()
        return (perf_counter() - start) / count

    time_batch(1)
    first = time_batch(1)
    count = int(min(max(BATCH / first, 1), MOST_CALLS))
    return min([first, *(time_batch(count) for _ in range(BATCHES if first < 1 else 1))])
