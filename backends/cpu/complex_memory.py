"""Loads and stores of complex numbers: one, or those of all lanes.

In: the index of an access. Out: instructions. In memory the parts of a number are neighbours; in lanes they
are apart.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.cpu.fetch import fetch_ahead
from jitcore.backends.cpu.strides import MAX_STRIDE, load_strided
from jitcore.backends.llvm.complex_ops import interleave, list_places, read_pair, separate, write_pair
from jitcore.backends.llvm.lanes import I32, I64, Pair, constant, element_type, part_dtype
from jitcore.loopir.expr import Buffer
from jitcore.loopir.index import Index


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
