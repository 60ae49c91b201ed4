"""Memory accesses: loads and stores of elements and lanes, strided, complex and nontemporal.

In: the stores of one body, and the emitter of the function around it; for nontemporal stores the loop of a
kernel with `streams`, and a range of it. Out: instructions. Nontemporal stores write whole lines past the
caches: elements before the first line and after the last vector are stored as usual (`vector_loops`), as are
outputs that do not begin lines where the first one does. They reach memory in any order, so that a fence
comes before anybody is told of them.

Loads and stores that are not one register of neighbours are whole registers and shuffles instead of gathers.
In memory the parts of a complex number are neighbours; in lanes they are apart. Columns of an (n, 4) array,
`x[::2]` and `x[::-1]` are accesses whose stride along the vector axis is a small constant. What is read ends
with the last lane; registers are shared by accesses that differ in their place within one period.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cpu.mapping.vectors import find_stride
from jitcore.backends.cpu.render.fetch import fetch_ahead
from jitcore.backends.cpu.render.vector_loops import (alignment, count_past, emit_edges, emit_vectors,
                                                      end_of_vectors, find_line, vector_loop)
from jitcore.backends.llvm.complex_ops import interleave, list_places, read_pair, separate, write_pair
from jitcore.backends.llvm.mathlib.emitter import make_numbers
from jitcore.backends.llvm.options import is_static
from jitcore.backends.llvm.registers import (I8, I32, I64, Pair, call_function, constant, element_type,
                                             join_registers, lane_count, memory_type, part_dtype, shuffle,
                                             split_registers, widen)
from jitcore.backends.llvm.statements import emit_store
from jitcore.loopir.expr import Axis, Buffer, Index
from jitcore.loopir.program import Loop, Store
from jitcore.loopir.traversal import list_reads
from jitcore.schedule.tuning import Tuning


def load_pair(e, buffer: Buffer, index: Index) -> Pair:
    """The element at `index`, or those of all lanes. e: the `FunctionEmitter`."""
    b, align = e.b, buffer.dtype.itemsize // 2
    stride = index.coefficient(e.vector_axis) if e.is_vector(index.axes()) else None
    if e.mask is None and isinstance(stride, int) and 1 < 2 * abs(stride) <= Tuning.short and stride != 1:
        return Pair(*(load_strided(e, buffer, index, stride, align, part) for part in range(2)))
    pointer, way = e.address(buffer, index)
    if way == "gather":
        if buffer in e.far and e.last_vector is not None:
            fetch_ahead(e, buffer, index)
        mask, zeros = e.full_mask(), e.zeros(_part_type(buffer))
        places = _part_pointers(e, buffer, pointer)
        return Pair(*(e.call_masked("gather", [place, I32(align), mask, zeros]) for place in places))
    if way == "scalar":
        return read_pair(b, pointer)
    whole = ir.VectorType(_part_type(buffer), 2 * e.lanes)
    if e.mask is None:
        return separate(b, b.load(b.bitcast(pointer, whole.as_pointer()), align=align))
    first, mask = list_places(b, pointer)[0], interleave(b, e.mask, e.mask)
    return separate(b, e.call_masked("load", [first, I32(align), mask, ir.Constant(whole, None)]))


def store_pair(e, buffer: Buffer, index: Index, value: Pair) -> None:
    """Writes the element at `index`, or those of all lanes (then `value` is in lanes)."""
    b, align = e.b, buffer.dtype.itemsize // 2
    pointer, way = e.address(buffer, index)
    if way == "gather":
        for part, place in zip(value, _part_pointers(e, buffer, pointer)):
            e.call_masked("scatter", [part, place, I32(align), e.full_mask()])
    elif way == "scalar":
        write_pair(b, pointer, value)
    else:
        whole = interleave(b, *value)
        if e.mask is None:
            b.store(whole, b.bitcast(pointer, whole.type.as_pointer()), align=align)
        else:
            first, mask = list_places(b, pointer)[0], interleave(b, e.mask, e.mask)
            e.call_masked("store", [whole, first, I32(align), mask])


def _part_type(buffer: Buffer) -> ir.Type:
    return element_type(part_dtype(buffer.dtype))


def _part_pointers(e, buffer: Buffer, pointers: ir.Value) -> list[ir.Value]:
    """The addresses of both parts of the numbers of all lanes."""
    b, lanes = e.b, pointers.type.count
    kind = ir.VectorType(_part_type(buffer).as_pointer(), lanes)
    whole = ir.VectorType(I64, lanes)
    start, size = b.ptrtoint(pointers, whole), constant(whole, buffer.dtype.itemsize // 2)
    return [b.inttoptr(start, kind), b.inttoptr(b.add(start, size), kind)]


def register_lanes(e, lanes: int, dtype) -> int:
    """How many of some lanes one register holds."""
    return min(lanes, max(2, e.vector_bytes // part_dtype(dtype).itemsize))


def can_store(e, buffer: Buffer, stride: int) -> bool:
    """Whether registers with some lanes switched off are written fast enough."""
    return stride == -1 or (e.vector_bytes == 64 and buffer.dtype.itemsize >= 4)


def load_strided(e, buffer: Buffer, index: Index, stride: int, align: int, part: int = 0) -> ir.Value:
    """The elements at `index` of all lanes. e: the `FunctionEmitter`, in a vector loop without a mask.

    part: which of the numbers that an element consists of."""
    parts = _count_parts(buffer)
    step, width = parts * abs(stride), register_lanes(e, e.lanes, buffer.dtype)
    block, origin, phase = _find_block(e, index, stride)
    origin, phase = parts * origin, parts * phase  # from here on in numbers, of which elements may have two
    last = (e.lanes - 1) * step + phase + parts - width  # the register that ends with the last lane
    pieces = []
    for first in range(0, step * e.lanes, step * width):
        starts = [min(first + k * width, last) for k in range(step)]
        registers = [_load_register(e, buffer, block, origin + start, align) for start in starts]
        wanted = [first + phase + part + k * step for k in range(width)]
        pieces.append(_pick_elements(e.b, registers, starts, wanted))
    value = join_registers(e.b, pieces)
    return _reverse(e.b, value) if stride < 0 else value


def steps_evenly(e, buffer: Buffer, index: Index) -> bool:
    """Whether all lanes take part and read elements at one distance from each other, however far."""
    if e.mask is not None or not e.is_vector(index.axes()) or buffer in e.far:
        return False
    if e.lanes * buffer.dtype.itemsize > e.vector_bytes:
        return False
    return index.coefficient(e.vector_axis) not in (None, 1)


def load_apart(e, buffer: Buffer, index: Index, align: int) -> ir.Value:
    """Elements at one distance from each other, each by itself: what gathers do, in fewer steps."""
    b, step = e.b, e.size(index.coefficient(e.vector_axis))
    place = b.gep(e.element_pointer(buffer), [e.scalar_index(index)])
    value = ir.Constant(ir.VectorType(memory_type(buffer.dtype), e.lanes), ir.Undefined)
    for lane in range(e.lanes):
        value = b.insert_element(value, b.load(place, align=align), I32(lane))
        place = b.gep(place, [step])
    return value


def store_strided(e, buffer: Buffer, index: Index, stride: int, value: ir.Value, align: int) -> None:
    """Writes the elements at `index` of all lanes and nothing between them; see `can_store`."""
    step, width = abs(stride), register_lanes(e, e.lanes, buffer.dtype)
    value = _reverse(e.b, value) if stride < 0 else value
    start = e.b.add(e.scalar_index(index), I64(min(stride, 0) * (e.lanes - 1)))
    for number in range(step * e.lanes // width):
        pointer = register_pointer(e, buffer, start, number * width)
        lanes = [divmod(number * width + k, step) for k in range(width)]
        spread = shuffle(e.b, value, value, [lane if rest == 0 else None for lane, rest in lanes])
        mask = make_numbers(1, tuple([int(rest == 0) for _, rest in lanes]))
        if step == 1:
            e.b.store(spread, pointer, align=align)
        else:
            place = e.b.bitcast(pointer, spread.type.element.as_pointer())  # as all masked stores have it
            e.call_masked("store", [spread, place, I32(align), mask])


def _find_block(e, index: Index, stride: int) -> tuple[Index, int, int]:
    """(an index, where the period of lane 0 begins after it, the place of lane 0 in its period).

    Only what the program's text tells may decide about the place: constants above 8 are run-time numbers."""
    if stride < 0:
        return index, stride * (e.lanes - 1), 0
    known, rest = (index.const, 0) if is_static(index.const) else (0, index.const)
    terms = []
    if not isinstance(rest, int):
        return index, 0, 0
    for atom, coefficient in index.terms:
        if not isinstance(atom, Axis) or (is_static(coefficient) and coefficient < 0):
            return index, 0, 0
        if atom in e.unrolled and is_static(coefficient):
            known += coefficient * e.unrolled[atom]
        else:
            terms.append((atom, coefficient))
    if known < 0:
        return index, 0, 0
    phase = known % stride
    return Index(tuple(terms), rest), known - phase, phase


