"""What becomes of a loop of the script: plain Python, a program that is checked, and then that program.

In: frames that come to the loop's head. Out: what the loop's entry is told (see `entries`): to go on there,
or where the program has left the loop.

A program earns its place. On copies of what it works on it does one iteration, Python does the same one, and
both must agree (`trial`). Then it runs for as long as Python would take 10 ms, and must not be slower. What
is found out is kept for later runs (`learned`).
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Any

from jitcore.scripts.entries import HEAD, Loop
from jitcore.scripts.fates import Fate
from jitcore.scripts.frames import write_variables
from jitcore.scripts.regions import count_rest
from jitcore.scripts.trial import Copies, Trial, Unchecked
from jitcore.scripts.units import State, Unit

if TYPE_CHECKING:
    from jitcore.scripts.workshop import Workshop

__all__ = ["LoopFate"]

#: Seconds of plain Python in whose place a program runs first.
PART = 0.01
#: Iterations that a loop does at once which appends to lists, or of which their number is not known; these do
#: more where they take less than so many seconds.
ROOM, QUICK = 1000, 0.05
#: Iterations that may be of another kind than those behind them.
FIRST = 2


class LoopFate(Fate):
    """Of a loop."""

    def __init__(self, workshop: Workshop, unit: Unit):
        self.loop: Loop = unit.loop
        super().__init__(workshop, unit)
        self._trial: tuple[FrameType, int, Trial] | None = None
        self._mark: tuple[FrameType, float, int] | None = None
        self._room = ROOM

    def list_places(self) -> tuple[int, ...]:
        return *self.loop.exits, *self.loop.sides

    def enter(self, frame: FrameType, iterator: Any) -> tuple[int, Any]:
        """A frame stands at the head."""
        if self.region is None:
            if self.state == State.COLD:
                self.workshop.submit_loop(self, frame, iterator)
            return HEAD, iterator
        rest = count_rest(iterator) if self.loop.is_for else None
        if self.loop.is_for and (not rest or rest.step != self.region.program.step):
            return self._miss(frame, iterator)
        if self._trial is not None:
            self._judge(frame, rest)
            if self.region is None:
                return HEAD, iterator
        if self.untried and (rest is None or len(rest) > 1):
            self.untried -= 1
            if self._try(frame, rest):
                self.workshop.arm(frame, self.unit, 1)
                return HEAD, iterator
        return self._run(frame, iterator, rest)

    def _run(self, frame: FrameType, iterator: Any, rest: range | None) -> tuple[int, Any]:
        region = self.region
        per_iteration = self._measure(frame, rest)
        while True:
            most = self._room if rest is None or region.program.grown else len(rest)
            if per_iteration:  # a part first: compiled code may be slower
                most = min(most, max(1, int(PART / per_iteration)))
            part = most if rest is None else rest[:most]
            start = perf_counter()
            found = self._do(frame.f_locals, part)
            seconds = perf_counter() - start
            if found is None and region.program.grown and self._room > 1:  # its lists outgrow their room
                self._room //= 8
                continue
            if found is None:
                return self._miss(frame, iterator)
            self.entries += 1
            self.seconds += seconds
            number, results = found
            grown = {name: results.pop(name) for name in region.program.grown}
            write_variables(frame, results)
            for name, items in grown.items():
                frame.f_locals[name].extend(items)
            if number >= len(self.loop.exits):  # it comes back to the head
                if rest is not None:
                    iterator = iter(range(results[region.program.counter] + rest.step, rest.stop, rest.step))
                self.workshop.arm(frame, self.unit)
                break
            if rest is not None:
                if len(part) == len(rest) or self.loop.exits[number] != self.loop.end:
                    break
                rest = rest[most:]
                iterator = iter(rest)
                if per_iteration and seconds > per_iteration * most:
                    self.give_up("its program takes longer than Python")
                    return HEAD, iterator
                per_iteration = 0.0
            elif number != HEAD:
                break
            elif seconds < QUICK and not region.program.grown:
                self._room *= 4
        self.unit.gate.open()
        return number, iterator

    def _do(self, variables: Mapping[str, Any], part: range | int) -> tuple[int, dict[str, Any]] | None:
        values = self.region.read(variables, part)
        if self.region.program.grown and self.region.find_lists(variables, values) is None:
            return None
        return self.region.run(values)

    def _miss(self, frame: FrameType, iterator: Any) -> tuple[int, Any]:
        """The program is not for these values; it may be for those behind the first iterations, in which
        variables get their types."""
        self.miss()
        if self.misses <= FIRST:
            self.workshop.arm(frame, self.unit, 1)
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
    def _try(self, frame: FrameType, rest: range | None) -> bool:
        """Does one iteration on copies. Returns: whether that is to be compared with what Python does
        next."""
        region, copies, part = self.region, Copies(), 1 if rest is None else rest[:1]
        given = region.read(frame.f_locals, part)
        lists = region.find_lists(frame.f_locals, given)
        try:
            values = [copies.copy(value) for value in given]
            call = region.define(copies.find_by(region.find, region.read_names))
            found = copies.run(region.run, values, call) if lists is not None else None
        except Unchecked:
            self.untried = 0
            return False
        if found is None or found[0] != HEAD and (
                rest is None or found[0] >= len(self.loop.exits) or self.loop.exits[found[0]] != self.loop.end):
            return False
        lengths = {name: len(one) for name, one in lists.items()}
        self._trial = frame, len(rest or ()) - 1, Trial(copies, found[1], lengths)
        return True

    def _judge(self, frame: FrameType, rest: range | None) -> None:
        (of, left, trial), self._trial = self._trial, None
        if of is not frame or rest is not None and len(rest) != left:
            return
        difference = trial.find_difference(frame.f_locals)
        self.untried = 0
        if difference:
            self.give_up(f"its program does not do what Python does: {difference}")

    def give_up(self, reason: str) -> None:
        super().give_up(reason)
        self._trial = None
