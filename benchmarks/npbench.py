"""NPBench's kernels, unchanged, under `autojit`: `python -m benchmarks.npbench CHECKOUT [--preset S]
[--kernels a,b] [--seconds 1] [--peers jax,numba] [--save]`.

In: a checkout of NPBench. Out: for each kernel whether result and all mutated arguments are NumPy's, the tier
and what stood in the way of a better one, times of NumPy, jitcore and, with --peers, of the checkout's Numba
and JAX versions; geometric means. Each kernel runs in a process of its own.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.fresh_process import run_fresh
from benchmarks.measured import Section
from benchmarks.results_file import save_sections
from benchmarks.table import align_cells, format_seconds

#: Arguments that are disturbed before use: NPBench's own data would hide a kernel that does nothing.
_DISTURBED = {"heat_3d": ("A", "B"), "channel_flow": ("u", "v", "p")}
#: Largest relative norm of a difference from NumPy.
_TOLERANCE = {"f": {4: 1e-4, 8: 1e-7}, "c": {8: 1e-4, 16: 1e-7}}
_LARGEST_TOLERANCE = 1e-5
#: First calls compile. Threads of several OpenBLAS in one process do not wait long for work, on cores that
#: the next version needs; see `__main__`.
_ENVIRONMENT = {
    "JITCORE_CACHE_DIR": "", "OPENBLAS_THREAD_TIMEOUT": os.environ.get("OPENBLAS_THREAD_TIMEOUT", "20"),
}
#: Most that a first call may take, in that of JAX's version; the part of it from which on it is measured
#: again, and how often.
_FIRST_BAR, _CLOSE, _REPEATS = 1.5, 0.75, 3
_NUMBA = ("numba_n", "numba_np", "numba_npr", "numba_o", "numba_op")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns: 1 when a kernel failed or gave a wrong result."""
    parser = argparse.ArgumentParser("python -m benchmarks.npbench", description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("checkout", help="folder of NPBench")
    add("--preset", default="S", choices=["S", "M", "L", "paper"])
    add("--kernels", default="", metavar="A,B", help="kernels with one of these names")
    add(
        "--seconds",
        type=float,
        default=1.0,
        help="for which each library is timed (1); 0 checks results only",
    )
    add("--limit", type=float, default=300.0, help="seconds that a kernel may take in all (300)")
    add("--peers", default="", metavar="A,B", help="also time the checkout's versions for jax, numba")
    add("--save", action="store_true", help="also write benchmarks/results/<date>-<processor>.md")
    options = parser.parse_args(arguments)
    names = list_kernels(Path(options.checkout))
    wanted = [name for name in options.kernels.split(",") if name]
    if unknown := sorted(set(wanted) - set(names)):
        parser.error(f"there are no kernels {', '.join(unknown)}")
    rows = []
    for name in wanted or names:
        rows.append(run_kernel(name, options))
        print(describe_row(rows[-1]), flush=True)
    for _ in range(_REPEATS):
        for row in filter(_is_close, rows):
            _keep_least_first(row, run_kernel(row["name"], options))
    text = format_rows(rows)
    print(f"\n{text}")
    if options.save:
        title = f"NPBench, preset {options.preset}"
        print(f"\nwritten to {save_sections([Section(title, text, False)])}")
    return int(any(not row["is_right"] for row in rows))


def _is_close(row: dict[str, Any]) -> bool:
    """Whether noise may decide on which side of the bar a first call is: it is measured again, and both
    libraries keep their least time."""
    return row.get("first of JAX", 0.0) and row["first"] > _CLOSE * _FIRST_BAR * row["first of JAX"]


def _keep_least_first(row: dict[str, Any], other: dict[str, Any]) -> None:
    for key in ("first", "first of JAX"):
        row[key] = min(row[key], other.get(key) or row[key])


def list_kernels(checkout: Path) -> list[str]:
    return sorted(path.stem for path in (checkout / "bench_info").glob("*.json"))


def run_kernel(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """A row: the answer of the kernel's process, or what became of it."""
    given = (
        str(Path(options.checkout).resolve()),
        name,
        options.preset,
        str(options.seconds),
        options.peers,
    )
    try:
        # not this module, whose name is __main__ when it is the command
        measure = importlib.import_module("benchmarks.npbench").measure_kernel
        return run_fresh(measure, *given, environment=_ENVIRONMENT, timeout=options.limit)
    except subprocess.TimeoutExpired:
        problem = f"took more than {options.limit:.0f} s"
    except (RuntimeError, NotImplementedError) as error:
        problem = str(error)
    return {"name": name, "is_right": False, "tier": "failed", "reason": problem, "seconds": {}, "first": 0.0}


# -- one kernel, in its own process --------------------------------------------------------------------------


def measure_kernel(checkout: str, name: str, preset: str, seconds: str, peers: str) -> dict[str, Any]:
    """Runs a kernel plainly and under `autojit`. Returns: its row."""
    import jitcore

    sys.path.insert(0, checkout)
    info = json.loads((Path(checkout) / "bench_info" / f"{name}.json").read_text(encoding="utf-8"))[
        "benchmark"
    ]
    module = f"npbench.benchmarks.{info['relative_path'].replace('/', '.')}.{info['module_name']}"
    arguments = make_arguments(info, module, name, preset)
    plain = getattr(importlib.import_module(f"{module}_numpy"), info["func_name"])
    expected_arguments = copy.deepcopy(arguments)
    expected = plain(*expected_arguments)
    jitcore.autojit(lambda x: x + 1)(np.ones(3))  # loads what every first call needs
    compiled = jitcore.autojit(plain)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found_arguments = copy.deepcopy(arguments)
        start = perf_counter()
        found = compiled(*found_arguments)
        first = perf_counter() - start
    # NPBench says where rounding errors grow.
    limit = min(info.get("norm_error") or 0.0, _LARGEST_TOLERANCE)
    problem = find_difference([expected, *expected_arguments], [found, *found_arguments], limit)
    report = compiled.report()
    tiers = report.regions[0].tiers
    said = [str(one.message) for one in caught if issubclass(one.category, jitcore.AutojitWarning)]
    reason = "; ".join(map(str, report.reasons)) or "; ".join(said)
    row = {"name": name, "is_right": not problem, "tier": tiers[0].value if tiers else "python",
           "reason": problem or shorten(reason, checkout), "first": first, "seconds": {}}
    if float(seconds):
        calls = {"NumPy": plain, "jitcore": compiled}
        outcome = [expected, *expected_arguments]
        if "numba" in peers:
            calls |= find_numba(module, info["func_name"], arguments, outcome)
        if "jax" in peers:
            found_jax, row["first of JAX"] = find_jax(module, info["func_name"], arguments)
            calls |= found_jax
        row["seconds"] = time_in_turns(calls, arguments, float(seconds))
        again = copy.deepcopy(arguments)
        result = compiled(*again)
        problem = find_difference([expected, *expected_arguments], [result, *again], limit)
        if problem:
            row |= {"is_right": False, "reason": f"a later call: {problem}"}
        tiers = compiled.report().regions[0].tiers
        row["tier"] = tiers[0].value if tiers else "python"
    return row


def make_arguments(info: dict, module: str, name: str, preset: str) -> list[Any]:
    """The arguments of the kernel: NPBench's data of this preset."""
    data: dict[str, Any] = dict(info["parameters"][preset])
    if info.get("init"):
        initialize = getattr(importlib.import_module(module), info["init"]["func_name"])
        made = initialize(*[data[key] for key in info["init"]["input_args"]])
        names = info["init"]["output_args"]
        data.update(zip(names, made) if len(names) > 1 else {names[0]: made})
    generator = np.random.default_rng(0)
    for key in _DISTURBED.get(name, ()):
        data[key] = data[key] + 1e-3 * generator.random(np.shape(data[key]))
    return [data[key] for key in info["input_args"]]


def find_difference(expected: Any, found: Any, limit: float = 0.0, place: str = "value") -> str:
    """Where two results differ in type, shape or value, or "". limit: of relative errors, if it is larger."""
    if isinstance(expected, (list, tuple)):
        if type(expected) is not type(found) or len(expected) != len(found):
            return f"{place}: {type(found).__name__} instead of {type(expected).__name__}"
        parts = [
            find_difference(one, other, limit, f"{place}[{i}]")
            for i, (one, other) in enumerate(zip(expected, found))
        ]
        return next(filter(None, parts), "")
    if type(expected) is not type(found):
        return f"{place}: {type(found).__name__} instead of {type(expected).__name__}"
    if not isinstance(expected, (np.ndarray, np.generic, float, complex)):
        return "" if expected == found else f"{place}: {found} instead of {expected}"
    one, other = np.asarray(expected), np.asarray(found)
    if one.shape != other.shape or one.dtype != other.dtype:
        return f"{place}: {other.dtype}{list(other.shape)} instead of {one.dtype}{list(one.shape)}"
    if one.dtype.kind not in "fc":
        return (
            ""
            if np.array_equal(one, other)
            else f"{place}: {np.sum(one != other)} of {one.size} elements differ"
        )
    finite = np.isfinite(one)
    if not np.array_equal(finite, np.isfinite(other)):
        return f"{place}: not finite at other places"
    scale = np.linalg.norm(one[finite].ravel())
    error = np.linalg.norm((one[finite] - other[finite]).ravel()) / (scale or 1.0)
    limit = max(limit, _TOLERANCE[one.dtype.kind][one.dtype.itemsize])
    return "" if error <= limit else f"{place}: relative error {error:.1e}"


def shorten(reason: str, checkout: str) -> str:
    return reason.replace(f"{checkout}/npbench/benchmarks/", "")[:300]


def find_numba(module: str, function: str, arguments: list, expected: list) -> dict[str, Callable]:
    """The fastest of the checkout's Numba versions that give the right values."""
    times = {}
    for suffix in _NUMBA:
        call = _load_numba(f"{module}_{suffix}", function, arguments, expected)
        if call is not None:
            given = copy.deepcopy(arguments)
            start = perf_counter()
            call(*given)
            times[call] = perf_counter() - start
    return {"Numba": min(times, key=times.__getitem__)} if times else {}


def find_jax(module: str, function: str, arguments: list) -> tuple[dict[str, Callable], float]:
    """The checkout's JAX version, and how long its first call took."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.block_until_ready(jax.jit(lambda x: x + 1)(np.ones(3)))  # loads what every first call needs
    try:
        version = getattr(importlib.import_module(f"{module}_jax"), function)
        given = copy.deepcopy(arguments)
        start = perf_counter()
        jax.block_until_ready(version(*given))
    except Exception:  # versions that do not exist, or that this JAX does not run
        return {}, math.nan
    first = perf_counter() - start
    return {"JAX": lambda *given: jax.block_until_ready(version(*given))}, first


def _load_numba(module: str, function: str, arguments: list, expected: list) -> Callable | None:
    try:
        call = getattr(importlib.import_module(module), function)
        given = copy.deepcopy(arguments)
        result = call(*given)
    except Exception:  # versions that do not exist, or that this Numba does not compile
        return None
    for one, other in zip(expected[1:], given):
        if isinstance(one, np.ndarray) and not np.allclose(one, other, rtol=1e-4, atol=1e-6, equal_nan=True):
            return None
    if find_difference(expected[0], result) and isinstance(expected[0], np.ndarray):
        return None
    return call


def time_in_turns(calls: dict[str, Callable], arguments: list, seconds: float) -> dict[str, float]:
    """The least seconds of one call of each; they alternate, each on fresh copies of the arguments."""
    best = dict.fromkeys(calls, math.inf)
    stop = perf_counter() + seconds * len(calls)
    rounds = 0
    while rounds < 3 or perf_counter() < stop and rounds < 200:
        rounds += 1
        for name, call in calls.items():
            given = copy.deepcopy(arguments)
            start = perf_counter()
            call(*given)
            best[name] = min(best[name], perf_counter() - start)
    return best


# -- text ----------------------------------------------------------------------------------------------------


def describe_row(row: dict[str, Any]) -> str:
    seconds = row["seconds"]
    speed = f" {seconds['NumPy'] / seconds['jitcore']:.3g}x NumPy" if "jitcore" in seconds else ""
    verdict = "ok" if row["is_right"] else "WRONG"
    return f"{row['name']:26} {verdict:6} {row['tier']:8}{speed} first {row['first']:.2f} s  {row['reason']}"


def format_rows(rows: Sequence[dict[str, Any]]) -> str:
    """The table, the geometric means, and what stood in the way of tracing."""
    peers = [
        peer for peer in ("NumPy", "Numba", "JAX", "jitcore") if any(peer in row["seconds"] for row in rows)
    ]
    lines = [["kernel", "result", "tier", "first call", *peers, "NumPy / jitcore"]]
    for row in rows:
        seconds = row["seconds"]
        cells = [format_seconds(seconds[peer]) if peer in seconds else "" for peer in peers]
        speed = f"{seconds['NumPy'] / seconds['jitcore']:.3g}" if "jitcore" in seconds else ""
        verdict = "right" if row["is_right"] else "WRONG"
        lines.append([row["name"], verdict, row["tier"], format_seconds(row["first"]), *cells, speed])
    parts = [align_cells(lines)]
    n_right, n_traced = sum(row["is_right"] for row in rows), sum(row["tier"] == "traced" for row in rows)
    parts.append(f"{len(rows)} kernels, {n_right} right, {n_traced} traced")
    for peer in peers:
        ratios = [row["seconds"]["NumPy"] / row["seconds"][peer] for row in rows if peer in row["seconds"]]
        if peer != "NumPy":
            parts.append(f"geometric mean over NumPy, {peer} ({len(ratios)} kernels): "
                         f"{statistics.geometric_mean(ratios):.3g}x")
    firsts = [row["first"] for row in rows]
    parts.append(f"first calls: {format_seconds(statistics.median(firsts))} in the median, "
                 f"{format_seconds(max(firsts))} at most")
    pairs = {row["name"]: row["first"] / row["first of JAX"] for row in rows if "JAX" in row["seconds"]}
    if pairs:
        parts.append(f"first calls over JAX's: {statistics.geometric_mean(pairs.values()):.3g}x in the "
                     f"geometric mean of {len(pairs)}; {_list_those(pairs, lambda pair: pair > _FIRST_BAR)} "
                     f"above {_FIRST_BAR:g}x")
    speeds = {row["name"]: row["seconds"]["NumPy"] / row["seconds"]["jitcore"] for row in rows
              if "jitcore" in row["seconds"]}
    parts.append(f"{_list_those(speeds, lambda speed: speed < 0.95)} below 0.95x NumPy")
    blocked = [f"- {row['name']}: {row['reason']}" for row in rows if row["reason"]]
    if blocked:
        parts.append("\n".join(["Not traced, or wrong:", "", *blocked]))
    return "\n\n".join(parts)


def _list_those(ratios: dict[str, float], is_meant: Callable[[float], bool]) -> str:
    return ", ".join(f"{name} {ratio:.3g}x" for name, ratio in ratios.items() if is_meant(ratio)) or "none"


if __name__ == "__main__":
    sys.exit(main())
