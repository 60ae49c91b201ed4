"""Rounding, parts of floats, and integer arithmetic that is not one primitive.

In: arrays and scalars. Out: arrays in the dtype NumPy's namesake has under the promotion rules of
`promotion`.
"""

from __future__ import annotations

import builtins

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy.arrays.dtype_names import finfo
from jitcore.numpy.arrays.promotion import (apply_elementwise, apply_select, convert_dtype, ensure_array,
                                            ensure_arrays, promote, promote_arrays, reject_out)
from jitcore.numpy.creation import asarray
from jitcore.numpy.ufuncs import logic
from jitcore.numpy.ufuncs.arithmetic import (absolute, add, divide, exp, fmod, maximum, minimum, multiply,
                                             nextafter, sign, subtract, ufunc)
from jitcore.transforms.custom_derivatives import custom_jvp


def _round_with(name: str, function, x):
    """x rounded by a float primitive; integers and bools are whole already."""
    x = ensure_array(name, x)
    if not dtypes.is_inexact(x.dtype):
        dtypes.reject_narrow(name, x.dtype)
        return x
    return apply_elementwise(function.primitive, (x,))


def floor(x, /):
    """Largest integer not above x; integers stay as they are. Same as: `numpy.floor`."""
    return _round_with("floor", lax.floor, x)


def ceil(x, /):
    """Smallest integer not below x; integers stay as they are. Same as: `numpy.ceil`."""
    return _round_with("ceil", lax.ceil, x)


def trunc(x, /):
    """x without its fraction; integers stay as they are. Same as: `numpy.trunc`."""
    return _round_with("trunc", lax.trunc, x)


def fix(x, out=None):
    """x rounded towards 0. Same as: `numpy.fix`."""
    reject_out("fix", out)
    return trunc(x)


def rint(x, /):
    """Nearest integer as a float, halves to the even one. Same as: `numpy.rint`."""
    x = ensure_array("rint", x)
    if not dtypes.is_inexact(x.dtype):
        dtypes.reject_narrow("rint", x.dtype)
        return convert_dtype(x, dtypes.canonicalize_for(float, x.dtype))
    return _round_parts(x)


def _round_half_even(x):
    return apply_elementwise(lax.round_half_even.primitive, (x,))


def _round_parts(x, function=_round_half_even):
    """Applies a real rounding to x, or to both parts of a complex x."""
    if not dtypes.is_complex(x.dtype):
        return function(x)
    parts = [apply_elementwise(part.primitive, (x,)) for part in (lax.real, lax.imag)]
    return apply_elementwise(lax.complex.primitive, list(map(function, parts)))


def round(a, decimals: int = 0, out=None):
    """a rounded to this many decimals, halves to the even digit; negative `decimals` round tens and up.

    Same as: `numpy.round`."""
    reject_out("round", out)
    a = ensure_array("round", a)
    dtypes.reject_narrow("round", a.dtype)
    if decimals == 0 and not dtypes.is_inexact(a.dtype):
        return a
    if not dtypes.is_inexact(a.dtype):
        if decimals > 0:
            return a
        factor = 10**-decimals
        tens = _round_parts(divide(a, factor))
        return convert_dtype(multiply(tens, factor), a.dtype, a.weak_type)
    if decimals == 0:
        return _round_parts(a)
    half = a.dtype.itemsize == 2
    x = convert_dtype(a, dtypes.float32) if half else a  # 10**decimals would overflow
    rounded = _round_parts(x, lambda part: _round_at(part, decimals))
    return convert_dtype(rounded, a.dtype, a.weak_type)


def _round_at(x, decimals: int):
    """x rounded at a decimal; what has none there stays, where the power of ten is too large for x."""
    power = 10 ** builtins.abs(decimals)
    if power > float(np.finfo(x.dtype).max):
        return x if decimals > 0 else apply_select(logic.isfinite(x), multiply(x, 0), x)
    power = float(power)
    if decimals < 0:
        return multiply(_round_half_even(divide(x, power)), power)
    scaled = multiply(x, power)
    return apply_select(logic.isfinite(scaled), divide(_round_half_even(scaled), power), x)


def clip(arr=None, /, min=None, max=None, *, a=None, a_min=None, a_max=None, out=None):
    """arr limited to [min, max]; a bound that is None does not limit. Same as: `numpy.clip`.

    The dtype is where arr and both bounds meet. Raises: ValueError for complex operands."""
    reject_out("clip", out)
    arr = a if arr is None else arr
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    arr = ensure_array("clip", arr)
    if any(logic.iscomplexobj(x) for x in (arr, low, high) if x is not None):
        raise ValueError("Clip received a complex value either through the input or the min/max keywords.")
    if low is not None:
        arr = maximum(low, arr)
    if high is not None:
        arr = minimum(high, arr)
    return arr


