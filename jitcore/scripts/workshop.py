"""What is done about hot units: they are compiled by another process, and frames that run are entered.

In: units that the `Sampler` finds hot, and what their entries ask. Out: what these are told. This is loaded
when the first unit is hot, or was in an earlier run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import monotonic, perf_counter
from types import CellType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from jitcore.scripts.arming import PATIENCE, SHARE, Arming, arm
from jitcore.scripts.entries import list_appended, list_assigned, list_parameters, list_read
from jitcore.scripts.environment import describe, find_opaque
from jitcore.scripts.fates import Fate, FrameFate
from jitcore.scripts.functions import FunctionFate
from jitcore.scripts.gates import HEAD, RAISED
from jitcore.scripts.helper import LONGEST, Helper
from jitcore.scripts.interrupts import Waiting
from jitcore.scripts.iterators import ROOM, Ahead
from jitcore.scripts.learned import Note, name_all
from jitcore.scripts.loops import LoopFate
from jitcore.scripts.regions import Job
from jitcore.scripts.runs import RunFate
from jitcore.scripts.units import TICK, State, Uncollected, Unit

if TYPE_CHECKING:
    from jitcore.scripts.sampling import Sampler

__all__ = ["Workshop"]

#: Seconds that attempts may cost, less what programs have gained, and the part of what the script has run
#: that they may cost besides.
ALLOWANCE, PART = 0.03, 0.03
#: What a tick costs in which a frame is on its way to a head: all that it calls is slower.
ARMED = 0.5


class Workshop:
    """Args: the sampler of the script; sys.path of the process that compiles.

    Attributes:
        current: the fate of the unit that is compiled at the moment.
        waiting: the signals that wait, while a loop is entered.
        spent: seconds that all of this took in the script's process.
    """

    def __init__(self, sampler: Sampler, path: list[str]):
        self.sampler, self.helper = sampler, Helper(path)
        self.current: Fate | None = None
        self.waiting: Waiting | None = None
        self.spent = 0.0
        self._armed: tuple[Arming, Unit] | None = None
        self._ticks_armed = 0
        self._told: Any = None  # (`Described`, `Names`) of what is compiled
        self._started = monotonic()

    # -- what entries ask ------------------------------------------------------------------------------------
    def enter(self, unit: Unit, frame: FrameType, iterator: Any, lists: tuple = ()) -> tuple[int, Any]:
        """A frame stands at the head of a loop."""
        was_stopped = self._armed is not None and self._armed[1] is unit
        if was_stopped:
            self.disarm()
        if was_stopped or unit.loop.is_run:
            unit.late = 0
        before, self.waiting = self.waiting, Waiting()
        fate = self.fate_of(unit)
        fate.name_lists(lists)
        try:
            if fate.is_attempt and not self.can_afford():
                unit.gate.close()
                found = HEAD, iterator
            else:
                found = self._quietly(fate.enter, frame, iterator, was_stopped)
        finally:
            fate.name_lists(())
            error, self.waiting = self.waiting.end(frame), before
        return found if error is None else (RAISED, error)

    def finish(self, unit: Unit, frame: FrameType) -> None:
        """Python has come to the end of a run of statements."""
        self._quietly(self.fate_of(unit).finish, frame)

    def call(self, unit: Unit, frame: FrameType, values: tuple) -> Any:
        """A frame of a function has begun."""
        return self._quietly(self.fate_of(unit).call, frame, values)

    def _quietly(self, do: Callable, *given: Any) -> Any:
        """Without ticks meanwhile."""
        sampler, start = self.sampler, perf_counter()
        is_busy, sampler.is_busy = sampler.is_busy, True
        try:
            return do(*given)
        finally:
            sampler.is_busy = is_busy
            self.spent += perf_counter() - start

    def can_afford(self) -> bool:
        """Whether attempts have cost little beside what the script has run, or programs have gained more."""
        left = ALLOWANCE + PART * self.sampler.seconds - self.spent
        return left > 0 or self.sampler.checks or left + sum(
            unit.fate.replaced for unit in self.sampler.units if unit.fate is not None) > 0

    def fate_of(self, unit: Unit) -> Any:
        if unit.fate is None:
            kind = FunctionFate if unit.is_function else RunFate if unit.loop.is_run else LoopFate
            unit.fate = self._quietly(kind, self, unit)  # which may load the program of an earlier run
        return unit.fate

    # -- frames that run -------------------------------------------------------------------------------------
    def look_after(self, frame: FrameType | None) -> bool:
        """Called at each tick, with the frame that runs. Returns: whether a frame is on its way to a head."""
        if self.current is not None:
            self.current.cost = self.helper.seconds
            self._look_after_helper()
        if self._armed is not None:
            self._armed[1].late += 1
            self._ticks_armed += 1
            self.spent += ARMED * TICK
            if self.patience > 0 and is_running(self._armed[0].frame, frame):
                return True
            self.disarm()
            self.sampler.has_learned = True
        return False

    @property
    def patience(self) -> float:
        """Ticks in which a frame that is to be stopped at a head may come there: it is slow meanwhile."""
        return PATIENCE + SHARE * self.sampler.n_ticks - self._ticks_armed

    def arm(self, frame: FrameType, unit: Unit) -> None:
        """Has a loop asked where it is begun next; and where it was not in a tick, has a frame stopped at its
        head: all that it calls is slower until then."""
        self.disarm()
        if unit.waits():
            return
        if not unit.gate:
            unit.gate.open()
            unit.n_seen = unit.n_asked
            return
        if unit.loop.is_run:  # whose beginning each iteration asks
            unit.late += 1
            return
        if unit.n_seen != unit.n_asked:
            unit.n_seen = unit.n_asked
            return
        found = arm(frame, unit.prepared.heads[unit.loop.head])
        if found is not None:
            self._armed = found, unit

    def disarm(self) -> None:
        if self._armed is not None:
            self._armed[0].disarm()
            self._armed = None

    def leave(self) -> None:
        """Lets the other process end, and keep what it compiles for later runs."""
        note = None
        if self.current is not None:
            unit = self.current.unit
            note = Note(unit.text.key, unit.key, self._told[1], unit.seconds)
        self.helper.leave(note)

    # -- compiling -------------------------------------------------------------------------------------------
    def submit_loop(self, fate: FrameFate, frame: FrameType, ahead: Ahead) -> None:
        """Has a loop compiled whose frame stands at its head."""
        loop, code = fate.loop, fate.unit.prepared.original
        variables, is_module = fate.find_variables(frame), frame.f_locals is frame.f_globals
        given = {**frame.f_globals, **variables}
        certain = loop.body.difference(*loop.sides.values())
        lists = {name for name in list_appended(code, loop.body, certain) if type(given.get(name)) is list
                 and (is_module or name in variables)}.union(fate.lists)
        hidden = list_assigned(code, loop.body) | lists if is_module else frozenset()
        cells = tuple([CellType(variables.get(name)) for name in code.co_freevars]) or None
        function = FunctionType(code, frame.f_globals, code.co_name, None, cells)
        told = (hidden if is_module else {*variables}) - lists
        values = {name: variables[name] for name in told if name in variables}
        opaque = find_opaque_name(list_read(code, certain) - lists, given)
        if opaque:
            fate.give_up(opaque)
            return
        sides = {offset: list_read(code, part, with_attributes=True) for offset, part in loop.sides.items()}
        body = (loop.head, *sorted(loop.body - {loop.head}))
        named, counts = ahead.tell(min(ahead.left, ROOM))
        job = Job(b"", body, is_module, ahead.form, counts, sides, loop.exits if loop.is_run else (),
                  frozenset(lists))
        self._submit(fate, {**values, **named}, function, frozenset(hidden), job)

    def submit_call(self, fate: FunctionFate, function: FunctionType, values: Sequence[Any]) -> None:
        """Has a function compiled for calls like one."""
        given = dict(zip(list_parameters(fate.unit.prepared.original), values))
        self._submit(fate, given, function, frozenset(), Job(b"", (), False, "", (), {}, (), frozenset()))

    def _submit(self, fate: Fate, values: dict[str, Any], function: FunctionType, hidden: frozenset[str],
                job: Job) -> None:
        if self.current is not None:
            return
        try:
            with Uncollected():
                data, described = describe(values, [function], hidden, self.sampler.restore)
                self._told = described, name_all(described, self.sampler.restore)
        except Exception as error:
            fate.give_up(f"it cannot be told to another process: {error}")
            return
        self.helper.submit(job._replace(data=data))
        fate.state, self.current = State.COMPILING, fate
        self.sampler.has_learned = True

    def _look_after_helper(self) -> None:
        fate, answer = self.current, self.helper.poll()
        if answer is None:
            if self.helper.seconds > min(LONGEST, monotonic() - self._started):
                self.helper.kill()
                self.current = None
                fate.give_up("compiling it takes too long")
            return
        self.current = None
        if isinstance(answer, str):
            fate.give_up(answer)
            return
        described, names = self._told
        fate.take(answer, described.find, names)


def find_opaque_name(names: Iterable[str], values: dict[str, Any]) -> str:
    """Which of the variables that are read another process cannot be told, in words; "" for none."""
    for name in sorted(names):
        if name in values and (what := find_opaque(values[name])):
            return f"{name} is a {what}"
    return ""


def is_running(frame: FrameType, inner: FrameType | None) -> bool:
    """Whether a frame is one of those that an inner one returns to."""
    while inner is not None and inner is not frame:
        inner = inner.f_back
    return inner is not None
