"""Which loops of a running script cost time.

In: a tick for each 10 ms of processor time, with the frame that runs. Out: loops that are compiled by another process,
and entered where they stand. Inclusive time goes to all loops around what runs. What has cost 50 ms is compiled: of the
innermost frame that is in a loop the outermost one that can be; what is around it when that did not help.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from time import monotonic
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

from jitcore.scripts.entries import Gate, Loop, Prepared, Slot, add_entries, list_assigned, list_parameters
from jitcore.scripts.functions import FunctionState
from jitcore.scripts.helper import Helper
from jitcore.scripts.loops import LoopState
from jitcore.scripts.units import Unit

__all__ = ["Sampler"]

#: Seconds of processor time between two ticks; ticks after which a loop is compiled.
TICK, HOT = 0.01, 5
#: Ticks in which a frame that is to be stopped at a head may come there.
LATE = 10
#: The most seconds that a compilation may take.
LONGEST = 2.0
#: Whether what goes wrong in here is raised in the script.
DEBUG = bool(os.environ.get("JITCORE_SCRIPTS_DEBUG"))


class Sampler:
    """Args: sys.path of the process, for the one that compiles; the text of the script.

    Attributes:
        units: loops and functions of the script; codes: the prepared ones, by the identity of their code objects.
        armed: what is to be stopped at a head, and which loop's; is_busy: whether ticks do nothing.
        has_learned: whether there is something to keep for later runs.
    """

    def __init__(self, path: list[str], source: bytes = b""):
        self.helper, self.source = Helper(path), source
        self.units: list[Unit] = []
        self.functions: dict[int, FunctionState] = {}
        self.codes: dict[int, Prepared] = {}
        self.states: dict[tuple[int, int], LoopState] = {}
        self.armed: tuple[Any, LoopState] | None = None
        self.is_busy = self.has_learned = False
        self._current: Unit | None = None  # that is compiled
        self._described: Any = None
        self._n_codes, self._started = 0, monotonic()

    # -- the script's code -----------------------------------------------------------------------------------
    def prepare(self, code: CodeType) -> CodeType:
        """The code of a module or function, and of all functions in it, with entries."""
        number, self._n_codes = self._n_codes, self._n_codes + 1
        consts = tuple(self.prepare(const) if isinstance(const, CodeType) else const for const in code.co_consts)
        if any(one is not other for one, other in zip(consts, code.co_consts)):
            code = code.replace(co_consts=consts)
        made: list[Any] = []

        def make(loop: Loop) -> tuple[Gate, Any]:
            made.append(LoopState(self, loop, number))
            return made[-1].gate, made[-1].resume

        slot = Slot() if list_parameters(code) else None
        prepared = add_entries(code, make, slot)
        if prepared is None:
            return code
        self.codes[id(prepared.code)] = prepared
        for state in made:
            self.states[id(prepared.code), state.loop.head] = state
        if slot is not None:
            made.append(FunctionState(self, slot, number, code.co_firstlineno))
            self.functions[id(prepared.code)] = made[-1]
        for state in made:
            state.prepared = prepared
        self.units += made
        return prepared.code

    def restore(self, code: CodeType) -> CodeType:
        """The code as the script has it, with all functions in it."""
        if id(code) in self.codes:
            code = self.codes[id(code)].original
        consts = tuple(self.restore(const) if isinstance(const, CodeType) else const for const in code.co_consts)
        return code.replace(co_consts=consts)

    def remember(self) -> None:
        """Takes over what earlier runs found out about the loops."""
        if self.units:
            from jitcore.scripts.learned import load_lessons

            lessons = load_lessons(self.source)
            for state in self.units if lessons else ():
                if state.key in lessons:
                    state.learn(lessons[state.key])

    def keep(self) -> None:
        """Keeps what was found out for later runs."""
        if self.has_learned:
            from jitcore.scripts.learned import store_lessons

            lessons = {state.key: state.describe() for state in self.units if state.state != Unit.COLD}
            store_lessons(self.source, {key: lesson for key, lesson in lessons.items() if lesson is not None})

    # -- ticks -----------------------------------------------------------------------------------------------
    def start(self) -> None:
        signal.signal(signal.SIGPROF, self.tick)
        signal.siginterrupt(signal.SIGPROF, False)
        signal.setitimer(signal.ITIMER_PROF, TICK, TICK)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        self.disarm()
        self.helper.leave()

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
        running = list(self._list_running(frame))
        for _, states in running:
            for state in states:
                state.ticks += 1
        if self._current is not None:
            self._look_after_helper()
        if self.armed is not None:
            state = self.armed[1]
            state.late += 1
            if state.late < LATE:
                return
            self.disarm()
        for around, states in running:
            for state in states:
                if state.state == LoopState.DEAD or state.late >= LATE or state.misses:
                    continue
                is_hot = state.state == LoopState.COLD and state.ticks >= HOT and self._current is None
                if is_hot or state.state == LoopState.READY:
                    self.arm(around, state)
                    return
                if state.state == LoopState.COMPILING:
                    return
                break
        self._look_at_functions(frame)

    def _look_at_functions(self, frame: FrameType | None) -> None:
        """Where no loop can be compiled: calls of the innermost function."""
        while frame is not None:
            state = self.functions.get(id(frame.f_code))
            if state is not None:
                state.ticks += 1
                if state.state == Unit.COLD and state.ticks >= HOT and self._current is None:
                    state.open()
                    return
            frame = frame.f_back

    def _list_running(self, frame: FrameType | None) -> Iterator[tuple[FrameType, list[LoopState]]]:
        """(frame, loops that it is in, outer ones first), inner frames first."""
        while frame is not None:
            prepared = self.codes.get(id(frame.f_code))
            if prepared is not None:
                offset = prepared.locate(frame.f_lasti)
                states = [self.states[id(frame.f_code), loop.head] for loop in prepared.loops if offset in loop.body]
                if states:
                    yield frame, states
            frame = frame.f_back

    def arm(self, frame: FrameType, state: LoopState, skipped: int = 0) -> None:
        """Has a frame stopped at the head of a loop, when it has come there more than `skipped` times."""
        from jitcore.scripts.arming import arm

        self.disarm()
        found = arm(frame, state.prepared.heads[state.loop.head], skipped)
        if found is not None:
            self.armed = found, state

    def disarm(self) -> None:
        if self.armed is not None:
            self.armed[0].disarm()
            self.armed = None

    # -- compiling -------------------------------------------------------------------------------------------
    def submit(self, frame: FrameType, state: LoopState, iterator: Any) -> None:
        """Has a loop compiled whose frame stands at its head."""
        if self._current is not None:
            return
        from jitcore.scripts.environment import describe
        from jitcore.scripts.regions import Job, count_rest

        loop, code = state.loop, state.prepared.original
        counts, step = (), 0
        if loop.is_for:
            rest = count_rest(iterator)
            if rest is None:
                state.give_up("it goes through something else than a range")
                return
            counts, step = (rest.start, rest.stop), rest.step
            state.mark(frame, rest)
        variables = frame.f_locals
        is_module = variables is frame.f_globals
        hidden = list_assigned(code, loop.body) if is_module else frozenset()
        cells = tuple([CellType(variables.get(name)) for name in code.co_freevars]) or None
        function = FunctionType(code, frame.f_globals, code.co_name, None, cells)
        values = {name: variables[name] for name in (hidden if is_module else variables) if name in variables}
        try:
            data, self._described = describe(values, [function], hidden, self.restore)
        except Exception as error:
            state.give_up(f"it cannot be told to another process: {error}")
            return
        body = (loop.head, *sorted(loop.body - {loop.head}))
        self._submit(state, Job(data, body, is_module, counts, step, loop.sides))

    def submit_call(self, state: FunctionState, values: Sequence[Any]) -> None:
        """Has a function compiled for calls like one."""
        if self._current is not None:
            return
        from jitcore.scripts.environment import describe
        from jitcore.scripts.regions import Job

        names = list_parameters(state.prepared.original)
        try:
            data, self._described = describe(dict(zip(names, values)), [state.function], frozenset(), self.restore)
        except Exception as error:
            state.give_up(f"it cannot be told to another process: {error}")
            return
        self._submit(state, Job(data, (), False, (), 0, {}))

    def _submit(self, state: Unit, job: Any) -> None:
        self.helper.submit(job)
        state.state, self._current = Unit.COMPILING, state

    def _look_after_helper(self) -> None:
        state, answer = self._current, self.helper.poll()
        if answer is None:
            if self.helper.seconds > min(LONGEST, monotonic() - self._started):
                self.helper.kill()
                state.give_up("compiling it takes too long")
                self._current = None
            return
        self._current = None
        if isinstance(answer, str):
            state.give_up(answer)
            return
        from jitcore.scripts.learned import name_all
        from jitcore.scripts.regions import Region

        described, self._described = self._described, None
        try:
            state.take(Region(answer, state.list_places(), described.find, name_all(described, self.restore)))
        except LookupError as error:
            state.give_up(str(error))
