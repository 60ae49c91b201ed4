"""Memory: the most that a call holds beyond its inputs and outputs, and what a process keeps.

In: names of programs. Out: measured bytes and their tables. Each figure is of a new process on Linux, whose
mark of the most memory held can be set back.
"""

from __future__ import annotations

import gc
import importlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.bars import EXTRA_OUTPUTS
from benchmarks.first_calls import wait_for
from benchmarks.fresh_process import run_fresh
from benchmarks.inputs import make_normal
from benchmarks.measured import Section, explain_error
from benchmarks.peers import TracingPeer
from benchmarks.programs import make_distance_sum, make_jacobi, make_operations, make_selu, make_softmax
from benchmarks.table import align_cells, format_bytes
from benchmarks.timing import FULL, Effort

TITLE = "Memory"
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
#: glibc gives back what is freed at once, so that no figure depends on what was freed before.
_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "JITCORE_CACHE_DIR": ""}
#: Pages, stacks and tables of a call that do not grow with its data.
_NOISE = 2_000_000


class Work(NamedTuple):
    """extent -> shape of the argument; extent; api -> function; shape -> bytes of what may be held beyond
    inputs and outputs: as much as the output, or as the square of distances."""

    shape: Callable[[int], tuple[int, ...]]
    extent: int
    program: Callable[[Any], Callable]
    allowed: Callable[[int], float]


WORK = {
    "selu 1e7": Work(lambda n: (n,), 10_000_000, make_selu, lambda n: 4 * EXTRA_OUTPUTS * n),
    "softmax 3000x3000": Work(lambda n: (n, n), 3000, make_softmax, lambda n: 4 * EXTRA_OUTPUTS * n**2),
    "Jacobi 10 steps 3000x3000": Work(lambda n: (n, n), 3000, lambda api: make_jacobi(api, 10),
                                      lambda n: 4 * EXTRA_OUTPUTS * n**2),
    "pairwise distance 2000x3": Work(lambda n: (n, 3), 2000, make_distance_sum, lambda n: 4 * n**2),
}
#: What is repeated, and how often; a tenth as often in a quick run.
GROWTH = {"10,000 shapes": ("shapes", 10_000), "2,000 programs": ("programs", 2000)}


def list_names() -> list[str]:
    return [*WORK, *GROWTH]


def run_section(
    names: Sequence[str], peers: Sequence[TracingPeer], effort: Effort, show: Callable[[str], None]
) -> Section:
    """Measures the rows with these names. `show` is told the name of each before it starts."""
    if not _STATUS.exists():
        return Section(TITLE, "not available: this system does not tell what a process holds")
    temporary, kept, problems = [], [], []
    for name in names:
        show(name)
        try:
            if name in WORK:
                temporary.append(_describe_peak(name, peers))
            else:
                kept.append(_describe_growth(name, 1 if effort == FULL else 10))
        except Exception as error:
            problems.append(f"- {name}: {explain_error(error)}")
    parts = []
    if temporary:
        head = ["beyond inputs and outputs", "output", *(peer.name for peer in peers), "allowed", "jitcore"]
        parts.append(align_cells([head, *temporary]))
    if kept:
        head = ["kept by the process", "after the first half", "after all", "of them in the second half"]
        parts.append(align_cells([head, *kept]))
    if problems:
        parts.append("\n".join(("Not measured:", "", *problems)))
    return Section(TITLE, "\n\n".join(parts), bool(problems))


def _describe_peak(name: str, peers: Sequence[TracingPeer]) -> list[str]:
    figures = {peer.name: run_fresh(measure_peak, peer.load_api().__name__, name, environment=_ENVIRONMENT)
               for peer in peers}
    allowed = WORK[name].allowed(WORK[name].extent)
    verdict = "within" if figures["jitcore"]["extra"] <= allowed + _NOISE else "OVER"
    return [name, format_bytes(figures["jitcore"]["output"]),
            *(format_bytes(figures[peer.name]["extra"]) for peer in peers),
            format_bytes(allowed), verdict]


def _describe_growth(name: str, divisor: int) -> list[str]:
    kind, count = GROWTH[name]
    start, middle, end = run_fresh(measure_growth, kind, str(count // divisor), environment=_ENVIRONMENT)
    return [name if divisor == 1 else f"{count // divisor} {kind}", format_bytes(middle - start),
            format_bytes(end - start), format_bytes(end - middle)]


# -- in a process of its own ---------------------------------------------------------------------------------


def measure_peak(package: str, name: str) -> dict[str, int]:
    """`measure_call` of a library's function with this name."""
    work = WORK[name]
    api = importlib.import_module(package)
    for module in ("numpy", "lax"):
        importlib.import_module(f"{package}.{module}")
    return measure_call(api.jit(work.program(api)), api.device_put(make_normal(*work.shape(work.extent))))


def measure_call(function: Callable, x: Any) -> dict[str, int]:
    """Bytes of the output, and the most that a warm call held beyond it and its argument."""
    for _ in range(2):
        wait_for(function(x))
    gc.collect()
    _RESET.write_text("5")  # sets the mark back to what is held now
    before = read_status("VmRSS")
    result = function(x)
    wait_for(result)
    output = math.prod(result.shape) * result.dtype.itemsize
    return {"output": output, "extra": max(0, read_status("VmHWM") - before - output)}


def measure_growth(kind: str, count: str) -> tuple[int, int, int]:
    """Bytes held after a hundredth of the calls, after half of them, and after all."""
    import jitcore
    import jitcore.numpy

    call = {"shapes": _call_with_shape, "programs": _call_program}[kind]
    marks, held = (int(count) // 100, int(count) // 2, int(count)), []
    function = jitcore.jit(make_selu(jitcore))
    for number in range(1, int(count) + 1):
        call(jitcore, function, number)
        if number in marks:
            gc.collect()
            held.append(read_status("VmRSS"))
    return tuple(held)


def _call_with_shape(jitcore: Any, function: Callable, number: int) -> None:
    function(make_normal(number + 10))


def _call_program(jitcore: Any, function: Callable, number: int) -> None:
    chain = make_operations(jitcore, 3)
    jitcore.jit(lambda x: chain(x) + number * 0.125)(make_normal(100))


def read_status(field: str) -> int:
    """Bytes that this process holds, VmRSS, or has held at most, VmHWM."""
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise NotImplementedError(f"this system does not tell {field}")
