"""Times the peers of a row and compares their results first.

In: a row and peers. Out: a `Measured` row. Peers take turns, round after round, and each keeps its minimum,
so that a machine that slows down for a while slows down all of them.
"""

from __future__ import annotations

import gc
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.peers import Call, Peer, TracingPeer
from benchmarks.workload import CompileTime, Row, Workload


@dataclass(frozen=True)
class Effort:
    """How long to measure: seconds and rounds for a row, seconds of one timed batch of calls, and how often
    something is compiled."""

    seconds: float
    rounds: int
    batch_seconds: float
    compiles: int


FULL = Effort(seconds=1.5, rounds=300, batch_seconds=2e-3, compiles=7)
QUICK = Effort(seconds=0.0, rounds=1, batch_seconds=0.0, compiles=1)


@dataclass(frozen=True)
class Timing:
    """Seconds: `figure` is what rows are compared by, a warm call or a compile; `first` the first call."""

    figure: float
    first: float


@dataclass
class Measured:
    """A row's timings by peer. `difference` describes results that do not agree; it is empty if all do."""

    name: str
    kind: str
    timings: dict[str, Timing] = field(default_factory=dict)
    difference: str = ""

    def compare(self, peer: str) -> float:
        """jitcore's time divided by the peer's; NaN if the peer has none."""
        if peer not in self.timings:
            return math.nan
        return self.timings["jitcore"].figure / self.timings[peer].figure


def measure_row(row: Row, peers: Sequence[Peer], quick: bool) -> Measured:
    """Timings of all peers that have a part in the row, or none if their results differ."""
    taking_part = [peer for peer in peers if peer.name in row.peers]
    effort = QUICK if quick else FULL
    gc.collect()
    gc.disable()  # a collection would be charged to whoever allocates when it is due
    try:
        if isinstance(row, CompileTime):
            return _measure_compiles(row, taking_part, effort)
        return _measure_calls(row, taking_part, quick, effort)
    finally:
        gc.enable()


# -- time of a call ------------------------------------------------------------------------------------------


def _measure_calls(workload: Workload, peers: Sequence[Peer], quick: bool, effort: Effort) -> Measured:
    measured = Measured(workload.name, "call")
    inputs = workload.make_inputs(workload.quick_size if quick else workload.size)
    calls: dict[str, Call] = {}
    results, firsts = {}, {}
    for peer in peers:
        call = peer.make_call(workload, inputs)
        if call is not None:
            calls[peer.name] = call
            firsts[peer.name], results[peer.name] = time_once(call)
    measured.difference = find_difference(results, workload.tolerance)
    if not measured.difference:
        warm = time_in_turns(calls, effort)
        measured.timings = {name: Timing(warm[name], firsts[name]) for name in calls}
    return measured


def time_once(call: Call) -> tuple[float, Any]:
    """(seconds, result)."""
    start = perf_counter()
    result = call()
    return perf_counter() - start, result


def time_in_turns(calls: dict[str, Call], effort: Effort) -> dict[str, float]:
    """The least seconds of one call of each, taken from batches of calls that alternate."""
    batches = {name: _size_batch(call, effort) for name, call in calls.items()}
    best = dict.fromkeys(calls, math.inf)
    stop = perf_counter() + effort.seconds
    for round_number in range(effort.rounds):
        if round_number >= 3 and perf_counter() > stop:
            break
        for name, call in calls.items():
            best[name] = min(best[name], _time_batch(call, batches[name]) / batches[name])
    return best


def _size_batch(call: Call, effort: Effort) -> int:
    seconds, _ = time_once(call)
    return max(1, min(10_000, round(effort.batch_seconds / max(seconds, 1e-9))))


def _time_batch(call: Call, number: int) -> float:
    rounds = range(number)
    start = perf_counter()
    for _ in rounds:
        call()
    return perf_counter() - start


# -- time of compiling ---------------------------------------------------------------------------------------


def _measure_compiles(row: CompileTime, peers: Sequence[TracingPeer], effort: Effort) -> Measured:
    measured = Measured(row.name, "compile")
    inputs = row.make_inputs()
    best: dict[str, Timing] = {}
    start = random.randrange(1_000_000 - effort.compiles)  # nor a cache that outlives the process
    for number in range(start, start + effort.compiles):
        results = {}
        for peer in peers:
            api, arguments = peer.load_api(), peer.read_inputs(inputs)
            timing, results[peer.name] = _time_compile(api.jit(row.program(api, number)), arguments)
            if peer.name not in best or timing.figure < best[peer.name].figure:
                best[peer.name] = timing
        measured.difference = measured.difference or find_difference(results, row.tolerance)
    if not measured.difference:
        measured.timings = best
    return measured


def _time_compile(function: Callable, arguments: tuple) -> tuple[Timing, Any]:
    def call():
        return function(*arguments).block_until_ready()

    first, result = time_once(call)
    second, _ = time_once(call)
    return Timing(first - second, first), result


# -- results -------------------------------------------------------------------------------------------------


def find_difference(results: dict[str, Any], tolerance: float) -> str:
    """A sentence about the first peer whose result is not jitcore's; "" if all agree.

    The difference of two elements may be `tolerance` times the largest finite value of the result."""
    ours = np.asarray(results["jitcore"])
    for name, result in results.items():
        theirs = np.asarray(result)
        if theirs.shape != ours.shape:
            return f"{name} gives shape {theirs.shape}, jitcore {ours.shape}"
        finite = np.abs(theirs[np.isfinite(theirs)])
        scale = float(finite.max()) if finite.size else 1.0
        if not np.allclose(ours, theirs, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            worst = np.nanmax(np.abs(ours.astype(np.float64) - theirs))
            return f"{name} differs from jitcore by up to {worst:.3g} (largest value {scale:.3g})"
    return ""