def _count_parts(buffer: Buffer) -> int:
    return 2 if buffer.dtype.kind == "c" else 1


def register_pointer(e, buffer: Buffer, start: ir.Value, offset: int) -> ir.Value:
    """The register `offset` numbers after element `start`."""
    b, element = e.b, memory_type(part_dtype(buffer.dtype))
    start = b.mul(start, I64(2)) if _count_parts(buffer) == 2 else start
    base = b.bitcast(e.pointer_of(buffer), element.as_pointer())
    whole = ir.VectorType(element, register_lanes(e, e.lanes, buffer.dtype)).as_pointer()
    return b.bitcast(b.gep(base, [b.add(start, I64(offset))]), whole)


def _load_register(e, buffer: Buffer, block: Index, offset: int, align: int) -> ir.Value:
    """The register `offset` numbers after the first element of a block."""
    key = (buffer, block, offset)
    if key not in e.values or buffer in e.written:
        pointer = register_pointer(e, buffer, e.scalar_index(block), offset)
        e.values[key] = e.b.load(pointer, align=align)
    return e.values[key]


def _pick_elements(b: ir.IRBuilder, registers: list, starts: list[int], wanted: list[int]) -> ir.Value:
    """The wanted elements; starts: number of the first element that each register holds."""
    if len(registers) == 1:
        return registers[0]
    width, places = len(wanted), []
    for element in wanted:
        number = next(k for k, start in enumerate(starts) if start <= element < start + width)
        places.append((number, element - starts[number]))
    return pick_lanes(b, registers, places)


