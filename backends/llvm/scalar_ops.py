"""The scalar operations of the loop program as LLVM instructions, on scalars and on lanes.

In: an operation's name, its operands' dtypes and registers. Out: a register of the result's dtype. Elementary
functions come from `mathlib`, complex numbers from `complex_ops`.

Dividing an integer by 0 gives -1, and leaves the dividend; dividing the lowest number by -1 gives that
number, as in XLA. Lanes of integers are divided as floats, which no processor divides one after the other.
That is exact: operands are, and a quotient that is no integer is so far from the next one that rounding does
not reach it. Where all lanes share the divisor, its inverse is computed once: the product with a dividend
that is larger by a half lies between the quotient and the next integer, far enough from both. All this holds
below 2**48; a register of 64-bit integers with a larger one is divided lane by lane. LLVM divides by
constants better still, but for those of 64 bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.llvm import complex_ops, mathlib
from jitcore.backends.llvm.mathlib.emitter import emit_call
from jitcore.backends.llvm.mathlib.quotient import build_quotient
from jitcore.backends.llvm.registers import (I16, I32, Pair, call_intrinsic, choose, choose_rarely, constant,
                                             element_type, like, map_parts)

DIVISIONS = ("div", "rem")

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
        return emit_call(b, build_quotient, x, y, inverse)
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


Emit = Callable[..., ir.Value]

_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round_half_even": "rint",
               "copysign": "copysign"}


def emit_operation(b: ir.IRBuilder, name: str, operand_dtypes: list, result_dtype, args: list,
                   inline: bool = True) -> ir.Value:
    """One scalar operation. inline: whether the body of a mathematical function is copied to where it is
    called.

    Raises: KeyError for an operation that `list_operations` does not list."""
    dtype = np.dtype(operand_dtypes[0])
    if name == "select":
        return choose(b, *args)
    if name == "convert":
        return convert(b, args[0], dtype, np.dtype(result_dtype))
    if name == "cast":
        return _cast(b, args[0], dtype, np.dtype(result_dtype))
    if name == "bitcast":
        return _bitcast(b, args[0], dtype, np.dtype(result_dtype))
    if dtype == dtypes.bfloat16:  # of which LLVM has no registers: updates combine what is in memory
        wide = [convert(b, arg, dtype, dtypes.float32) for arg in args]
        is_bfloat16 = np.dtype(result_dtype) == dtypes.bfloat16
        target = dtypes.float32 if is_bfloat16 else result_dtype
        found = emit_operation(b, name, [dtypes.float32] * len(args), target, wide, inline)
        return convert(b, found, dtypes.float32, dtype) if is_bfloat16 else found
    if dtype.kind == "c" or name == "complex":
        return complex_ops.emit_complex(b, name, dtype, args, lambda real, operand, result, registers: (
            emit_operation(b, real, [operand], result, registers, inline)))
    kind = dtypes.kind_of(dtype)
    table = _FLOAT if kind == "f" else _BOOL if kind == "b" else _SIGNED if kind == "i" else _UNSIGNED
    emit = table.get(name)
    if emit is not None:
        return emit(b, *args)
    call = emit_call(b, mathlib.FUNCTIONS[name].formula, *args)
    if not inline and isinstance(call, ir.CallInstr):
        call.attributes.add("noinline")
    return call


@functools.cache
def count_math_calls(name: str, dtype) -> int:
    """How many functions of the math library an operation on this dtype calls."""
    if dtype.kind == "c" and name in complex_ops.OPERATIONS:
        part = dtypes.real_dtype(dtype)
        return sum(count_math_calls(inner, part) for inner in complex_ops.list_real_operations(name))
    return int(name in mathlib.FUNCTIONS and name not in _FLOAT and dtypes.is_floating(dtype))


def list_operations() -> dict[str, set[str]]:
    """The operations that there is code for, by the kind of their operands' dtype."""
    of_all = {"select", "convert", "cast", "bitcast"}
    return {
        "f": of_all | _FLOAT.keys() | mathlib.FUNCTIONS.keys() | {"complex"},
        "i": of_all | _SIGNED.keys(),
        "u": of_all | _UNSIGNED.keys(),
        "b": of_all | _BOOL.keys(),
        "c": of_all | complex_ops.OPERATIONS.keys(),
    }


