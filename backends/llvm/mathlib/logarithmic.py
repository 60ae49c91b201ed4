"""log, log2, log10, log1p, logaddexp: lane values in, one out. Stage: rendering.

Method: x = 2**k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), by integer steps; log(1 + f) = f + tail(f),
the tail from a polynomial in f (float32) or in (f / (2 + f))**2 (float64). f is exact, so what matters near
x = 1 carries no rounding error. With AVX-512 x = 2**k m, m from 3/4 to 3/2, by instructions; a table of
inverses c leaves f = m c - 1, so small that a short polynomial does without a division, and a table of -log c
goes with k, exactly (`tables.py`). Around m = 1 the inverse is one. logaddexp is the larger one plus
log1p(exp(-distance)).
"""
from typing import NamedTuple

from jitcore.backends.llvm.mathlib import avx512
from jitcore.backends.llvm.mathlib.coefficients import COEFFICIENTS
from jitcore.backends.llvm.mathlib.double_word import two_sum
from jitcore.backends.llvm.mathlib.emitter import LN2, LOG2_E, LOG10_2, LOG10_E, ONE, Lanes
from jitcore.backends.llvm.mathlib.exponential import evaluate_exp
from jitcore.backends.llvm.mathlib.tables import LOGARITHMS


class Reduced(NamedTuple):
    """A number as 2**k (1 + f + f_low), k a float, f_low an optional addend of the size of f's rounding
    error; with AVX-512 as 2**k exp(start) (1 + f + f_low)."""
    k: Lanes
    f: Lanes
    f_low: Lanes | None = None
    start: Lanes | None = None


def split_normal(e, x):
    """(k as an integer, f) of a normal positive x = 2**k (1 + f)."""
    root_half = e.pick(0x3F3504F3, 0x3FE6A09E667F3BCD)
    bits = e.to_bits(x)
    k = (bits - root_half) >> e.mantissa
    return k, e.to_float(bits - (k << e.mantissa)) - 1.0


def split_positive(e, x):
    """A positive, possibly subnormal x, reduced without AVX-512."""
    tiny = x < e.smallest_normal
    shift = e.mantissa + 2
    k, f = split_normal(e, e.select(tiny, x * 2.0 ** shift, x))
    return Reduced(e.convert_int(k) - e.select(tiny, float(shift), 0.0), f)


def find_entry(e, x, name="log"):
    """(k, m, inverse, start) of x = 2**k m with 3/4 <= m < 3/2: m * inverse is near one, start is
    -log(inverse) to the base of the table of that name. AVX-512. At zero and inf k is infinite, below zero
    m is NaN, so that logarithms are right there."""
    table = LOGARITHMS[name, e.bits]
    m = avx512.get_significand(e, x, avx512.AROUND_ONE)
    k = avx512.get_exponent(e, x) - avx512.get_exponent(e, m)
    place = find_place(e, m, table)
    return k, m, avx512.lookup(e, table.inverses, place), avx512.lookup(e, table.logs, place)


def find_place(e, m, table):
    """The index of m in a table of logarithms."""
    return e.to_bits(e.fma(m, table.steps, e.magic))


def look_up(e, x, name="log"):
    """(x reduced by the table of that name, the inverse)."""
    k, m, inverse, start = find_entry(e, x, name)
    return Reduced(k, e.fma(m, inverse, -1.0), start=start), inverse


def evaluate_tail(e, f):
    """log(1 + f) - f for sqrt(1/2) <= 1 + f <= sqrt(2)."""
    if e.bits == 32:
        return (f * f) * e.fma(e.poly(f, COEFFICIENTS["log", 32]), f, -0.5)
    ratio, half_square = f / (f + 2.0), f * f * 0.5
    square = ratio * ratio
    rest = e.fma(square, e.poly(square, COEFFICIENTS["log_ratio", 64]), half_square)
    return e.fma(ratio, rest, -half_square)


def finish_table(e, reduced, unit=ONE, name="log"):
    """The logarithm of what `look_up` leaves, to the base whose logarithm is 1 / unit.

    The upper parts of what k and the table add are exact. As f may cancel half of them, it is added with the
    sum's rounding error."""
    k, f, f_low, start = reduced
    upper, lower = LOGARITHMS[name, e.bits].unit
    major, minor = unit.split(e.bits, 2)
    tail = f * f * e.poly(f, COEFFICIENTS[f"{name}_near", e.bits])
    if minor:
        tail = e.fma(f, minor, tail)
    if lower:
        tail = e.fma(k, lower, tail)
    if f_low is not None:
        tail = tail + f_low
    head = e.fma(k, upper, start)
    total = e.fma(f, major, head)
    rest = e.fma(f, major, head - total)
    # NaN, which the difference of infinities is, gives the number
    rest = e.select(rest < 1.0, rest, 1.0)
    return total + (rest + tail)


