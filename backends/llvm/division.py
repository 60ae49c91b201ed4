"""Quotients and remainders of integers, and quotients by a divisor that lanes share.

In: registers of a dividend and a divisor. Out: the quotient, rounded to zero for integers, or what is left.
Dividing an integer by 0 gives -1, and leaves the dividend; dividing the lowest number by -1 gives that
number, as in XLA.

Lanes of integers are divided as floats, which no processor divides one after the other. That is exact:
operands are, and a quotient that is no integer is so far from the next one that rounding does not reach it.
Where all lanes share the divisor, its inverse is computed once: the product with a dividend that is larger by
a half lies between the quotient and the next integer, far enough from both. All this holds below 2**48; a
register of 64-bit integers with a larger one is divided lane by lane. LLVM divides by constants better still,
but for those of 64 bits.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.llvm.lanes import call_intrinsic, choose_rarely, constant
from jitcore.backends.llvm.mathlib import emit_quotient

__all__ = ["OPERATIONS", "divide_by_shared", "divide_integers", "invert"]

OPERATIONS = ("div", "rem")

# Bits of the magnitudes that floats divide exactly.
_EXACT_BITS = 48


def invert(b: ir.IRBuilder, divisor: ir.Value, dtype) -> ir.Value:
    """The inverse of a scalar of that dtype, a float."""
    if dtype.kind != "f":
        divisor = _to_float(b, divisor, _float_type(divisor.type), dtype.kind == "i")
    return b.fdiv(ir.Constant(divisor.type, 1.0), divisor)


def divide_by_shared(b: ir.IRBuilder, name: str, dtype, x: ir.Value, y: ir.Value,
                     inverse: ir.Value) -> ir.Value:
    """x / y or x % y for integers, x / y for floats. inverse: that of y, in all lanes too."""
    if dtype.kind == "f":
        return emit_quotient(b, x, y, inverse)
    return divide_integers(b, name, dtype.kind == "i", x, y, inverse)


def divide_integers(b: ir.IRBuilder, name: str, signed: bool, x: ir.Value, y: ir.Value,
                    inverse: ir.Value | None = None) -> ir.Value:
    """x / y or x % y. inverse: that of y, where all lanes share it."""
    element = y.type.element if isinstance(y.type, ir.VectorType) else y.type
    is_zero = b.icmp_unsigned("==", y, constant(y.type, 0))
    safe = b.select(is_zero, constant(y.type, 1), y)
    if signed:
        overflows = b.and_(b.icmp_signed("==", y, constant(y.type, -1)),
                           b.icmp_signed("==", x, constant(x.type, -(1 << (element.width - 1)))))
        safe = b.select(overflows, constant(y.type, 1), safe)

    def divide_lane_by_lane() -> ir.Value:
        return getattr(b, ("s" if signed else "u") + name)(x, safe)

    def divide_as_floats() -> ir.Value:
        kind = _float_type(x.type)
        number = _to_float(b, x, kind, signed)
        if inverse is None:
            quotient = b.fdiv(number, _to_float(b, safe, kind, signed))
        else:
            half = constant(kind, 0.5)
            half = call_intrinsic(b, "copysign", [half, number]) if signed else half
            quotient = b.fmul(b.fadd(number, half), inverse)
        result = b.fptosi(quotient, x.type) if signed else b.fptoui(quotient, x.type)
        if signed and inverse is not None:
            result = b.select(overflows, x, result)
        return b.sub(x, b.mul(result, y)) if name == "rem" else result

    if isinstance(y, ir.Constant) and inverse is None or element is y.type:
        result = divide_lane_by_lane()
    elif element.width <= _EXACT_BITS:
        result = divide_as_floats()
    else:
        is_large = b.or_(_is_large(b, x, signed), _is_large(b, y, signed))
        result = choose_rarely(b, is_large, divide_lane_by_lane, divide_as_floats)
    return b.select(is_zero, x if name == "rem" else constant(x.type, -1), result)


def _is_large(b: ir.IRBuilder, x: ir.Value, signed: bool) -> ir.Value:
    """Whether the magnitude of some lane has too many bits."""
    moved = b.add(x, constant(x.type, 1 << _EXACT_BITS)) if signed else x
    large = b.icmp_unsigned(">=", moved, constant(x.type, 1 << (_EXACT_BITS + signed)))
    lanes = b.bitcast(large, ir.IntType(x.type.count))
    return b.icmp_unsigned("!=", lanes, constant(lanes.type, 0))


def _float_type(kind: ir.Type) -> ir.Type:
    """Floats that hold all integers of a type, or of as many bits as are divided."""
    if isinstance(kind, ir.VectorType):
        return ir.VectorType(_float_type(kind.element), kind.count)
    return ir.FloatType() if kind.width <= 16 else ir.DoubleType()


def _to_float(b, x: ir.Value, kind: ir.Type, signed: bool) -> ir.Value:
    return b.sitofp(x, kind) if signed else b.uitofp(x, kind)