def nan_to_num(x, copy: bool = True, nan=0.0, posinf=None, neginf=None):
    """x with NaN replaced by `nan` and infinities by the largest finite numbers (or `posinf`, `neginf`).

    Same as: `numpy.nan_to_num`; always a copy."""
    x = ensure_array("nan_to_num", x)
    if not dtypes.is_inexact(x.dtype):
        return x
    if dtypes.is_complex(x.dtype):
        parts = [nan_to_num(apply_elementwise(p.primitive, (x,)), copy, nan, posinf, neginf)
                 for p in (lax.real, lax.imag)]
        return apply_elementwise(lax.complex.primitive, parts)
    limits = finfo(x.dtype)
    scalar = x.dtype.type
    high = scalar(limits.max) if posinf is None else posinf
    low = scalar(limits.min) if neginf is None else neginf
    for predicate, value in ((logic.isnan, nan), (logic.isposinf, high), (logic.isneginf, low)):
        value = convert_dtype(asarray(value, x.dtype), x.dtype, x.weak_type)
        x = apply_select(predicate(x), value, x)
    return convert_dtype(x, x.dtype)


# -- parts of floats ----------------------------------------------------------------------------------------
def modf(x, /, out=None):
    """(fractional part, integral part), both with the sign of x. Same as: `numpy.modf`."""
    reject_out("modf", out)
    (x,) = promote_arrays("modf", x, to=dtypes.inexact_dtype)
    whole = apply_elementwise(lax.trunc.primitive, (x,))
    return convert_dtype(_subtract_whole(x, whole), x.dtype, x.weak_type), whole


@custom_jvp
def _subtract_whole(x, whole):
    """The fractional part with the sign of x, also where it is 0; its slope is 1 everywhere."""
    fraction = apply_select(logic.isinf(x), x.dtype.type(0), subtract(x, whole))
    return apply_elementwise(lax.copysign.primitive, (fraction, x))


_subtract_whole.defjvps(lambda t, ans, x, whole: t, None)


_MANTISSA_BITS = {dtypes.float16: 10, dtypes.bfloat16: 7, dtypes.float32: 23, dtypes.float64: 52}


def _exponent_bits(x):
    """(biased exponent, exponent bias) of floats, by their bits."""
    mantissa = _MANTISSA_BITS[x.dtype]
    width = x.dtype.itemsize * 8
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    mask = (1 << (width - 1 - mantissa)) - 1
    bits = apply_elementwise(lax.shift_right_logical.primitive,
                             (lax.bitcast_convert_type(x, unsigned), unsigned.type(mantissa)))
    field = apply_elementwise(lax.bitwise_and.primitive, (bits, unsigned.type(mask)))
    return convert_dtype(field, dtypes.int32), mask >> 1


def frexp(x, /):
    """(mantissa in [0.5, 1), int32 exponent) with x = mantissa * 2**exponent. Same as: `numpy.frexp`."""
    (x,) = promote_arrays("frexp", x, to=dtypes.inexact_dtype)
    if dtypes.kind_of(x.dtype) == "c":
        raise TypeError("frexp does not support complex-valued inputs")
    scalar = x.dtype.type
    mantissa_bits = _MANTISSA_BITS[x.dtype]
    tiny = logic.less(absolute(x), scalar(2.0) ** (mantissa_bits - _exponent_bits(x)[1] + 2))
    scaled = apply_select(
        tiny, multiply(x, scalar(2.0 ** (mantissa_bits + 2))), x
    )  # subnormals become normal
    field, bias = _exponent_bits(scaled)
    exponent = subtract(subtract(field, bias - 1),
                        apply_select(tiny, np.int32(mantissa_bits + 2), np.int32(0)))
    special = logic.logical_or(logic.equal(x, 0), logic.logical_not(logic.isfinite(x)))
    exponent = apply_select(special, np.int32(0), exponent)
    mantissa = ldexp(x, multiply(exponent, -1))
    return apply_select(special, x, mantissa), exponent


@ufunc()
def ldexp(x, y, /):
    """x * 2**y for integers y. Same as: `numpy.ldexp`."""
    x, y = ensure_arrays("ldexp", x, y)
    if not dtypes.is_integer(y.dtype):
        raise ValueError(f"ldexp's second argument must be integers, got {y.dtype.name}")
    (x,) = promote_arrays("ldexp", x, to=dtypes.inexact_dtype)
    if x.dtype.itemsize == 2:  # rounded once
        return convert_dtype(ldexp(convert_dtype(x, dtypes.float32), y), x.dtype)
    # Three factors, because 2**y alone may overflow where the product does not.
    info = finfo(x.dtype)
    bias, number = info.maxexp - 1, np.dtype(f"int{info.bits}")
    most = min(3 * (bias - 1), np.iinfo(y.dtype).max)
    y = convert_dtype(maximum(minimum(y, most), max(-most, np.iinfo(y.dtype).min)), number)
    third = apply_elementwise(lax.div.primitive, promote("ldexp", y, 3))  # towards zero
    for part in (third, third, subtract(subtract(y, third), third)):
        bits = lax.shift_left(add(part, number.type(bias)), number.type(info.nmant))
        x = multiply(x, lax.bitcast_convert_type(bits, x.dtype))
    return x