# -- comparison, minimum, maximum ----------------------------------------------------------------------------


def _float_compare(sign: str) -> Emit:
    ordered = sign != "!="
    return lambda b, x, y: (b.fcmp_ordered if ordered else b.fcmp_unordered)(sign, x, y)


def _float_extreme(sign: str) -> Emit:
    def emit(b, x, y):
        # NaN wins, as in NumPy. The inner choice is one instruction that yields y for NaN. Were the value of
        # the outer one x, LLVM would make one choice of both, after two comparisons: three times the wait.
        extreme = b.select(b.fcmp_ordered(sign, x, y), x, y)
        is_nan, nan = b.fcmp_unordered("uno", x, x), constant(x.type, float("nan"))
        if isinstance(x.type, ir.VectorType):
            return b.select(is_nan, nan, extreme)
        return choose_rarely(b, is_nan, lambda: nan, lambda: extreme)

    return emit


def _integer_extreme(compare: str, sign: str) -> Emit:
    return lambda b, x, y: b.select(getattr(b, compare)(sign, x, y), x, y)


# -- integers -----------------------------------------------------------------------------------------------


def _width(x: ir.Value) -> int:
    kind = x.type.element if isinstance(x.type, ir.VectorType) else x.type
    return kind.width


def _divide(op: str, signed: bool, b, x, y):
    return divide_integers(b, op, signed, x, y)


def _shift(method: str, fill) -> Emit:
    def emit(b, x, y):
        inside = b.icmp_unsigned("<", y, constant(y.type, _width(y)))
        safe = b.select(inside, y, constant(y.type, 0))
        return b.select(inside, getattr(b, method)(x, safe), fill(b, x))

    return emit


def _zero(b, x):
    return constant(x.type, 0)


def _sign_fill(b, x):
    return b.ashr(x, constant(x.type, _width(x) - 1))


def _integer_sign(b, x):
    positive = b.zext(b.icmp_signed(">", x, constant(x.type, 0)), x.type)
    return b.select(b.icmp_signed("<", x, constant(x.type, 0)), constant(x.type, -1), positive)


_INTEGER = {
    "add": lambda b, x, y: b.add(x, y),
    "sub": lambda b, x, y: b.sub(x, y),
    "mul": lambda b, x, y: b.mul(x, y),
    "neg": lambda b, x: b.neg(x),
    "square": lambda b, x: b.mul(x, x),
    "and": lambda b, x, y: b.and_(x, y),
    "or": lambda b, x, y: b.or_(x, y),
    "xor": lambda b, x, y: b.xor(x, y),
    "not": lambda b, x: b.not_(x),
    "shift_left": _shift("shl", _zero),
    "shift_right_logical": _shift("lshr", _zero),
    "population_count": lambda b, x: call_intrinsic(b, "ctpop", [x]),
    "clz": lambda b, x: call_intrinsic(b, "ctlz", [x, ir.Constant(ir.IntType(1), 0)]),
}
_SIGNED = _INTEGER | {
    **{op: functools.partial(_divide, op, True) for op in DIVISIONS},
    "sign": _integer_sign,
    "shift_right_arithmetic": _shift("ashr", _sign_fill),
    "max": _integer_extreme("icmp_signed", ">="),
    "min": _integer_extreme("icmp_signed", "<="),
    "abs": lambda b, x: b.select(b.icmp_signed("<", x, constant(x.type, 0)), b.neg(x), x),
    **{op: (lambda b, x, y, sign=sign: b.icmp_signed(sign, x, y)) for op, sign in _COMPARISONS.items()},
}
_UNSIGNED = _INTEGER | {
    **{op: functools.partial(_divide, op, False) for op in DIVISIONS},
    "shift_right_arithmetic": _shift("lshr", _zero),
    "max": _integer_extreme("icmp_unsigned", ">="), "min": _integer_extreme("icmp_unsigned", "<="),
    "abs": lambda b, x: x,
    "sign": lambda b, x: b.zext(b.icmp_unsigned("!=", x, constant(x.type, 0)), x.type),
    **{op: (lambda b, x, y, sign=sign: b.icmp_unsigned(sign, x, y)) for op, sign in _COMPARISONS.items()},
}
_BOOL = {
    "add": lambda b, x, y: b.or_(x, y),
    "mul": lambda b, x, y: b.and_(x, y),
    "and": lambda b, x, y: b.and_(x, y),
    "or": lambda b, x, y: b.or_(x, y),
    "xor": lambda b, x, y: b.xor(x, y),
    "not": lambda b, x: b.not_(x),
    "max": lambda b, x, y: b.or_(x, y),
    "min": lambda b, x, y: b.and_(x, y),
    **{op: (lambda b, x, y, sign=sign: b.icmp_unsigned(sign, x, y)) for op, sign in _COMPARISONS.items()},
}


