"""Python's arithmetic on traced numbers.

In: Numbers and plain numbers. Out: what Python gives: ints that do not round or wrap, floor division and
modulo with the divisor's sign, exact comparisons. Where Python would raise, or a result leaves 64 bits, the
mode notes that the call has to be run by Python itself.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core import algebra
from jitcore.core.algebra import COMPARISONS, UNKNOWN, Interval
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.numbers import (LARGE, LARGEST_INT, NUMBER_DTYPES, RANKS, Form, Number,
                                                    as_int, form_of, interval_of, is_large, make_int)
from jitcore.numpy_semantics.values.operators import as_arrays, divide_parts, multiply_parts
from jitcore.rewriter.handles import current

_EXACT_FLOAT = 2.0**53
#: Sums with a number of this size are not checked: it would take too many of them to leave 64 bits.
_SMALL = 2**24


def fail(predicate: Any, error: BaseException) -> None:
    """Notes that Python would raise an error where a predicate holds: a bool, an Array or a Number."""
    mode = current.mode
    if predicate is False or mode is None:
        return
    if not mode.fail(Number(bool, predicate) if isinstance(predicate, Array) else predicate, error):
        raise error


def kind_of(value: Any) -> type:
    """bool, int, float or complex of a plain or traced number."""
    if type(value) is Number:
        return value.python_type
    return next(kind for kind in (bool, int, float, complex) if isinstance(value, kind))


def to_raw(value: Any, kind: type) -> Any:
    """A number as an operand of this kind's dtype: an Array, or a NumPy scalar for a plain number."""
    dtype = NUMBER_DTYPES[kind]
    if type(value) is not Number:
        if kind in (int, bool) and not -(2**63) <= value < 2**63:
            raise not_traceable(f"the int {value} does not fit 64 bits")
        return dtype.type(kind(value))
    raw, own = value.read(), value.python_type
    if own is kind:
        return raw
    if own is int and kind in (float, complex):
        _check_exact(value)
    return lax.convert_element_type(raw, dtype)


def _check_exact(value: Any) -> None:
    """An int that becomes a float of the same value for a comparison or a division."""
    low, high = interval_of(value)
    if type(value) is Number and not (-_EXACT_FLOAT <= low and high <= _EXACT_FLOAT):
        size = lax.abs(lax.convert_element_type(value.read(), dtypes.float64))
        fail(Number(bool, lax.gt(size, np.float64(_EXACT_FLOAT))),
             OverflowError("int too large to convert to float"))


def common_kind(x: Any, y: Any) -> type:
    kind = max(kind_of(x), kind_of(y), key=RANKS.__getitem__)
    return int if kind is bool else kind


# -- sums and products --------------------------------------------------------------------------------------
def _is_bounded(interval: Interval) -> bool:
    return -(2**63) <= interval[0] and interval[1] < 2**63


def _is_small(interval: Interval) -> bool:
    return -_SMALL <= interval[0] and interval[1] <= _SMALL


def _check_overflow(compute: Callable, x: Any, y: Any) -> None:
    """Notes a failure where the float form of an int operation leaves 64 bits."""
    operands = [value if isinstance(value, float) else lax.convert_element_type(value.read(), dtypes.float64)
                if type(value) is Number else np.float64(value) for value in (x, y)]
    _limit_size(compute(*operands))


def _limit_size(value: Array) -> None:
    """Notes a failure where a whole number, as a float, is larger than is checked in sums."""
    is_lost = lax.ge(lax.abs(value), np.float64(LARGEST_INT))
    fail(is_lost, OverflowError("the int does not fit 64 bits"))


def _define_sum(factor: int, compute: Callable) -> Callable:
    def operate(x, y):
        kind = common_kind(x, y)
        if kind is not int:
            return Number(kind, compute(to_raw(x, kind), to_raw(y, kind)))
        form = form_of(x) + form_of(y) * factor
        one, other = interval_of(x), interval_of(y)
        interval = (algebra.add if factor == 1 else algebra.subtract)(one, other)
        interval = algebra.meet(interval, form.interval())
        is_short = _is_small(one) or _is_small(other) or _is_step(form, form_of(x), form_of(y))
        is_free = is_short and not is_large(one) and not is_large(other)
        if not (is_free or _is_bounded(interval)):
            _check_overflow(compute, x, y)
        return make_int(form, interval if _is_bounded(interval) else _one_sided(interval))

    return operate


