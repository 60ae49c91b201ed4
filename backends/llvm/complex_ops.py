"""Complex numbers in registers: operations, conversions, single numbers in memory.

In: registers, which are a `Pair` for a complex number. Out: instructions. The formulas are those of
`loopir.complex_math`, over this backend's real operations. In memory the parts of a number are neighbours; in
lanes they are apart.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.llvm.registers import (I32, I64, Pair, constant, element_type, lane_count, like,
                                             multiply_add, part_dtype, shuffle)
from jitcore.loopir.complex_math import OPERATIONS, Complex, Real, Reals


# -- arithmetic -------------------------------------------------------------------------------------------
class LaneReals(Reals):
    """Real arithmetic in registers. emit(name, operand dtype, result dtype, registers): one operation. fuses:
    whether sums take products unrounded."""

    def __init__(self, b: ir.IRBuilder, dtype, emit: Callable[..., ir.Value], fuses: bool):
        super().__init__(dtype)
        self.b, self.emit, self.fuses = b, emit, fuses
        self.factors: dict[ir.Value, list[ir.Value]] = {}  # of each product

    def apply(self, name: str, operand_dtype, result_dtype, operands: list) -> ir.Value:
        known = next(operand for operand in operands if isinstance(operand, ir.Value))
        kind = like(known, element_type(operand_dtype))
        registers = [x if isinstance(x, ir.Value) else constant(kind, x) for x in operands]
        if name in ("add", "sub") and self.fuses:
            for product, other in (registers, registers[::-1]):
                if product in self.factors:
                    is_first = product is registers[0]
                    signs = name == "sub" and not is_first, name == "sub" and is_first
                    return multiply_add(self.b, *self.factors[product], other, *signs)
        result = self.emit(name, operand_dtype, result_dtype, registers)
        if name == "mul":
            self.factors[result] = registers
        return result


class _Recorder(Reals):
    """Notes the operations of a formula."""

    def __init__(self, dtype):
        super().__init__(dtype)
        self.found: list[str] = []

    def apply(self, name: str, operand_dtype, result_dtype, operands: list) -> None:
        self.found.append(name)


def emit_complex(b: ir.IRBuilder, name: str, dtype, args: list,
                 emit: Callable[..., ir.Value]) -> ir.Value | Pair:
    """One operation of `OPERATIONS`. dtype: of the (first) operand; b: a `FloatBuilder`; emit: see
    `LaneReals`."""
    reals = LaneReals(b, dtypes.real_dtype(dtype), emit, b.fuses or name in b.fused_complex)
    result = _run_formula(reals, name, args)
    return Pair(result.re.value, result.im.value) if isinstance(result, Complex) else result.value


def list_real_operations(name: str) -> list[str]:
    """The real operations that a complex one consists of."""
    recorder = _Recorder(dtypes.float64)
    arity = OPERATIONS[name].__code__.co_argcount - 1
    _run_formula(recorder, name, [Pair(None, None)] * arity)
    return recorder.found


def _run_formula(reals: Reals, name: str, args: list):
    def wrap(value):
        if isinstance(value, Pair):
            return Complex(*map(wrap, value))
        return Real(reals, value, reals.dtype)

    return OPERATIONS[name](reals, *map(wrap, args))


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


def bits_to_pair(b: ir.IRBuilder, bits: ir.Value, dtype) -> Pair:
    """Integers as the complex numbers of the same bits."""
    return separate(b, b.bitcast(bits, ir.VectorType(element_type(part_dtype(dtype)), 2 * lane_count(bits))))


def read_pair(b: ir.IRBuilder, pointer: ir.Value) -> Pair:
    """One number in memory."""
    return Pair(*(b.load(place, align=_part_size(pointer)) for place in list_places(b, pointer)))


def write_pair(b: ir.IRBuilder, pointer: ir.Value, value: Pair) -> None:
    for part, place in zip(value, list_places(b, pointer)):
        b.store(part, place, align=_part_size(pointer))


def list_places(b: ir.IRBuilder, pointer: ir.Value) -> list[ir.Value]:
    """The addresses of both parts of a number."""
    first = b.bitcast(pointer, pointer.type.pointee.element.as_pointer())
    return [first, b.gep(first, [I64(1)])]


def _part_size(pointer: ir.Value) -> int:
    return 8 if isinstance(pointer.type.pointee.element, ir.DoubleType) else 4