# -- floats -------------------------------------------------------------------------------------------------


def _float_bits(b, x):
    width = {"float": 32, "double": 64, "half": 16}[
        str(x.type.element if isinstance(x.type, ir.VectorType) else x.type)
    ]
    return b.bitcast(x, like(x, ir.IntType(width)))


def _is_finite(b, x):
    difference = b.fsub(x, x)  # 0 for finite x, NaN otherwise
    return b.fcmp_ordered("==", difference, constant(x.type, 0.0))


_FLOAT = {
    "add": lambda b, x, y: b.fadd(x, y),
    "sub": lambda b, x, y: b.fsub(x, y),
    "mul": lambda b, x, y: b.fmul(x, y),
    "div": lambda b, x, y: b.fdiv(x, y),
    "neg": lambda b, x: b.fneg(x),
    "square": lambda b, x: b.fmul(x, x),
    "abs": lambda b, x: call_intrinsic(b, "fabs", [x]),
    "max": _float_extreme(">"),
    "min": _float_extreme("<"),
    "rem": lambda b, x, y: emit_call(b, mathlib.FUNCTIONS["fmod"].formula, x, y),
    "is_finite": _is_finite,
    "signbit": lambda b, x: b.icmp_signed("<", _float_bits(b, x), constant(_float_bits(b, x).type, 0)),
    **{op: _float_compare(sign) for op, sign in _COMPARISONS.items()},
    **{
        op: (lambda b, *args, name=name: call_intrinsic(b, name, list(args)))
        for op, name in _INTRINSICS.items()
    },
}


# -- conversion ---------------------------------------------------------------------------------------------


def convert(b: ir.IRBuilder, x: ir.Value, source: np.dtype, target: np.dtype) -> ir.Value:
    """Between any two dtypes, as `lax.elementwise.convert_dtype` does on ndarrays."""
    if source == target:
        return x
    if source.kind == "c":
        part = dtypes.real_dtype(source)
        if target.kind == "c":
            return map_parts(lambda x: convert(b, x, part, dtypes.real_dtype(target)), x)
        if target == dtypes.bool_:
            return b.or_(*(convert(b, x, part, target) for x in x))
        return convert(b, x.re, part, target)
    if target.kind == "c":
        real = convert(b, x, source, dtypes.real_dtype(target))
        return Pair(real, constant(real.type, 0.0))
    if source == dtypes.bfloat16:
        return convert(b, _from_bfloat16(b, x), dtypes.float32, target)
    if target == dtypes.bfloat16:
        return _to_bfloat16(b, convert(b, x, source, dtypes.float32))
    return _convert_native(b, x, source, target)


def _convert_native(b, x, source, target):
    into = like(x, element_type(target))
    from_kind, to_kind = dtypes.kind_of(source), dtypes.kind_of(target)
    if to_kind == "b":
        if from_kind == "f":
            return b.fcmp_unordered("!=", x, constant(x.type, 0.0))
        return b.icmp_unsigned("!=", x, constant(x.type, 0))
    if to_kind == "f":
        if from_kind == "f":
            return b.fpext(x, into) if target.itemsize > source.itemsize else b.fptrunc(x, into)
        return b.sitofp(x, into) if from_kind == "i" else b.uitofp(x, into)
    if from_kind == "f":
        if isinstance(into, ir.VectorType):
            return _saturate_lanes(b, x, target, into)
        return _saturate(b, x, target, into)
    if from_kind == "b" or target.itemsize > source.itemsize:
        return b.sext(x, into) if from_kind == "i" else b.zext(x, into)
    return b.trunc(x, into) if target.itemsize < source.itemsize else x


