"""One CUDA kernel under construction.

In: expressions and indexes of the loop program. Out: instructions of NVPTX. Addresses and sizes are arguments
of the kernel; lanes are elements side by side that one thread reads and writes in one access.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.gpu.mapping import ACCESS_BYTES, WARP, is_aligned
from jitcore.backends.llvm.complex_ops import interleave, separate
from jitcore.backends.llvm.function import Contraction, ExpressionEmitter
from jitcore.backends.llvm.options import RenderOptions
from jitcore.backends.llvm.registers import (I1, I8, I32, I64, POINTER, Pair, call_function, call_intrinsic,
                                             lane_count, map_parts, memory_type, splat, widen)
from jitcore.loopir.expr import Axis, Buffer, Dynamic, Expr, Index, walk
from jitcore.loopir.program import Store

VOID = ir.VoidType()
#: Items up to this are counted in 32 bits, in which a division takes a quarter of the time.
MAX_NARROW = 2**31 - 1
#: Threads for whose registers there is room, however many one has.
ANY_THREADS = 256
_EXTREMES = {"max": "maximum", "min": "minimum"}


class KernelEmitter(ExpressionEmitter):
    """A `__global__` function of addresses and sizes. buffers, sizes: what it is told, in the order of its
    arguments. is_apart: whether no two of its buffers are the same memory."""

    def __init__(self, module: ir.Module, name: str, buffers: Sequence[Buffer], sizes: Sequence,
                 options: RenderOptions, contraction: Contraction, is_apart: bool = False):
        kind = ir.FunctionType(VOID, [POINTER] * len(buffers) + [I64] * len(sizes))
        function = ir.Function(module, kind, name)
        function.calling_convention = "ptx_kernel"
        for argument in function.args[: len(buffers)] if is_apart else ():
            argument.add_attribute("noalias")
        for argument in function.args[: len(buffers)]:
            argument.attributes.align = ACCESS_BYTES  # loads side by side become one
        super().__init__(function, options, contraction)
        self.together: tuple[int, Callable] | None = None
        self.limit = 1, 1  # threads of a block, and blocks, for which a multiprocessor has registers
        self.addresses = dict(zip(buffers, function.args))
        self.sizes = dict(zip(sizes, function.args[len(buffers) :]))
        self.moving: dict[Buffer, ir.Value] = {}  # buffers that change places, and where their address is
        self.skips_gathers = False  # whether what reads elements at computed places is left out if it can be

    def finish(self) -> None:
        self.b.ret_void()
        super().finish()
        if self.limit[0] > ANY_THREADS or self.limit[1] > 1:
            for name, count in zip(("maxntidx", "minctasm"), self.limit):
                note = self.function.module.add_metadata([self.function, name, I32(count)])
                self.function.module.add_named_metadata("nvvm.annotations", note)

    def loop(self, start: ir.Value, stop: ir.Value, step: ir.Value, body: Callable[[ir.Value], None]) -> None:
        """The same loop, with rounds written out together where `together` says how."""
        if self.together is None:
            return super().loop(start, stop, step, body)
        rounds, read = self.together

        def run(places: list[ir.Value]) -> None:
            known, tables = self.values, []
            for place in places:
                self.values = dict(known)
                read(place)
                tables.append(self.values)
            for place, self.values in zip(places, tables):
                body(place)

        self.for_batches(start, stop, step.constant, rounds, run)

    @contextlib.contextmanager
    def in_rounds(self, rounds: int, read: Callable[[ir.Value], None]) -> Iterator[None]:
        """Loops with so many rounds written out together: addresses are computed once for them, and they wait
        for memory together. read: what is read in the round of a place, before what computes with it."""
        self.together = rounds, read
        yield
        self.together = None

    def load_size(self, size) -> ir.Value:
        return self.sizes[size]

    def load_address(self, buffer: Buffer) -> ir.Value:
        return self.addresses[buffer]

    def pointer_of(self, buffer: Buffer) -> ir.Value:
        return self.b.load(self.moving[buffer]) if buffer in self.moving else super().pointer_of(buffer)

    # -- choices ------------------------------------------------------------------------------------------
    def operands_of(self, node: Expr) -> Sequence[Expr]:
        kept, _, number = self._find_gather(node)
        return super().operands_of(node) if number is None else [node.args[0], kept]

    def emit(self, node: Expr) -> ir.Value | Pair:
        kept, other, number = self._find_gather(node)
        if number is None:
            return super().emit(node)
        condition, slot = self.values[id(node.args[0])], self.stack_slot(self.values[id(kept)])
        with self.if_then(condition if number == 1 else self.b.not_(condition)):
            self.write_slot(slot, self.expr(other))
        return self.read_slot(slot)

    def _find_gather(self, node: Expr) -> tuple[Expr | None, Expr | None, int | None]:
        """(operand, other one, its number) of a choice of which only the other one reads elements at computed
        places; a number of None for what is no such choice."""
        if not self.skips_gathers or node.op != "select" or self.is_vector(node.axes):
            return None, None, None
        gathers = [any(map(self._is_gather, walk([arg]))) for arg in node.args[1:]]
        if sum(gathers) != 1:
            return None, None, None
        number = 1 + gathers.index(True)
        return node.args[3 - number], node.args[number], number

    def _is_gather(self, node: Expr) -> bool:
        return node.op == "load" and id(node) not in self.values and any(
            isinstance(atom, Dynamic) for atom, _ in node.attr[1].terms)

    # -- lanes --------------------------------------------------------------------------------------------
    def load_lanes(self, buffer: Buffer, index: Index) -> ir.Value | Pair:
        if not self._is_whole(index):
            return self.join_lanes([self.load_scalar(buffer, index) for _ in self._each_lane()])
        kind = self._memory_lanes(buffer)
        pointer = self._first_pointer(buffer, index, kind)
        value = self.b.load(pointer, align=self._alignment(buffer))
        if buffer.dtype.kind == "c":
            return separate(self.b, value)
        return self.b.trunc(value, widen(I1, self.lanes)) if buffer.dtype == dtypes.bool_ else value

    def store_lanes(self, buffer: Buffer, index: Index, value: ir.Value | Pair) -> None:
        value = value if lane_count(value) > 1 else splat(self.b, value, self.lanes)
        if not self._is_whole(index):
            for part, _ in zip(self.split_lanes(value), self._each_lane()):
                self.store_scalar(buffer, index, part)
            return
        if buffer.dtype == dtypes.bool_:  # lanes of i1 are bits in memory
            value = self.b.zext(value, widen(I8, self.lanes))
        value = interleave(self.b, *value) if buffer.dtype.kind == "c" else value
        pointer = self._first_pointer(buffer, index, value.type)
        self.b.store(value, pointer, align=self._alignment(buffer))

    @contextlib.contextmanager
    def in_lanes(self, axis: Axis, lanes: int) -> Iterator[None]:
        """Code for so many neighbours along an axis, from its value on."""
        self.lanes, self.vector_axis = lanes, axis
        yield
        self.lanes, self.vector_axis = 1, None

    @contextlib.contextmanager
    def at(self, axis: Axis, place: ir.Value, lanes: int) -> Iterator[None]:
        """Code for so many neighbours from a place on; what it computes is not known behind it."""
        self.axis_values[axis], saved, self.values = place, self.values, dict(self.values)
        with self.in_lanes(axis, lanes) if lanes > 1 else contextlib.nullcontext():
            yield
        self.values = saved

    def split_lanes(self, value: ir.Value | Pair) -> list[ir.Value | Pair]:
        """The value of each lane."""
        if lane_count(value) == 1:
            return [value]
        return [map_parts(lambda part: self.b.extract_element(part, I32(lane)), value)  # noqa: B023
                for lane in range(lane_count(value))]

    def join_lanes(self, values: Sequence[ir.Value | Pair]) -> ir.Value | Pair:
        """Lanes of so many values; one stays as it is."""
        return map_parts(lambda *parts: join_lanes(self.b, parts), *values)

    def _is_whole(self, index: Index) -> bool:
        """Whether lanes are neighbours, from a place on that is a multiple of them."""
        return self.mask is None and is_aligned(index, self.vector_axis, self.lanes)

    def _alignment(self, buffer: Buffer) -> int:
        return min(ACCESS_BYTES, self.lanes * buffer.dtype.itemsize)

    def _memory_lanes(self, buffer: Buffer) -> ir.Type:
        element, lanes = memory_type(buffer.dtype), self.lanes
        if buffer.dtype.kind == "c":
            element, lanes = element.element, 2 * lanes
        return ir.VectorType(element, lanes)

    def _first_pointer(self, buffer: Buffer, index: Index, kind: ir.Type) -> ir.Value:
        pointer = self.b.gep(self.element_pointer(buffer), [self.scalar_index(index)])
        return self.b.bitcast(pointer, kind.as_pointer())

    def _each_lane(self) -> Iterator[int]:
        """The number of each lane; while it is at hand, the axis has that lane's value."""
        lanes, axis, values = self.lanes, self.vector_axis, self.values
        first = self.axis_values[axis]
        for lane in range(lanes):
            # expressions that do not depend on the axis stay known
            self.lanes, self.values = 1, {}
            self.axis_values[axis] = self.b.add(first, I64(lane))
            yield lane
        self.lanes, self.values, self.axis_values[axis] = lanes, values, first

    # -- reductions -------------------------------------------------------------------------------------
    def merge(self, op: str, dtype, x: ir.Value | Pair, y: ir.Value | Pair) -> ir.Value | Pair:
        """From sm_80 on one instruction finds extremes of which NaN is the most extreme; which of two zeros
        it finds does not depend on their order."""
        if dtype == dtypes.float32 and op in _EXTREMES and "sm_80" in self.function.module.features:
            return call_intrinsic(self.b, _EXTREMES[op], [x, y])
        return super().merge(op, dtype, x, y)

    # -- places -------------------------------------------------------------------------------------------
    def count_iterations(self, axes: Sequence[Axis]) -> list[ir.Value]:
        return [self.size(axis.extent) for axis in axes]

    def multiply(self, counts: Sequence[ir.Value]) -> ir.Value:
        """How many places there are in a nest of so many iterations each."""
        return functools.reduce(self.b.mul, counts, I64(1))

    def divide_up(self, count: ir.Value, size: int) -> ir.Value:
        """How many parts of a size hold so many elements."""
        return self.b.udiv(self.b.add(count, I64(size - 1)), I64(size))

    def least(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.b.select(self.b.icmp_signed("<", x, y), x, y)

    def place_axes(self, axes: Sequence[Axis], item: ir.Value, items: int,
                   counts: Sequence[ir.Value] | None = None) -> None:
        """Sets axes to what they are in an item of their nest. items: how many there are. counts: iterations
        of each axis, if not its extent."""
        b, rest, counts = self.b, item, counts or self.count_iterations(axes)
        for axis, count in zip(axes[:0:-1], counts[:0:-1]):
            if items <= MAX_NARROW:
                narrow, by = b.trunc(rest, I32), b.trunc(count, I32)
                value, rest = b.zext(b.urem(narrow, by), I64), b.zext(b.udiv(narrow, by), I64)
            else:
                value, rest = b.urem(rest, count), b.udiv(rest, count)
            self.axis_values[axis] = value
        if axes:
            self.axis_values[axes[0]] = rest

    def for_batches(self, first: ir.Value, stop: ir.Value, step: int, batch: int,
                    body: Callable[[list[ir.Value]], None]) -> None:
        """`for i in range(first, stop, step)`, a batch of them at a time; the rest one by one. body: of the
        iterations of a batch, which may have all that it waits for on its way before it needs any."""
        b = self.b
        if batch > 1:
            length, many = I64(batch * step), b.sub(stop, I64((batch - 1) * step))  # the last whole one
            with self.for_range(first, many, length) as i:
                body([b.add(i, I64(number * step)) for number in range(batch)])
            some = b.select(b.icmp_signed("<", first, many), b.sub(many, first), I64(0))
            first = b.add(first, b.mul(b.udiv(b.add(some, I64(batch * step - 1)), length), length))
        with self.for_range(first, stop, I64(step)) as i:
            body([i])

    def is_inside(self, *axes: Axis) -> ir.Value:
        """Whether axes are below their extents."""
        first, *others = [
            self.b.icmp_signed("<", self.axis_values[axis], self.size(axis.extent)) for axis in axes
        ]
        return functools.reduce(self.b.and_, others, first)

    # -- the machine ----------------------------------------------------------------------------------------
    def read_register(self, name: str) -> ir.Value:
        """A special register as an i64, such as "tid.x"."""
        return self.b.zext(self.call(f"llvm.nvvm.read.ptx.sreg.{name}", I32), I64)

    def limit_registers(self, threads: int, blocks: int = 1) -> None:
        """Threads have so few registers that so many blocks of them run on a multiprocessor at once."""
        self.limit = threads, blocks

    def call(self, name: str, result: ir.Type, *operands: ir.Value) -> ir.Value:
        return call_function(self.b, name, result, operands)

    def read_item(self, block: int) -> ir.Value:
        """The number of this thread, where blocks have so many."""
        return self.b.add(self.b.mul(self.read_register("ctaid.x"), I64(block)), self.read_register("tid.x"))

    def share(self, kind: ir.Type, count: int) -> ir.GlobalVariable:
        """Shared memory of a block of threads: so many elements."""
        module, array = self.function.module, ir.ArrayType(kind, count)
        variable = ir.GlobalVariable(module, array, module.get_unique_name("shared"), addrspace=3)
        variable.linkage, variable.align = "internal", 16
        variable.initializer = ir.Constant(array, ir.Undefined)
        return variable

    def update_atomically(self, store: Store, pointer: ir.Value, value: ir.Value) -> None:
        """What an update of whole numbers that may be made in any order does to an element."""
        name = store.combine
        if name in ("min", "max") and store.buffer.dtype.kind == "u":
            name = f"u{name}"
        self.b.atomic_rmw(name, pointer, value, "monotonic")

    def load_bits(self, pointer: ir.Value, bits: int, place: ir.Value) -> ir.Value:
        """The integer of so many bits at a place of memory."""
        return self.b.load(self.find_bits(pointer, bits, place))

    def store_bits(self, value: ir.Value, pointer: ir.Value, bits: int, place: ir.Value) -> None:
        self.b.store(value, self.find_bits(pointer, bits, place))

    def find_bits(self, pointer: ir.Value, bits: int, place: ir.Value) -> ir.Value:
        """Where the integer of so many bits at a place is."""
        return self.b.gep(self.b.bitcast(pointer, ir.IntType(bits).as_pointer()), [place])

    def synchronize_block(self) -> None:
        self.call("llvm.nvvm.barrier0", VOID)

    def synchronize_warp(self, members: ir.Value) -> None:
        self.call("llvm.nvvm.bar.warp.sync", VOID, members)

    def shuffle(self, value: ir.Value | Pair, way: str, members: ir.Value,
                lane: int | ir.Value) -> ir.Value | Pair:
        """What another lane of the warp has. way: "bfly" (own lane xor `lane`), "up" (own lane - `lane`; one
        without such a neighbour keeps its own), or "idx" (that of this number)."""
        name, clamp = f"llvm.nvvm.shfl.sync.{way}.i32", I32(0 if way == "up" else WARP - 1)
        lane = I32(lane) if isinstance(lane, int) else lane

        def move(word):
            return self.call(name, I32, members, word, lane, clamp)

        return self.map_words(value, move)

    def map_words(self, value: ir.Value | Pair, move: Callable[[ir.Value], ir.Value]) -> ir.Value | Pair:
        """A value whose words of 32 bits are replaced, one after the other."""
        return map_parts(lambda part: self._move_words(part, move), value)

    def _move_words(self, value: ir.Value, move: Callable[[ir.Value], ir.Value]) -> ir.Value:
        b, kind = self.b, value.type
        bits = {ir.HalfType: 16, ir.FloatType: 32, ir.DoubleType: 64}.get(type(kind)) or kind.width
        whole = value if isinstance(kind, ir.IntType) else b.bitcast(value, ir.IntType(bits))
        if bits == 64:
            low, high = b.trunc(whole, I32), b.trunc(b.lshr(whole, I64(32)), I32)
            moved = b.or_(b.zext(move(low), I64), b.shl(b.zext(move(high), I64), I64(32)))
        else:
            moved = move(b.zext(whole, I32) if bits < 32 else whole)
            moved = b.trunc(moved, ir.IntType(bits)) if bits < 32 else moved
        return moved if isinstance(kind, ir.IntType) else b.bitcast(moved, kind)


def join_lanes(b: ir.IRBuilder, values: Sequence[ir.Value]) -> ir.Value:
    """A vector of them; one alone stays what it is."""
    if len(values) == 1:
        return values[0]
    whole = ir.Constant(ir.VectorType(values[0].type, len(values)), ir.Undefined)
    for lane, value in enumerate(values):
        whole = b.insert_element(whole, value, I32(lane))
    return whole
