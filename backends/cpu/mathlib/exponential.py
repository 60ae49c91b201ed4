"""exp, exp2, expm1, logistic: one lane value in, one out. Stage: rendering.

Method: x = k ln2 + r with |r| <= ln2 / 2, k by adding a magic number whose low bits then hold k; a
minimax polynomial in r; the factor 2**k by one instruction of AVX-512 or as two factors, so that overflow
and subnormal results need no branch.
"""
from typing import NamedTuple

from jitcore.backends.cpu.mathlib import avx512
from jitcore.backends.cpu.mathlib.coefficients import COEFFICIENTS
from jitcore.backends.cpu.mathlib.constants import LN2, LOG2_E
from jitcore.backends.cpu.mathlib.double_word import divide_by_sum, fast_two_sum
from jitcore.backends.cpu.mathlib.emitter import Lanes


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
    `round_exponent`.
    """
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


def clamp_exponent(e, x, scale=1.0):
    """x limited to where exp(x * scale) is neither zero nor infinite for good; NaN stays."""
    low, high = e.pick((-104.0, 89.0), (-746.0, 710.0))
    return e.at_most(e.at_least(x, low * scale), high * scale)


def split_exp(e, x, low=None, offset=None):
    """(rise, power): exp(x + low) = (1 + rise) 2**k, x within `clamp_exponent`, low an optional small
    addend.
    """
    power, r, r_low = reduce_natural(e, x, 2 * e.bias if offset is None else offset)
    rise = e.fma(r * r, e.poly(r, COEFFICIENTS["exp", e.bits]), r)
    if low is not None:
        low = low + r_low
        rise = rise + e.fma(rise, low, low)
    return rise, power


def evaluate_exp(e, x):
    """exp(x) for x within `clamp_exponent`."""
    rise, power = split_exp(e, x)
    return scale(e, rise + 1.0, power)


def build_exp(e, x):
    return evaluate_exp(e, clamp_exponent(e, x))


def build_exp2(e, x):
    x = clamp_exponent(e, x, LOG2_E.value)
    power = round_exponent(e, x, 1.0, 2 * e.bias)
    r, (slope, *rest) = x - power.k, COEFFICIENTS["exp2", e.bits]
    return scale(e, e.fma(r * r, e.poly(r, rest), r * slope) + 1.0, power)


def build_expm1(e, x):
    """2**k - 1 + 2**k r is kept with its rounding error, so that only small terms are rounded; all
    halved, for 2**128.
    """
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
    z = evaluate_exp(e, e.at_least(-e.abs(x), e.pick(-104.0, -746.0)))
    return divide_by_sum(e, e.select(x < 0.0, z, 1.0), *fast_two_sum(e.const(1.0), z))
