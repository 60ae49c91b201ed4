"""The loops of a function that cannot be traced as a whole, each compiled for itself.

In: a function whose signature was refused. Out: `Loops`: the function with a gate before each loop, and for
each loop a function under autojit. A gate hands the variables that the loop reads to that function, and takes
back those that it assigned. The loop's function declines what it does not compile, before anything is done;
then the loop runs where it stands, in plain Python, with the gates of the loops in it.

Outer loops are tried first; those inside when an outer one was refused.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from time import perf_counter
from typing import Any

from jitcore.autojitted.entry import Signature
from jitcore.autojitted.function import AutojitFunction
from jitcore.autojitted.inputs.reading import NumberPolicy, Reader
from jitcore.autojitted.inputs.specs import Spec
from jitcore.autojitted.recording.recorder import is_traced_call
from jitcore.autojitted.tiers import native
from jitcore.autojitted.tiers.report import Reason, Tier
from jitcore.config import config
from jitcore.dispatch.call_facts import ABSENT
from jitcore.process.generated import remake
from jitcore.rewriter.bytecode.instructions import Unsupported
from jitcore.rewriter.bytecode.versions import SUPPORTED, VERSION
from jitcore.rewriter.writing.outlined import Gate, write_gates, write_loop
from jitcore.rewriter.writing.outlining import Outline, OutlinedLoop

#: What the function of a loop returns when the loop has to run where it stands.
DECLINED = object()


def outline_loops(owner: AutojitFunction) -> Loops | None:
    """The loops of a function, or None where none can be compiled for itself."""
    if VERSION not in SUPPORTED:
        return None
    try:
        outline = Outline(owner.function.__code__)
    except Unsupported:
        return None
    return Loops(owner, outline) if outline.loops else None


class Loops:
    """Args: the function, and which of its loops can be compiled for themselves.

    Attributes:
        function: with gates.
        loops: in the order of the outline.
        gates: of the loops.
        account: of the function.
        gave_way: loops whose programs took longer than plain Python.
    """

    def __init__(self, owner: AutojitFunction, outline: Outline):
        self.outline, original = outline, owner.function
        self.account = owner.account
        self.gates = [Gate() for _ in outline.loops]
        self.loops = [LoopFunction(self, owner, loop) for loop in outline.loops]
        calls = [loop.dispatch.make_function(len(loop.parameters.names), __name__) for loop in self.loops]
        code = write_gates(outline, calls, self.gates, DECLINED, ABSENT)
        self.function = remake(original, code)
        self._waiting: set[int] = set()  # loops that are not tried yet
        self.gave_way: set[int] = set()
        self._owner, self._call = owner, owner.parameters.call
        self._open(None)

    def _open(self, parent: int | None) -> None:
        """Opens the gates of the loops directly inside one, or of the outermost ones."""
        for loop in self.outline.loops:
            if loop.parent == parent:
                self.gates[loop.number].is_open = True

    @property
    def is_open(self) -> bool:
        """Whether some gate is open."""
        return any(gate.is_open for gate in self.gates)

    def call(self, *values: Any) -> Any:
        """Runs a call of the function, its loops compiled as far as they can be."""
        if self._waiting and self.may_try():
            for number in self._waiting:
                self.gates[number].is_open = True
            self._waiting.clear()
        start = perf_counter()
        result = self.account.time_call(self._call, self.function, values)
        if self.gave_way and perf_counter() - start > self._owner.tuning.sure_seconds:
            self.take_up_again()
        return result

    def may_try(self) -> bool:
        """Whether another loop may be traced."""
        return self.account.can_afford()

    def take_up_again(self) -> None:
        """Behind a call that took long."""
        for number in self.gave_way:
            self.loops[number].take_up_again(self._owner.tuning.sure_seconds)
            self.gates[number].is_open = True
        self.gave_way.clear()

    @property
    def is_waiting(self) -> bool:
        """Whether loops are left alone for now."""
        return bool(self._waiting)

    def postpone(self, loop: OutlinedLoop) -> None:
        """Leaves a loop alone until the calls have taken longer."""
        self.gates[loop.number].is_open = False
        self._waiting.add(loop.number)

    def enter(self, loop: OutlinedLoop) -> None:
        """Opens the gates of the loops directly inside one that was refused."""
        self._open(loop.number)

    def close(self, loop: OutlinedLoop) -> None:
        """Closes the gate of a loop; behind the last one the function is what it was."""
        self.gates[loop.number].is_open = False
        if not self.is_open:
            self._owner.leave_again()

    @property
    def has_compiled(self) -> bool:
        """Whether a loop is compiled."""
        return any(loop.is_compiled for loop in self.loops)

    @property
    def last_entry(self) -> Any:
        """The entry of a loop that was traced, or None."""
        return next((loop.last_entry for loop in reversed(self.loops) if loop.last_entry is not None), None)

    def list_compiled(self) -> list[int]:
        """The lines of the loops that are compiled, without those inside of others."""
        found = []
        for one in self.outline.loops:
            above = one.parent
            while above is not None and not self.loops[above].is_compiled:
                above = self.outline.loops[above].parent
            if above is None and self.loops[one.number].is_compiled:
                found.append(one.line)
        return sorted(found)

    def find_tiers(self, line: int) -> set[Tier]:
        """The tiers of the loops that begin in a line; a loop in a compiled one is compiled with it."""
        found: set[Tier] = set()
        for one in self.outline.loops:
            if one.line == line:
                found |= self.loops[one.number].tiers
                number = one.parent
                while number is not None:
                    found |= self.loops[number].tiers - {Tier.PYTHON}
                    number = self.outline.loops[number].parent
        return found or {Tier.PYTHON}

    def measure_compiled(self) -> float:
        """The part of the function's operations that compiled loops have, between 0 and 1."""

        def measure(loop: OutlinedLoop) -> float:
            inside = sum(measure(one) for one in self.outline.loops if one.parent == loop.number)
            part = self.loops[loop.number].compiled_part
            return part * loop.size + (1 - part) * inside

        total = sum(measure(loop) for loop in self.outline.loops if loop.parent is None)
        return min(1.0, total / self.outline.size)

    def list_reasons(self) -> list[Reason]:
        """Why loops are not compiled."""
        return [reason for loop in self.loops for reason in loop.reasons]

    def clear(self) -> None:
        for loop in self.loops:
            loop.clear()
        self._waiting.clear()
        for gate in self.gates:
            gate.is_open = False
        self._open(None)
        self.gave_way.clear()


