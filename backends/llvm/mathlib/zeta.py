"""zeta, polygamma: Hurwitz's zeta function and derivatives of digamma; lane values in, one out. Stage:
rendering. float32 goes through float64.

Method, q > 0: the sum over n of (q + n)**-s is its first terms and Euler and Maclaurin's formula for the
others, a = q + TERMS: a**(1 - s) (1 / (s - 1) + (1 / 2 + s / a (c1 + (s + 1) (s + 2) / a**2 (c2 + ...))) / a)
with c[k] = B(2k) / (2k)!. Powers come from logarithms of two floats, so that the rounding of q + n, which s
multiplies, is made good. q <= 0 is cold: reflection. The derivative m times of digamma is m! zeta(m + 1, x)
up to its sign.
"""
import math
from fractions import Fraction

import llvmlite.ir as ir

from jitcore.backends.llvm.mathlib import avx512
from jitcore.backends.llvm.mathlib.double_word import two_sum
from jitcore.backends.llvm.mathlib.emitter import through_double
from jitcore.backends.llvm.mathlib.gamma import build_digamma
from jitcore.backends.llvm.mathlib.power import look_up_log_words, raise_log, split_log

TERMS, CORRECTIONS = 7, 11
LARGEST_ORDER = 170


def list_corrections(count):
    """B(2k) / (2k)! for k = 1 ... count."""
    bernoulli = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        bernoulli.append(-sum(math.comb(n + 1, k) * b for k, b in enumerate(bernoulli)) / (n + 1))
    return [float(bernoulli[2 * k] / math.factorial(2 * k)) for k in range(1, count + 1)]


def raise_sum(e, x, low, y):
    """(x + low)**y for positive finite x and low within its rounding error."""
    base = e.at_least(x, e.smallest_normal)
    if e.has_avx512:
        high, rest = look_up_log_words(e, x)
        return raise_log(e, high, e.fma(low, avx512.approximate_inverse(e, base), rest), y)
    high, rest = split_log(e, x)
    return raise_log(e, high, rest + low / base, y)


def build_positive_zeta(e, s, q):
    """zeta of s > 1 and finite q > 0."""
    s = e.at_most(s, 2.0 ** 66)
    a, a_low = two_sum(q, e.const(float(TERMS)))
    inverse = 1.0 / a
    # beyond this ratio the first terms are all that counts
    ratio = e.at_most(s * inverse, 64.0)
    last, *others = reversed(list_corrections(CORRECTIONS))
    total = e.const(last)
    for k, correction in zip(range(CORRECTIONS - 1, 0, -1), others, strict=True):
        step = e.fma(inverse, 2.0 * k - 1.0, ratio) * e.fma(inverse, 2.0 * k, ratio)
        total = e.fma(step, total, correction)
    rest = raise_sum(e, a, a_low, 1.0 - s) * e.fma(e.fma(ratio, total, 0.5), inverse, 1.0 / (s - 1.0))
    return e.accumulate(TERMS, lambda n: raise_sum(e, *two_sum(q, n), -s)) + rest


def build_zeta(e, s, q):
    if e.bits == 32:
        return through_double(e, build_zeta, s, q)
    result = build_positive_zeta(e, s, e.at_most(q, e.largest))
    result = e.select(q < e.inf, result, e.select(e.is_nan(q), q, 0.0))
    result = e.patch(q <= 0.0, result, build_zeta_reflected, s, q)
    return e.select(s > 1.0, result, e.select(s == 1.0, e.inf, e.nan))


def build_zeta_reflected(e, s, q):
    """zeta of one q <= 0: infinite at whole numbers, NaN where s is none. The terms below zero are a
    difference of two sums."""
    a = e.at_most(e.abs(q), 2.0 ** 60)
    part = a - e.intrinsic("floor", a)
    inside = e.select(part > 0.0, part, 0.5)
    half = s * 0.5
    whole, even = (e.intrinsic("trunc", n) == n for n in (s, half))
    starts = 1.0 - inside, inside, a + 1.0
    near, low, high = (e.call(build_positive_zeta, s, start, cold=True) for start in starts)
    result = near + e.select(even, low - high, high - low)
    return e.select(part == 0.0, e.inf, e.select(whole, result, e.nan))


def load_factorial(e, m):
    """m! of whole m; infinite where it is too large."""
    module, kind = e.builder.module, ir.ArrayType(ir.DoubleType(), LARGEST_ORDER + 1)
    table = module.globals.get("jitcore.factorials")
    if table is None:
        table = ir.GlobalVariable(module, kind, "jitcore.factorials")
        table.linkage, table.global_constant = "internal", True
        table.initializer = ir.Constant(kind, [float(math.factorial(n)) for n in range(LARGEST_ORDER + 1)])
    place = e.truncate_int(e.at_most(e.at_least(e.select(m == m, m, 0.0), 0.0), float(LARGEST_ORDER)))
    return e.select(m > float(LARGEST_ORDER), e.inf, e.load(table, place))


def build_polygamma(e, m, x):
    """NaN where m is not a whole number from zero on."""
    if e.bits == 32:
        return through_double(e, build_polygamma, m, x)
    zero = m == 0.0
    whole, even = (e.intrinsic("floor", n) == n for n in (m, m * 0.5))
    magnitude = load_factorial(e, m) * e.call(build_zeta, m + 1.0, x)
    result = e.select(whole & (m > 0.0), e.select(even & (m < e.inf), -magnitude, magnitude), e.nan)
    return e.replace(zero, result, lambda: e.select(zero, e.call(build_digamma, x), result))
