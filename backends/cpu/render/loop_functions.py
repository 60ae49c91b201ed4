"""Loops of scalar code: each is a function of its own, which LLVM's passes over loops work on.

In: a `While` of a native step in which scalars are computed one by one, elements of arrays read and written.
Out: an internal function `void(i8** table, i64* dims, i8* frame, i8* arrays...)`, whose scalars are
registers. In a module it is marked by its name, see `translate`; for its frame see `interrupts`.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterable, Iterator

from llvmlite import ir

from jitcore.backends.cpu.native.translate import SUFFIX
from jitcore.backends.cpu.render.function import FunctionEmitter
from jitcore.backends.cpu.runtime import interrupts
from jitcore.backends.llvm.registers import I32, I64, POINTER, SIZES, TABLE, memory_type
from jitcore.loopir.expr import Buffer, Expr
from jitcore.loopir.program import Call, Kernel, While
from jitcore.loopir.traversal import list_reads, list_writes, outside_kernels
from jitcore.loopir.values import is_scalar


class Chains:
    """The scalars that the rounds of a loop hand on, and which of them a number comes from, however many
    rounds later.

    Sets of scalars are ints that have a bit for each slot in the table of pointers."""

    def __init__(self, body: list, slot_of: dict[Buffer, int], slots: set[int]):
        self._bits = {buffer: 1 << slot for buffer, slot in slot_of.items() if slot in slots}
        self._read: dict[int, int] = {}
        self._origins = {1 << slot: 0 for slot in slots}
        for kernel in outside_kernels(body):
            if not isinstance(kernel, (Kernel, Call)):
                continue
            if isinstance(kernel, Kernel) and kernel.is_scalar:
                moved = [(store.buffer, self._find_read(store.value)) for store in kernel.body]
            else:
                read = self._join(self._bits.get(buffer, 0) for buffer in list_reads([kernel]))
                moved = [(buffer, read) for buffer in list_writes([kernel])]
            for buffer, read in moved:
                if buffer in self._bits:
                    self._origins[self._bits[buffer]] |= read
        self._close()

    def is_ahead(self, number: Expr, other: Expr) -> bool:
        """Whether a number is a scalar of the round before, and another one does not come from it."""
        if number.op != "load" or number.attr[0] not in self._bits:
            return False
        return not self._follow(self._find_read(other)) & self._bits[number.attr[0]]

    def _find_read(self, root: Expr) -> int:
        """The scalars that an expression reads."""
        read, stack = self._read, [root]
        while stack:
            node = stack[-1]
            inner = node.inner
            missing = [child for child in inner if id(child) not in read]
            if missing:
                stack += missing
                continue
            own = self._bits.get(node.attr[0], 0) if node.op == "load" else 0
            read[id(node)] = own | self._join(read[id(child)] for child in inner)
            stack.pop()
        return read[id(root)]

    def _close(self) -> None:
        """Origins of origins are origins. In the order of a depth-first search few sweeps find all."""
        direct = {bit: list(_list_bits(origins)) for bit, origins in self._origins.items()}
        order, seen, stack, is_growing = {}, set(), list(direct), True
        while stack:
            bit = stack[-1]
            if bit in seen:
                order[stack.pop()] = True
            else:
                seen.add(bit)
                stack += [origin for origin in direct[bit] if origin not in seen]
        while is_growing:
            is_growing = False
            for bit in order:
                found = self._origins[bit] | self._join(self._origins[origin] for origin in direct[bit])
                is_growing |= found != self._origins[bit]
                self._origins[bit] = found

    def _follow(self, scalars: int) -> int:
        """Some scalars and what they come from."""
        return scalars | self._join(self._origins[bit] for bit in _list_bits(scalars))

    @staticmethod
    def _join(sets: Iterable[int]) -> int:
        return functools.reduce(operator.or_, sets, 0)


def _list_bits(number: int) -> Iterator[int]:
    while number:
        yield number & -number
        number &= number - 1


class LoopFunction:
    """Emits one loop as a function of a renderer's module. Memory goes by its slot in the table of pointers:
    two buffers may have one.

    private: scalars that nothing else touches. homes: addresses of the others in memory, which kernels read
    and write."""

    def __init__(self, renderer, loop: While, private: set[Buffer]):
        self.renderer, self.loop = renderer, loop
        self.slot_of = slot_of = renderer.layout.table
        inline, in_kernels = (renderer.touched([loop], flag) for flag in (False, True))
        self.scalars = {slot_of[buffer]: buffer for buffer in inline if is_scalar(buffer.shape)}
        self.arrays = {slot_of[buffer]: buffer for buffer in inline if not is_scalar(buffer.shape)}
        self.distinct = set(self.arrays).difference(slot_of[buffer] for buffer in in_kernels)
        self.private = {slot_of[buffer] for buffer in private}
        self.written = self._list_written([loop])
        self.homes: dict[int, ir.Value] = {}
        self.is_told = False  # where it is, the loop may be left at any instruction

    def _list_written(self, body: list) -> set[int]:
        return {self.slot_of[buffer] for buffer in list_writes(body)}

    def emit(self, name: str, leave: Callable[[], None]) -> None:
        """Emits the function, and the call of it where the renderer is. leave: emits how that one returns
        when the loop has to end."""
        r = self.renderer
        outer, table, dims = r.e, r.table, r.dims
        kind = ir.FunctionType(ir.VoidType(), [TABLE, SIZES, POINTER, *[POINTER] * len(self.arrays)])
        function = ir.Function(r.module, kind, name + SUFFIX)
        function.linkage = "internal"
        arrays = [r.address_of(buffer) for buffer in self.arrays.values()]
        self._call_in_frame(outer, leave, lambda frame: outer.b.call(function, [table, dims, frame, *arrays]))
        outer.values = {}
        r.table, r.dims, self.frame, *addresses = function.args
        r.e = e = FunctionEmitter(function, r.dims, r.layout.sizes, len(r.layout.arena), r.options)
        r.inside = self
        self._open(dict(zip(self.arrays, addresses)))
        r.emit_loop(self.loop)
        for slot, home in self.homes.items():
            if slot in self.written:
                self._move(e.b, slot, self.own[slot], home)
        e.b.ret_void()
        e.finish()
        r.e, r.table, r.dims, r.inside = outer, table, dims, None

    def _call_in_frame(self, e: FunctionEmitter, leave: Callable[[], None],
                       call: Callable[[ir.Value], None]) -> None:
        """Calls a function that may be left at any instruction at which it says that it is inside of a loop;
        the emitter has one frame for all calls, which follow each other.

        call: emits the call, and hands the function the frame. leave: see `emit`; it uses no value that was
        computed before."""
        if self.renderer.frame is None:
            slot = e.prologue.alloca(ir.ArrayType(I64, interrupts.FRAME_SIZE // 8))
            slot.align = 16
            self.renderer.frame = e.prologue.bitcast(slot, POINTER)
        frame = self.renderer.frame
        if not interrupts.has_threads():
            return call(frame)
        thread = e.b.call(e.declare(interrupts.ENTER_SYMBOL, POINTER, POINTER), [frame])
        note = e.declare("_setjmp", I32, POINTER)
        note.attributes.add("returns_twice")
        e.leave_if(e.b.call(note, [e.b.gep(frame, [I64(interrupts.PLACE_OFFSET)])]), leave)
        call(frame)
        e.b.call(e.declare(interrupts.LEAVE_SYMBOL, ir.VoidType(), POINTER, POINTER), [thread, frame])

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Around a loop of nothing but scalar code."""
        if self.is_told:
            yield
            return
        self.is_told = True
        self._set_inside(True)
        yield
        self._set_inside(False)
        self.is_told = False

    def _set_inside(self, is_inside: bool) -> None:
        b = self.renderer.e.b
        inside = b.bitcast(b.gep(self.frame, [I64(interrupts.INSIDE_OFFSET)]), I64.as_pointer())
        b.store_atomic(I64(int(is_inside)), inside, "monotonic", 8)

    def _open(self, addresses: dict[int, ir.Value]) -> None:
        """Addresses of arrays are arguments, of which LLVM is told where no other way leads to the memory;
        scalars get slots on the stack that no kernel sees."""
        e = self.renderer.e
        p, table = e.prologue, self.renderer.table
        for slot in self.distinct:
            addresses[slot].add_attribute("noalias")
        self.own = {slot: p.bitcast(p.alloca(memory_type(buffer.dtype)), POINTER)
                    for slot, buffer in self.scalars.items()}
        for slot, own in self.own.items():
            if slot not in self.private:
                self.homes[slot] = p.load(p.gep(table, [I64(slot)]))
                self._move(p, slot, self.homes[slot], own)
        known = addresses | self.own
        e.pointers = {buffer: known[slot] for buffer, slot in self.slot_of.items() if slot in known}
        e.load_address = lambda buffer: p.load(p.gep(table, [I64(self.slot_of[buffer])]))
        changing = self.written & set(self.scalars)
        e.chains = Chains([self.loop], self.slot_of, changing)

    def _move(self, builder: ir.IRBuilder, slot: int, source: ir.Value, target: ir.Value) -> None:
        kind = memory_type(self.scalars[slot].dtype).as_pointer()
        builder.store(builder.load(builder.bitcast(source, kind)), builder.bitcast(target, kind))

    def find_home(self, buffer: Buffer) -> ir.Value | None:
        """Where kernels find a scalar; None for what is in one place."""
        return self.homes.get(self.slot_of[buffer])

    def show(self, kernel: Kernel) -> None:
        """Before a kernel: the scalars that it touches go where it finds them."""
        for slot in {self.slot_of[buffer] for buffer in self.renderer.touched([kernel], True)}:
            if slot in self.homes:
                self._move(self.renderer.e.b, slot, self.own[slot], self.homes[slot])

    def take_back(self, kernel: Kernel) -> None:
        """Behind a kernel: the scalars that it wrote."""
        for slot in self._list_written([kernel]):
            if slot in self.homes:
                self._move(self.renderer.e.b, slot, self.homes[slot], self.own[slot])