def _is_step(form: Form, *operands: Form) -> bool:
    """Whether a sum of two multiples of one scalar is no larger than these."""

    def largest(one: Form) -> int:
        return max((abs(coefficient) for _, coefficient in one.terms), default=0)

    scalars = {term for one in operands for term, _ in one.terms}
    are_multiples = len(scalars) == 1 and all(one.terms for one in operands)
    return are_multiples and largest(form) <= max(map(largest, operands))


def bound_size(x: Any) -> Any:
    """What bounds a count: more than 2**62 is left to Python, once, and sums with it are not checked."""
    if type(x) is not Number or x.python_type is not int or not is_large(interval_of(x)):
        return x
    _limit_size(lax.convert_element_type(x.read(), dtypes.float64))
    return Number(int, x.read(), interval=_one_sided(interval_of(x)))


def _one_sided(interval: Interval) -> Interval:
    """The interval of a number whose size is limited: infinity where it says less."""
    low, high = interval
    return (low if low >= -LARGEST_INT else -math.inf), (high if high <= LARGEST_INT else math.inf)


def multiply(x, y):
    kind = common_kind(x, y)
    if kind is complex:
        return Number(kind, multiply_parts(*as_arrays(to_raw(x, kind), to_raw(y, kind))))
    if kind is not int:
        return Number(kind, lax.mul(to_raw(x, kind), to_raw(y, kind)))
    interval = algebra.multiply(interval_of(x), interval_of(y))
    one, other = form_of(x), form_of(y)
    is_unit = any(not form.terms and abs(form.const) <= 1 for form in (one, other))
    are_free = not is_large(interval_of(x)) and not is_large(interval_of(y))
    if not (_is_bounded(interval) or are_free and is_unit):
        _check_overflow(lax.mul, x, y)
    interval = interval if _is_bounded(interval) else _one_sided(interval)
    if not one.terms or not other.terms:
        form, factor = (other, one.const) if not one.terms else (one, other.const)
        return make_int(form * factor, interval)
    return Number(int, lax.mul(to_raw(x, int), to_raw(y, int)), interval=interval)


add, subtract = _define_sum(1, lax.add), _define_sum(-1, lax.sub)


def _check_negated(x: Any) -> None:
    """Notes a failure where the negative of an int leaves 64 bits."""
    if type(x) is Number and interval_of(x)[0] == LARGE[0]:
        is_least = Number(bool, lax.eq(x.read(), np.int64(LARGE[0])))
        fail(is_least, OverflowError("the int does not fit 64 bits"))


# -- division -----------------------------------------------------------------------------------------------
def _check_divisor(y: Any, raw: Any, text: str) -> Any:
    """The divisor with 1 for 0, of which the mode knows that Python raises there."""
    if type(y) is not Number:
        if y == 0:
            fail(True, ZeroDivisionError(text))
            return type(raw)(1)
        return raw
    if y.python_type in (int, bool) and (interval_of(y)[0] > 0 or interval_of(y)[1] < 0):
        return raw
    is_zero = lax.eq(
        raw, y.dtype.type(0) if isinstance(raw, Array) and raw.dtype == y.dtype else raw.dtype.type(0))
    fail(is_zero, ZeroDivisionError(text))
    return raw


def true_divide(x, y):
    kind = common_kind(x, y)
    if kind is int:
        for value in (x, y):
            _check_exact(value)
        kind = float
    text = {float: "float division by zero", complex: "complex division by zero"}[kind]
    divisor = _check_divisor(y, to_raw(y, kind), "division by zero" if common_kind(x, y) is int else text)
    divide = divide_parts if kind is complex else lax.div
    return Number(kind, divide(*as_arrays(to_raw(x, kind), divisor)))