def pick_lanes(b: ir.IRBuilder, registers: Sequence[ir.Value], places: list[tuple[int, int]]) -> ir.Value:
    """One register of lanes from several. places: number of the register, and lane."""
    picked, width = registers[0], len(places)
    lanes = [lane if number == 0 else None for number, lane in places]
    for other in range(1, len(registers)):
        lanes = [width + lane if number == other else known for (number, lane), known in zip(places, lanes)]
        picked = shuffle(b, picked, registers[other], lanes)
        lanes = [None if lane is None else k for k, lane in enumerate(lanes)]
    return picked


def _reverse(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return shuffle(b, value, value, list(range(value.type.count))[::-1])


def group_stores(e, body: list) -> dict[int, list[Store]]:
    """The stores of a body by where they are made: each at its own place, but for those that fill registers
    together, which are made at the place of the last of them."""
    groups = {number: [s] for number, s in enumerate(body) if isinstance(s, Store)}
    if e.lanes > 1 and e.mask is None:
        for places in _find_interleaved(body, e.vector_axis):
            together = [groups.pop(place)[0] for place in places]
            groups[max(places)] = together
    return groups


def emit_stores(e, stores: list[Store]) -> None:
    """One store, or several that fill registers together."""
    if len(stores) == 1:
        emit_store(e, stores[0])
    elif stores:
        _store_interleaved(e, stores, [e.expr_in_lanes(store.value) for store in stores])


def _find_interleaved(body: list, axis) -> list[list[int]]:
    """Of the stores of a body those that fill a stretch of memory together in lanes of an axis: as many
    places beside each other as the stride has elements, in order."""
    if len(body) < 2 or not all(isinstance(s, Store) and s.mask is None and not s.is_update for s in body):
        return []
    read = list_reads(body)
    found: dict[tuple, dict[int, int]] = {}
    for number, store in enumerate(body):
        stride, first = find_stride(store.offset, axis), store.offset.const
        if stride is None or stride < 0 or not is_static(first) or store.buffer in read:
            continue  # what is not in the program's text may be another number in the next call
        if store.buffer.dtype.kind != "c":
            block = (store.buffer, stride, first // stride, store.offset.terms)
            found.setdefault(block, {})[first % stride] = number
    return [[places[k] for k in range(stride)] for (_, stride, _, _), places in found.items()
            if len(places) == stride]


def _store_interleaved(e, stores: list[Store], values: list[ir.Value]) -> None:
    """Whole registers, in which lanes of all values take turns."""
    b, buffer = e.b, stores[0].buffer
    if buffer.dtype == dtypes.bool_:
        values = [b.zext(value, widen(I8, e.lanes)) for value in values]
    width, start = register_lanes(e, e.lanes, buffer.dtype), e.scalar_index(stores[0].offset)
    pieces = [split_registers(b, value, width) for value in values]
    for group, registers in enumerate(zip(*pieces)):
        for number in range(len(stores)):
            pointer = register_pointer(e, buffer, start, (group * len(stores) + number) * width)
            b.store(_weave(b, registers, number), pointer, align=buffer.dtype.itemsize)


def _weave(b: ir.IRBuilder, registers: tuple, number: int) -> ir.Value:
    """Of the elements of several registers, one of each after the other, those of one register."""
    width = lane_count(registers[0])
    taken = (divmod(number * width + k, len(registers)) for k in range(width))
    return pick_lanes(b, registers, [(turn, lane) for lane, turn in taken])


# Bytes of the shortest register; shorter pieces have no such stores.
MIN_BYTES = 16


def emit_streamed(e, loop: Loop, start: ir.Value, stop: ir.Value, lanes: int, streams: tuple[Buffer, ...],
                  body: Callable[[], None]) -> None:
    """The iterations [start, stop) of a loop in lanes. e: the `FunctionEmitter`."""
    b, axis = e.b, loop.axis
    stores = [s for s in loop.body if s.buffer in streams and lanes * s.buffer.dtype.itemsize >= MIN_BYTES]
    if not stores:
        vector_loop(e, axis, start, stop, [lanes], body)
        return
    first = find_line(e, stores[0], axis, start, stop, lanes)
    for store in stores:
        past = count_past(e, store, axis, first, lanes)
        e.streaming[store.buffer] = alignment(store, lanes), b.icmp_unsigned("==", past, I64(0))
    align, is_aligned = e.streaming[stores[0].buffer]
    e.streaming[stores[0].buffer] = align, None
    last = b.select(is_aligned, end_of_vectors(e, first, stop, lanes), first)
    emit_vectors(e, axis, first, last, lanes, body)
    e.streaming = {}
    emit_edges(e, axis, (start, first), (last, stop), lanes, body)
    _fence(b)


def store_past_caches(e, buffer: Buffer, pointer: ir.Value, value: ir.Value) -> None:
    """Stores a whole vector of lanes."""
    b, (align, is_aligned) = e.b, e.streaming[buffer]
    place = b.bitcast(pointer, value.type.as_pointer())

    def store_past():
        store = b.store(value, place, align=align)
        store.set_metadata("nontemporal", b.module.add_metadata([I32(1)]))

    if is_aligned is None:
        store_past()
        return
    with b.if_else(is_aligned, likely=True) as (past, usual):
        with past:
            store_past()
        with usual:
            b.store(value, place, align=buffer.dtype.itemsize)


def _fence(b: ir.IRBuilder) -> None:
    """All stores before it are seen before any store after it."""
    call_function(b, "llvm.x86.sse.sfence", ir.VoidType(), [])
