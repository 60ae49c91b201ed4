"""sinh, cosh, tanh, asinh, acosh, atanh: one lane value in, one out. Stage: rendering.

Method: sinh and cosh from the even and odd part of exp(r), x = k ln2 + r, so that no division and no
cancellation occurs; tanh from exp; the inverse functions from log1p of an argument that is kept with its
rounding error.
"""
from jitcore.backends.llvm.mathlib import avx512
from jitcore.backends.llvm.mathlib.coefficients import COEFFICIENTS
from jitcore.backends.llvm.mathlib.double_word import fast_two_sum
from jitcore.backends.llvm.mathlib.emitter import LN2, LOG2_E, Constant
from jitcore.backends.llvm.mathlib.exponential import reduce_natural, round_exponent
from jitcore.backends.llvm.mathlib.logarithmic import drop_one, evaluate_log, split_log1p
from jitcore.backends.llvm.mathlib.piecewise import evaluate_pieces
from jitcore.backends.llvm.mathlib.tables import FOLDED_ROOTS, ROOT_RESTS, ROOTS

LN2_HALF = Constant(LN2.exact / 2)
# For exp(2 x): half of what the rounding of 2**(j / 16) leaves, as a part of it; twice the powers.
HALF_RESTS = tuple(rest / root / 2.0 for root, rest in zip(ROOTS, ROOT_RESTS))
DOUBLED_ROOTS = tuple(2.0 * root for root in FOLDED_ROOTS)


def build_tanh(e, x):
    """An odd polynomial up to 0.55, then 1 - 2 / (1 + exp(2 |x|)), where the quotient's errors shrink.
    Where registers hold tables, float32 in pieces, whose coefficients would be too many for float64."""
    if e.has_avx512:
        return look_up_tanh(e, x) if e.bits == 64 else e.copysign(evaluate_pieces(e, "tanh", e.abs(x)), x)
    magnitude = e.at_most(e.abs(x), e.pick(10.0, 20.0))
    # 2 |x| = k ln2 + 2 r, exp(2 r) = 1 + 2 rise
    high, low = LN2_HALF.split(e.bits, 2)
    k, field = round_exponent(e, magnitude, LOG2_E.split(e.bits, 1)[0] * 2.0, e.bias + 1)
    r = e.fma(k, -low, e.fma(k, -high, magnitude))
    doubled = [c * 2.0 ** (i + 1) for i, c in enumerate(COEFFICIENTS["exp", e.bits])]
    rise = e.fma(r * r, e.poly(r, doubled), r)
    power = e.to_float(field << e.mantissa)
    large = 1.0 - 2.0 / e.fma(power, rise, e.fma(power, 0.5, 1.0))
    square = x * x
    small = e.fma(square * x, e.poly(square, COEFFICIENTS["tanh", e.bits]), x)
    return e.copysign(e.select(magnitude < 0.55, small, large), x)


def look_up_tanh(e, x):
    """For float64: an odd polynomial up to 0.2555, then n / (n + 2) with n = exp(2 |x|) - 1. AVX-512.

    2 |x| = k ln2 / 16 + 2 (r + low), where r is exact and no instruction but the last ones waits for low; a
    table has 2**(k / 16), of which less one is exact. Few vectors fit into the processor at a time, so that
    the longest chain decides about the time: Estrin's scheme for the exponential."""
    magnitude = e.at_most(e.abs(x), 20.0)
    major, minor = LN2.split(64, 2)
    shifted = e.fma(magnitude, LOG2_E.value * 32.0, e.magic)
    k, bits = shifted - e.magic, e.to_bits(shifted)
    r = e.fma(k, major * -0.03125, magnitude)
    low = e.fma(k, minor * -0.03125, avx512.lookup(e, HALF_RESTS, bits))
    # exp(2 (r + low)) = 1 + 2 rise
    c0, c1, c2, c3, c4 = (c * 2.0 ** (i + 1) for i, c in enumerate(COEFFICIENTS["exp_near", 64]))
    square = r * r
    slope = e.fma(square, e.fma(square, c4, e.fma(r, c3, c2)), e.fma(r, c1, c0))
    rise = e.fma(square, slope, r + low)
    doubled = e.to_float(e.to_bits(avx512.lookup(e, DOUBLED_ROOTS, bits)) + (bits << 48))
    growth = e.fma(doubled, rise, e.fma(doubled, 0.5, -1.0))
    square = x * x
    small = e.fma(square * x, e.poly(square, COEFFICIENTS["tanh_near", 64]), x)
    return e.copysign(e.select(magnitude < 0.2555, small, growth / (growth + 2.0)), x)


def split_exponential(e, magnitude):
    """(difference, total, r, odd, even) for a = |x|, a = k ln2 + r.

    total, difference = (2**k +- 2**-k) / 4; odd = sinh(r) - r; even = cosh(r) - 1. The quarter keeps 2**k
    finite."""
    power, r, _ = reduce_natural(e, magnitude, 0)
    k = power.field << e.mantissa
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
    reduced = split_log1p(e, e.select(huge, x, y), e.select(huge, 0.0, low))
    return evaluate_log(e, reduced._replace(k=reduced.k + e.select(huge, 1.0, 0.0)))


def build_atanh(e, x):
    """log1p(2 a / (1 - a)) / 2, the quotient with its error."""
    a = e.abs(x)
    divisor, divisor_low = fast_two_sum(e.const(1.0), -a)
    inverse = 1.0 / divisor
    double = a + a
    quotient = double * inverse
    low = (e.fma(-quotient, divisor, double) - quotient * divisor_low) * inverse
    result = evaluate_log(e, split_log1p(e, quotient, low)) * 0.5
    return e.copysign(e.select(a < 1.0, result, e.select(a == 1.0, e.inf, e.nan)), x)
