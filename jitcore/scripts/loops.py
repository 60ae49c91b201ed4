"""What becomes of a loop of the script: plain Python, a program that is checked, and then that program.

In: frames that come to the loop's head. Out: what the loop's entry is told (see `entries`): to go on there, or where the
program has left the loop.

A program earns its place. On copies of what it works on it does one iteration, Python does the same one, and both must
agree (`trial`). Then it runs for as long as Python would take 10 ms, and must not be slower. What is found out is kept
for later runs (`learned`).
"""

from __future__ import annotations

import sys
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Any

from jitcore.scripts.entries import HEAD, Gate, Loop
from jitcore.scripts.frames import write_variables
from jitcore.scripts.units import Unit

if TYPE_CHECKING:
    from jitcore.scripts.sampling import Sampler

__all__ = ["LoopState"]

#: Seconds of plain Python in whose place a program runs first.
PART = 0.01


class LoopState(Unit):
    """A loop of the script. late: ticks in which it was to be stopped at its head and did not come there."""

    def __init__(self, sampler: Sampler, loop: Loop, number: int):
        super().__init__(sampler, Gate(), (number, loop.head))
        self.loop, self.late = loop, 0
        self._trial: Any = None
        self._mark: tuple[FrameType, float, int] | None = None

    @property
    def line(self) -> int:
        return self.loop.line

    def list_places(self) -> tuple[int, ...]:
        return *self.loop.exits, *self.loop.sides

    def resume(self, iterator: Any) -> tuple[int, Any]:
        """Asked by the loop's entry."""
        sampler, frame = self.sampler, sys._getframe(1)
        if sampler.armed is not None and sampler.armed[1] is self:
            sampler.armed = None
        is_busy, sampler.is_busy = sampler.is_busy, True
        try:
            return self._enter(frame, iterator)
        finally:
            sampler.is_busy = is_busy

    def _enter(self, frame: FrameType, iterator: Any) -> tuple[int, Any]:
        if self.region is None and not self.recall():
            if self.state == self.COLD:
                self.sampler.submit(frame, self, iterator)
            return HEAD, iterator
        from jitcore.scripts.regions import count_rest

        rest = count_rest(iterator) if self.loop.is_for else None
        if self.loop.is_for and (not rest or rest.step != self.region.program.step):
            return self._miss(iterator)
        if self._trial is not None:
            self._judge(frame, rest)
            if self.region is None:
                return HEAD, iterator
        if self._untried and rest is not None and len(rest) > 1:
            self._untried -= 1
            if self._try(frame, rest):
                self.sampler.arm(frame, self, 1)
                return HEAD, iterator
        return self._run(frame, iterator, rest)

    def _run(self, frame: FrameType, iterator: Any, rest: range | None) -> tuple[int, Any]:
        region, part = self.region, rest
        per_iteration = self._measure(frame, rest)
        if per_iteration:  # a part first: compiled code may be slower
            part = rest[:max(1, int(PART / per_iteration))]
        start = perf_counter()
        found = region.run(region.read(frame.f_locals, part))
        seconds = perf_counter() - start
        if found is None:
            return self._miss(iterator)
        self.entries += 1
        self.seconds += seconds
        number, results = found
        write_variables(frame, results)
        is_side = number >= len(self.loop.exits)
        if rest is not None and is_side:
            iterator = iter(range(results[region.program.counter] + rest.step, rest.stop, rest.step))
        elif part is not rest and self.loop.exits[number] == self.loop.end:
            rest = rest[len(part):]
            iterator = iter(rest)
            if seconds > per_iteration * len(part):
                self.give_up("its program takes longer than Python")
                return HEAD, iterator
            return self._run(frame, iterator, rest) if rest else (HEAD, iterator)
        self.gate[:] = (True,)
        if is_side:  # it comes back to the head
            self.sampler.arm(frame, self)
        return number, iterator

    def _miss(self, iterator: Any) -> tuple[int, Any]:
        self.miss()
        return HEAD, iterator

    # -- time ------------------------------------------------------------------------------------------------
    def mark(self, frame: FrameType, rest: range) -> None:
        """Notes how far a frame has come."""
        self._mark = frame, perf_counter(), len(rest)

    def _measure(self, frame: FrameType, rest: range | None) -> float:
        """Seconds of an iteration in Python since the frame was marked; 0.0 where that is not known."""
        mark, self._mark = self._mark, None
        if mark is None or mark[0] is not frame or rest is None or len(rest) >= mark[2]:
            return 0.0
        return (perf_counter() - mark[1]) / (mark[2] - len(rest))

    # -- the first use ---------------------------------------------------------------------------------------
    def _try(self, frame: FrameType, rest: range) -> bool:
        """Does one iteration on copies. Returns: whether that is to be compared with what Python does next."""
        from jitcore.scripts.trial import Copies, Trial, Unchecked

        region, copies = self.region, Copies()
        try:
            values = [copies.copy(value) for value in region.read(frame.f_locals, rest[:1])]
            call = region.define(lambda kind, number: copies.copy_found(kind, region.find(kind, number)))
        except Unchecked:
            self._untried = 0
            return False
        found = region.run(values, call)
        if found is None or found[0] >= len(self.loop.exits) or self.loop.exits[found[0]] != self.loop.end:
            return False
        self._trial = frame, len(rest) - 1, Trial(copies, found[1])
        return True

    def _judge(self, frame: FrameType, rest: range | None) -> None:
        (of, left, trial), self._trial = self._trial, None
        if of is not frame or rest is None or len(rest) != left:
            return
        difference = trial.find_difference(frame.f_locals)
        self._untried = 0
        if difference:
            self.give_up(f"its program does not do what Python does: {difference}")

    def give_up(self, reason: str) -> None:
        super().give_up(reason)
        self._trial = None
