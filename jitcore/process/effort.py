"""Effort: what an attempt to compile costs, counted where the work is done, and its end when it is too much.

In: steps, from tracing, passes, scheduling and code generation. Out: `TooMuchEffort`, raised in the attempt
that has used up what it was given. A step is about a microsecond of a processor of 2022, but it is counted,
not measured: the same attempt ends at the same place on every machine. Outside of attempts nothing is
counted.

`counters` tell how often programs were traced and compiled in this process: what tests of caches assert.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from time import perf_counter, thread_time
from typing import NamedTuple

from jitcore.errors import NotTraceable
from jitcore.process.concurrency import Lock

#: Steps of one second.
STEPS_PER_SECOND = 1_000_000
#: An attempt also ends when it has taken so many times its limit, and so many seconds more.
SLACK, SPARE = 4.0, 0.2


class TooMuchEffort(NotTraceable):
    """An attempt to compile has cost as much as it may. It is refused like what cannot be traced."""


class Meter:
    """What one attempt may cost and has cost, in steps."""

    __slots__ = ("limit", "left", "_began", "_began_working")

    def __init__(self, limit: float):
        self.limit = self.left = limit
        self._began, self._began_working = perf_counter(), thread_time()

    def is_late(self) -> bool:
        """Whether the thread has worked for so much longer than was counted that something is not counted:
        what the user's code does in C, in library code."""
        most = SLACK * (self.limit / STEPS_PER_SECOND) + SPARE
        # the clock of all threads is fast, and a thread cannot have worked for longer
        return perf_counter() - self._began > most and self.seconds_of_work > most

    @property
    def seconds_of_work(self) -> float:
        return thread_time() - self._began_working

    @property
    def spent(self) -> float:
        return self.limit - self.left

    def extend(self, steps: float) -> None:
        """Gives the attempt more."""
        self.limit += steps
        self.left += steps


class _Current(threading.local):
    meter: Meter | None = None


_current = _Current()


def spend(steps: float) -> None:
    """Counts work of the attempt that this thread is in. Raises: TooMuchEffort, from then on each time."""
    meter = _current.meter
    if meter is not None:
        meter.left -= steps
        if meter.left < 0:
            raise TooMuchEffort("compiling takes more work than it is likely to save")


def spend_on_call(steps: float) -> None:
    """The same for a call of a function, which may do what nobody counts."""
    meter = _current.meter
    if meter is not None:
        if meter.is_late():
            meter.left = min(meter.left, 0.0)
        spend(steps)


@contextlib.contextmanager
def metered(limit: float) -> Iterator[Meter]:
    """Within, an attempt is counted. One inside of another counts for both, and has no more than that."""
    around = _current.meter
    meter = _current.meter = Meter(limit if around is None else min(limit, max(around.left, 0)))
    try:
        yield meter
    finally:
        _current.meter = around
        if around is not None:
            around.left -= meter.spent


# -- counts -------------------------------------------------------------------------------------------------
class CacheInfo(NamedTuple):
    """hits: calls served by a known signature; misses: calls that were not; traces: runs of the Python
    function; compiles: programs that a backend had to compile."""

    hits: int
    misses: int
    traces: int
    compiles: int


class Counters:
    """Process-wide totals of `traces` and `compiles`. Thread-safe."""

    def __init__(self):
        self._lock = Lock()
        self.traces = 0
        self.compiles = 0

    def add(self, traces: int = 0, compiles: int = 0) -> None:
        with self._lock:
            self.traces += traces
            self.compiles += compiles

    def __repr__(self) -> str:
        return f"Counters(traces={self.traces}, compiles={self.compiles})"


counters = Counters()
