"""Probing: whether a new program takes less time than plain Python.

In: the first calls of a program. Out: the program serves on, or gives way to plain Python. What the function
calls is not compiled for the comparison.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from jitcore.autojitted.copies import copy_values
from jitcore.autojitted.entry import MISS, Entry
from jitcore.autojitted.printed import silence
from jitcore.core.source import raise_interruption

if TYPE_CHECKING:
    from jitcore.autojitted.function import AutojitFunction
    from jitcore.autojitted.served import Served

#: Calls of a new program that are timed; one that takes longer than `PROBED_SECONDS` is not compared: a fifth
#: of them for loops, which may take Python hundreds of times as long.
PROBED_CALLS, PROBED_SECONDS = 4, 200e-6
#: The same of programs that print, which may take longer than Python's loop if they hardly do anything else.
PROBED_PRINTING = 20e-3
#: Seconds of a call in plain Python that are no accident of a short one.
SURE_SECONDS = 1e-3


class _Comparison(threading.local):
    is_running = False


_comparison = _Comparison()


def is_comparing() -> bool:
    """Whether plain Python is being timed, in which nothing is compiled."""
    return _comparison.is_running


@contextlib.contextmanager
def comparing() -> Iterator[None]:
    before, _comparison.is_running = _comparison.is_running, True
    try:
        yield
    finally:
        _comparison.is_running = before


class Probe:
    """The first calls of a program: they are timed, and the last of them is compared with plain Python."""

    def __init__(self, owner: AutojitFunction, served: Served, entry: Entry):
        self.owner, self.served, self.entry = owner, served, entry
        self.count, self.best = 0, float("inf")

    def __call__(self, *values: Any) -> Any:
        limit = PROBED_PRINTING if self.entry.prints else PROBED_SECONDS / (5 if self.entry.loops else 1)
        compares = self.count == PROBED_CALLS - 1 and self.best < limit and self.entry.is_local
        copies = copy_values(values) if compares else None
        failures, start = self.entry.failures, perf_counter()
        result = self.entry.call(*values)
        seconds = perf_counter() - start
        if self.entry.failures > failures:  # plain Python ran, which may do what the program does not
            copies = None
        if result is MISS:
            return MISS
        self.count += 1
        self.best = min(self.best, seconds)
        if self.count >= PROBED_CALLS or self.best >= limit and self.count > 1:
            self.owner.settle(self.served, self.entry.call)
            if copies is not None and self._is_slower(copies):
                self.owner.give_way(self.served, self.best)
        return result

    def _is_slower(self, copies: Sequence[Any]) -> bool:
        """Whether plain Python takes less time than the program does; both run in turns on the copies."""
        with comparing():
            if self.entry.prints:
                with silence():
                    return self._is_slower_silently(copies, float("inf"))
            return self._is_slower_silently(copies, self.best)

    def _is_slower_silently(self, copies: Sequence[Any], own: float) -> bool:
        """own: seconds that the program takes at most."""
        plain = float("inf")
        for _ in range(4):
            failures = self.entry.failures
            start = perf_counter()
            try:
                self.owner.parameters.call(self.owner.function, copies)
                middle = perf_counter()
                self.entry.call(*copies)
            except Exception as error:  # on arguments that an earlier call changed
                raise_interruption(error)
                return False
            if self.entry.failures > failures:
                self.entry.failures = failures
                return False
            plain, own = min(plain, middle - start), min(own, perf_counter() - middle)
            if plain > max(10 * own, 1e-3):
                break
        return plain < own