def _int_divmod(x, y) -> tuple[Any, Any]:
    text = "integer division or modulo by zero"
    divisor = as_int(y)
    if interval_of(divisor)[0] <= -1 <= interval_of(divisor)[1]:
        _check_negated(x)
    if type(divisor) is int and divisor:
        quotient, rest = form_of(x).divide(divisor)
        if not rest.terms:
            return make_int(quotient), rest.const
    (low, high), (least, most) = interval_of(x), interval_of(divisor)
    b = _check_divisor(divisor, to_raw(divisor, int), text)
    a = to_raw(as_int(x), int)
    if type(divisor) is int and divisor > 0 and divisor.bit_count() == 1:
        quotient = lax.shift_right_arithmetic(a, np.int64(divisor.bit_length() - 1))
        remainder = lax.bitwise_and(a, np.int64(divisor - 1))
    else:
        if isinstance(b, Array) and least <= 0 <= most:
            b = lax.select(lax.eq(b, np.int64(0)), lax.full_like(b, 1), b)
        quotient, remainder = lax.div(a, b), lax.rem(a, b)
        if not (low >= 0 and least > 0):
            differ = lax.ne(lax.lt(remainder, np.int64(0)), lax.lt(b, np.int64(0)))
            wrong = lax.bitwise_and(lax.ne(remainder, np.int64(0)), differ)
            step = lax.convert_element_type(wrong, dtypes.int64)
            quotient, remainder = lax.sub(quotient, step), lax.add(remainder, lax.mul(step, b))
    pair = (low, high), (least, most)
    return (Number(int, quotient, interval=algebra.floordiv(*pair)),
            Number(int, remainder, interval=algebra.modulo(*pair)))


def float_divmod(x, y) -> tuple[Array, Array]:
    """Quotient and remainder of floats as Python and NumPy compute them; y is not zero."""
    dtype = x.dtype if isinstance(x, Array) else y.dtype
    zero, one = dtype.type(0), dtype.type(1)
    remainder = lax.rem(x, y)
    quotient = lax.div(lax.sub(x, remainder), y)
    is_off = lax.bitwise_and(lax.ne(remainder, zero), lax.ne(lax.lt(y, zero), lax.lt(remainder, zero)))
    step = lax.convert_element_type(is_off, dtype)
    quotient, moved = lax.sub(quotient, step), lax.select(is_off, lax.add(remainder, y), remainder)
    floor = lax.floor(quotient)
    floor = lax.add(floor, lax.convert_element_type(lax.gt(lax.sub(quotient, floor), dtype.type(0.5)), dtype))
    zeros = lax.full_like(floor, 0)
    floor = lax.select(lax.eq(quotient, zero), lax.copysign(zeros, lax.div(x, y)), floor)
    return floor, lax.select(lax.eq(remainder, zero), lax.copysign(lax.mul(zeros, one), y), moved)


def divide_modulo(x, y):
    kind = common_kind(x, y)
    if kind is int:
        return _int_divmod(x, y)
    if kind is complex:
        raise TypeError("can't take floor of complex number.")
    divisor = _check_divisor(y, to_raw(y, float), "float floor division by zero")
    a, b = to_raw(x, float), divisor
    if not isinstance(a, Array):
        a = lax.full_like(b, a)
    if not isinstance(b, Array):
        b = lax.full_like(a, b)
    quotient, remainder = float_divmod(a, b)
    return Number(float, quotient), Number(float, remainder)


# -- powers -------------------------------------------------------------------------------------------------
def power(x, y):
    kind = common_kind(x, y)
    if kind is int:
        return _int_power(as_int(x), as_int(y))
    if kind is complex:
        return _complex_power(x, y)
    exponent = y if type(y) is not Number else None
    base, raw = to_raw(x, float), to_raw(y, float)
    if exponent is not None and exponent in (1, 2, 0.5) and type(x) is Number:
        if exponent == 0.5:
            fail(_is_below_zero(base), ValueError("a complex power"))
            return Number(float, lax.sqrt(lax.abs(base)))  # of -inf and -0.0 the powers are positive
        result = base if exponent == 1 else lax.mul(base, base)
    else:
        base, raw = as_arrays(base, raw)
        result = lax.pow(base, raw)
        broken = lax.bitwise_and(_is_below_zero(base), lax.lt(lax.floor(raw), raw))
        by_zero = lax.bitwise_and(lax.eq(base, np.float64(0)), _is_below_zero(raw))
        fail(lax.bitwise_or(broken, by_zero), ZeroDivisionError("0.0 to a negative power"))
    infinite = np.float64(math.inf)
    overflows = lax.eq(lax.abs(result), infinite)
    for operand in (base, raw):
        if isinstance(operand, Array):
            overflows = lax.bitwise_and(overflows, lax.lt(lax.abs(operand), infinite))
    fail(overflows, OverflowError("(34, 'Numerical result out of range')"))
    return Number(float, result)


def _is_below_zero(raw: Array) -> Array:
    """Whether a number is negative and finite: powers of minus infinity are real."""
    return lax.bitwise_and(lax.lt(raw, np.float64(0)), lax.gt(raw, np.float64(-math.inf)))


