"""Which loops and functions of a running script cost time.

In: a tick for each 10 ms of processor time, with the frame that runs. Out: hot units, for the `Workshop`.
Inclusive time goes to all loops around what runs. What has cost 50 ms is hot: of the innermost frame that is
in a loop the outermost one that can be compiled; what is around it when that did not help; and where no loop
can be, the innermost function.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from jitcore.scripts.entries import Gate, Loop, Prepared, Slot, add_entries, list_parameters
from jitcore.scripts.learned import load_lessons, make_key, store_lessons
from jitcore.scripts.units import State, Unit

if TYPE_CHECKING:
    from jitcore.scripts.workshop import Workshop

__all__ = ["Sampler"]

#: Seconds of processor time between two ticks; ticks after which a unit is hot.
TICK, HOT = 0.01, 5
#: Whether what goes wrong in here is raised in the script.
DEBUG = bool(os.environ.get("JITCORE_SCRIPTS_DEBUG"))


class Sampler:
    """Args: sys.path of the process, for the one that compiles; the text of the script.

    Attributes:
        units: loops and functions of the script; codes: the prepared ones, by the identity of their code
            objects.
        n_ticks: number of ticks so far.
        is_busy: whether ticks do nothing; has_learned: whether there is something to keep for later runs.
    """

    def __init__(self, path: list[str], source: bytes = b""):
        self.path, self.source = path, source
        self.units: list[Unit] = []
        self.codes: dict[int, Prepared] = {}
        self._loops: dict[tuple[int, int], Unit] = {}
        self._functions: dict[int, Unit] = {}
        self.is_busy = self.has_learned = False
        self.n_ticks = 0
        self._n_codes = 0

    @functools.cached_property
    def workshop(self) -> Workshop:
        from jitcore.scripts.workshop import Workshop  # takes 10 ms to load

        return Workshop(self, self.path)

    # -- the script's code -----------------------------------------------------------------------------------
    def prepare(self, code: CodeType) -> CodeType:
        """The code of a module or function, and of all functions in it, with entries."""
        number, self._n_codes = self._n_codes, self._n_codes + 1
        consts = tuple([self.prepare(one) if isinstance(one, CodeType) else one for one in code.co_consts])
        if any(one is not other for one, other in zip(consts, code.co_consts)):
            code = code.replace(co_consts=consts)
        made: list[Unit] = []

        def make(loop: Loop) -> tuple[Gate, Any]:
            made.append(Unit(self, number, loop.line, loop=loop))
            return made[-1].gate, made[-1].resume

        slot = Slot() if list_parameters(code) else None
        prepared = add_entries(code, make, slot)
        if prepared is None:
            return code
        self.codes[id(prepared.code)] = prepared
        self._loops |= {(id(prepared.code), unit.loop.head): unit for unit in made}
        if slot is not None:
            made.append(Unit(self, number, code.co_firstlineno, slot=slot))
            self._functions[id(prepared.code)] = made[-1]
        for unit in made:
            unit.prepared = prepared
        self.units += made
        return prepared.code

    def restore(self, code: CodeType) -> CodeType:
        """The code as the script has it, with all functions in it."""
        if id(code) in self.codes:
            code = self.codes[id(code)].original
        consts = tuple([self.restore(one) if isinstance(one, CodeType) else one for one in code.co_consts])
        return code.replace(co_consts=consts)

    def remember(self) -> None:
        """Takes over what earlier runs found out."""
        lessons = load_lessons(make_key(self.source)) if self.units else {}
        for unit in self.units if lessons else ():
            if unit.key in lessons:
                unit.learn(lessons[unit.key])

    def keep(self) -> None:
        """Keeps what was found out for later runs."""
        if self.has_learned:
            lessons = [(unit.key, unit.describe()) for unit in self.units]
            known = {key: lesson for key, lesson in lessons if lesson is not None}
            store_lessons(make_key(self.source), known)

    # -- ticks -----------------------------------------------------------------------------------------------
    def start(self) -> None:
        signal.signal(signal.SIGPROF, self.tick)
        signal.siginterrupt(signal.SIGPROF, False)
        signal.setitimer(signal.ITIMER_PROF, TICK, TICK)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        if "workshop" in self.__dict__:
            self.workshop.disarm()

    def leave(self) -> None:
        """Lets the process that compiles end by itself."""
        if "workshop" in self.__dict__:
            self.workshop.leave()

    def tick(self, number: int, frame: FrameType | None) -> None:
        if self.is_busy:
            return
        self.is_busy = True
        try:
            self._look(frame)
        except Exception:
            if DEBUG:
                raise
            self.stop()
        finally:
            self.is_busy = False

    def _look(self, frame: FrameType | None) -> None:
        self.n_ticks += 1
        running = list(self._list_running(frame))
        for unit in {unit for _, units in running for unit in units}:
            unit.ticks += 1
        if "workshop" in self.__dict__ and self.workshop.look_after():
            return
        for around, units in running:
            for unit in units:
                if unit.state == State.DEAD or unit.fate is not None and unit.fate.misses:
                    continue
                if unit.late and 2 * unit.late > self.workshop.patience:
                    continue
                if unit.state == State.COMPILING:
                    return
                if unit.state == State.READY or unit.ticks >= HOT and self._is_free:
                    self.workshop.arm(around, unit)
                    return
                break
        self._look_at_functions(frame)

    @property
    def _is_free(self) -> bool:
        """Whether nothing is compiled at the moment."""
        return "workshop" not in self.__dict__ or self.workshop.current is None

    def _look_at_functions(self, frame: FrameType | None) -> None:
        """Where no loop can be compiled: calls of the innermost function."""
        seen: set[Unit] = set()
        while frame is not None:
            unit = self._functions.get(id(frame.f_code))
            if unit is not None and unit not in seen:
                seen.add(unit)
                unit.ticks += 1
                if unit.state == State.COLD and unit.ticks >= HOT and self._is_free:
                    unit.gate.open()
                    return
            frame = frame.f_back

    def _list_running(self, frame: FrameType | None) -> Iterator[tuple[FrameType, list[Unit]]]:
        """(frame, loops that it is in, outer ones first), inner frames first."""
        while frame is not None:
            prepared = self.codes.get(id(frame.f_code))
            if prepared is not None:
                offset = prepared.locate(frame.f_lasti)
                heads = [loop.head for loop in prepared.loops if offset in loop.body]
                units = [self._loops[id(frame.f_code), head] for head in heads]
                if units:
                    yield frame, units
            frame = frame.f_back