def signbit(x, /):
    """Whether the sign bit is set: also for -0.0. Same as: `numpy.signbit`.

    Raises: ValueError for complex x."""
    x = ensure_array("signbit", x)
    if dtypes.is_complex(x.dtype):
        raise ValueError("signbit takes no complex numbers, which have two signs")
    if dtypes.is_floating(x.dtype):
        return apply_elementwise(lax.signbit.primitive, (x,))
    if x.dtype == dtypes.bool_:
        return logic.zeros_of(x)
    return logic.less(x, 0)


def spacing(x, /):
    """Distance from x to the next number away from 0. Same as: `numpy.spacing`."""
    (x,) = promote_arrays("spacing", x, to=dtypes.inexact_dtype)
    away = apply_elementwise(lax.copysign.primitive, (x.dtype.type(np.inf), x))
    return subtract(nextafter(x, away), x)


@ufunc()
def heaviside(x, y, /):
    """0 where x < 0, 1 where x > 0, y where x is 0. Same as: `numpy.heaviside`."""
    x, y = promote_arrays("heaviside", x, y, to=dtypes.inexact_dtype)
    if dtypes.is_complex(x.dtype):
        raise TypeError("heaviside takes no complex numbers, which have no order")
    zero, one = x.dtype.type(0), x.dtype.type(1)
    signed = apply_select(logic.less(x, 0), zero, apply_select(logic.isnan(x), x, one))
    return convert_dtype(apply_select(logic.equal(x, 0), y, signed), x.dtype, x.weak_type and y.weak_type)


# -- integers -----------------------------------------------------------------------------------------------
def _gcd_steps(dtype) -> int:
    """Euclid's algorithm needs the most steps for Fibonacci numbers: 1.44 per bit."""
    return int(dtype.itemsize * 8 * 1.45) + 2


@ufunc(identity=0)
def gcd(x, y, /):
    """Greatest common divisor of integers. Same as: `numpy.gcd`."""
    x, y = _integers("gcd", x, y)
    weak = x.weak_type and y.weak_type
    x, y = absolute(x), absolute(y)
    for _ in range(_gcd_steps(x.dtype)):
        done = logic.equal(y, 0)
        x, y = (apply_select(done, x, y), apply_select(done, y, fmod(x, y)))
    return convert_dtype(x, x.dtype, weak)


@ufunc()
def lcm(x, y, /):
    """Least common multiple of integers. Same as: `numpy.lcm`."""
    x, y = _integers("lcm", x, y)
    divisor = gcd(x, y)
    is_zero = logic.equal(divisor, 0)
    quotient = apply_elementwise(lax.div.primitive,
                                 (absolute(x), apply_select(is_zero, x.dtype.type(1), divisor)))
    multiple = apply_select(is_zero, divisor, multiply(quotient, absolute(y)))
    return convert_dtype(multiple, x.dtype, divisor.weak_type)


def _integers(name: str, x, y) -> list[Array]:
    x, y = promote_arrays(name, x, y)
    if not dtypes.is_integer(x.dtype):
        raise ValueError(f"Arguments to jnp.{name} must be integers.")
    return [x, y]


def i0(x, /):
    """Modified Bessel function of the first kind, order 0. Same as: `numpy.i0`.

    Source: polynomial-free form exp(|x|) * i0e(|x|)."""
    (x,) = promote_arrays("i0", x, to=dtypes.inexact_dtype)
    return _bessel_i0(x)


@custom_jvp
def _bessel_i0(x):
    return _scale_up(lax.bessel_i0e.primitive, x)


_bessel_i0.defjvps(lambda t, ans, x: multiply(t, _scale_up(lax.bessel_i1e.primitive, x)))


def _scale_up(primitive, x):
    """A Bessel function that was divided by exp(|x|); the derivative of |x| at 0 is 0."""
    return multiply(apply_elementwise(primitive, (x,)), exp(multiply(x, sign(x))))


around = round


__all__ = ["around", "ceil", "clip", "fix", "floor", "frexp", "gcd", "heaviside", "i0", "lcm", "ldexp",
           "modf", "nan_to_num", "rint", "round", "signbit", "spacing", "trunc"]