def _complex_power(x, y):
    if type(y) is not Number and y in (1, 2):
        return multiply(x, x) if y == 2 else add(x, 0j)
    base, raw = as_arrays(to_raw(x, complex), to_raw(y, complex))
    by_zero = lax.eq(base, np.complex128(0))
    fail(by_zero, ZeroDivisionError("0.0 to a negative or complex power"))
    return Number(complex, lax.pow(base, raw))


def _int_power(x, y):
    if type(y) is int and y >= 0:
        result, square = 1, x
        while y:
            if y & 1:
                result = square if type(result) is int and result == 1 else multiply(result, square)
            y >>= 1
            square = multiply(square, square) if y else square
        return result
    if interval_of(y)[1] < 0:
        return power(to_float(x), to_float(y))
    if interval_of(y)[0] < 0:
        fail(y < 0, ValueError("an int to a negative power is a float"))
    base, exponent = as_arrays(to_raw(x, int), to_raw(y, int))
    size = lax.abs(lax.convert_element_type(base, dtypes.float64))
    sizes = size, lax.convert_element_type(exponent, dtypes.float64)
    is_lost = lax.ge(lax.pow(*sizes), np.float64(LARGEST_INT))
    fail(is_lost, OverflowError("the int does not fit 64 bits"))
    return Number(int, jnp.power(base, exponent))


# -- bits ---------------------------------------------------------------------------------------------------
def _check_ints(symbol: str, x: Any, y: Any) -> None:
    """Raises: TypeError unless both operands are ints or bools."""
    if not {kind_of(x), kind_of(y)} <= {bool, int}:
        raise TypeError(f"unsupported operand types for {symbol}: {kind_of(x)} and {kind_of(y)}")


def _define_bits(symbol: str, operation: Callable) -> Callable:
    def operate(x, y):
        _check_ints(symbol, x, y)
        kind = bool if {kind_of(x), kind_of(y)} == {bool} else int
        x, y = (value if kind is bool else as_int(value) for value in (x, y))
        interval = UNKNOWN
        if kind is int:
            interval = LARGE if any(is_large(interval_of(v)) for v in (x, y)) else UNKNOWN
        if kind is int and operation is lax.bitwise_and:
            tops = [interval_of(v)[1] for v in (x, y) if interval_of(v)[0] >= 0]
            interval = (0, min(tops)) if tops else interval
        return Number(kind, operation(to_raw(x, kind), to_raw(y, kind)), interval=interval)

    return operate


def shift_left(x, y):
    _check_ints("<<", x, y)
    _check_places(y)
    if type(y) is not Number and y < 62:
        return multiply(as_int(x), 1 << int(y))
    raw, places = as_arrays(to_raw(as_int(x), int), _limit_places(y))
    shifted = lax.shift_left(raw, places)
    is_lost = lax.ne(lax.shift_right_arithmetic(shifted, places), raw)
    if interval_of(y)[1] > 63:
        beyond = lax.ne(to_raw(as_int(y), int), places) if type(y) is Number else np.bool_(True)
        is_lost = lax.bitwise_or(is_lost, lax.bitwise_and(beyond, lax.ne(raw, np.int64(0))))
    fail(is_lost, OverflowError("the int does not fit 64 bits"))
    return Number(int, shifted, interval=LARGE)


def _limit_places(y) -> Any:
    """A number of places to shift by, 63 for more."""
    if type(y) is not Number:
        return np.int64(min(int(y), 63))
    return lax.min(to_raw(as_int(y), int), np.int64(63))


def shift_right(x, y):
    _check_ints(">>", x, y)
    _check_places(y)
    if type(y) is not Number and y < 62:
        return _int_divmod(as_int(x), 1 << int(y))[0]
    shifted = lax.shift_right_arithmetic(*as_arrays(to_raw(as_int(x), int), _limit_places(y)))
    return Number(int, shifted, interval=LARGE if is_large(interval_of(x)) else UNKNOWN)


def _check_places(y: Any) -> None:
    if interval_of(y)[0] < 0:
        fail(as_int(y) < 0, ValueError("negative shift count"))


# -- comparisons --------------------------------------------------------------------------------------------
#: Up to here each int is a float.
_LARGEST_EXACT = 2**53