class LoopFunction(AutojitFunction):
    """A loop as a function. It serves a call as any autojitted function does, or declines it.

    Attributes:
        loop: what goes into it and out of it.
    """

    declines = True

    def __init__(self, loops: Loops, owner: AutojitFunction, loop: OutlinedLoop):
        self.loops_around, self.loop = loops, loop
        original = owner.function
        cells = dict(zip(original.__code__.co_freevars, original.__closure__ or ()))
        closure = tuple([cells[name] for name in loop.free]) or None
        code = write_loop(loops.outline, loop, ABSENT)
        function = types.FunctionType(code, original.__globals__, original.__name__, None, closure)
        function.__qualname__ = f"{original.__qualname__} (loop at line {loop.line})"
        function.__module__ = original.__module__
        super().__init__(function, owner.options._replace(strict=False), account=owner.account)
        self.has_arrays = owner.has_arrays
        self.first_line = loop.line
        self.policy = NumberPolicy(owner.options.static_argnames, loop.varying)

    @property
    def tiers(self) -> set[Tier]:
        return self.signatures.tiers

    @property
    def is_compiled(self) -> bool:
        return bool(self.tiers - {Tier.PYTHON})

    @property
    def compiled_part(self) -> float:
        """The part of the known signatures that is compiled."""
        served = [one.tier is not Tier.PYTHON for one in self.signatures]
        return sum(served) / len(served) if served else 0.0

    # -- declining -------------------------------------------------------------------------------------------
    def plain(self, *values: Any) -> Any:
        return DECLINED

    def serve(self, values: tuple) -> Any:
        if config.disable_jit or is_traced_call(values):
            return DECLINED
        return super().serve(values)

    def _serve_new(self, values: tuple, reader: Reader, specs: tuple[Spec, ...]) -> Any:
        if not self._may_trace():
            if self._traces:
                self._count_python()
            else:
                self.loops_around.postpone(self.loop)
            return DECLINED
        return super()._serve_new(values, reader, specs)

    def _run_unreadable(self, values: tuple, problem: str) -> Any:
        self._numba_obstacle = problem
        self._python_calls += self.tuning.reading_counts
        return super()._run_unreadable(values, problem)

    def _may_trace(self) -> bool:
        return self._traces < self.tuning.max_loop_programs and self.loops_around.may_try()

    def _fall(self, values: tuple, specs: tuple[Spec, ...], error: Exception | None, reason: Reason,
              waits: bool = False) -> Any:
        self.loops_around.enter(self.loop)
        if waits:
            self._note_fall(reason, Tier.PYTHON)
            self.loops_around.postpone(self.loop)
            return DECLINED
        return super()._fall(values, specs, error, reason)

    def _run_loops(self, values: tuple) -> Any:
        return DECLINED

    def serve_again(self) -> None:
        self._python_calls = 0
        self.is_left = False

    def _note_fall(self, reason: Reason, tier: Tier) -> None:
        self.loops_around.enter(self.loop)
        if reason not in self.reasons:
            self.reasons.append(reason)

    def _run_refused(self, *values: Any) -> Any:
        self._count_python()
        if self._is_for_numba():
            return self._try_numba(values)
        return DECLINED

    def _count_python(self) -> None:
        """Closes the gate when nothing is compiled, unless Numba may be asked later."""
        self._python_calls += 1
        if self._python_calls < self.tuning.calls_before_closing or self.is_compiled:
            return
        is_short = self.account.seconds < self.tuning.short_loop_call * self._python_calls
        if self._find_numba_obstacle() or is_short:
            self.is_left = True
            self.loops_around.close(self.loop)

    # -- Numba -----------------------------------------------------------------------------------------------
    def _is_for_numba(self) -> bool:
        """Whether Numba is asked: when calls have taken long, and no loop in this one is compiled."""
        around = self.loops_around
        if self.account.seconds < self.tuning.patience or self._find_numba_obstacle():
            return False
        inside = [one for one in around.outline.loops if one.loop.body < self.loop.loop.body]
        return not any(around.loops[one.number].is_compiled for one in inside)

    def _find_numba_obstacle(self) -> str:
        if self._numba_obstacle is None:
            caught = "an exception that it raises may be caught outside of it"
            self._numba_obstacle = caught if self.loop.is_caught else native.find_obstacle(self.function)
        return self._numba_obstacle

    def _try_numba(self, values: tuple) -> Any:
        found = self._find_refused(values)
        return DECLINED if found is None else self._run_trial(found, values)

    def demote(self, signature: Signature, reason: Reason, run: Callable | None = None) -> None:
        super().demote(signature, reason, self._decline)

    def give_way(self, signature: Signature, seconds: float) -> None:
        super().give_way(signature, seconds)
        self.loops_around.gave_way.add(self.loop.number)

    def _decline(self, *values: Any) -> Any:
        self._count_python()
        return DECLINED

    _run_small = _decline