def _saturate(b, x, target, into):
    """A float as a whole number by the rule of `_saturate_lanes`, most of which is behind a branch."""
    limits = np.iinfo(target)
    intrinsic = "fptosi.sat" if limits.min else "fptoui.sat"
    if not limits.min or isinstance(x.type, ir.HalfType):
        return call_intrinsic(b, intrinsic, [x], into, [into, x.type])
    size = call_intrinsic(b, "fabs", [x], x.type, [x.type])
    is_outside = b.fcmp_unordered(">=", size, constant(x.type, float(limits.max + 1)))
    return choose_rarely(b, is_outside, lambda: call_intrinsic(b, intrinsic, [x], into, [into, x.type]),
                         lambda: b.fptosi(x, into))


def _saturate_lanes(b, x, target, into):
    """Floats as whole numbers, the nearest there is for what lies outside, 0 for NaN. LLVM's own instruction
    for that goes through lanes one by one."""
    if isinstance(x.type.element, ir.HalfType):  # has no number above all of the integers
        x = b.fpext(x, like(x, ir.FloatType()))
    limits, is_single = np.iinfo(target), isinstance(x.type.element, ir.FloatType)
    float_type = np.float32 if is_single else np.float64
    highest = float_type(limits.max)
    if int(highest) > limits.max:
        highest = np.nextafter(highest, float_type(0))
    low, high = (constant(x.type, float(bound)) for bound in (limits.min, highest))
    within = b.select(b.fcmp_ordered(">", x, low), x, low)  # one instruction, which yields `low` for NaN
    within = b.select(b.fcmp_ordered("<", within, high), within, high)
    whole = b.fptosi(within, into) if limits.min else b.fptoui(within, into)
    if int(highest) < limits.max:
        whole = b.select(b.fcmp_ordered(">", x, high), constant(into, limits.max), whole)
    if limits.min:
        whole = b.select(b.fcmp_ordered("ord", x, x), whole, constant(into, 0))
    return whole


def _cast(b, x, source, target):
    """A float as a whole number, as x86 converts it: what the type does not hold is its least number. LLVM
    leaves that undefined; it is chosen before."""
    into = like(x, element_type(target))
    if source.itemsize == 2:  # has no number above all of the integers
        x = convert(b, x, source, dtypes.float32)
    least = np.iinfo(target).min
    size = call_intrinsic(b, "fabs", [x], x.type, [x.type])
    if isinstance(x.type, ir.VectorType):
        is_inside = b.fcmp_ordered("<", size, constant(x.type, -float(least)))
        return b.fptosi(b.select(is_inside, x, constant(x.type, float(least))), into)
    is_outside = b.fcmp_unordered(">=", size, constant(x.type, -float(least)))
    return choose_rarely(b, is_outside, lambda: constant(into, least), lambda: b.fptosi(x, into))


def _from_bfloat16(b, x):
    bits = b.shl(b.zext(x, like(x, I32)), constant(like(x, I32), 16))
    return b.bitcast(bits, like(x, ir.FloatType()))


def _to_bfloat16(b, x):
    """Rounds a float32 to the nearest bfloat16, halves to even; NaN stays NaN."""
    whole = like(x, I32)
    bits = b.bitcast(x, whole)
    high = b.lshr(bits, constant(whole, 16))
    odd = b.and_(high, constant(whole, 1))
    rounded = b.lshr(b.add(bits, b.add(odd, constant(whole, 0x7FFF))), constant(whole, 16))
    quiet = b.or_(high, constant(whole, 0x40))
    chosen = b.select(b.fcmp_unordered("uno", x, x), quiet, rounded)
    return b.trunc(chosen, like(x, I16))


def _bitcast(b, x, source, target):
    if source == dtypes.bool_ or target == dtypes.bool_:
        return convert(b, x, source, target)
    if target.kind == "c":
        return x if source.kind == "c" else complex_ops.bits_to_pair(b, x, target)
    whole = like(x, element_type(target))
    return b.bitcast(complex_ops.interleave(b, *x) if source.kind == "c" else x, whole)
