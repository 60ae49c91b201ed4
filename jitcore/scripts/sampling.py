"""Which loops of a running script cost time, and what becomes of them.

In: a tick for each 10 ms of processor time, with the frame that runs. Out: loops that are compiled elsewhere, and
entered where they stand. Inclusive time goes to all loops around what runs. What has cost 50 ms is compiled: of the
innermost frame that is in a loop the outermost one that can be; what is around it when that did not help.
"""

from __future__ import annotations

import signal
import sys
import types
from time import monotonic, perf_counter
from typing import Any

from jitcore.scripts.entries import HEAD, Gate, Loop, Prepared, add_entries, list_assigned
from jitcore.scripts.helper import Helper

__all__ = ["LoopState", "Sampler"]

#: Seconds of processor time between two ticks; ticks after which a loop is compiled.
TICK, HOT = 0.01, 5
#: Ticks in which a frame that is to be stopped at a head may come there.
LATE = 10
#: Entries that a program refuses before it is given up.
MISSES = 20
#: The most seconds that a compilation may take.
LONGEST = 2.0


class LoopState:
    """A loop of the script.

    Attributes:
        ticks: that it has had; state: what becomes of it; reason: why it stays in Python.
    """

    COLD, COMPILING, READY, DEAD = range(4)

    def __init__(self, sampler: Sampler, loop: Loop):
        self.sampler, self.loop = sampler, loop
        self.prepared: Prepared | None = None
        self.gate = Gate()
        self.state, self.ticks, self.late, self.misses = self.COLD, 0, 0, 0
        self.region: Any = None
        self.lesson: Any = None
        self.key = (0, 0)
        self.reason = ""
        self.seconds = 0.0

    def resume(self, iterator: Any) -> tuple[int, Any]:
        """Asked by the loop's entry."""
        sampler, region = self.sampler, self.region
        if sampler.armed is not None and sampler.armed[1] is self:
            sampler.armed = None
        if region is None:
            region = self._recall()
        if region is None:
            if self.state == self.COLD:
                sampler.submit(sys._getframe(1), self, iterator)
            return HEAD, iterator
        is_busy, sampler.is_busy = sampler.is_busy, True
        start = perf_counter()
        try:
            found = region.enter(sys._getframe(1), iterator)
        finally:
            sampler.is_busy = is_busy
            self.seconds += perf_counter() - start
        if found is not None:
            self.gate[:] = (True,)
            if found[0] >= len(self.loop.exits):  # it comes back to the head
                sampler.arm(sys._getframe(1), self)
            return found
        self.misses += 1
        if self.misses >= MISSES:
            self.give_up("its values are of other kinds each time")
        return HEAD, iterator

    def give_up(self, reason: str) -> None:
        self.gate.clear()
        self.state, self.reason, self.region = self.DEAD, reason, None

    def learn(self, lesson: Any) -> None:
        """Takes over what an earlier run learned."""
        self.lesson = lesson
        if lesson.program is None:
            self.give_up(lesson.reason)
        else:
            self.state = self.READY
            self.gate[:] = (True,)

    def _recall(self) -> Any:
        """Loads the program of an earlier run, at the first entry: what it refers to is there then."""
        lesson, self.lesson = self.lesson, None
        if lesson is None or lesson.program is None:
            return None
        from jitcore.scripts.regions import Region

        is_busy, self.sampler.is_busy = self.sampler.is_busy, True
        try:
            restore = self.sampler.restore
            self.region = Region(lesson.program, self.loop, lambda kind, number: lesson.names.find(kind, number, restore))
            self.region.names = lesson.names
        except Exception:  # its machine code is gone, or something that it refers to
            self.gate.clear()
            self.state = self.COLD
        finally:
            self.sampler.is_busy = is_busy
        return self.region


