"""Loads and stores that are not one register of neighbours: complex numbers, and lanes a few elements apart.

In: the index of an access. Out: instructions: whole registers and shuffles instead of gathers. In memory the
parts of a complex number are neighbours; in lanes they are apart. Columns of an (n, 4) array, `x[::2]` and
`x[::-1]` are accesses whose stride along the vector axis is a small constant. What is read ends with the last
lane, so nothing beyond the array is touched; registers are shared by the accesses that differ in their place
within one period.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from jitcore.backends.cpu.mapping.vectors import MAX_STRIDE
from jitcore.backends.cpu.render.fetch import fetch_ahead
from jitcore.backends.llvm.complex_ops import interleave, list_places, read_pair, separate, write_pair
from jitcore.backends.llvm.mathlib.emitter import make_numbers
from jitcore.backends.llvm.options import is_static
from jitcore.backends.llvm.registers import (
    I32,
    I64,
    Pair,
    constant,
    element_type,
    join_registers,
    memory_type,
    part_dtype,
    shuffle,
)
from jitcore.loopir.expr import Buffer
from jitcore.loopir.index import Axis, Index


def load_pair(e, buffer: Buffer, index: Index) -> Pair:
    """The element at `index`, or those of all lanes. e: the `FunctionEmitter`."""
    b, align = e.b, buffer.dtype.itemsize // 2
    stride = index.coefficient(e.vector_axis) if e.is_vector(index.axes()) else None
    if e.mask is None and isinstance(stride, int) and 1 < 2 * abs(stride) <= MAX_STRIDE and stride != 1:
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
