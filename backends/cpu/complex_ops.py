"""Complex numbers in registers: operations, conversions, loads and stores of pairs.

In: registers, which are a `Pair` for a complex number. Out: instructions. The formulas are those of
`loopir.complex_math`, over this backend's real operations. In memory the parts of a number are neighbours; in
lanes they are apart.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cpu.lanes import (
    I32,
    I64,
    Pair,
    constant,
    element_constant,
    element_type,
    lane_count,
    like,
    map_parts,
    widen,
)
from jitcore.backends.cpu.strides import MAX_STRIDE, load_strided, shuffle
from jitcore.loopir.complex_math import OPERATIONS, Complex, Real, Reals
from jitcore.loopir.expr import Buffer
from jitcore.loopir.index import Index


# -- arithmetic -------------------------------------------------------------------------------------------
class LaneReals(Reals):
    """Real arithmetic in registers. emit(name, operand dtype, result dtype, registers): one operation."""

    def __init__(self, dtype, emit: Callable[..., ir.Value]):
        super().__init__(dtype)
        self.emit = emit

    def apply(self, name: str, operand_dtype, result_dtype, operands: list) -> ir.Value:
        known = next(operand for operand in operands if isinstance(operand, ir.Value))
        kind = like(known, element_type(operand_dtype))
        registers = [x if isinstance(x, ir.Value) else constant(kind, x) for x in operands]
        return self.emit(name, operand_dtype, result_dtype, registers)


class _Recorder(Reals):
    """Notes the operations of a formula."""

    def __init__(self, dtype):
        super().__init__(dtype)
        self.found: list[str] = []

    def apply(self, name: str, operand_dtype, result_dtype, operands: list) -> None:
        self.found.append(name)


def emit_complex(name: str, dtype, args: list, emit: Callable[..., ir.Value]) -> ir.Value | Pair:
    """One operation of `OPERATIONS`. dtype: of the (first) operand; emit: see `LaneReals`."""
    reals = LaneReals(dtypes.real_dtype(dtype), emit)
    result = _run_formula(reals, name, args)
    return Pair(result.re.value, result.im.value) if isinstance(result, Complex) else result.value


def list_real_operations(name: str) -> list[str]:
    """The real operations that a complex one consists of."""
    recorder = _Recorder(dtypes.float64)
    _run_formula(recorder, name, [Pair(None, None)] * OPERATIONS[name].__code__.co_argcount)
    return recorder.found


def _run_formula(reals: Reals, name: str, args: list):
    def wrap(value):
        return Real(reals, value, reals.dtype)

    return OPERATIONS[name](reals, *[Complex(*map(wrap, x)) if isinstance(x, Pair) else wrap(x) for x in args])


def convert_to_complex(b: ir.IRBuilder, x, target, convert: Callable) -> Pair:
    """A number of any dtype as a complex one. convert(x, target dtype): between real dtypes."""
    part = dtypes.real_dtype(target)
    if isinstance(x, Pair):
        return Pair(convert(x.re, part), convert(x.im, part))
    re = convert(x, part)
    return Pair(re, constant(re.type, 0.0))


def convert_from_complex(b: ir.IRBuilder, z: Pair, target, convert: Callable) -> ir.Value:
    """The real part; for bool, whether the number is not zero."""
    if target == dtypes.bool_:
        return b.or_(convert(z.re, target), convert(z.im, target))
    return convert(z.re, target)


# -- order in memory ----------------------------------------------------------------------------------------
def interleave(b: ir.IRBuilder, re: ir.Value, im: ir.Value) -> ir.Value:
    """The parts of all lanes as they lie in memory; a vector of two for one number."""
    if not isinstance(re.type, ir.VectorType):
        pair = ir.Constant(ir.VectorType(re.type, 2), ir.Undefined)
        return b.insert_element(b.insert_element(pair, re, I32(0)), im, I32(1))
    lanes = re.type.count
    return shuffle(b, re, im, [lane + part * lanes for lane in range(lanes) for part in range(2)])


def separate(b: ir.IRBuilder, whole: ir.Value) -> Pair:
    """The inverse of `interleave`."""
    count = whole.type.count
    if count == 2:
        return Pair(b.extract_element(whole, I32(0)), b.extract_element(whole, I32(1)))
    return Pair(*(shuffle(b, whole, whole, list(range(part, count, 2))) for part in range(2)))


def load_pair(e, buffer: Buffer, index: Index) -> Pair:
    """The element at `index`, or those of all lanes. e: the `FunctionEmitter`."""
    b, align = e.b, buffer.dtype.itemsize // 2
    stride = index.coefficient(e.vector_axis) if e.is_vector(index.axes()) else None
    if e.mask is None and isinstance(stride, int) and 1 < 2 * abs(stride) <= MAX_STRIDE and stride != 1:
        return Pair(*(load_strided(e, buffer, index, stride, align, part) for part in range(2)))
    pointer, way = e.address(buffer, index)
    if way == "gather":
        mask, zeros = e.full_mask(), e.zeros(_part_type(buffer))
        places = _part_pointers(e, buffer, pointer)
        return Pair(*(e.call_masked("gather", [place, I32(align), mask, zeros]) for place in places))
    if way == "scalar":
        return read_pair(b, buffer.dtype, pointer)
    whole = b.bitcast(pointer, ir.VectorType(_part_type(buffer), 2 * e.lanes).as_pointer())
    if e.mask is None:
        return separate(b, b.load(whole, align=align))
    zeros = constant(whole.type.pointee, 0.0)
    return separate(b, e.call_masked("load", [whole, I32(align), interleave(b, e.mask, e.mask), zeros]))


def store_pair(e, buffer: Buffer, index: Index, value: Pair) -> None:
    """Writes the element at `index`, or those of all lanes (then `value` is in lanes)."""
    b, align = e.b, buffer.dtype.itemsize // 2
    pointer, way = e.address(buffer, index)
    if way == "gather":
        for part, place in zip(value, _part_pointers(e, buffer, pointer)):
            e.call_masked("scatter", [part, place, I32(align), e.full_mask()])
    elif way == "scalar":
        write_pair(b, buffer.dtype, pointer, value)
    else:
        whole = interleave(b, *value)
        pointer = b.bitcast(pointer, whole.type.as_pointer())
        if e.mask is None:
            b.store(whole, pointer, align=align)
        else:
            e.call_masked("store", [whole, pointer, I32(align), interleave(b, e.mask, e.mask)])
