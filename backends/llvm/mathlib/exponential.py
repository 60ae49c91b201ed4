"""exp, exp2, expm1, logistic: one lane value in, one out. Stage: rendering.

Method: x = k ln2 + r with |r| <= ln2 / 2, k by adding a magic number whose low bits then hold k; a
minimax polynomial in r; the factor 2**k by one instruction of AVX-512 or as two factors, so that overflow
and subnormal results need no branch.
"""
from typing import NamedTuple

from jitcore.backends.llvm.mathlib import avx512
from jitcore.backends.llvm.mathlib.coefficients import COEFFICIENTS
from jitcore.backends.llvm.mathlib.double_word import divide_by_sum, fast_two_sum
from jitcore.backends.llvm.mathlib.emitter import LN2, LOG2_E, Lanes


class Power(NamedTuple):
    """A power of two: its exponent k as a float; the low bits of the integer `field` hold k + an offset."""
    k: Lanes
    field: Lanes


def round_exponent(e, x, factor, offset):
    """The power of two with k = round(x * factor); `field` holds k + offset."""
    shifted = e.fma(x, factor, e.magic + offset)
    return Power(shifted - (e.magic + offset), e.to_bits(shifted))


def reduce_natural(e, x, offset):
    """(power, r, low): x = k ln2 + r + low with low the rounding error of r; power as in
    `round_exponent`."""
    high, low = LN2.split(e.bits, 2)
    power = round_exponent(e, x, LOG2_E.split(e.bits, 1)[0], offset)
    first = e.fma(power.k, -high, x)
    r = e.fma(power.k, -low, first)
    return power, r, e.fma(power.k, -low, first - r)


def scale(e, p, power):
    """p * 2**k rounded once, by two factors without AVX-512; `field` holds k + 2 * bias."""
    if e.has_avx512:
        return avx512.scale(e, p, power.k)
    first = e.logical_shift(power.field, 1) << e.mantissa
    second = (power.field << e.mantissa) - first
    return p * e.to_float(first) * e.to_float(second)


def find_range(e, scale=1.0):
    """(low, high): where exp(x / scale) is neither zero nor infinite for good."""
    return tuple(end * scale for end in e.pick((-104.0, 89.0), (-746.0, 710.0)))


def clamp_exponent(e, x):
    """x limited to where exp(x) is neither zero nor infinite for good; NaN stays."""
    low, high = find_range(e)
    return e.at_most(e.at_least(x, low), high)


def skip_zeros(e, x, low, evaluate):
    """evaluate(x), and 0 below `low`, which is not scaled there: processors take 200 cycles for a result that
    vanishes, and masked softmax has many. Masks of AVX-512 are part of the instruction that scales."""
    is_zero = x < low
    return e.select(is_zero, 0.0, evaluate(x if e.has_avx512 else e.select(is_zero, 0.0, x)))


def split_exp(e, x, low=None, offset=None):
    """(rise, power): exp(x + low) = (1 + rise) 2**k, x within `clamp_exponent`, low an optional small
    addend."""
    power, r, r_low = reduce_natural(e, x, 2 * e.bias if offset is None else offset)
    rise = e.fma(r * r, e.poly(r, COEFFICIENTS["exp", e.bits]), r)
    if low is not None:
        low = low + r_low
        rise = rise + e.fma(rise, low, low)
    return rise, power


def evaluate_exp(e, x):
    """exp(x) for x that is not above `find_range`."""
    def evaluate(x):
        rise, power = split_exp(e, x)
        return scale(e, rise + 1.0, power)

    return skip_zeros(e, x, find_range(e)[0], evaluate)


def build_exp(e, x):
    return evaluate_exp(e, e.at_most(x, find_range(e)[1]))


def build_exp2(e, x):
    def evaluate(x):
        power = round_exponent(e, x, 1.0, 2 * e.bias)
        r, (slope, *rest) = x - power.k, COEFFICIENTS["exp2", e.bits]
        return scale(e, e.fma(r * r, e.poly(r, rest), r * slope) + 1.0, power)

    low, high = find_range(e, LOG2_E.value)
    return skip_zeros(e, e.at_most(x, high), low, evaluate)


def build_expm1(e, x):
    """2**k - 1 + 2**k r is kept with its rounding error, so that only small terms are rounded; all
    halved, for 2**128."""
    low, high = e.pick((-20.0, 89.0), (-40.0, 710.0))
    power, r, r_low = reduce_natural(e, e.at_most(e.at_least(x, low), high), e.bias - 1)
    half = e.to_float(power.field << e.mantissa)
    start = half - 0.5
    main = e.fma(half, r, start)
    rest = e.fma(half, r, start - main)
    rest = e.fma(half, e.fma(r * r, e.poly(r, COEFFICIENTS["exp", e.bits]), r_low), rest)
    return e.select(e.abs(x) < 2.0 ** -(e.mantissa + 2), x, (main + rest) * 2.0)


def build_logistic(e, x):
    """1 / (1 + z) on the right, z / (1 + z) on the left, as z = exp(-|x|) never overflows."""
    z = evaluate_exp(e, -e.abs(x))
    return divide_by_sum(e, e.select(x < 0.0, z, 1.0), *fast_two_sum(e.const(1.0), z))
