"""log, log2, log10, log1p, logaddexp: lane values in, one out. Stage: rendering.

Method: x = 2**k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), k and 1 + f by integer steps or by
instructions of AVX-512; log(1 + f) = f + tail(f), the tail from
a polynomial in f (float32) or in (f / (2 + f))**2 (float64). f is exact, so what matters near x = 1
carries no rounding error. logaddexp is the larger one plus log1p(exp(-distance)).
"""
from jitcore.backends.cpu.mathlib.avx512 import get_exponent, get_significand
from jitcore.backends.cpu.mathlib.coefficients import COEFFICIENTS
from jitcore.backends.cpu.mathlib.constants import LN2, LOG2_E, LOG10_2, LOG10_E
from jitcore.backends.cpu.mathlib.double_word import two_sum
from jitcore.backends.cpu.mathlib.exponential import evaluate_exp

# sqrt(2), as split_normal's limit rounds it
SINGLE_ROOT, DOUBLE_ROOT = 1.41421354, 1.4142135623730951


def split_normal(e, x):
    """(k as an integer, f) of a normal positive x = 2**k (1 + f)."""
    root_half = e.pick(0x3F3504F3, 0x3FE6A09E667F3BCD)
    bits = e.to_bits(x)
    k = (bits - root_half) >> e.mantissa
    return k, e.to_float(bits - (k << e.mantissa)) - 1.0


def split_positive(e, x):
    """(k as a float, f) of a positive, possibly subnormal x = 2**k (1 + f). With AVX-512 k of zero and inf is
    infinite, and f of x below zero NaN, so that logarithms are right there.
    """
    if e.has_avx512:
        k, m = get_exponent(e, x), get_significand(e, x)
        large = m > e.pick(SINGLE_ROOT, DOUBLE_ROOT)
        return e.select(large, k + 1.0, k), e.select(large, m * 0.5, m) - 1.0
    tiny = x < e.smallest_normal
    shift = e.mantissa + 2
    k, f = split_normal(e, e.select(tiny, x * 2.0 ** shift, x))
    return e.convert_int(k) - e.select(tiny, float(shift), 0.0), f


def evaluate_tail(e, f):
    """log(1 + f) - f for sqrt(1/2) <= 1 + f <= sqrt(2)."""
    if e.bits == 32:
        return (f * f) * e.fma(e.poly(f, COEFFICIENTS["log", 32]), f, -0.5)
    ratio, half_square = f / (f + 2.0), f * f * 0.5
    square = ratio * ratio
    rest = e.fma(square, e.poly(square, COEFFICIENTS["log_ratio", 64]), half_square)
    return e.fma(ratio, rest, -half_square)


def evaluate_log(e, k, f, f_low=None):
    """k ln2 + log(1 + f + f_low), f_low an optional addend of the size of f's rounding error."""
    high, low = LN2.split_below(e.bits)
    tail = evaluate_tail(e, f)
    if f_low is not None:
        tail = tail + f_low
    return e.fma(k, high, f + e.fma(k, low, tail))


def finish_log(e, x, result, pole=0.0):
    """`result` for positive x; -inf at the pole, NaN left of it, inf at inf. `split_positive`'s may be so
    already.
    """
    if e.has_avx512 and pole == 0.0:
        return result
    result = e.select(x == e.inf, x, result)
    return e.select(x > pole, result, e.select(x == pole, -e.inf, e.nan))


def build_log(e, x):
    return finish_log(e, x, evaluate_log(e, *split_positive(e, x)))


def scale_log(e, f, unit):
    """(high, low): log(1 + f) * unit with the product's rounding error."""
    major, minor = unit.split(e.bits, 2)
    high = f * major
    return high, e.fma(evaluate_tail(e, f), major, e.fma(f, minor, e.fma(f, major, -high)))


def build_log2(e, x):
    k, f = split_positive(e, x)
    high, low = scale_log(e, f, LOG2_E)
    return finish_log(e, x, k + (high + low))


def build_log10(e, x):
    k, f = split_positive(e, x)
    high, low = scale_log(e, f, LOG10_E)
    major, minor = LOG10_2.split_below(e.bits)
    return finish_log(e, x, e.fma(k, major, high + e.fma(k, minor, low)))


def drop_one(e):
    """From here on log(1 + x) is log(x) to the last bit."""
    return 2.0 ** (e.mantissa + 3)


def split_log1p(e, x, low=None):
    """(k, f, f_low), k a float: 1 + x + low = 2**k (1 + f + f_low) for any x > -1, low an optional addend.

    f = x 2**-k + (2**-k - 1): where k = 0 that is x itself, elsewhere f_low holds its rounding error.
    Where the one no longer counts 2**-k would leave the format: there f comes from the bits of x.
    """
    total = x + 1.0
    k, f_large = split_normal(e, total)
    scale = e.to_float(e.int_const(e.bias << e.mantissa) - (k << e.mantissa))
    f, f_low = two_sum(x * scale, scale - 1.0)
    if low is not None:
        f_low = e.fma(low, scale, f_low)
    large = x > drop_one(e)
    return e.convert_int(k), e.select(large, f_large, f), e.select(large, 0.0, f_low)


def build_log1p(e, x):
    result = finish_log(e, x, evaluate_log(e, *split_log1p(e, x)), pole=-1.0)
    return e.select(x == 0.0, x, result)


def build_logaddexp(e, x, y):
    """log(exp(x) + exp(y)). Equal infinities are no distance apart."""
    distance = e.abs(e.select(x == y, 0.0, x - y))
    z = evaluate_exp(e, e.at_least(-distance, e.pick(-104.0, -746.0)))
    result = e.select(x > y, x, y) + build_log1p(e, z)
    return e.select(x == x, result, x)