def evaluate_log(e, reduced):
    """The logarithm of a reduced number."""
    if e.has_avx512:
        return finish_table(e, reduced)
    high, low = LN2.split_below(e.bits)
    tail = evaluate_tail(e, reduced.f)
    if reduced.f_low is not None:
        tail = tail + reduced.f_low
    return e.fma(reduced.k, high, reduced.f + e.fma(reduced.k, low, tail))


def look_up_log(e, x, unit=ONE, name="log"):
    """The logarithm of any x, to the base whose logarithm is 1 / unit. AVX-512."""
    return finish_table(e, look_up(e, x, name)[0], unit, name)


def evaluate_positive_log(e, x):
    """log(x) for finite x > 0; with AVX-512 for all x."""
    return look_up_log(e, x) if e.has_avx512 else evaluate_log(e, split_positive(e, x))


def finish_log(e, x, result, pole=0.0):
    """`result` for x right of the pole; -inf at the pole, NaN left of it, inf at inf."""
    result = e.select(x == e.inf, x, result)
    return e.select(x > pole, result, e.select(x == pole, -e.inf, e.nan))


def build_log(e, x):
    result = evaluate_positive_log(e, x)
    return result if e.has_avx512 else finish_log(e, x, result)


def scale_log(e, f, unit):
    """(high, low): log(1 + f) * unit with the product's rounding error."""
    major, minor = unit.split(e.bits, 2)
    high = f * major
    return high, e.fma(evaluate_tail(e, f), major, e.fma(f, minor, e.fma(f, major, -high)))


def build_log2(e, x):
    if e.has_avx512:
        return look_up_log(e, x, LOG2_E, "log2")
    k, f, *_ = split_positive(e, x)
    high, low = scale_log(e, f, LOG2_E)
    return finish_log(e, x, k + (high + low))


def build_log10(e, x):
    if e.has_avx512:
        return look_up_log(e, x, LOG10_E, "log10")
    k, f, *_ = split_positive(e, x)
    high, low = scale_log(e, f, LOG10_E)
    major, minor = LOG10_2.split_below(e.bits)
    return finish_log(e, x, e.fma(k, major, high + e.fma(k, minor, low)))


def drop_one(e):
    """From here on log(1 + x) is log(x) to the last bit."""
    return 2.0 ** (e.mantissa + 3)


def split_log1p(e, x, low=None):
    """1 + x + low reduced, for any x > -1, low an optional small addend."""
    return (look_up_sum if e.has_avx512 else split_sum)(e, x, low)


def split_sum(e, x, low):
    """f = x 2**-k + (2**-k - 1): where k = 0 that is x itself, elsewhere f_low holds its rounding error.
    Where the one no longer counts 2**-k would leave the format: there f comes from the bits of x."""
    total = x + 1.0
    k, f_large = split_normal(e, total)
    scale = e.to_float(e.int_const(e.bias << e.mantissa) - (k << e.mantissa))
    f, f_low = two_sum(x * scale, scale - 1.0)
    if low is not None:
        f_low = e.fma(low, scale, f_low)
    large = x > drop_one(e)
    return Reduced(e.convert_int(k), e.select(large, f_large, f), e.select(large, 0.0, f_low))


def look_up_sum(e, x, low):
    """The rounding error of 1 + x, scaled as the sum is, belongs to f; where the sum is near one f is
    exactly x. The result is right at -1, at inf and beyond -1 too, given that low is."""
    total = x + 1.0
    reduced, inverse = look_up(e, total)
    larger, smaller = e.at_least(x, 1.0), e.at_most(x, 1.0)
    rest = smaller - (total - larger)
    rest = avx512.scale(e, e.select(total < e.inf, rest, 0.0), e.at_most(-reduced.k, 2.0 * e.bias))
    reduced = reduced._replace(f=e.fma(rest, inverse, reduced.f))
    return reduced if low is None else reduced._replace(f_low=low * avx512.approximate_inverse(e, total))


def evaluate_log_of_parts(e, total, low):
    """log(total + low) of a normal total > 0 with low within its rounding error.

    Where total is one, low is all there is; in f it would have a square that may underflow, which takes time.
    """
    if e.has_avx512:
        reduced, inverse = look_up(e, total)
        scale = avx512.scale(e, inverse, -reduced.k)
        return finish_table(e, reduced._replace(f_low=low * scale))
    k, f = split_normal(e, total)
    scale = e.to_float(e.int_const(e.bias << e.mantissa) - (k << e.mantissa))
    return evaluate_log(e, Reduced(e.convert_int(k), f, low * scale))


def build_log1p(e, x):
    result = evaluate_log(e, split_log1p(e, x))
    if e.has_avx512:
        return e.copysign(result, x)
    return e.select(x == 0.0, x, finish_log(e, x, result, pole=-1.0))


def build_logaddexp(e, x, y):
    """log(exp(x) + exp(y)). Equal infinities are no distance apart."""
    distance = e.abs(e.select(x == y, 0.0, x - y))
    z = evaluate_exp(e, -distance)
    result = e.select(x > y, x, y) + build_log1p(e, z)
    return e.select(x == x, result, x)
