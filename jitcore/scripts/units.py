"""Parts of a script that may be compiled: what becomes of one, and what later runs are told.

In: ticks, programs, and what earlier runs found out. Out: whether it is plain Python, compiled elsewhere at the moment,
or has a program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcore.scripts.entries import Gate, Prepared

if TYPE_CHECKING:
    from jitcore.scripts.learned import Lesson
    from jitcore.scripts.regions import Region
    from jitcore.scripts.sampling import Sampler

__all__ = ["MISSES", "TRIALS", "Unit"]

#: Entries that a program refuses before it is given up.
MISSES = 20
#: Entries at which a check is tried.
TRIALS = 3


class Unit:
    """A loop or a function of the script.

    Attributes:
        key: number of the code object in the script, offset of its head.
        ticks: that it has had; state: what becomes of it; reason: why it stays in Python; misses: entries that its
            program refused.
        region: its program; entries, seconds: of that.
    """

    COLD, COMPILING, READY, DEAD = range(4)

    def __init__(self, sampler: Sampler, gate: Gate, key: tuple[int, int]):
        self.sampler, self.gate, self.key = sampler, gate, key
        self.prepared: Prepared | None = None
        self.state, self.ticks, self.misses = self.COLD, 0, 0
        self.region: Region | None = None
        self.reason = ""
        self.entries, self.seconds = 0, 0.0
        self._lesson: Lesson | None = None
        self._untried = TRIALS

    @property
    def line(self) -> int:
        raise NotImplementedError

    def take(self, region: Region) -> None:
        """Takes over a program."""
        self.region, self.state = region, self.READY
        self.sampler.has_learned = True

    def give_up(self, reason: str) -> None:
        self.gate.clear()
        self.state, self.reason, self.region = self.DEAD, reason, None
        self.sampler.has_learned = True

    def miss(self) -> None:
        """Notes that the program is not for some values."""
        self.misses += 1
        if self.misses >= MISSES:
            self.give_up("its values are of other kinds each time")

    def learn(self, lesson: Lesson) -> None:
        """Takes over what an earlier run found out."""
        if lesson.program is None:
            self.state, self.reason = self.DEAD, lesson.reason
        else:
            self._lesson, self.state, self._untried = lesson, self.READY, 0
            self.gate[:] = (True,)

    def list_places(self) -> tuple[int, ...]:
        """Offsets where control may go on behind its program."""
        return ()

    def recall(self) -> bool:
        """Loads the program of an earlier run, at the first entry: what it refers to is there then."""
        lesson, self._lesson = self._lesson, None
        if lesson is None:
            return False
        from jitcore.scripts.regions import Region

        restore = self.sampler.restore
        try:
            self.region = Region(lesson.program, self.list_places(),
                                 lambda kind, number: lesson.names.find(kind, number, restore), lesson.names)
        except Exception:  # its machine code is gone, or something that it refers to
            self.gate.clear()
            self.state = self.COLD
            return False
        return True

    def describe(self) -> Lesson | None:
        """What a later run is told; None where there is nothing."""
        from jitcore.scripts.learned import Lesson

        if self.state == self.DEAD:
            return Lesson(None, None, self.reason)
        region = self.region
        if region is None:
            return self._lesson
        return Lesson(region.program, region.names, "") if region.is_named and self.entries else None
