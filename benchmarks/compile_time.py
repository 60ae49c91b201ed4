"""Section B: the time of compiling.

In: programs and the libraries that trace. Out: measured rows and their tables: first calls with empty caches,
the same in a second process, calls with new shapes, and functions that are jitted again and again.
"""

from __future__ import annotations

import functools
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.bars import COMPILE, FROM_DISK, JIT_AGAIN, NEW_SHAPE_SECONDS, STEPS_RATIO
from benchmarks.first_calls import FEW_STEPS, MANY_STEPS, ROWS, FirstCall, time_first_call, wait_for
from benchmarks.fresh_process import run_fresh
from benchmarks.inputs import make_normal
from benchmarks.measured import Measured, Section, explain_error
from benchmarks.peers import JITCORE, TracingPeer
from benchmarks.programs import make_selu, make_softmax
from benchmarks.table import format_seconds, format_section
from benchmarks.timing import Call, Effort, stop_collector, time_in_turns, time_once

TITLE = "Compile time"
CACHE_VARIABLE = "JITCORE_CACHE_DIR"
SECOND_PROCESS = "in a second process: {}"


def _add_one(x):
    return x + 1


#: What the body of a loop hands to `jit`: an equal partial, an equal lambda, the same function.
JITTED_AGAIN: dict[str, tuple[Callable[[], Callable], float]] = {
    "jit in a loop, partial": (lambda: functools.partial(_add_one), JIT_AGAIN),
    "jit in a loop, lambda": (lambda: lambda x: _add_one(x), JIT_AGAIN),
    "jit in a loop, cached": (lambda: _add_one, 1.0),
}
#: Programs that meet new shapes, and the number of dimensions.
RESHAPED = {"new shape: selu": (make_selu, 1), "new shape: softmax": (make_softmax, 2)}


def list_names() -> list[str]:
    """The names of all rows."""
    names = [row.name for row in ROWS]
    return [*names, *map(SECOND_PROCESS.format, names), *RESHAPED, *JITTED_AGAIN]


def run_section(
    names: Sequence[str], peers: Sequence[TracingPeer], effort: Effort, show: Callable[[str], None]
) -> Section:
    """Measures the rows with these names. `show` is told the name of each before it starts."""
    for peer in peers:
        peer.start()
    measured = []
    for name in names:
        show(name)
        with keep_off_disk():
            measured.append(_measure_row(name, peers, effort))
    text = "\n\n".join((format_section(measured), *_describe_steps(measured), *_describe_shapes(measured)))
    return Section(TITLE, text, any(row.problems.get("jitcore", "").startswith("failed") for row in measured))


def _measure_row(name: str, peers: Sequence[TracingPeer], effort: Effort) -> Measured:
    if name in RESHAPED:
        program, dimensions = RESHAPED[name]
        return _measure_peers(name, COMPILE, peers,
                              lambda peer: time_new_shape(peer, program, dimensions, effort))
    if name in JITTED_AGAIN:
        return _measure_jit_again(name, peers, effort)
    row = next(row for row in ROWS if name.endswith(row.name))
    if name == row.name:
        return _measure_peers(name, row.bar, peers, lambda peer: time_compile(peer, row, effort))
    return _measure_peers(name, FROM_DISK, peers, lambda peer: time_second_process(peer, row, effort))


def _measure_peers(
    name: str, bar: float, peers: Sequence[TracingPeer], measure: Callable[[TracingPeer], float]
) -> Measured:
    measured = Measured(name, bar=bar)
    for peer in peers:
        try:
            measured.seconds[peer.name] = measure(peer)
        except Exception as error:
            measured.problems[peer.name] = explain_error(error)
    return measured


@contextmanager
def keep_off_disk() -> Iterator[None]:
    """jitcore reads and writes no compiled programs on disk."""
    from jitcore import config

    if not hasattr(config, "cache_dir"):
        yield
        return
    before = config.cache_dir
    config.update("cache_dir", "")
    try:
        yield
    finally:
        config.update("cache_dir", before)


# -- a first call --------------------------------------------------------------------------------------------


def time_compile(peer: TracingPeer, row: FirstCall, effort: Effort) -> float:
    """The least seconds of a first call less those of a second one, of new function objects with empty
    caches."""
    api = peer.load_api()
    arguments = peer.read_inputs(row.make_inputs())
    best = math.inf
    for _ in range(effort.compiles):
        api.clear_caches()
        function = api.jit(row.program(api))
        with stop_collector():
            first, second = (time_once(lambda: wait_for(function(*arguments)))[0] for _ in range(2))
        best = min(best, first - second)
    return best


def time_second_process(peer: TracingPeer, row: FirstCall, effort: Effort) -> float:
    """The least seconds of a first call in a new process: of jitcore with what an earlier process left on
    disk, of others with nothing.

    Raises: NotImplementedError where jitcore keeps nothing on disk."""
    package = peer.load_api().__name__
    with tempfile.TemporaryDirectory() as folder:
        environment = {CACHE_VARIABLE: folder}
        if peer is JITCORE:
            run_fresh(time_first_call, package, row.name, environment=environment)
            if not os.listdir(folder):
                raise NotImplementedError(f"nothing was written to {CACHE_VARIABLE}")
        return min(run_fresh(time_first_call, package, row.name, environment=environment)
                   for _ in range(effort.processes))


# -- shapes and functions that are new, programs that are not ------------------------------------------------


def time_new_shape(
    peer: TracingPeer, program: Callable[[Any], Callable], dimensions: int, effort: Effort
) -> float:
    """The least seconds of a call with a shape that the function has not seen, less those of a warm call.

    Raises: RuntimeError if jitcore compiles for it."""
    api = peer.load_api()
    function = api.jit(program(api))
    best = math.inf
    for number in range(effort.compiles + 1):
        (x,) = peer.read_inputs((make_normal(*(100 + 10 * number,) * dimensions),))
        first, second = (time_once(lambda: wait_for(function(x)))[0] for _ in range(2))
        if number:  # the first shape compiles
            best = min(best, first - second)
    if peer is JITCORE and (compiles := function.cache_info().compiles) > 1:
        raise RuntimeError(f"{compiles} programs compiled for {effort.compiles + 1} shapes")
    return best


def _measure_jit_again(name: str, peers: Iterable[TracingPeer], effort: Effort) -> Measured:
    make_body, bar = JITTED_AGAIN[name]
    calls = {peer.name: Call(functools.partial(_jit_in_a_loop, peer.load_api(), make_body)) for peer in peers}
    return Measured(name, time_in_turns(calls, effort), bar=bar)


def _jit_in_a_loop(api: Any, make_body: Callable[[], Callable]) -> int:
    i = 0
    while i < 20:
        i = api.jit(make_body())(i)
    return i


# -- bars that are no ratios to a peer -----------------------------------------------------------------------


def _describe_steps(rows: Sequence[Measured]) -> list[str]:
    seconds = {row.name: row.seconds.get("jitcore", math.nan) for row in rows}
    if not {FEW_STEPS.name, MANY_STEPS.name} <= set(seconds):
        return []
    ratio = seconds[MANY_STEPS.name] / seconds[FEW_STEPS.name]
    return [f"jitcore compiles 10,000 steps in {ratio:.3g}x the time of 10 (bar {STEPS_RATIO:g}x)"]


def _describe_shapes(rows: Sequence[Measured]) -> list[str]:
    return [f"{row.name}: jitcore needs {format_seconds(row.seconds['jitcore'])}, no compile "
            f"(bar {format_seconds(NEW_SHAPE_SECONDS)})"
            for row in rows if row.name in RESHAPED and "jitcore" in row.seconds]
