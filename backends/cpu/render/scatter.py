"""Rendering of stores at computed places: what is stored where in lanes, block by block, then one by one.

In: a loop whose body is one `loopir.Store` at places that are found while it runs. Out: instructions. Lanes
compute places and values and append them to two short lists on the stack, without those that a mask drops;
then the updates of the list are made one after the other, in the order of the iterations. Instructions that
store lanes apart are slower than that, and could not let two lanes meet in one element. Where the schedule
chose no lanes, as updates wait for the elements themselves, several of them are written out in the loop.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cpu.render.fetch import prefetch
from jitcore.backends.cpu.render.vector_loops import end_of_vectors, vector_loop
from jitcore.backends.llvm.registers import (I32, I64, POINTER, Pair, call_intrinsic, count_lanes,
                                             element_type, from_words, lane_count, part_dtype, splat,
                                             split_registers, to_words)
from jitcore.backends.llvm.scalar_ops import emit_operation
from jitcore.loopir.expr import Axis, Dynamic, Expr, Index, walk
from jitcore.loopir.program import Loop, Store


def emit_alone(e, axis: Axis, start: ir.Value, stop: ir.Value, body: Callable[[], None]) -> None:
    """`body` for all iterations in [start, stop), one by one. e: the `FunctionEmitter`."""
    b = e.b

    def run(first, count):
        known = e.values
        for number in range(count):
            e.values, e.axis_values[axis] = dict(known), b.add(first, I64(number))
            body()

    many = e.tuning.unrolled_alone
    whole = end_of_vectors(e, start, stop, many)
    e.loop(start, whole, I64(many), lambda first: run(first, many))
    e.loop(whole, stop, I64(1), lambda first: run(first, 1))


def emit_scattered(e, loop: Loop, start: ir.Value, stop: ir.Value, lanes: int, is_far: bool) -> None:
    """The updates of all iterations in [start, stop). e: the `FunctionEmitter`. is_far: whether elements are
    worth fetching ahead."""
    axis, store, block = loop.axis, loop.body[0], I64(e.tuning.listed_updates)
    pending = _Pending(e, store, axis, lanes)

    def run(low):
        high = e.b.add(low, block)
        high = e.b.select(e.b.icmp_signed("<", high, stop), high, stop)
        e.b.store(I64(0), pending.count)
        vector_loop(e, axis, low, high, [lanes], pending.append)
        pending.apply(is_far)

    e.loop(start, stop, block, run)


class _Pending:
    """The lists. values: None where all updates have one value. narrow: what is listed of places that are an
    integer of 32 bits and a number that all lanes share."""

    def __init__(self, e, store: Store, axis: Axis, lanes: int):
        self.e, self.store, tuning = e, store, e.tuning
        length = tuning.listed_updates + lanes + tuning.updates_ahead + tuning.unrolled_updates
        self.count = e.stack_slot(I64(0))
        self.narrow, self.rest = _split_place(store.offset, axis)
        self.places, self.values = self._make_list(I64 if self.narrow is None else I32, length), None
        if axis in store.value.axes:
            kind = _word(part_dtype(store.buffer.dtype))
            both = 2 if store.buffer.dtype.kind == "c" else 1
            self.values = [self._make_list(kind, length) for _ in range(both)]

    def _make_list(self, kind: ir.Type, length: int) -> ir.Value:
        column = self.e.prologue.alloca(kind, size=I32(length))
        column.align = 64  # lists without gaps are written in whole cache lines
        return column

    # -- lanes ---------------------------------------------------------------------------------------------
    def append(self) -> None:
        """Places and values of the current lanes, at the end of the lists; nothing where the test of the mask
        that reads least already leaves out all of them."""
        if self.store.mask is None:
            return self._append_lanes()
        first, *_ = sorted(_list_conjuncts(self.store.mask), key=_count_loads)
        own = self.e.expr_in_lanes(first)
        bits = ir.IntType(self.e.lanes)
        any_holds = self.e.b.icmp_unsigned("!=", self.e.b.bitcast(own, bits), bits(0))
        self.e.when(any_holds, self._append_lanes)

    def _append_lanes(self) -> None:
        e, b, store = self.e, self.e.b, self.store
        place = e.index(store.offset) if self.narrow is None else e.expr(self.narrow)
        columns = [(self.places, _in_lanes(e, place))]
        if self.values is not None:
            value = e.expr_in_lanes(store.value)
            parts = [value] if len(self.values) == 1 else list(value)
            columns += [(place, to_words(b, part)) for place, part in zip(self.values, parts)]
        count = b.load(self.count)
        if store.mask is not None:
            own = e.expr_in_lanes(store.mask)
            self._append_where(columns, own if e.mask is None else b.and_(own, e.mask), count)
        else:  # at the end of a loop the first lanes take part
            more = I64(e.lanes) if e.mask is None else count_lanes(b, e.mask)
            self._append_all(columns, count, more)

    def _append_all(self, columns: list, count: ir.Value, more: ir.Value) -> None:
        """The lists grow by the first `more` lanes."""
        for place, vector in columns:
            self._write(place, count, vector)
        self.e.b.store(self.e.b.add(count, more), self.count)

    def _append_where(self, columns: list, mask: ir.Value, count: ir.Value) -> None:
        """The lists grow by the lanes whose masks hold, which as a rule are all."""
        e, b = self.e, self.e.b
        append = self._append_some if e.vector_bytes == 64 else self._append_each
        bits = ir.IntType(e.lanes)
        all_hold = b.icmp_unsigned("==", b.bitcast(mask, bits), bits(-1))
        with b.if_else(all_hold) as (usual, rare):
            with usual:
                self._append_all(columns, count, I64(e.lanes))
            with rare:
                b.store(append(columns, mask, count), self.count)

    def _write(self, place: ir.Value, position: ir.Value, value: ir.Value) -> None:
        b = self.e.b
        pointer = b.bitcast(b.gep(place, [position]), value.type.as_pointer())
        b.store(value, pointer, align=_size_of(value.type.element))

    def _append_some(self, columns: list, mask: ir.Value, count: ir.Value) -> ir.Value:
        """Register by register, those lanes first whose masks hold. Returns: the new length."""
        b, few = self.e.b, min(self.e.lanes, self.e.vector_bytes // 8)
        starts = [count]
        for piece in split_registers(b, mask, few):
            starts.append(b.add(starts[-1], count_lanes(b, piece)))
        for place, vector in columns:
            width = min(self.e.lanes, self.e.vector_bytes // _size_of(vector.type.element))
            pieces = zip(split_registers(b, vector, width), split_registers(b, mask, width))
            for number, (piece, own) in enumerate(pieces):
                rest = ir.Constant(piece.type, ir.Undefined)
                first = call_intrinsic(b, "experimental.vector.compress", [piece, own, rest])
                self._write(place, starts[number * width // few], first)
        return starts[-1]

    def _append_each(self, columns: list, mask: ir.Value, count: ir.Value) -> ir.Value:
        """Each lane in turn is written to the end; the end moves where its mask holds."""
        b = self.e.b
        for lane in range(self.e.lanes):
            for place, vector in columns:
                b.store(b.extract_element(vector, I32(lane)), b.gep(place, [count]))
            count = b.add(count, b.zext(b.extract_element(mask, I32(lane)), I64))
        return count

    # -- updates -------------------------------------------------------------------------------------------
    def apply(self, is_far: bool) -> None:
        """Makes the updates, in order."""
        e, b, many = self.e, self.e.b, self.e.tuning.unrolled_updates
        count = b.load(self.count)
        whole = b.and_(count, I64(-many))

        def run(first):
            for number in range(many):
                self._update(b.add(first, I64(number)), number, is_far)

        e.loop(I64(0), whole, I64(many), run)
        e.loop(whole, count, I64(1), lambda position: self._update(position, 0, is_far))

    def _update(self, position: ir.Value, number: int, is_far: bool) -> None:
        e, b, store = self.e, self.e.b, self.store
        dtype = store.buffer.dtype
        place = self._read_place(position)
        if is_far:
            self._fetch(self._read_place(b.add(position, I64(e.tuning.updates_ahead))))
        if store.turns is not None:
            copies, distance = store.turns
            place = b.add(place, b.mul(I64(number % copies), e.size(distance)))
        value = e.expr(store.value) if self.values is None else self._read_value(position)
        if store.combine is not None:
            old = e.read_element(store.buffer, place)
            value = emit_operation(b, store.combine, [dtype, dtype], dtype, [old, value])
        e.write_element(store.buffer, place, value)

    def _read_place(self, position: ir.Value) -> ir.Value:
        e, b = self.e, self.e.b
        listed = b.load(b.gep(self.places, [position]))
        if self.narrow is None:
            return listed
        wide = b.sext(listed, I64) if self.narrow.dtype.kind == "i" else b.zext(listed, I64)
        return b.add(wide, e.index(self.rest))

    def _read_value(self, position: ir.Value):
        b, dtype = self.e.b, self.store.buffer.dtype
        kind = element_type(part_dtype(dtype))
        parts = [from_words(b, b.load(b.gep(column, [position])), kind) for column in self.values]
        return parts[0] if len(parts) == 1 else Pair(*parts)

    def _fetch(self, place: ir.Value) -> None:
        """Asks for the element at a place, which is about to be written."""
        b = self.e.b
        pointer = b.bitcast(b.gep(self.e.element_pointer(self.store.buffer), [place]), POINTER)
        prefetch(b, pointer, is_write=True)


def _list_conjuncts(mask: Expr) -> list[Expr]:
    """Bools that all hold where a mask does."""
    if mask.op == "and":
        return [found for arg in mask.args for found in _list_conjuncts(arg)]
    return [mask]


def _count_loads(expr: Expr) -> tuple[int, int]:
    nodes = walk([expr])
    return sum(node.op == "load" for node in nodes), len(nodes)


def _split_place(offset: Index, axis: Axis) -> tuple[Expr | None, Index]:
    """A place as an integer of 32 bits and an index that does not depend on the axis, if it is that."""
    found = [term for term in offset.terms if axis in Index((term,)).axes()]
    if len(found) == 1 and isinstance(found[0][0], Dynamic) and found[0][1] == 1:
        wide = found[0][0].expr
        if wide.op == "convert" and wide.args[0].dtype in (dtypes.int32, dtypes.uint32):
            others = tuple(term for term in offset.terms if term not in found)
            return wide.args[0], Index(others, offset.const)
    return None, offset


# -- elements of the lists --------------------------------------------------------------------------------
def _word(dtype) -> ir.Type:
    """What a list holds for an element: itself, or 32 bits for one that is shorter."""
    return I32 if dtype.itemsize < 4 else element_type(dtype)


def _in_lanes(e, value: ir.Value) -> ir.Value:
    return splat(e.b, value, e.lanes) if lane_count(value) == 1 else value


def _size_of(kind: ir.Type) -> int:
    return kind.width // 8 if isinstance(kind, ir.IntType) else 8 if isinstance(kind, ir.DoubleType) else 4
