"""Least times of calls that take turns.

In: calls. Out: seconds. Peers take turns, round after round, and each keeps its minimum, so that a machine
that slows down for a while slows down all of them.
"""

from __future__ import annotations

import gc
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import Any, NamedTuple


class Call(NamedTuple):
    """Something to time: `run()` inside of `scope()`, which is entered once for many runs."""

    run: Callable[[], Any]
    scope: Callable[[], AbstractContextManager] = nullcontext


@dataclass(frozen=True)
class Effort:
    """How long to measure: seconds of each peer in a row, most rounds, seconds of one timed batch of calls,
    how often something is compiled, how often a process is started, the longest call of a size, and how many
    more times rows are measured whose ratio is close to their bar."""

    seconds: float
    rounds: int
    batch_seconds: float
    compiles: int
    processes: int
    longest: float
    repeats: int = 0


FULL = Effort(seconds=0.4, rounds=150, batch_seconds=2e-3, compiles=15, processes=5, longest=5.0,
              repeats=4)
QUICK = Effort(seconds=0.04, rounds=12, batch_seconds=1e-3, compiles=2, processes=1, longest=0.3)

# Batches that one run takes from which on it does not matter what it finds in the caches.
LONG_RUN = 10


def time_in_turns(calls: Mapping[str, Call], effort: Effort) -> dict[str, float]:
    """The least seconds of one run of each, taken from batches of runs that alternate.

    Each has the processor to itself, and a first batch that does not count: it wakes threads and fills
    caches. A peer that has had its time drops out, so that one slow peer does not cost many rounds."""
    with stop_collector():
        best = {name: _time_first(call, effort) for name, call in calls.items()}
        spent = dict(best)
        for _ in range(effort.rounds):
            due = [name for name in calls if spent[name] < effort.seconds]
            for name in due:
                wait_for_threads()
                start, size = perf_counter(), max(1, min(10_000, round(effort.batch_seconds / best[name])))
                if best[name] < LONG_RUN * effort.batch_seconds:
                    _time_batch(calls[name], size)
                best[name] = min(best[name], _time_batch(calls[name], size) / size)
                spent[name] += perf_counter() - start
    return best


def wait_for_threads(most: float = 0.02) -> None:
    """Waits until the other threads of this process sleep, at most so many seconds: those of some libraries
    look for work for milliseconds after a call, on a processor that the next peer needs. Linux only."""
    own, stop = str(threading.get_native_id()), perf_counter() + most
    while perf_counter() < stop and any(map(_runs, _list_threads() - {own})):
        sleep(1e-4)


def _list_threads() -> set[str]:
    try:
        return set(os.listdir("/proc/self/task"))
    except OSError:
        return set()


def _runs(thread: str) -> bool:
    try:
        with open(f"/proc/self/task/{thread}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "R"
    except OSError:  # it has ended
        return False


@contextmanager
def stop_collector() -> Iterator[None]:
    """A collection would be charged to whoever allocates when it is due."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def time_once(run: Callable[[], Any]) -> tuple[float, Any]:
    """(seconds, result)."""
    start = perf_counter()
    result = run()
    return perf_counter() - start, result


def time_best(run: Callable[[], Any], seconds: float, rounds: int = 1000) -> float:
    """The least seconds of a run, of those that fit into `seconds`, and of at least two."""
    best, stop = math.inf, perf_counter() + seconds
    for number in range(rounds):
        if number >= 2 and perf_counter() > stop:
            break
        best = min(best, time_once(run)[0])
    return best


def _time_first(call: Call, effort: Effort) -> float:
    """Seconds of a run, from which the size of batches follows; of several where one says little."""
    seconds = _time_batch(call, 1)
    return min(seconds, _time_batch(call, 10) / 10) if seconds < effort.batch_seconds else seconds


def _time_batch(call: Call, number: int) -> float:
    run, rounds = call.run, range(number)
    with call.scope():
        start = perf_counter()
        for _ in rounds:
            run()
        return perf_counter() - start
