"""One LLVM function of this backend under construction.

In: expressions and indexes of the loop program. Out: instructions. Shared by kernels (`kernel.py`) and
the entry point (`entry.py`); what is not this processor's is `llvm.function`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cpu.mapping.balance import Share
from jitcore.backends.cpu.mapping.vectors import find_stride, shares_registers
from jitcore.backends.cpu.render.branches import emit_guarded, find_guarded
from jitcore.backends.cpu.render.fetch import fetch_ahead
from jitcore.backends.cpu.render.stores import (can_store, load_apart, load_pair, load_strided, steps_evenly,
                                                store_pair, store_past_caches, store_strided)
from jitcore.backends.cpu.runtime.interrupts import BEGIN_SYMBOL, LOOK_SYMBOL, STOPPED_SYMBOL, Interrupts
from jitcore.backends.llvm import scalar_ops
from jitcore.backends.llvm.function import Contraction, ExpressionEmitter, alignment_of
from jitcore.backends.llvm.options import RenderOptions, SizeTable, is_static
from jitcore.backends.llvm.registers import (CONTRACT_FLAGS, I1, I8, I32, I64, Pair, call_function, constant,
                                             lane_count, map_parts, memory_type, splat, widen)
from jitcore.loopir.expr import Axis, Buffer, Expr, Index


class FunctionEmitter(ExpressionEmitter):
    """An `ExpressionEmitter` with this processor's registers. dims: the array of sizes. tuning: `Loops`.

    unrolled: numbers of the current iterations of loops that are written out.
    told: (id of a constant, part of it) -> slot of the array of sizes that holds its bits.
    find_root_share: see `balance`; row: which one of several side by side this is.
    far: see `Kernel`. streaming: see `stores`. guardable: see `branches`. last_vector: index of lane 0
    in the last one of a loop's whole vectors. places: how many registers a new stack slot holds,
    None for one; place: the number of the one that is read and written. kept: accesses of elements that are
    registers on the stack, and the axis whose places these stand for."""

    def __init__(self, function: ir.Function, dims: ir.Value, sizes: SizeTable, first_size: int,
                 options: RenderOptions, contraction: Contraction | None = None):
        super().__init__(function, options, contraction)
        self.dims, self.sizes, self.first_size, self.tuning = dims, sizes, first_size, options.tuning
        self.size_values: dict = {}
        self.row, self.vector_bytes = 0, 16
        self.find_root_share: Callable[[], Share] = lambda: Share.NONE
        self.moving: set[Buffer] = set()  # buffers whose address is not the same everywhere in the function
        self.loads_late = False  # whether sizes, and what has a home, are loaded where they are needed
        self.homes: dict[Buffer, Callable[[], ir.Value]] = {}  # what loads addresses
        self.chains = None  # of a loop, see `loop_functions.Chains`
        self.unrolled: dict[Axis, int] = {}
        self.far: tuple[Buffer, ...] = ()
        self.streaming: dict[Buffer, tuple[int, ir.Value]] = {}  # alignment, where it is kept (None: all)
        self.may_branch = True  # whether choices are looked at, see `branches`
        self.guardable: dict[int, bool] = {}
        self.last_vector: ir.Value | None = None
        self.places: int | None = None
        self.place: ir.Value | None = None
        self.kept: dict[tuple[Buffer, Index], tuple[ir.Value, Axis]] = {}
        self.told: dict[tuple[int, int], int] = {}
        self.load_address: Callable[[Buffer], ir.Value] = lambda buffer: self.pointers[buffer]
        self.seen_tick: ir.Value | None = None
        self.exit: ir.Block | None = None

    # -- how loops that may run for long end: see `interrupts` --------------------------------------------
    def declare(self, symbol: str, result: ir.Type, *arguments: ir.Type) -> ir.Function:
        module = self.function.module
        found = module.globals.get(symbol)
        if found is None:
            found = ir.Function(module, ir.FunctionType(result, arguments), symbol)
            found.attributes.add("nounwind")
        return found

    def begin_polls(self) -> None:
        """Before a loop that polls."""
        if self.seen_tick is None:
            module, p = self.function.module, self.prologue
            if Interrupts.symbol not in module.globals:
                ir.GlobalVariable(module, I64, Interrupts.symbol)
            self.seen_tick = p.alloca(I64)
            p.store(p.call(self.declare(BEGIN_SYMBOL, I64), []), self.seen_tick)

    def emit_poll(self, leave: Callable[[], None] | None = None) -> None:
        """In a round that takes its time. leave: emits how the function returns when it has to end."""
        self.begin_polls()
        b = self.b
        tick = b.load_atomic(self.function.module.globals[Interrupts.symbol], "monotonic", 8)
        with b.if_then(b.icmp_signed("!=", tick, b.load(self.seen_tick)), likely=False):
            b.store(tick, self.seen_tick)
            self.leave_if(b.call(self.declare(LOOK_SYMBOL, I64), []), leave or b.ret_void)

    def leave_if_stopped(self, leave: Callable[[], None]) -> None:
        """Behind what may have been left early."""
        self.leave_if(self.b.call(self.declare(STOPPED_SYMBOL, I64), []), leave)

    def leave_if(self, stops: ir.Value, leave: Callable[[], None]) -> None:
        """All places of a function leave it by one block."""
        if self.exit is None:
            self.exit = self.function.append_basic_block("leave")
            with self.b.goto_block(self.exit):
                leave()
        following = self.function.append_basic_block("goes_on")
        self.b.cbranch(self.b.icmp_signed("!=", stops, stops.type(0)), self.exit, following)
        self.b.position_at_end(following)

    # -- sizes and addresses ------------------------------------------------------------------------------
    def load_size(self, size) -> ir.Value:
        builder, values, key = self.prologue, self.size_values, size
        if self.loads_late:
            builder, values, key = self.b, self.values, ~self.sizes.slot(size)
        if key not in values:
            slot = self.first_size + self.sizes.slot(size)
            values[key] = builder.load(builder.gep(self.dims, [I64(slot)]))
        return values[key]

    def emit_constant(self, node: Expr) -> ir.Value | Pair:
        value = super().emit_constant(node)
        return self._read_told(node, value) if self.told else value

    def _read_told(self, node: Expr, known: ir.Value | Pair) -> ir.Value | Pair:
        """A constant of which parts may be told at each call."""
        parts = list(known) if isinstance(known, Pair) else [known]
        for part, value in enumerate(parts):
            if (id(node), part) in self.told:
                p, slot = self.prologue, self.told[id(node), part]
                bits = p.load(p.gep(self.dims, [I64(slot)]))
                narrow = p.trunc(bits, I32) if isinstance(value.type, ir.FloatType) else bits
                parts[part] = p.bitcast(narrow, value.type)
        return Pair(*parts) if isinstance(known, Pair) else parts[0]

    def pointer_of(self, buffer: Buffer) -> ir.Value:
        if buffer in self.moving:
            return self.load_address(buffer)
        if buffer in self.homes:
            if id(buffer) not in self.values:
                self.values[id(buffer)] = self.homes[buffer]()
            return self.values[id(buffer)]
        return super().pointer_of(buffer)

    def stack_slot(self, initial: ir.Value | Pair) -> ir.Value | Pair:
        """Memory for a register (a slot for each part of a pair) that holds `initial` from here on; where
        there are `places`, for one register at each."""
        slot = map_parts(lambda part: self.prologue.alloca(self._slot_type(part.type)), initial)
        self.write_slot(slot, initial)
        return slot

    def _slot_type(self, register: ir.Type) -> ir.Type:
        return register if self.places is None else ir.ArrayType(register, self.places)

    def read_slot(self, slot: ir.Value | Pair) -> ir.Value | Pair:
        return map_parts(lambda part: self.b.load(self._at_place(part)), slot)

    def write_slot(self, slot: ir.Value | Pair, value: ir.Value | Pair) -> None:
        map_parts(lambda part, new: self.b.store(new, self._at_place(part)), slot, value)

    def _at_place(self, slot: ir.Value) -> ir.Value:
        is_array = isinstance(slot.type.pointee, ir.ArrayType)
        return self.b.gep(slot, [I64(0), self.place]) if is_array else slot

    def address(self, buffer: Buffer, index: Index) -> tuple[ir.Value, str]:
        """(pointer or vector of pointers, "scalar" | "contiguous" | "gather")."""
        element = memory_type(buffer.dtype)
        base = self.element_pointer(buffer)
        if not self.is_vector(index.axes()):
            return self.b.gep(base, [self.index(index)]), "scalar"
        stride = index.coefficient(self.vector_axis)
        if stride == 1:
            lanes, self.lanes = self.lanes, 1
            start = self.index(index)
            self.lanes = lanes
            return self.b.gep(base, [start]), "contiguous"
        offsets = self.b.mul(self.index(index),
                             constant(ir.VectorType(I64, self.lanes), buffer.dtype.itemsize))
        start = splat(self.b, self.b.ptrtoint(base, I64), self.lanes)
        pointers = ir.VectorType(element.as_pointer(), self.lanes)
        return self.b.inttoptr(self.b.add(start, offsets), pointers), "gather"

    # -- memory -------------------------------------------------------------------------------------------
    def load(self, buffer: Buffer, index: Index) -> ir.Value:
        if (buffer, index) in self.kept:
            return self.b.load(self._kept_register(buffer, index))
        if buffer.dtype.kind == "c":
            return load_pair(self, buffer, index)
        element, b = memory_type(buffer.dtype), self.b
        align, stride = alignment_of(buffer), self._small_stride(index)
        if stride is not None:
            pointer, way = None, "strided"
        elif steps_evenly(self, buffer, index):
            pointer, way = None, "apart"
        else:
            pointer, way = self.address(buffer, index)
        if way == "strided":
            value = load_strided(self, buffer, index, stride, align)
        elif way == "apart":
            value = load_apart(self, buffer, index, align)
        elif way == "scalar":
            value = b.load(pointer, align=align)
        elif way == "gather":
            if buffer in self.far and self.last_vector is not None:
                fetch_ahead(self, buffer, index)
            value = self.call_masked("gather", [pointer, I32(align), self.full_mask(), self.zeros(element)])
        elif self.mask is not None:
            value = self.call_masked("load", [pointer, I32(align), self.mask, self.zeros(element)])
        else:
            whole = ir.VectorType(element, self.lanes)
            value = b.load(b.bitcast(pointer, whole.as_pointer()), align=align)
        if buffer.dtype == dtypes.bool_:
            return b.trunc(value, widen(I1, self.lanes if way != "scalar" else 1))
        return value

    def _small_stride(self, index: Index) -> int | None:
        """The stride along whole vectors of lanes that shuffles serve better than gathers."""
        if self.mask is not None or not self.is_vector(index.axes()):
            return None
        return find_stride(index, self.vector_axis)

    def _kept_register(self, buffer: Buffer, index: Index) -> ir.Value:
        registers, axis = self.kept[buffer, index]
        return self.b.gep(registers, [self.axis_values[axis]])

    def store(self, buffer: Buffer, index: Index, value: ir.Value) -> None:
        if self.is_vector(index.axes()) and lane_count(value) == 1:
            value = splat(self.b, value, self.lanes)
        if (buffer, index) in self.kept:
            self.b.store(value, self._kept_register(buffer, index))
            return
        if buffer.dtype.kind == "c":
            return store_pair(self, buffer, index, value)
        b, stride = self.b, self._small_stride(index)
        if stride is not None and can_store(self, buffer, stride):
            pointer, way = None, "strided"
        else:
            pointer, way = self.address(buffer, index)
        if buffer.dtype == dtypes.bool_:
            value = b.zext(value, widen(I8, self.lanes if way != "scalar" else 1))
        align = alignment_of(buffer)
        if way == "strided":
            store_strided(self, buffer, index, stride, value, align)
        elif way == "scalar":
            b.store(value, b.bitcast(pointer, value.type.as_pointer()), align=align)
        elif way == "gather":
            self.call_masked("scatter", [value, pointer, I32(align), self.full_mask()])
        elif self.mask is not None:
            self.call_masked("store", [value, pointer, I32(align), self.mask])
        elif buffer in self.streaming:
            store_past_caches(self, buffer, pointer, value)
        else:
            b.store(value, b.bitcast(pointer, value.type.as_pointer()), align=align)

    def call_masked(self, name: str, operands: list) -> ir.Value:
        """Calls `llvm.masked.<name>`; the data is the first operand of writes, the last one of reads."""
        is_write = name in ("store", "scatter")
        data = operands[0].type if is_write else operands[-1].type
        lanes = data.count
        where = "p0" if name in ("load", "store") else f"v{lanes}p0"
        kind = data.element
        scalar = f"i{kind.width}" if isinstance(kind, ir.IntType) else kind.intrinsic_name
        full, result = f"llvm.masked.{name}.v{lanes}{scalar}.{where}", ir.VoidType() if is_write else data
        return call_function(self.b, full, result, operands)

    def full_mask(self) -> ir.Value:
        """The lanes that take part."""
        return self.mask if self.mask is not None else constant(ir.VectorType(I1, self.lanes), 1)

    def zeros(self, element: ir.Type) -> ir.Value:
        return ir.Constant(ir.VectorType(element, self.lanes), None)

    # -- expressions --------------------------------------------------------------------------------------
    def spread_ahead(self, node: Expr, lanes: int) -> None:
        """Spreads a scalar over lanes before the loop in lanes that reads it."""
        self.values[id(node), lanes] = splat(self.b, self.expr(node), lanes)

    def invert_ahead(self, node: Expr) -> None:
        """Inverts the scalar that a node divides by, before the loop in lanes that does."""
        divisor = node.args[1]
        self.values[id(node), "inverse"] = scalar_ops.invert(self.b, self.values[id(divisor)], divisor.dtype)

    def operands_of(self, node: Expr) -> Sequence[Expr]:
        guarded = find_guarded(self, node) if self.may_branch else None
        return super().operands_of(node) if guarded is None else [x for x in node.args if x is not guarded]

    def emit(self, node: Expr) -> ir.Value | Pair:
        guarded = find_guarded(self, node) if self.may_branch else None
        return super().emit(node) if guarded is None else emit_guarded(self, node, guarded)

    def emit_operation(self, node: Expr, args: list, name: str | None = None) -> ir.Value | Pair:
        if self.b.flags is CONTRACT_FLAGS and self._continues_a_chain(node):
            return self.b.fadd_rounded(*args)
        name = node.op
        in_lanes = self.inlines_math and self.mask is None and self.is_vector(node.axes)
        if name == "sqrt" and in_lanes and (share := self.find_root_share()) is not Share.NONE:
            name = self._choose_root(node, share)
        if in_lanes and (inverse := self.values.get((id(node), "inverse"))):
            inverse = splat(self.b, inverse, self.lanes)
            return scalar_ops.divide_by_shared(self.b, name, node.dtype, *args, inverse)
        return super().emit_operation(node, args, name)

    def _choose_root(self, node: Expr, share: Share) -> str:
        """Which function computes roots, so that of the registers of a value and of rows side by side as many
        are multiplied as the share says."""
        registers = max(self.lanes * node.dtype.itemsize // self.vector_bytes, 1)
        rows = max(share // registers, 1)
        if self.row % rows != rows - 1:
            return "sqrt"
        return "multiplied_sqrt" if share is Share.ALL or registers == 1 else "shared_sqrt"

    def _continues_a_chain(self, node: Expr) -> bool:
        """Whether a scalar sum waits for that of the round before and its product does not: it need not wait
        with it, and a sum alone takes less time than a multiply-add."""
        if node.op != "add" or node.dtype.kind != "f" or node.dtype.itemsize < 4 or self.is_vector(node.axes):
            return False
        return any(number.op == "result" or self.chains is not None and self.chains.is_ahead(number, other)
                   for number, other in (node.args, node.args[::-1]))

    # -- loops --------------------------------------------------------------------------------------------
    def can_unroll(self, axis: Axis, statement) -> bool:
        """Whether iterations over an axis are few, and better written out."""
        if self.lanes == 1 or self.mask is not None or self.unrolled or not is_static(axis.extent):
            return False
        if axis in statement.bounds:
            return False
        return shares_registers(statement, self.vector_axis)

    def unroll(self, axis: Axis, numbers: range, body: Callable[[], None]) -> None:
        """`body` for each of some values of an axis, written out; they share the registers that they read."""
        for number in numbers:
            saved = self.values
            self.values = dict(saved)
            self.axis_values[axis], self.unrolled[axis] = I64(number), number
            body()
            shared = {key: value for key, value in self.values.items() if isinstance(key, tuple)}
            self.values = saved | shared
        self.unrolled.pop(axis, None)