def _define_comparison(name: str, operation: Callable) -> Callable:
    plain = getattr(operator, name)

    def operate(x, y):
        kind = common_kind(x, y)
        if kind is int:
            difference = algebra.subtract(interval_of(x), interval_of(y))
            difference = algebra.meet((form_of(x) - form_of(y)).interval(), difference)
            known = algebra.compare(name, difference, (0, 0))
            if known is not None:
                return known
            return Number(bool, operation(to_raw(as_int(x), int), to_raw(as_int(y), int)))
        if kind is complex and name not in ("eq", "ne"):
            raise TypeError(f"'{name}' not supported between instances of 'complex'")
        _check_not_rounded(x, y, kind)
        _check_not_rounded(y, x, kind)
        return Number(bool, operation(to_raw(x, kind), to_raw(y, kind)))

    operate.__name__ = plain.__name__
    return operate


def _check_not_rounded(x: Any, y: Any, kind: type) -> None:
    """Of an int that equals a float only as its nearest float, plain Python decides."""
    if kind_of(x) is not int:
        return
    low, high = interval_of(x)
    if -_LARGEST_EXACT <= low and high <= _LARGEST_EXACT or type(x) is int and int(float(x)) == x:
        return
    raw, other = to_raw(x, kind), to_raw(y, kind)
    is_large = lax.ge(lax.abs(to_raw(x, float)), np.float64(_LARGEST_EXACT))
    fail(lax.bitwise_and(lax.eq(raw, other), is_large), OverflowError("the int is rounded as a float"))


# -- one operand --------------------------------------------------------------------------------------------
def negate(x):
    if x.plain_type is not int:
        return Number(x.python_type, lax.neg(x.read()))
    return subtract(0, as_int(x))


def absolute(x):
    if x.plain_type is not int:
        return Number(float, lax.abs(x.read()))
    x = as_int(x)
    low, high = interval_of(x)
    if low >= 0:
        return x
    if high <= 0:
        return negate(x)
    _check_negated(x)
    size = (0, LARGE[1]) if is_large((low, high)) else algebra.absolute((low, high))
    return Number(int, lax.abs(x.read()), interval=size)


def invert(x):
    if x.plain_type is not int:
        raise TypeError(f"bad operand type for unary ~: '{x.python_type.__name__}'")
    return subtract(-1, as_int(x))


def to_float(x):
    """float(x) of a plain or traced real number."""
    if kind_of(x) is complex:
        raise TypeError("float() argument must be a string or a real number, not 'complex'")
    if type(x) is not Number:
        return float(x)
    return Number(float, lax.convert_element_type(x.read(), dtypes.float64))


def to_int(x, rounding: Callable = lambda raw: raw):
    """int(x) of a plain or traced real number, rounded before that."""
    if kind_of(x) is complex:
        raise TypeError("int() argument must be a string or a real number, not 'complex'")
    if kind_of(x) is not float:
        return as_int(x)
    raw = rounding(to_raw(x, float))
    outside = lax.bitwise_not(lax.lt(lax.abs(raw), np.float64(LARGEST_INT)))
    fail(outside, OverflowError("cannot convert float infinity to integer"))
    return Number(int, lax.convert_element_type(raw, dtypes.int64))


def round_number(x, digits=None):
    if kind_of(x) is complex:
        raise TypeError("type complex doesn't define __round__ method")
    if kind_of(x) is float:
        if digits is not None:
            raise not_traceable("round() of a traced float to decimal digits")
        return to_int(x, lambda raw: lax.round(raw, lax.RoundingMethod.TO_NEAREST_EVEN))
    if digits is not None and not (isinstance(digits, int) and digits >= 0):
        raise not_traceable("round() of a traced int to a power of ten")
    return as_int(x)


BINARY: dict[str, Callable] = {
    "add": add, "sub": subtract, "mul": multiply, "truediv": true_divide, "divmod": divide_modulo,
    "floordiv": lambda x, y: divide_modulo(x, y)[0], "mod": lambda x, y: divide_modulo(x, y)[1], "pow": power,
    "and": _define_bits("&", lax.bitwise_and), "or": _define_bits("|", lax.bitwise_or),
    "xor": _define_bits("^", lax.bitwise_xor), "lshift": shift_left, "rshift": shift_right,
    **{name: _define_comparison(name, getattr(lax, name)) for name in COMPARISONS}}
UNARY: dict[str, Callable] = {
    "neg": negate, "pos": lambda x: as_int(x) if x.plain_type is int else x, "abs": absolute,
    "invert": invert, "trunc": to_int, "floor": lambda x: to_int(x, lax.floor),
    "ceil": lambda x: to_int(x, lax.ceil)}
