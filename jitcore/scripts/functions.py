"""What becomes of a function of the script that is called often, by plain Python or by a library.

In: calls of the function, while its gate is open, with the values of its parameters. Out: results, or
`DECLINED`: then the function itself runs.

A program is compared with plain Python at its first call, on copies of the arguments, and timed against it at
a few more.
"""

from __future__ import annotations

from time import perf_counter
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from jitcore.scripts.entries import list_parameters
from jitcore.scripts.fates import AGAIN, MISSES, Fate
from jitcore.scripts.gates import DECLINED, Prepared
from jitcore.scripts.regions import Region
from jitcore.scripts.trial import Copies, Unchecked, is_alike
from jitcore.scripts.units import State, Unit

if TYPE_CHECKING:
    from jitcore.scripts.workshop import Workshop

__all__ = ["FunctionFate"]

#: Seconds of a call in Python below which no program is faster: values are checked and passed.
SHORT = 4e-6
#: Seconds of a call of which one is enough to see that it is none of these.
LONG = 1e-4
#: Calls that are timed, in Python and compiled, the first of which are slow in both. Seconds that a call of a
#: program takes beside; part of the time in Python that all may take.
TIMED, AROUND, WORTH = 20, 1e-6, 0.7


class FunctionFate(Fate):
    """Of a function."""

    often = 8

    def __init__(self, workshop: Workshop, unit: Unit):
        self._first: list[float] = []
        self._in_python: list[float] = []
        self._compiled: list[float] = []
        self._known, self._n_missed = 0.0, 0  # seconds of a call in Python; misses one after the other
        self._n_weighed = self._n_found = 0  # entries whose seconds are known; by others while one is made
        self._plain: FunctionType | None = None
        super().__init__(workshop, unit)

    @property
    def gained(self) -> float:
        return (self.entries - self._n_weighed) * min(self._in_python, default=self._known)

    def clear(self) -> None:
        self._known = min(self._in_python, default=self._known)
        super().clear()
        self._first, self._in_python, self._compiled, self._n_missed = [], [], [], 0
        self._n_weighed, self._n_found = self.entries, 0
        self.unit.slot.call = self.unit.call

    def _take_up(self, region: Region) -> None:
        """What was timed of it goes on, as each call may be for another program."""
        self._gained, self._n_weighed = self.replaced, self.entries
        self._known = min(self._in_python, default=self._known)
        super()._take_up(region)
        self._in_python, self._compiled = region.in_python, region.compiled
        self.unit.slot.call = self.unit.call
        if self._known and not self.is_new:
            self._settle()

    def _settle(self) -> None:
        """The program is asked from now on, and nothing is timed."""
        if not self.checks:
            self.unit.slot.call = self._call

    def call(self, frame: FrameType, values: tuple) -> Any:
        """A frame of the function has begun."""
        if self._plain is None:
            code = self.workshop.sampler.restore(self.unit.prepared.original)
            self._plain = FunctionType(code, frame.f_globals)
        self.load()
        if self.region is not None:
            return self._try(values) if self.untried or self.checks else self._time(values)
        if self.state != State.COLD:
            self.unit.gate.close()
            return DECLINED
        if frame.f_code.co_name in frame.f_code.co_names:
            self.give_up("it calls itself")
            return DECLINED
        found = self._call_other(values) if not self.checks else DECLINED
        if found is not DECLINED:  # another one is made for values that none takes
            self.entries += 1
            self._n_found += 1
            if self._n_found > MISSES:  # which do not come any more
                self._take_up(self.others.pop(0))
            return found
        result, seconds = self._run_plain(values)
        self._first.append(seconds)
        if len(self._first) < TIMED and seconds < LONG:
            return result
        self.unit.gate.close()
        if min(self._first) < SHORT:
            self.rest("its calls are short", keeps=False)
        else:
            self.workshop.submit_call(self, find_function(self.unit.prepared, frame.f_globals), values)
        return result

    def load(self) -> None:
        if self._arrived is None:
            return
        super().load()
        if self.region is not None:
            self._in_python, self._compiled = self.region.in_python, self.region.compiled

    # -- the first calls -------------------------------------------------------------------------------------
    def _try(self, values: tuple) -> Any:
        """Compares one call."""
        copies, self.untried = Copies(), self.untried - 1
        try:
            given = [copies.copy(value) for value in values]
            call = self.region.define(copies.find_by(self.region.find, self.region.read_names))
            found = copies.run(call, *given)
        except Unchecked:
            self.untried = 0
            return DECLINED
        if found is DECLINED and self.checks:
            self._miss()
            return DECLINED
        if found is DECLINED:
            return self._call(*values)
        result, _ = self._run_plain(values)
        if not is_alike(result, found, copies.list_known()):
            self.compare(f"it gives {result!r:.60}, and {found!r:.60} compiled")
        else:
            self.compare("" if copies.are_alike() else "an array has other elements")
        return result

    def _time(self, values: tuple) -> Any:
        """Times one call, in Python or compiled."""
        if len(self._in_python) <= len(self._compiled):
            result, seconds = self._run_plain(values)
            self._in_python.append(seconds)
            if not self.is_new:
                self._settle()
            return result
        start = perf_counter()
        found = self._call(*values)
        seconds = perf_counter() - start
        if found is DECLINED or not self.is_new:
            return found
        self._compiled.append(seconds)  # of the program that was found
        self.seconds += seconds
        if len(self._compiled) >= TIMED and self._in_python:
            if min(self._compiled) + AROUND > WORTH * min(self._in_python):
                self.rest("its program takes about as long as Python")
            else:
                self.is_new, self.region.is_proven = False, True
                self._settle()
        return found

    def _run_plain(self, values: tuple) -> tuple[Any, float]:
        """(what the function gives, seconds that it takes)."""
        code = self.unit.prepared.original
        count = code.co_argcount
        given, named = values[:count], dict(zip(list_parameters(code)[count:], values[count:]))
        start = perf_counter()
        result = self._plain(*given, **named)
        seconds = perf_counter() - start
        self.workshop.spent -= seconds  # which the script would have taken, too
        return result, seconds

    def _call(self, *values: Any) -> Any:
        """Has the program do it that is for these values."""
        found = self.region.call(*values)
        if found is DECLINED and self.others:
            found = self._call_other(values)
        if found is DECLINED:
            self._miss()
        else:
            self.entries += 1
            self._n_missed = 0
        return found

    def _call_other(self, values: tuple) -> Any:
        """Goes on with the other program that is for these values, if there is one. That which was not used
        for the longest time is asked first."""
        for place in reversed(range(len(self.others))):
            region = self._open(self.others[place])
            if region is None:
                del self.others[place]
                continue
            self.others[place] = region
            found = region.call(*values)
            if found is not DECLINED:
                del self.others[place]
                if self.untried:  # it goes on waiting for its values
                    self.others.insert(0, region)
                else:
                    self._note_tried()
                    self.others.insert(0, self.region)
                    self._take_up(region)
                return found
        return DECLINED

    def _miss(self) -> None:
        self.miss()
        self._n_missed += 1
        if self.region is not None and self._n_missed > (MISSES if self.untried else AGAIN):
            self.renew()


def find_function(prepared: Prepared, names: dict[str, Any]) -> FunctionType:
    """The function of this code that a module knows by its name, or one like it."""
    value: Any = names.get(prepared.code.co_qualname.partition(".")[0])
    for part in prepared.code.co_qualname.split(".")[1:]:
        value = vars(value).get(part) if isinstance(value, type) else None
    if type(value) is FunctionType and value.__code__ is prepared.code:
        return value
    return FunctionType(prepared.code, names)

