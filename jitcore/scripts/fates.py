"""What becomes of a unit that is hot, and what later runs are told of it.

In: programs, and reasons why there are none. Out: the state of the unit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from jitcore.rewriter.bytecode.instructions import INDEX, LIMIT, name_list
from jitcore.scripts.frames import are_own, write_variables
from jitcore.scripts.gates import HEAD, Loop
from jitcore.scripts.iterators import Ahead
from jitcore.scripts.learned import Lesson
from jitcore.scripts.regions import Region
from jitcore.scripts.trial import Copies, Trial, Unchecked
from jitcore.scripts.units import State, Unit, find_loading_time

if TYPE_CHECKING:
    from jitcore.scripts.learned import Names
    from jitcore.scripts.workshop import Workshop

__all__ = ["AGAIN", "ENTRY", "SHORT", "TRIALS", "FEW_ENTRIES", "Fate", "FrameFate"]

#: Entries that a program refuses one after the other, and in all, from which on one is made for other values;
#: how many not worth what they cost are made, one after the other, before better ones are waited for.
AGAIN, MISSES, ANEW = 5, 20, 3
#: Programs of a unit that are kept.
MOST = 8
#: How many times the ticks that a unit has had it must have had when it is tried again.
RESTING = 4
#: How many times what loading a program takes a unit must have run, where what is left of it is not known.
FORETOLD = 4
#: Entries at which a check is tried.
TRIALS = 3
#: Seconds that an entry in a frame takes beside; of Python from where a unit is begun, below which no program
#: is worth it.
ENTRY, SHORT = 3e-5, 5e-5
FEW_ENTRIES = "its iterations are few, and entering its program takes longer than Python"
OTHER_KINDS = "its values are of other kinds each time"
OTHER_VALUES = "its program was not for the values that came"


class Fate:
    """Attributes:
    region: its program, or None; others: programs for values of other kinds, those used last first.
    reason: why it stays in Python; misses: entries that its program refused.
    entries, seconds: of its program.
    untried: how often it is still tried to check it; checks: whether all that it does is only compared.
    compared: how often it was; differs: where it is not what Python does.
    cost: seconds of processor time that compiling it took.
    is_new: whether it was not entered yet, by this run or earlier ones.
    pace: seconds of an iteration in Python, or 0 where that is not known.
    often: one of how many entries has to be refused until another program is made.
    """

    often = 1

    def __init__(self, workshop: Workshop, unit: Unit):
        self.workshop, self.unit = workshop, unit
        self._state, self.reason, self.misses = State.COLD, "", 0
        self.region: Region | None = None
        self.others: list[Region | tuple[bytes, Names]] = []
        self._arrived: tuple[bytes, Callable[[str, Any], Any], Names] | None = None
        self._until, self._n_vain, self._gained, self._renewed = 0, 0, 0.0, 0.0
        self._kept: Region | None = None
        self.entries, self.seconds, self._entries_before = 0, 0.0, 0
        self.untried, self.is_new, self.pace = TRIALS, True, 0.0
        self.checks, self.compared, self.differs, self.cost = workshop.sampler.checks, 0, "", 0.0
        if unit.lesson is not None and unit.lesson.program is not None:
            self._recall(unit.lesson)

    def _recall(self, lesson: Lesson) -> None:
        """Loads the program of an earlier run, at the first entry: what it refers to is there then."""
        self.others += lesson.others
        try:
            self.region = self._load(lesson.program, lesson.names)
        except Exception:  # its machine code is gone, or something that it refers to
            self.unit.gate.close()
        else:
            self.region.is_proven = lesson.is_checked
            self._take_up(self.region)
            self.pace = lesson.pace

    def _load(self, packed: bytes, names: Names) -> Region:
        find = functools.partial(names.find, self.workshop.sampler.restore)
        region = Region(packed, self.list_places(), find, names)
        region.is_proven = True
        return region

    def list_places(self) -> tuple[int, ...]:
        """Offsets where control may go on behind its program."""
        return ()

    @property
    def state(self) -> int:
        """See `State`. What rests is tried once more when it is time."""
        if self._state == State.RESTING and self.unit.ticks >= self._until:
            self._state, kept, self._kept = State.COLD, self._kept, None
            if kept is not None:
                self._take_up(kept)
                self.unit.gate.open()
        return self._state

    @state.setter
    def state(self, state: int) -> None:
        self._state = state

    @property
    def gained(self) -> float:
        """Seconds that Python would have taken for what this program did; 0 where that is not known."""
        return 0.0

    def clear(self) -> None:
        """Is to be compiled once more."""
        self._gained = self.replaced
        self.region, self.state, self._entries_before = None, State.COLD, self.entries
        self.untried, self.is_new, self.pace, self.misses = TRIALS, True, 0.0, 0

    def rest(self, reason: str, keeps: bool = True) -> None:
        """Is left to Python for now: other sizes may come. keeps: whether its program is tried again then."""
        self.unit.gate.close()
        self._kept = self.region if keeps else None
        self.clear()
        self.reason, self.state, self._until = reason, State.RESTING, RESTING * self.unit.ticks
        self.workshop.sampler.has_learned = True

    def renew(self) -> None:
        """Another program is made, for values of another kind."""
        gained, self._renewed = self.replaced - self._renewed, self.replaced
        self._n_vain = 0 if gained > self.cost else self._n_vain + 1
        self.reason = OTHER_VALUES if self.is_in_vain else self.reason
        self._note_tried()
        self.others = [one for one in (self.region, *self.others)
                       if isinstance(one, tuple) or one.is_proven or one.is_tried][:MOST]
        if self._n_vain <= ANEW:
            self.clear()
        else:
            self.rest(OTHER_KINDS, keeps=False)

    def turn(self) -> bool:
        """Goes on with the program that was not used for the longest time. Returns: whether there is one."""
        while self.others:
            region = self._open(self.others.pop())
            if region is not None:
                self._note_tried()
                self.others.insert(0, self.region)
                self._turn_to(region)
                return True
        return False

    def _turn_to(self, region: Region) -> None:
        """Goes on with another program in the place of its own."""
        self.misses, self._entries_before = 0, self.entries
        self._take_up(region)

    def _open(self, other: Region | tuple[bytes, Names]) -> Region | None:
        """One of the other programs; None where what it refers to is gone."""
        try:
            return self._load(*other) if isinstance(other, tuple) else other
        except Exception:
            return None

    def _note_tried(self) -> None:
        """Before it goes on with another program: whether this one need not be tried again."""
        self.region.is_tried |= not self.untried

    def _take_up(self, region: Region) -> None:
        """Goes on with a program that was made before."""
        self.region, self.state = region, State.READY
        self.is_new = not region.is_proven
        self.untried = 0 if region.is_proven or region.is_tried else TRIALS

    def take(self, packed: bytes, find: Callable[[str, Any], Any], names: Names) -> None:
        """Notes a program that was compiled, as `Region` takes it."""
        self._arrived, self.state, self.reason = (packed, find, names), State.READY, ""
        self.workshop.sampler.has_learned = True
        self.unit.gate.open()
        self.unit.n_seen = self.unit.n_asked  # whose frame may be stopped at once

    @property
    def is_due(self) -> bool:
        """Whether what was compiled is worth loading now: it may go on for as long as it has run."""
        if self._arrived is None or self.checks:
            return True
        return self.unit.seconds >= FORETOLD * find_loading_time(self._arrived[0])

    @property
    def is_attempt(self) -> bool:
        """Whether what it does next may be in vain."""
        return self.region is None and self._arrived is None

    def load(self) -> None:
        """Loads what was compiled, if it is not loaded yet."""
        if self._arrived is None:
            return
        (packed, find, names), self._arrived = self._arrived, None
        try:
            self.region = Region(packed, self.list_places(), find, names)
        except (LookupError, ValueError) as error:
            self.give_up(f"its program cannot be taken over: {error}")

    def give_up(self, reason: str) -> None:
        self.unit.gate.close()
        self.state, self.reason, self.region, self.others = State.DEAD, reason, None, []
        self._arrived = None
        self.workshop.sampler.has_learned = True

    @property
    def replaced(self) -> float:
        """The same of all its programs."""
        return self._gained + self.gained

    def compare(self, difference: str) -> None:
        """Notes where its program and Python differ, "" if they do not."""
        self.untried = 0
        self.compared += 1
        if difference:
            self.differs = difference
            self.give_up(f"its program does not do what Python does: {difference}")

    def miss(self) -> None:
        """Notes that no program is for some values."""
        self.misses += 1
        if self.misses >= MISSES and self.often * self.misses > self.entries - self._entries_before:
            self.renew()

    @property
    def is_in_vain(self) -> bool:
        """Whether its program has refused all values so far."""
        is_used = self.entries > self._entries_before or self.region is not None and self.region.is_proven
        return self.region is not None and self.misses > 0 and not is_used

    def describe(self) -> Lesson | None:
        """What a later run is told; None where there is nothing."""
        if self.state == State.COMPILING:
            return Lesson(None, None, "", late=self.unit.late, maker=self.workshop.helper.maker)
        region = None if self.is_in_vain else self.region
        others = [one for one in self.others if isinstance(one, tuple) or one.is_proven]
        told = [one if isinstance(one, tuple) else (one.packed, one.names) for one in (region, *others)
                if isinstance(one, tuple) or one is not None and one.is_named]
        if self._arrived is not None:
            packed, _, names = self._arrived
            told.insert(0, (packed, names))
        if not told:
            reason = OTHER_VALUES if self.is_in_vain else self.reason
            until = self._until if self.state == State.RESTING else RESTING * self.unit.ticks
            until = 0 if self.state == State.DEAD else until
            return Lesson(None, None, reason, until=until) if reason else None
        seconds = self.unit.seconds + self.replaced
        is_checked = self._arrived is None and (
            region is None or region.is_proven or self.entries > self._entries_before)
        return Lesson(*told[0], "", is_checked, self.pace, seconds, others=tuple(told[1:]))


class FrameFate(Fate):
    """Of a loop, or a run of statements: its program goes on in a frame that runs."""

    def __init__(self, workshop: Workshop, unit: Unit):
        self.loop: Loop = unit.loop
        self.lists: dict[str, list] = {}
        super().__init__(workshop, unit)

    def name_lists(self, lists: Iterable[list]) -> None:
        """Notes the lists of comprehensions in a frame that stands at the head."""
        self.lists = dict(zip(map(name_list, self.loop.lists), lists))

    def find_variables(self, frame: FrameType) -> Mapping[str, Any]:
        """Of a frame, with lists of comprehensions."""
        return {**frame.f_locals, **self.lists} if self.lists else frame.f_locals

    def list_places(self) -> tuple[int, ...]:
        return *self.loop.exits, *self.loop.sides

    def do(self, frame: FrameType, ahead: Ahead, count: int) -> tuple[int, dict[str, Any]] | None:
        """Runs the program for so many iterations, see `Region.run`."""
        found = self._read(frame, ahead, count)
        return None if found is None else self.region.run(found[0])

    def _read(self, frame: FrameType, ahead: Ahead, count: int) -> tuple[list, dict[str, list]] | None:
        """(what the program gets, lists that it appends to); None where others may see what it writes."""
        region, variables = self.region, self.find_variables(frame)
        if not are_own(frame, region.program.own, region.program.renewed):  # while nobody here has them, too
            return None
        values = region.read(variables, ahead.list_values(count))
        lists = region.find_lists(variables, values, ahead.sources)
        return None if lists is None else (values, lists)

    def write(self, frame: FrameType, results: dict[str, Any]) -> None:
        """What a program has come to, into a frame."""
        program = self.region.program
        variables = self.find_variables(frame)
        lists = {name: items for name, items in results.items() if name in program.grown}
        write_variables(frame, {name: value for name, value in results.items()
                                if name not in lists and name not in (INDEX, LIMIT)})
        for name, items in lists.items():
            variables[name].extend(items)

    def rehearse(self, frame: FrameType, ahead: Ahead, count: int) -> Trial | None:
        """Does iterations on copies; None where Python would do something else then than the same ones."""
        region, copies = self.region, Copies()
        told = self._read(frame, ahead, count)
        if told is None:
            return None
        given, lists = told
        try:
            names = (*region.program.parameters, *[""] * len(given))
            values = [copies.copy(value, name in region.program.own) for name, value in zip(names, given)]
            call = region.define(copies.find_by(region.find, region.read_names))
            found = copies.run(region.run, values, call)
        except Unchecked:
            self.untried = 0
            return None
        if found is None:
            self.misses += 1
        if found is None or not self.ends(found[0]):
            return None
        lengths = {name: len(one) for name, one in lists.items()}
        results = {name: value for name, value in found[1].items() if name not in (INDEX, LIMIT)}
        return Trial(copies, results, lengths)

    def ends(self, number: int) -> bool:
        """Whether an exit is where all that the program was to do is done."""
        exits = self.loop.exits
        return number == HEAD or number < len(exits) and (self.loop.is_run or exits[number] == self.loop.end)
