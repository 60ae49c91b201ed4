"""`while` loops whose test Python can read: when they are compiled as loops.

In: each time that such a loop comes to its head while something is traced. Out: whether it has gone on for so
long, or counts so evenly, that its iterations had better not all be in the program. A loop that computes
nothing but Python values is none of them.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Mapping
from typing import Any

from jitcore.core.trace import JaxprTrace, context
from jitcore.rewriter.handles import current
from jitcore.rewriter.writing.emission import Point
from jitcore.transforms.partial_eval import PartialTrace

#: Arrivals at the head of a loop after which it is compiled, if it can be; the next try is when there are so
#: many times as many.
_LIMIT, _PATIENCE = 16, 4
#: Arrivals that show how the variables of a loop advance.
_SEEN = 3


class _Progress:
    """Of one loop: arrivals at its head; the one at which it is due; how many equations there were at the
    first; its ints, at the first arrivals."""

    __slots__ = ("count", "due_at", "first_eqn", "ints")

    def __init__(self, first_eqn: int):
        self.count, self.due_at, self.first_eqn = 0, _LIMIT, first_eqn
        self.ints: list[dict[str, int]] = []

    def counts_evenly(self) -> bool:
        """Whether ints advance, all of them by equal steps: there is no telling how far."""
        first, second, third = self.ints
        steps = {(second[name] - first[name], third[name] - second[name]) for name in first
                 if name in second and name in third}
        steps.discard((0, 0))
        return bool(steps) and all(one == other for one, other in steps)


_Table = weakref.WeakKeyDictionary[JaxprTrace, dict[Point, _Progress]]


class _State(threading.local):
    def __init__(self):
        self.found: _Table = weakref.WeakKeyDictionary()


_state = _State()


def is_due(point: Point, variables: Mapping[str, Any]) -> bool:
    """Whether the loop that begins at a point is to be compiled from here on. variables: at the point."""
    trace = _find_recording()
    if trace is None:
        return False
    loops = _state.found.setdefault(trace, {})
    progress = loops.get(point)
    if progress is None:
        progress = loops[point] = _Progress(len(trace.eqns))
    progress.count += 1
    if progress.count <= _SEEN:
        progress.ints.append({name: value for name, value in variables.items() if type(value) is int})
    is_early = progress.count == _SEEN and current.mode is not None and progress.counts_evenly()
    if not is_early and progress.count < progress.due_at:
        return False
    progress.due_at = _PATIENCE * max(progress.count, _LIMIT)
    return len(trace.eqns) - progress.first_eqn >= progress.count - 1


def _find_recording() -> JaxprTrace | None:
    """The trace whose equations become part of a program."""
    trace: Any = context.trace
    while trace is not None and (not isinstance(trace, JaxprTrace) or isinstance(trace, PartialTrace)):
        trace = trace.parent
    return trace


class _RollGuard:
    """`point in self` in the code at the head of a loop."""

    __slots__ = ()

    def __contains__(self, point: Point) -> bool:
        return is_due(point, sys._getframe(1).f_locals)


ROLL_GUARD = _RollGuard()
