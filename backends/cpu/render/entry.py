"""Rendering of a native step: its entry point calls kernels, runs native loops and branches, keeps scalars
on the stack.

In: a `loopir.Native` block and the program's buffers. Out: an exported function `i64 name(i8** buffers,
i64* dims)`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from llvmlite import ir

from jitcore.backends.cpu.compiler import ProgramLayout
from jitcore.backends.cpu.render.function import FunctionEmitter
from jitcore.backends.cpu.render.kernel import RANGE_TYPE, KernelRenderer, has_rounds, is_little, list_counts
from jitcore.backends.cpu.render.loop_functions import LoopFunction
from jitcore.backends.cpu.render.scan import count_in_round, render_shifted
from jitcore.backends.cpu.render.sharing import Share, encode_number, find_shared
from jitcore.backends.cpu.render.tellers import make_teller
from jitcore.backends.cpu.runtime.host_calls import SYMBOL as HOST_SYMBOL
from jitcore.backends.cpu.runtime.interrupts import END_SYMBOL
from jitcore.backends.cpu.runtime.launch import RAISED
from jitcore.backends.cpu.runtime.threads import SWEEP_SYMBOL, SYMBOL as PARALLEL_SYMBOL
from jitcore.backends.llvm.function import TargetModule
from jitcore.backends.llvm.options import RenderOptions, is_static
from jitcore.backends.llvm.registers import I8, I32, I64, POINTER, SIZES, TABLE, memory_type
from jitcore.backends.llvm.statements import count_calls, emit_store
from jitcore.loopir.expr import Buffer, walk
from jitcore.loopir.program import Call, Kernel, LibraryCall, Native, Scan, Switch, While
from jitcore.loopir.traversal import find_split, list_buffers, list_roots, outside_kernels
from jitcore.process.concurrency import available_cores
from jitcore.schedule.nest import work_of

ENTRY_TYPE = ir.FunctionType(I64, [TABLE, SIZES])
HOST_TYPE = ir.FunctionType(I64, [POINTER, I64, TABLE, I64])
PARALLEL_TYPE = ir.FunctionType(ir.VoidType(), [RANGE_TYPE.as_pointer(), TABLE, SIZES, I64, I64])


def render_steps(steps: dict[str, Native], layout: ProgramLayout, options: RenderOptions) -> ir.Module:
    """The module of a program: an entry point for each native step, by name."""
    module = TargetModule("jitcore", options.features)
    for name, step in steps.items():
        EntryRenderer(module, name, step, layout, options).render()
    return module


def is_called(statement) -> bool:
    """Whether a routine is called that is no scalar code."""
    return isinstance(statement, Call) and not getattr(statement.routine, "is_scalar_code", False)


def find_scalar_loops(body: list) -> list[While]:
    """The outermost loops that are worth a function."""
    found: list[While] = []
    for statement in body:
        if isinstance(statement, While) and _is_scalar(statement):
            found.append(statement)
        elif isinstance(statement, (While, Switch)):
            found += [loop for inner in statement.bodies for loop in find_scalar_loops(inner)]
    return found


def _is_scalar(loop: While) -> bool:
    """Whether a loop does without calls and exchanged memory, and has a loop of nothing but scalar code."""
    inside = outside_kernels([loop])
    if any(is_called(s) or isinstance(s, LibraryCall) or isinstance(s, While) and s.swaps for s in inside):
        return False
    return any(isinstance(s, While) and is_scalar_code(s) for s in inside)


def is_scalar_code(loop: While) -> bool:
    """Whether a loop calls no kernel: all that it does are rounds of scalar code."""
    inside = outside_kernels([loop])
    others = (Switch, While, Call)
    return all(s.is_scalar if isinstance(s, Kernel) else isinstance(s, others) and not is_called(s)
               for s in inside)


class EntryRenderer:
    """Renders one native step."""

    def __init__(self, module: ir.Module, name: str, step: Native, layout: ProgramLayout,
                 options: RenderOptions):
        self.module, self.name, self.step, self.layout = module, name, step, layout
        self.options = options
        self.kernels = self.math_calls = 0
        self.loops = find_scalar_loops(step.body)
        self.inside: LoopFunction | None = None  # the function of a loop that is being emitted
        self.frame: ir.Value | None = None  # for the calls of these
        kernels = [s for s in outside_kernels(step.body) if isinstance(s, Kernel) and not s.is_scalar]
        self.shared = find_shared(kernels, layout.table, options.tuning) if len(kernels) > 1 else {}
        self.tellers: dict[str, ir.Function] = {}
        self.own: dict[FunctionEmitter, tuple[ir.Value, ir.Value]] = {}
        self.functions: dict[Kernel, list[ir.Function]] = {}  # by the kernel that shared code is made from

    def render(self) -> ir.Function:
        function = ir.Function(self.module, ENTRY_TYPE, self.name)
        given, dims = function.args
        first_size = len(self.layout.arena)
        e = self.e = FunctionEmitter(function, dims, self.layout.sizes, first_size, self.options)
        self.given, self.dims = given, dims
        e.loads_late = True  # of hundreds, none would stay in a register
        self._make_table(given, dims)
        outside = outside_kernels(self.step.body, frozenset(self.loops))
        inline = [s for s in outside if isinstance(s, Kernel) and s.is_scalar]
        e.inlines_math = count_calls(walk(list_roots(inline))) <= self.options.tuning.max_inlined_straight
        self._body(self.step.body)
        e.b.ret(I64(0))
        e.finish()
        if all(isinstance(s, Call) and s.epilogue is None for s in self.step.body):
            for made in (function, *self.tellers.values()):
                made.attributes.add("noinline")
                made.attributes.add("optnone")  # it only calls routines: what matters is to make it quickly
        return function

    def _make_table(self, given: ir.Value, dims: ir.Value) -> None:
        """The kernels' table of pointers: what was given, the arena's temporaries, the shared stack
        scalars."""
        e, p, layout = self.e, self.e.prologue, self.layout
        table = self.table = p.alloca(POINTER, size=I32(max(len(layout.table), 1)))
        for k, buffer in enumerate(layout.given):
            e.homes[buffer] = functools.partial(self._load_given, k)
        for output, source in layout.aliases.items():
            e.homes[output] = e.homes[source]
        if layout.arena:
            arena = p.load(p.gep(given, [I64(len(layout.given))]))
            for k, buffer in enumerate(layout.arena):
                e.homes[buffer] = functools.partial(self._find_in_arena, arena, k)
        closed = frozenset(self.loops)
        mine = self.touched(self.step.body, in_kernels=False, closed=closed)
        shared = self._find_private(mine)
        for buffer in layout.stack:
            if buffer in mine or buffer in shared:
                slot = p.alloca(memory_type(buffer.dtype))
                e.pointers[buffer] = p.bitcast(slot, POINTER)
        loops = [s for s in outside_kernels(self.step.body) if isinstance(s, While)]
        moving = {buffer for loop in loops for buffer in loop.moving}
        tabled = {**dict.fromkeys(self._find_tabled(shared)), **dict.fromkeys(self._sorted(moving))}
        first = [buffer for buffer in tabled if layout.table[buffer] < len(layout.given)]
        are_many = len(first) > self.options.tuning.max_single_stores
        if are_many:  # these stand there in the same order
            self.run("memcpy", *(e.b.bitcast(x, POINTER) for x in (table, given)), 8 * len(layout.given))
        for buffer in tabled:
            if not are_many or layout.table[buffer] >= len(layout.given):
                e.b.store(self.address_of(buffer), e.b.gep(table, [I64(layout.table[buffer])]))
        e.moving = moving
        e.load_address = lambda buffer: e.b.load(e.b.gep(table, [I64(layout.table[buffer])]))

    def _load_given(self, place: int) -> ir.Value:
        return self.e.b.load(self.e.b.gep(self.given, [I64(place)]))

    def _find_in_arena(self, arena: ir.Value, place: int) -> ir.Value:
        b = self.e.b
        return b.gep(arena, [b.load(b.gep(self.dims, [I64(place)]))])

    def _find_private(self, mine: list[Buffer]) -> list[Buffer]:
        """Finds the scalars that one function of a loop has to itself. Returns: those on the stack that more
        than one function touches."""
        shared = set(self.touched(self.step.body, in_kernels=True))
        touched = [set(self.touched([loop], in_kernels=False)) for loop in self.loops]
        self.private = []
        for number, inside in enumerate(touched):
            others = shared.union(mine, *touched[:number], *touched[number + 1 :])
            self.private.append({buffer for buffer in inside - others if buffer.kind == "scalar"})
        return self._sorted(shared.union(*touched).difference(*self.private))

    def _find_tabled(self, shared: list[Buffer]) -> list[Buffer]:
        """Of what kernels and functions of loops touch, what they look for in the table: kernels that share
        code have tables of their own."""
        outside = outside_kernels(self.step.body, frozenset(self.loops))
        epilogues = {s.epilogue for s in outside if isinstance(s, Call)}
        others = [s for s in outside if s in epilogues or s not in self.shared and isinstance(s, Kernel)]
        loops = [buffer for flag in (True, False) for buffer in self.touched(self.loops, flag)]
        found = {*self.touched(others, True), *loops}
        return [buffer for buffer in shared if buffer in found]

    def touched(self, body: list, in_kernels: bool, closed: frozenset = frozenset()) -> list[Buffer]:
        """Buffers that outlined kernels touch, or those that statements outside of them touch themselves; in
        table order. closed: loops that are left out."""
        found = set()
        for statement in outside_kernels(body, closed):
            if statement in closed:
                continue
            is_outlined = isinstance(statement, Kernel) and not statement.is_scalar
            if is_outlined != in_kernels:
                continue
            is_whole = isinstance(statement, Kernel)
            found |= list_buffers([statement]) if is_whole else {
                buffer for buffer, _ in statement.loads + statement.targets}
        return self._sorted(found)

    def _sorted(self, buffers) -> list[Buffer]:
        return sorted(buffers, key=lambda buffer: self.layout.table[buffer])

    def _body(self, body: list) -> None:
        for statement in body:
            if isinstance(statement, While):
                if self.inside is None and statement in self.loops:
                    self._call_loop(statement)
                else:
                    self.emit_loop(statement)
            elif isinstance(statement, Switch):
                self._switch(statement)
            elif isinstance(statement, Call):
                self.e.values = {}
                statement.routine.emit(self, statement)
                if is_called(statement):
                    self.e.leave_if_stopped(self._leave)
            elif isinstance(statement, LibraryCall):
                self._call_host(statement)
            elif statement.is_scalar:
                self.e.values = {}  # a scalar may have been overwritten since it was last read
                for store in statement.body:
                    emit_store(self.e, store)
            else:
                self._call_kernel(statement)

    def _call_loop(self, loop: While) -> None:
        number = self.loops.index(loop)
        LoopFunction(self, loop, self.private[number]).emit(f"{self.name}_{number}", self._leave)
        if not is_scalar_code(loop):
            self.e.leave_if_stopped(self._leave)

    def _leave(self) -> None:
        """Ends the entry point; or the function of a loop, whose caller looks for itself."""
        if self.inside is not None:
            self.e.b.ret_void()
            return
        end = self.e.declare(END_SYMBOL, ir.VoidType())
        end.attributes.add("cold")
        self.e.b.call(end, [])
        self.e.b.ret(I64(RAISED))

    def _call_kernel(self, kernel: Kernel) -> None:
        if self.inside is None:
            return self._emit_call(kernel)
        self.inside.show(kernel)
        self._emit_call(kernel)
        self.inside.take_back(kernel)

    def _emit_call(self, kernel: Kernel) -> None:
        e, share, given = self.e, self.shared.get(kernel), (self.table, self.dims)
        e.values = {}  # a scalar may have been overwritten since it was last read
        if share is None:
            functions = self._make_renderer(kernel).render()
        else:
            functions, given = self._find_functions(share), self._pass_own(share)
        counts = list_counts(kernel)
        split = find_split(kernel)
        if split is not None and isinstance(split[1], Scan):
            self._call_in_rounds(kernel, split[1], functions, given, counts[0](e))
            return
        for function, count in zip(functions, counts):
            self._call_range(kernel, function, given, count(e))
            if has_rounds(kernel):  # what follows may rely on what it would have computed
                e.leave_if_stopped(self._leave)

    def _call_range(self, kernel: Kernel, function: ir.Function, given: tuple, extent: ir.Value) -> None:
        if kernel.parallel and self.options.max_threads != 1 and not is_little(kernel, extent):
            self._call_parallel(function, given, extent, kernel)
        else:
            self.e.b.call(function, [*given, I64(0), extent])

    def _call_in_rounds(self, kernel: Kernel, scan: Scan, functions: list, given: tuple, count) -> None:
        """Both phases of a scan in blocks, for the blocks of one round after the other."""
        e, b, (table, sizes) = self.e, self.e.b, given
        step = I64(count_in_round(scan, self.options.max_threads or available_cores()))
        pair = e.prologue.alloca(I64, size=I32(2))
        b.store(b.ptrtoint(sizes, I64), b.gep(pair, [I64(1)]))
        shifted = [self._find_shifted(function) for function in functions]

        def run(first):
            past = b.add(first, step)
            past = b.select(b.icmp_signed("<", past, count), past, count)
            b.store(b.sub(count, past) if scan.reverse else first, pair)
            for function in shifted:
                self._call_range(kernel, function, (table, pair), b.sub(past, first))

        e.loop(I64(0), count, step, run)

    def _find_shifted(self, function: ir.Function) -> ir.Function:
        """Kernels that share code share this too."""
        return self.module.globals.get(f"{function.name}_shifted") or render_shifted(function)

    def _find_functions(self, share: Share) -> list[ir.Function]:
        """The functions that a kernel shares with others."""
        first = share.first.kernel
        if first not in self.functions:
            renderer = self._make_renderer(first, share)
            renderer.told = share.told_slots()
            self.functions[first] = renderer.render()
        return self.functions[first]

    def _find_own(self) -> tuple[ir.Value, ir.Value]:
        """Where the function under construction puts what it passes to kernels that share code, one after
        the other."""
        if self.e not in self.own:
            shares, p = self.shared.values(), self.e.prologue
            pointers = max(len(share.form.buffers) for share in shares)
            numbers = max(len(share.form.sizes.slots) + len(share.told) for share in shares)
            self.own[self.e] = p.alloca(POINTER, size=I32(pointers)), p.alloca(I64, size=I32(max(numbers, 1)))
        return self.own[self.e]

    def _pass_own(self, share: Share) -> tuple[ir.Value, ir.Value]:
        """The table of pointers and the array of sizes for one of the kernels that share code."""
        form, e = share.form, self.e
        table, dims = self._find_own()
        for buffer, slot in form.buffers.items():
            home = None if self.inside is None else self.inside.find_home(buffer)
            e.b.store(home or self.address_of(buffer), e.b.gep(table, [I64(slot)]))
        told = [I64(encode_number(form.value(position))) for position in share.told]
        for slot, value in enumerate([*map(e.size, form.sizes.slots), *told]):
            e.b.store(value, e.b.gep(dims, [I64(slot)]))
        return table, dims

    def _make_renderer(self, kernel: Kernel, share: Share | None = None) -> KernelRenderer:
        """Renders a kernel that finds what it works on where the program has it, or in tables of its own."""
        self.kernels += 1
        places = self.layout.table, self.layout.sizes, len(self.layout.arena)
        if share is not None:
            places = share.first.buffers, share.first.sizes, 0
        name = f"{self.name}_kernel{self.kernels}"
        self.layout.kernels[name] = kernel
        renderer = KernelRenderer(self.module, name, kernel, *places, self.options)
        self.math_calls += renderer.math_calls
        renderer.inlines_math = self.math_calls <= self.options.tuning.max_inlined_calls
        return renderer

    def _call_parallel(self, function: ir.Function, given: tuple, extent: ir.Value, kernel: Kernel) -> None:
        """Hands the range to the threads, unless it is too small to share. given: the function's tables."""
        e, b = self.e, self.e.b
        grain = e.size(kernel.grain)
        if self.options.max_threads:  # no more chunks than threads
            threads = I64(self.options.max_threads)
            share = b.sdiv(b.add(extent, b.sub(threads, I64(1))), threads)
            grain = b.select(b.icmp_signed(">", share, grain), share, grain)
        alone = e.function.append_basic_block("alone")
        shared = e.function.append_basic_block("shared")
        after = e.function.append_basic_block("joined")
        b.cbranch(b.icmp_signed("<=", extent, grain), alone, shared)
        b.position_at_end(alone)
        b.call(function, [*given, I64(0), extent])
        b.branch(after)
        b.position_at_end(shared)
        symbol = SWEEP_SYMBOL if "alternate" in kernel.ways else PARALLEL_SYMBOL
        b.call(self.declare(symbol, PARALLEL_TYPE), [function, *given, extent, grain])
        e.leave_if_stopped(self._leave)
        b.branch(after)
        b.position_at_end(after)

    # -- for routines -------------------------------------------------------------------------------------
    def declare(self, symbol: str, kind: ir.FunctionType) -> ir.Function:
        """A function that another library defines, see `images`."""
        found = self.module.globals.get(symbol)
        return ir.Function(self.module, kind, symbol) if found is None else found

    def run(self, symbol: str, *arguments) -> None:
        """Calls `void symbol(...)` with pointers and 64-bit integers."""
        values = [I64(argument) if isinstance(argument, int) else argument for argument in arguments]
        kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
        self.e.b.call(self.declare(symbol, kind), values)

    def run_told(self, symbol: str, *arguments, sizes: Sequence) -> None:
        """`run` with sizes behind the other arguments. They stand side by side in the array of sizes, where a
        function of its own looks for them: calls are short code."""
        slots = list(map(self.layout.sizes.slot, sizes))
        values = [I64(argument) if isinstance(argument, int) else argument for argument in arguments]
        if slots != list(range(slots[0], slots[0] + len(slots))):
            self.run(symbol, *values, *map(self.e.size, sizes))
            return
        name = f"{self.name}_{symbol}_{len(sizes)}"
        if name not in self.tellers:
            self.tellers[name] = make_teller(self, name, symbol, [value.type for value in values], len(sizes))
        first = I64(len(self.layout.arena) + slots[0])
        self.e.b.call(self.tellers[name], [*values, self.e.b.gep(self.dims, [first])])

    def epilogue_of(self, call: Call) -> list:
        """What a routine is told of its epilogue: `void function(table, dims, rows' start and stop, columns'
        start and stop)`, or null; its first two arguments; scalar operations for each element."""
        if call.epilogue is None:
            return [ir.Constant(POINTER, None)] * 3 + [0]
        function = self._make_renderer(call.epilogue).render_window()
        pointers = [self.e.b.bitcast(value, POINTER) for value in (function, self.table, self.dims)]
        return [*pointers, work_of(call.epilogue.body[0].body[0].body)]

    def address_of(self, buffer: Buffer) -> ir.Value:
        """Where a buffer's elements are at this point, as i8*."""
        return self.e.pointer_of(buffer)

    def count(self, extents) -> ir.Value:
        """The product of extents, as an i64."""
        static, total = 1, None
        for extent in extents:
            if is_static(extent):
                static *= int(extent)
            else:
                size = self.e.size(extent)
                total = size if total is None else self.e.b.mul(total, size)
        if total is None:
            return I64(static)
        return total if static == 1 else self.e.b.mul(total, I64(static))

    def _call_host(self, call: LibraryCall) -> None:
        """Calls Python; where that raised, the entry point returns at once."""
        e, layout = self.e, self.layout
        buffers = [*call.inputs, *call.outputs]
        addresses = e.prologue.alloca(POINTER, size=I32(max(len(buffers), 1)))
        for k, buffer in enumerate(buffers):
            e.b.store(self.address_of(buffer), e.b.gep(addresses, [I64(k)]))
        cell = e.b.load(e.b.gep(self.given, [I64(len(layout.given) + bool(layout.arena))]))
        host = e.b.load(e.b.bitcast(cell, TABLE))
        function = self.declare(HOST_SYMBOL, HOST_TYPE)
        status = e.b.call(function, [host, I64(layout.host_calls[call]), addresses, I64(len(buffers))])
        with e.b.if_then(e.b.icmp_signed("!=", status, I64(0)), likely=False):
            e.b.ret(status)
        e.values = {}

    def emit_loop(self, loop: While) -> None:
        """A loop. It polls, or, where all its rounds are scalar code, may be left at any instruction."""
        if self.inside is not None and is_scalar_code(loop):
            with self.inside.interruptible():
                self._emit_rounds(loop)
        else:
            self.e.begin_polls()
            self._emit_rounds(loop, polls=True)

    def _emit_rounds(self, loop: While, polls: bool = False) -> None:
        e = self.e
        homes = [(first, self.address_of(first), self.address_of(second)) for first, second in loop.swaps]
        test, after = e.function.append_basic_block("test"), e.function.append_basic_block("ended")
        e.b.branch(test)
        e.b.position_at_end(test)
        self._body(loop.cond)
        flag = e.b.load(e.b.bitcast(e.pointer_of(loop.predicate), I8.as_pointer()))
        run = e.function.append_basic_block("run")
        e.b.cbranch(e.b.icmp_unsigned("!=", flag, I8(0)), run, after)
        e.b.position_at_end(run)
        self._body(loop.body)
        for first, second in loop.swaps:
            self._move_to(first, self.address_of(second), second, self.address_of(first))
        if polls:
            e.emit_poll(self._leave)
        e.b.branch(test)
        e.b.position_at_end(after)
        e.values = {}
        for (first, second), (_, home, other) in zip(loop.swaps, homes):
            self._bring_home(first, second, home, other)

    def _move_to(self, first: Buffer, place: ir.Value, second: Buffer, other: ir.Value) -> None:
        """Changes where two buffers are."""
        for buffer, address in ((first, place), (second, other)):
            self.e.b.store(address, self.e.b.gep(self.table, [I64(self.layout.table[buffer])]))

    def _bring_home(self, first: Buffer, second: Buffer, home: ir.Value, other: ir.Value) -> None:
        """After a loop: the first of two buffers that changed places gets its contents where it began."""
        e, here = self.e, self.address_of(first)

        def copy():
            nbytes = e.b.mul(self.count(first.shape), I64(first.dtype.itemsize))
            self.run("memcpy", home, here, nbytes)
            self._move_to(first, home, second, other)

        e.when(e.b.icmp_unsigned("!=", here, home), copy)

    def _switch(self, switch: Switch) -> None:
        e = self.e
        selector = e.b.load(e.b.bitcast(e.pointer_of(switch.selector), I32.as_pointer()))
        blocks = [e.function.append_basic_block("case") for _ in switch.branches]
        after = e.function.append_basic_block("chosen")
        choice = e.b.switch(selector, blocks[0])
        for number, (block, branch) in enumerate(zip(blocks, switch.branches)):
            if number:
                choice.add_case(I32(number), block)
            e.b.position_at_end(block)
            e.values = {}
            self._body(branch)
            e.b.branch(after)
        e.b.position_at_end(after)
        e.values = {}
