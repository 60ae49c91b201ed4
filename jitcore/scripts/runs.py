"""What becomes of a run of statements that stands in a loop between two that are opaque.

In: frames that come to its beginning in each iteration, and to its end where Python does it. Out: what its
entry is told (see `entries`).

Python does some first, which are timed: programs of short ones are not worth it. A program is compared with
Python once, on copies, and timed against it in some iterations more.
"""

from __future__ import annotations

from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Any

from jitcore.scripts.fates import ENTRY, FEW_ENTRIES, SHORT, FrameFate
from jitcore.scripts.gates import HEAD, WATCH
from jitcore.scripts.iterators import Once
from jitcore.scripts.trial import Trial
from jitcore.scripts.units import State, Unit

if TYPE_CHECKING:
    from jitcore.scripts.workshop import Workshop

__all__ = ["RunFate"]

#: Times that are timed, in Python and compiled.
TIMED = 3


class RunFate(FrameFate):
    """Of a run of statements."""

    def __init__(self, workshop: Workshop, unit: Unit):
        super().__init__(workshop, unit)
        self._watched: tuple[FrameType, float, Trial | None] | None = None
        self._in_python: list[float] = []
        self._compiled: list[float] = []
        self._n_whole = 0  # of the times that its program came to its end

    @property
    def gained(self) -> float:
        return self._n_whole * self.pace

    def clear(self) -> None:
        super().clear()
        self._watched, self._in_python, self._compiled, self._n_whole = None, [], [], 0

    def enter(self, frame: FrameType, iterator: Any, was_stopped: bool) -> tuple[int, Any]:
        """A frame stands at its beginning."""
        if self.state == State.COLD and len(self._in_python) < TIMED:
            return self._watch(frame)
        self.load()
        if self.region is None:
            self._submit(frame)
            return HEAD, None
        if self.checks or self.untried:
            self.untried = max(0, self.untried - 1)
            trial = self.rehearse(frame, Once(), 1)
            return (HEAD, None) if trial is None else self._watch(frame, trial)
        start = perf_counter()
        found = self.do(frame, Once(), 1)
        if found is None:
            self.miss()
            return HEAD, None
        number, results = found
        self.write(frame, results)
        self._note(perf_counter() - start, self.ends(number))
        return number, None

    def _submit(self, frame: FrameType) -> None:
        self.unit.gate.close()
        if self.state == State.COLD:
            self.pace = min(self._in_python)
            if self.pace < SHORT:
                self.rest(FEW_ENTRIES)
            else:
                self.workshop.submit_loop(self, frame, Once())

    def _note(self, seconds: float, is_whole: bool) -> None:
        """Notes what the program took, and weighs it when it has run some times."""
        self.entries += 1
        self.seconds += seconds
        self._n_whole += is_whole
        if self.is_new and is_whole:
            self._compiled.append(seconds)
            self.is_new = len(self._compiled) < TIMED
            if not self.is_new and min(self._compiled) + ENTRY > self.pace:
                self.rest("its program takes about as long as Python")

    def _watch(self, frame: FrameType, trial: Trial | None = None) -> tuple[int, Any]:
        """Has Python do it."""
        self._watched = frame, perf_counter(), trial
        return WATCH, None

    def finish(self, frame: FrameType) -> None:
        """Python has come to its end."""
        watched, self._watched = self._watched, None
        if watched is None or watched[0] is not frame:
            return
        _, start, trial = watched
        if trial is None:
            self._in_python.append(perf_counter() - start)
        else:
            self.compare(trial.find_difference(frame.f_locals))