class Sampler:
    """Args: sys.path of the process, for the one that compiles.

    Attributes:
        loops: of the script; codes: the prepared ones, by the identity of their code objects.
    """

    def __init__(self, path: list[str], source: bytes = b""):
        self.helper = Helper(path)
        self.source, self.n_codes, self.has_learned = source, 0, False
        self.loops: list[LoopState] = []
        self.codes: dict[int, Prepared] = {}
        self.states: dict[tuple[int, int], LoopState] = {}
        self.is_busy = False
        self.armed: tuple[Any, LoopState] | None = None
        self.current: LoopState | None = None
        self.described: Any = None
        self.started = monotonic()

    # -- the script's code -----------------------------------------------------------------------------------
    def prepare(self, code: types.CodeType) -> types.CodeType:
        """The code of a module or function, and of all functions in it, with entries."""
        consts = tuple(self.prepare(const) if isinstance(const, types.CodeType) else const for const in code.co_consts)
        if any(one is not other for one, other in zip(consts, code.co_consts)):
            code = code.replace(co_consts=consts)
        made: list[LoopState] = []
        number = self.n_codes
        self.n_codes += 1

        def make(loop: Loop):
            made.append(LoopState(self, loop))
            return made[-1].gate, made[-1].resume

        prepared = add_entries(code, make)
        if prepared is None:
            return code
        self.codes[id(prepared.code)] = prepared
        for state in made:
            state.prepared, state.key = prepared, (number, state.loop.head)
            self.states[id(prepared.code), state.loop.head] = state
        self.loops += made
        return prepared.code

    def restore(self, code: types.CodeType) -> types.CodeType:
        """The code as the script has it."""
        return strip_entries(code, self.codes)

    def remember(self) -> None:
        """Takes over what earlier runs learned about the loops."""
        if not self.loops:
            return
        from jitcore.scripts.learned import load_lessons

        for key, lesson in load_lessons(self.source).items():
            state = next((state for state in self.loops if state.key == key), None)
            if state is not None:
                state.learn(lesson)

    def _keep(self) -> None:
        """Keeps what was learned for later runs."""
        if not self.has_learned:
            return
        from jitcore.scripts.learned import Lesson, store_lessons

        lessons = {}
        for state in self.loops:
            if state.state == LoopState.DEAD:
                lessons[state.key] = Lesson(None, None, state.reason)
            elif state.state == LoopState.READY:
                region = state.region
                lesson = state.lesson if region is None else Lesson(region.program, region.names, "")
                if lesson is not None and (region is None or region.is_named):
                    lessons[state.key] = lesson
        store_lessons(self.source, lessons)

    # -- ticks -----------------------------------------------------------------------------------------------
    def start(self) -> None:
        self._before = signal.signal(signal.SIGPROF, self.tick)
        signal.siginterrupt(signal.SIGPROF, False)
        signal.setitimer(signal.ITIMER_PROF, TICK, TICK)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        self.disarm()
        self.helper.leave()
        self._keep()

    def tick(self, number: int, frame: types.FrameType | None) -> None:
        if self.is_busy:
            return
        self.is_busy = True
        try:
            self._look(frame)
        finally:
            self.is_busy = False

    def disarm(self) -> None:
        if self.armed is not None:
            self.armed[0].disarm()
            self.armed = None

    def _look(self, frame: types.FrameType | None) -> None:
        running = list(self._list_running(frame))
        for _, states in running:
            for state in states:
                state.ticks += 1
        if self.current is not None:
            self._look_after_helper()
        if self.armed is not None:
            state = self.armed[1]
            state.late += 1
            if state.late < LATE:
                return
            self.disarm()
        for frame, states in running:
            for state in states:
                if state.state == LoopState.DEAD or state.late >= LATE:
                    continue
                if state.state == LoopState.READY and not state.misses:
                    self.arm(frame, state)
                    return
                if state.state == LoopState.COLD and state.ticks >= HOT and self.current is None:
                    self.arm(frame, state)
                    return
                break

    def _list_running(self, frame: types.FrameType | None):
        """(frame, loops that it is in, outer ones first), inner frames first."""
        while frame is not None:
            prepared = self.codes.get(id(frame.f_code))
            if prepared is not None:
                offset = prepared.locate(frame.f_lasti)
                states = [self.states[id(frame.f_code), loop.head] for loop in prepared.loops if offset in loop.body]
                if states:
                    yield frame, states
            frame = frame.f_back

    def arm(self, frame: types.FrameType, state: LoopState) -> None:
        from jitcore.scripts.arming import arm

        found = arm(frame, state.prepared.heads[state.loop.head])
        if found is not None:
            self.armed = found, state

    # -- compiling -------------------------------------------------------------------------------------------
    def submit(self, frame: types.FrameType, state: LoopState, iterator: Any) -> None:
        """Has a loop compiled whose frame stands at its head."""
        if self.current is not None:
            return
        is_busy, self.is_busy = self.is_busy, True
        try:
            self._submit(frame, state, iterator)
        finally:
            self.is_busy = is_busy

    def _submit(self, frame: types.FrameType, state: LoopState, iterator: Any) -> None:
        from jitcore.scripts.environment import describe
        from jitcore.scripts.regions import Job, count_rest

        counts, step = (), 0
        if state.loop.is_for:
            rest = count_rest(iterator)
            if rest is None:
                state.give_up("it goes through something else than a range")
                return
            counts, step = (rest.start, rest.stop), rest.step
        loop, code = state.loop, state.prepared.original
        is_module = frame.f_locals is frame.f_globals
        hidden = list_assigned(code, loop.body) if is_module else frozenset()
        cells = tuple(map(types.CellType, [frame.f_locals.get(name) for name in code.co_freevars])) or None
        function = types.FunctionType(code, frame.f_globals, code.co_name, None, cells)
        variables = frame.f_locals
        names = hidden if is_module else variables
        try:
            data, self.described = describe({name: variables[name] for name in names if name in variables}, [function],
                                            hidden, self.restore)
        except Exception as error:
            state.give_up(f"it cannot be told to another process: {error}")
            return
        body = (loop.head, *sorted(loop.body - {loop.head}))
        self.helper.submit(Job(data, body, is_module, counts, step, loop.sides))
        state.state, self.current = LoopState.COMPILING, state

    def _look_after_helper(self) -> None:
        state, answer = self.current, self.helper.poll()
        if answer is None:
            if self.helper.seconds > min(LONGEST, monotonic() - self.started):
                self.helper.kill()
                state.give_up("compiling it takes too long")
                self.current = None
            return
        self.current = None
        if isinstance(answer, str):
            state.give_up(answer)
            self.has_learned = True
            return
        from jitcore.scripts.regions import Region

        from jitcore.scripts.learned import name_all

        described, self.described = self.described, None
        state.region = Region(answer, state.loop, described.find)
        state.region.names = name_all(described, self.restore)
        state.state = LoopState.READY
        self.has_learned = True


def strip_entries(code: types.CodeType, prepared: dict) -> types.CodeType:
    """Code as it was, with all functions in it: only that can be told to another process."""
    if id(code) in prepared:
        code = prepared[id(code)].original
    consts = tuple(strip_entries(const, prepared) if isinstance(const, types.CodeType) else const for const in code.co_consts)
    return code.replace(co_consts=consts)
