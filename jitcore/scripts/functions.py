"""What becomes of a function of the script that is called often, by plain Python or by a library.

In: calls of the function, while its gate is open, with the values of its parameters. Out: results, or `DECLINED`: then
the function itself runs.

A program is compared with plain Python at its first call, on copies of the arguments, and timed against it at a few more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from types import FunctionType
from typing import TYPE_CHECKING, Any

from jitcore.scripts.entries import DECLINED, Prepared, Slot, list_parameters
from jitcore.scripts.units import Unit

if TYPE_CHECKING:
    from jitcore.scripts.sampling import Sampler

__all__ = ["FunctionState"]

#: Calls that are timed, in Python and compiled.
TIMED = 5
#: Part of the time in Python that a program may take.
WORTH = 0.8


class FunctionState(Unit):
    """A function of the script."""

    def __init__(self, sampler: Sampler, slot: Slot, number: int, line: int):
        super().__init__(sampler, slot.gate, (number, -1))
        self.slot, self._line = slot, line
        self.function: FunctionType | None = None
        self._in_python: list[float] = []
        self._compiled: list[float] = []
        slot.call = self._observe

    @property
    def line(self) -> int:
        return self._line

    def open(self) -> None:
        """Has the next call looked at."""
        self.gate[:] = (True,)

    def _observe(self, *values: Any) -> Any:
        sampler = self.sampler
        is_busy, sampler.is_busy = sampler.is_busy, True
        try:
            if self.region is None and not self.recall():
                self.gate.clear()
                if self.state == self.COLD:
                    self.function = find_function(self.prepared, sys._getframe(1).f_globals)
                    sampler.submit_call(self, values)
                return DECLINED
        finally:
            sampler.is_busy = is_busy
        if self.function is None:
            self.function = find_function(self.prepared, sys._getframe(1).f_globals)
        self._plain = FunctionType(self.sampler.restore(self.prepared.original), self.function.__globals__)
        return (self._try if self._untried else self._time)(values)

    def take(self, region: Any) -> None:
        super().take(region)
        self.open()

    # -- the first calls -------------------------------------------------------------------------------------
    def _try(self, values: tuple) -> Any:
        """Compares one call."""
        from jitcore.scripts.trial import Copies, Unchecked, is_alike

        copies, self._untried = Copies(), self._untried - 1
        try:
            given = [copies.copy(value) for value in values]
            call = self.region.define(lambda kind, number: copies.copy_found(kind, self.region.find(kind, number)))
        except Unchecked:
            self._untried = 0
            return DECLINED
        found = call(*given)
        if found is DECLINED:
            self.miss()
            return DECLINED
        result = self._run_plain(values)
        if is_alike(result, found) and copies.are_alike():
            self._untried = 0
        else:
            self.give_up("its program does not do what Python does")
        return result

    def _time(self, values: tuple) -> Any:
        """Times one call, in Python or compiled."""
        start = perf_counter()
        if len(self._in_python) <= len(self._compiled):
            result = self._run_plain(values)
            self._in_python.append(perf_counter() - start)
            return result
        found = self.region.call(*values)
        seconds = perf_counter() - start
        if found is DECLINED:
            self.miss()
            return found
        self._compiled.append(seconds)
        if len(self._compiled) == TIMED:
            if min(self._compiled) > WORTH * min(self._in_python):
                self.give_up("its program takes about as long as Python")
            else:
                self.slot.call = self._call
        return found

    def _run_plain(self, values: tuple) -> Any:
        names = list_parameters(self.prepared.original)
        return self._plain(**dict(zip(names, values))) if self.prepared.original.co_posonlyargcount == 0 else self._plain(*values)

    def _call(self, *values: Any) -> Any:
        found = self.region.call(*values)
        self.entries += 1
        if found is DECLINED:
            self.miss()
        return found


def find_function(prepared: Prepared, names: dict[str, Any]) -> FunctionType:
    """The function of this code that a module knows by its name, or one like it."""
    value: Any = names.get(prepared.code.co_qualname.partition(".")[0])
    for part in prepared.code.co_qualname.split(".")[1:]:
        value = vars(value).get(part) if isinstance(value, type) else None
    if type(value) is FunctionType and value.__code__ is prepared.code:
        return value
    return FunctionType(prepared.code, names)


Call = Callable[..., Any]
