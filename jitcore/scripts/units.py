"""Parts of a script that may be compiled: its loops and functions, while nothing is known of them but their
ticks.

In: a loop or a function. Out: what its entry asks; that is the `Workshop`'s affair, which is loaded when the
first unit is hot.
"""

from __future__ import annotations

import enum
import sys
from typing import TYPE_CHECKING, Any

from jitcore.scripts.entries import Gate, Loop, Prepared, Slot

if TYPE_CHECKING:
    from jitcore.scripts.fates import Fate
    from jitcore.scripts.learned import Lesson
    from jitcore.scripts.sampling import Sampler

__all__ = ["State", "Unit"]


class State(enum.IntEnum):
    """What becomes of a unit: nothing yet, it is compiled at the moment, it has a program, or it stays in
    Python."""

    COLD = 0
    COMPILING = 1
    READY = 2
    DEAD = 3


class Unit:
    """A loop of the script, or a function.

    Attributes:
        key: number of the code object in the script, offset of the loop's head or -1.
        loop: or None; line: where it begins.
        ticks: that it has had; late: those in which it was to be stopped at its head and did not come there.
        fate: what becomes of it, when it is hot; lesson: what an earlier run found out.
    """

    def __init__(self, sampler: Sampler, number: int, line: int, loop: Loop | None = None,
                 slot: Slot | None = None):
        self.sampler, self.line, self.loop, self.slot = sampler, line, loop, slot
        self.key = number, -1 if loop is None else loop.head
        self.gate = Gate() if slot is None else slot.gate
        self.prepared: Prepared | None = None
        self.ticks = self.late = 0
        self.fate: Fate | None = None
        self.lesson: Lesson | None = None
        if slot is not None:
            slot.call = self.call

    @property
    def state(self) -> State:
        if self.fate is not None:
            return self.fate.state
        if self.lesson is not None:
            return State.DEAD if self.lesson.program is None else State.READY
        return State.COLD

    def learn(self, lesson: Lesson) -> None:
        """Takes over what an earlier run found out."""
        self.lesson = lesson
        if lesson.program is not None:
            self.gate.open()

    def describe(self) -> Lesson | None:
        """What later runs are told."""
        return self.lesson if self.fate is None else self.fate.describe()

    def resume(self, iterator: Any) -> tuple[int, Any]:
        """Asked by the loop's entry, see `entries`."""
        return self.sampler.workshop.enter(self, sys._getframe(1), iterator)

    def call(self, *values: Any) -> Any:
        """Asked by calls of the function while its gate is open."""
        return self.sampler.workshop.call(self, sys._getframe(1), values)
