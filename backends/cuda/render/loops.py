"""Control flow that one block of threads runs by itself, or one thread: no launch and no copy for each round.

In: statements that are little work, such as scalars, and loops of short rounds around them. Out: one
`__global__` function that runs all of them. Kernels inside are run one after the other by the whole block,
with barriers between; scalars alone by one thread, which keeps them in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.cuda.render.kernel import Function, KernelRenderer
from jitcore.backends.cuda.render.team import Team
from jitcore.backends.gpu.mapping import LARGEST_BLOCK, Mapping, count_work, is_ordered, round_up
from jitcore.backends.gpu.tuning import Tuning
from jitcore.backends.llvm.function import Contraction
from jitcore.backends.llvm.options import RenderOptions
from jitcore.backends.llvm.registers import I32, I64, POINTER
from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import Choice, Kernel, Repeat, Switch, While
from jitcore.loopir.traversal import flatten, list_buffers, outside_kernels


def list_kernels(body: Sequence) -> list[Kernel]:
    """Those of all statements, in order."""
    return [s for s in flatten(body) if isinstance(s, Kernel)]


def find_team(statement, tuning: Tuning) -> int:
    """How many threads run a statement by themselves; 0 where that takes several launches."""
    kernels = list_kernels([statement])
    if not all(isinstance(s, (Kernel, While, Switch)) for s in outside_kernels([statement])):
        return 0
    work = [count_work(kernel.body) for kernel in kernels]
    if sum(work) <= tuning.lone_round:
        return 1
    is_joined = any(isinstance(s, (Repeat, Choice)) for kernel in kernels for s in kernel.body)
    slow = sum(count for kernel, count in zip(kernels, work) if is_ordered(kernel))
    if sum(work) > tuning.block_round or is_joined or slow > tuning.lone_round:
        return 0
    return min(max(32, round_up(max(work) // tuning.thread_work)), LARGEST_BLOCK)


class BlockRenderer:
    """Renders statements as one function of so many threads."""

    def __init__(self, module: ir.Module, name: str, body: Sequence, team: int, options: RenderOptions,
                 is_apart: bool):
        self.is_apart = is_apart
        self.module, self.name, self.body, self.size, self.options = module, name, list(body), team, options
        self.renderers = {id(kernel): KernelRenderer(module, name, kernel, options)
                          for kernel in list_kernels(body)}
        self.buffers = sorted(list_buffers(self.body), key=lambda buffer: buffer.name)
        self.sizes = list(dict.fromkeys(size for r in self.renderers.values() for size in r.sizes))
        self.loops = [s for s in outside_kernels(body) if isinstance(s, While)]
        self.moving = dict.fromkeys(buffer for loop in self.loops for buffer in loop.moving)
        self.sizes += [extent for loop in self.loops for first, _ in loop.swaps for extent in first.shape
                       if extent not in self.sizes]

    def render(self) -> list[Function]:
        e = KernelEmitter(self.module, self.name, self.buffers, self.sizes, self.options, Contraction(),
                          self.is_apart)
        e.limit_registers(self.size)
        for buffer in self.moving:
            e.moving[buffer] = e.prologue.alloca(POINTER)
            e.prologue.store(e.addresses[buffer], e.moving[buffer])
        team = Team(e, self.size, e.read_register("tid.x"))
        self._emit(e, team, self.body)
        e.finish()
        mapping = Mapping("loop" if self.loops else "one", (), [], self.size, 1, self.size)
        return [Function(self.name, self.buffers, self.sizes, mapping, 1)]

    def _emit(self, e: KernelEmitter, team: Team, body: Sequence) -> None:
        for statement in body:
            if isinstance(statement, Kernel):
                self._emit_kernel(e, team, statement)
            elif isinstance(statement, While):
                self._emit_loop(e, team, statement)
            else:
                self._emit_switch(e, team, statement)

    def _emit_kernel(self, e: KernelEmitter, team: Team, kernel: Kernel) -> None:
        renderer = self.renderers[id(kernel)]
        e.values, e.results, e.contraction = {}, {}, renderer.contraction
        e.inlines_math, e.written = renderer.inlines_math, renderer.written
        if team.size == 1:
            renderer.emit_statements(e, kernel.body)
        elif is_ordered(kernel):
            with e.if_then(team.is_first()):
                renderer.emit_statements(e, kernel.body)
        else:
            renderer.run_shared(e, team, kernel.body)
        e.values, e.results = {}, {}
        team.synchronize()

    def _emit_loop(self, e: KernelEmitter, team: Team, loop: While) -> None:
        homes = {first: e.pointer_of(first) for first, _ in loop.swaps}

        def test():
            self._emit(e, team, loop.cond)
            return e.read_element(loop.predicate, I64(0))

        def run():
            team.synchronize()  # all have read the predicate
            self._emit(e, team, loop.body)
            for first, second in loop.swaps:
                places = e.moving[first], e.moving[second]
                old = [e.b.load(place) for place in places]
                e.b.store(old[1], places[0])
                e.b.store(old[0], places[1])

        e.repeat(test, run)
        for first, second in loop.swaps:
            self._bring_home(e, team, first, second, homes[first])
        team.synchronize()

    def _bring_home(self, e: KernelEmitter, team: Team, first: Buffer, second: Buffer,
                    home: ir.Value) -> None:
        """After an odd number of rounds the first of a pair lies where the second was."""
        here = e.pointer_of(first)
        with e.if_then(e.b.icmp_unsigned("!=", here, home)):
            count = e.multiply([e.size(extent) for extent in first.shape])
            with team.share(I64(0), count) as i:
                e.write_element(second, i, e.read_element(first, i))
            e.b.store(home, e.moving[first])
            e.b.store(here, e.moving[second])

    def _emit_switch(self, e: KernelEmitter, team: Team, switch: Switch) -> None:
        number = e.read_element(switch.selector, I64(0))
        after = e.function.append_basic_block("chosen")
        choice = e.b.switch(number, after)
        for value, branch in enumerate(switch.branches):
            block = e.function.append_basic_block("branch")
            choice.add_case(I32(value), block)
            e.b.position_at_end(block)
            team.synchronize()
            self._emit(e, team, branch)
            e.b.branch(after)
        e.b.position_at_end(after)
        team.synchronize()
