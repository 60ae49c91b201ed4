"""Parts of a script that may be compiled: its loops and functions, while nothing is known of them but their
ticks.

In: a loop or a function. Out: what its entry asks; that is the `Workshop`'s affair, which is loaded when the
first unit is hot.
"""

from __future__ import annotations

import gc
import sys

from jitcore.process import lazy
from jitcore.scripts.gates import DECLINED, HEAD, OVER, WATCH, Gate, Loop, Prepared, Slot
from jitcore.scripts.learned import Lesson, load_lessons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jitcore.scripts.fates import Fate
    from jitcore.scripts.sampling import Sampler
    from jitcore.scripts.texts import Text

__all__ = ["State", "Uncollected", "Unit"]

#: Seconds of processor time between two ticks.
TICK = 0.01
#: Seconds that loading a program takes; with NumPy, where the script does without and the program does not.
LOADING, WITH_NUMPY = 0.04, 0.14


def find_loading_time(packed: bytes | None) -> float:
    """Seconds that loading a program takes in this process. packed: as `FromDisk.pack` gives it, or None."""
    needs_numpy = packed is not None and packed[0] and not lazy.is_loaded("numpy")
    return WITH_NUMPY if needs_numpy else LOADING


class Uncollected:
    """With it the collector of garbage rests while something is loaded, which stays: it would go through the
    script's lists again and again, of which one may have millions of items."""

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *error: object) -> None:
        if self._was_enabled:
            gc.enable()


class State:
    """What becomes of a unit: nothing yet, it is compiled at the moment, it has a program, it stays in
    Python, or does so for now."""

    COLD = 0
    COMPILING = 1
    READY = 2
    DEAD = 3
    RESTING = 4


class Unit:
    """A loop of the script, or a function.

    Args:
        number: of its code object in the text; head: offset of the loop's head, or -1; line: where it begins.

    Attributes:
        key: number and head; text: where it stands.
        gate, slot: see `gates`.
        n_passing: how often its head is still to be passed. n_asked: how often its entry has asked; n_seen:
            how often that was at the last tick that was to stop it.
        ticks: that it has had; late: those in which it was to be stopped at its head and did not come there.
        repeats: whether one of them met a function in it that calls itself.
        fate: what becomes of it, when it is hot; lesson: what an earlier run found out.
    """

    def __init__(self, sampler: Sampler, text: Text, number: int, head: int, line: int):
        self.sampler, self.text, self.key, self.line = sampler, text, (number, head), line
        self.slot = Slot() if head < 0 else None
        self.gate = Gate() if self.slot is None else self.slot.gate
        self.n_passing = self.ticks = self.late = 0
        self.n_asked = self.n_seen = 0
        self.repeats = False
        self.fate: Fate | None = None
        self.lesson: Lesson | None = None
        if self.slot is not None:
            self.slot.call = self.call

    @property
    def is_function(self) -> bool:
        return self.slot is not None

    @property
    def prepared(self) -> Prepared:
        """What is known of its code."""
        return self.text.find(self.key[0])

    @property
    def loop(self) -> Loop | None:
        """None of a function."""
        return next((loop for loop in self.prepared.loops if loop.head == self.key[1]), None)

    @property
    def state(self) -> int:
        if self.fate is not None:
            return self.fate.state
        lesson = self.lesson
        if lesson is None or lesson.program is None and not lesson.reason:
            return State.COLD
        if lesson.program is not None:
            return State.READY
        if not lesson.until:
            return State.DEAD
        return State.RESTING if self.ticks < lesson.until else State.COLD

    def learn(self, lesson: Lesson) -> None:
        """Takes over what an earlier run found out."""
        self.lesson, self.late = lesson, lesson.late
        if lesson.program is not None:
            self.gate.open()

    def waits(self) -> bool:
        """Whether the process that an earlier run has left compiles it still. Where that has ended, what came
        of it is learnt."""
        if self.fate is not None or self.lesson is None or self.lesson.maker is None:
            return False
        if self.lesson.is_being_made:
            return True
        self.learn(load_lessons(self.text.key).get(self.key, self.lesson)._replace(maker=None))
        return False

    def give_up(self, reason: str) -> None:
        """Is left to Python, for what is seen without loading more."""
        if self.fate is not None:
            self.fate.give_up(reason)
        else:
            self.lesson, self.sampler.has_learned = Lesson(None, None, reason), True

    @property
    def seconds(self) -> float:
        """Of processor time that it has had."""
        return self.ticks * TICK

    @property
    def earns(self) -> bool:
        """Whether it is time to load what was compiled: in an earlier run it took Python twice as long, or it
        has taken that long in this one."""
        if self.fate is not None:
            return self.fate.is_due
        if self.lesson is None:
            return True
        needed = find_loading_time(self.lesson.program)
        return self.lesson.seconds >= 2 * needed or self.seconds >= needed

    def describe(self) -> Lesson | None:
        """What later runs are told."""
        if self.fate is not None:
            return self.fate.describe()
        return Lesson(None, None, "", late=self.late) if self.lesson is None and self.late else self.lesson

    def resume(self, iterator: Any, *lists: list) -> tuple[int, Any]:
        """Asked by the loop's entry, see `entries`. lists: those that comprehensions make."""
        self.n_asked += 1
        if iterator is OVER:
            self.sampler.workshop.finish(self, sys._getframe(1))
            return HEAD, None
        if self.n_passing:
            self.n_passing -= 1
            return WATCH, iterator
        if not self.earns:
            self.gate.close()
            return HEAD, iterator
        if not self.sampler.may_enter():
            return HEAD, iterator
        return self.sampler.workshop.enter(self, sys._getframe(1), iterator, lists)

    def call(self, *values: Any) -> Any:
        """Asked by calls of the function while its gate is open."""
        if not self.earns:
            self.gate.close()
            return DECLINED
        if not self.sampler.may_enter():
            return DECLINED
        return self.sampler.workshop.call(self, sys._getframe(1), values)
