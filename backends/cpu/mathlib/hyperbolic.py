"""sinh, cosh, tanh, asinh, acosh, atanh: one lane value in, one out. Stage: rendering.

Method: sinh and cosh from the even and odd part of exp(r), x = k ln2 + r, so that no division and no
cancellation occurs; tanh from exp; the inverse functions from log1p of an argument that is kept with its
rounding error.
"""
from jitcore.backends.cpu.mathlib.coefficients import COEFFICIENTS
from jitcore.backends.cpu.mathlib.double_word import fast_two_sum
from jitcore.backends.cpu.mathlib.exponential import reduce_natural, split_exp
from jitcore.backends.cpu.mathlib.logarithmic import drop_one, evaluate_log, split_log1p


def build_tanh(e, x):
    """An odd polynomial up to 0.55, then 1 - 2 / (1 + exp(2 |x|)), where the quotient's errors shrink."""
    magnitude = e.at_most(e.abs(x), e.pick(10.0, 20.0))
    rise, field = split_exp(e, magnitude + magnitude, offset=e.bias)
    large = 1.0 - 2.0 / e.fma(rise + 1.0, e.to_float(field << e.mantissa), 1.0)
    square = x * x
    small = e.fma(square * x, e.poly(square, COEFFICIENTS["tanh", e.bits]), x)
    return e.copysign(e.select(magnitude < 0.55, small, large), x)


def split_exponential(e, magnitude):
    """(difference, total, r, odd, even) for a = |x|, a = k ln2 + r.

    total, difference = (2**k +- 2**-k) / 4; odd = sinh(r) - r; even = cosh(r) - 1. The quarter keeps 2**k
    finite.
    """
    field, r, _ = reduce_natural(e, magnitude, 0)
    k = field << e.mantissa
    exponent_one = e.int_const((e.bias - 2) << e.mantissa)
    falling = e.intrinsic("smax", exponent_one - k, e.int_const(0))
    rising, falling = e.to_float(exponent_one + k), e.to_float(falling)
    square = r * r
    odd = (square * r) * e.poly(square, COEFFICIENTS["sinh", e.bits])
    even = square * e.poly(square, COEFFICIENTS["cosh", e.bits])
    return rising - falling, rising + falling, r, odd, even


def build_sinh(e, x):
    magnitude = e.at_most(e.abs(x), e.pick(89.5, 710.6))
    difference, total, r, odd, even = split_exponential(e, magnitude)
    high = e.fma(total, r, difference)
    low = e.fma(total, r, difference - high)
    result = (high + (low + e.fma(difference, even, total * odd))) * 2.0
    return e.copysign(e.select(magnitude < 2.0 ** -(e.mantissa // 2 + 1), magnitude, result), x)


def build_cosh(e, x):
    magnitude = e.at_most(e.abs(x), e.pick(89.5, 710.6))
    difference, total, r, odd, even = split_exponential(e, magnitude)
    return (total + e.fma(total, even, difference * (r + odd))) * 2.0


def build_asinh(e, x):
    """log1p(|x| + x**2 / (1 + sqrt(1 + x**2))); log(2 |x|) where the square is not needed any more."""
    magnitude = e.abs(x)
    huge = magnitude > drop_one(e)
    square = x * x
    y, low = fast_two_sum(magnitude, square / (e.sqrt(square + 1.0) + 1.0))
    result = evaluate_doubling_log(e, huge, magnitude, y, low)
    return e.copysign(e.select(magnitude == e.inf, magnitude, result), x)


def build_acosh(e, x):
    """log1p(t + sqrt(2 t + t**2)) with t = x - 1."""
    t = x - 1.0
    huge = x > drop_one(e)
    y, low = fast_two_sum(e.sqrt(e.fma(t, t, t + t)), t)
    result = evaluate_doubling_log(e, huge, x, y, low)
    return e.select(x < e.inf, e.select(x >= 1.0, result, e.nan), x)


def evaluate_doubling_log(e, huge, x, y, low):
    """log(2 x) in the huge lanes, log(1 + y + low) elsewhere."""
    k, f, f_low = split_log1p(e, e.select(huge, x, y), e.select(huge, 0.0, low))
    return evaluate_log(e, k + e.select(huge, 1.0, 0.0), f, f_low)


def build_atanh(e, x):
    """log1p(2 a / (1 - a)) / 2, the quotient with its error."""
    a = e.abs(x)
    divisor, divisor_low = fast_two_sum(e.const(1.0), -a)
    inverse = 1.0 / divisor
    double = a + a
    quotient = double * inverse
    low = (e.fma(-quotient, divisor, double) - quotient * divisor_low) * inverse
    result = evaluate_log(e, *split_log1p(e, quotient, low)) * 0.5
    return e.copysign(e.select(a < 1.0, result, e.select(a == 1.0, e.inf, e.nan)), x)
