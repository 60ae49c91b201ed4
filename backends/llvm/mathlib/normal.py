"""log_ndtr, ndtri: the logarithm of the normal distribution function and its inverse; one lane value in, one
out. Stage: rendering.

Method: the tail probability Q(a), a = |x|, is exp(-a**2 / 2) times E(a), a polynomial in (a - 4) / (a + 4)
over a + 4. log_ndtr is log(1 - Q(a)) on the right, the difference kept with its rounding error, and
log(E(a)) - a**2 / 2 on the left, where both terms are negative. ndtri is p - 1/2 times a function of
w = -log(4 p (1 - p)), which has the same value at p and 1 - p: for float32 one polynomial serves; for float64
one up to w = 6, and what lies beyond, one number in eight hundred of uniform data, is cold.
"""
from jitcore.backends.llvm.mathlib.coefficients import COEFFICIENTS
from jitcore.backends.llvm.mathlib.double_word import (fast_two_sum, multiply_words, split_quotient,
                                                       two_product, two_sum)
from jitcore.backends.llvm.mathlib.exponential import scale, split_exp
from jitcore.backends.llvm.mathlib.logarithmic import evaluate_log_of_parts, evaluate_positive_log

MILLS_CENTER = 4.0
QUANTILE_CENTER, QUANTILE_SHIFT = 12.0, 2.0
TAIL_CENTER, FAR_TAIL_CENTER, FAR_TAIL, TAIL_SHIFT = 3.625, 12.0, 5.5, 3.0


def evaluate_tail_factor(e, a):
    """(high, low): exp(a**2 / 2) times the probability that a normal number is above a >= 0."""
    denominator, denominator_low = two_sum(e.const(MILLS_CENTER), a)
    # (a - 4) / (a + 4), so that errors of the inverse do not count near zero
    t = e.fma(a + a, 1.0 / denominator, -1.0)
    constant, *rest = COEFFICIENTS["mills_ratio", e.bits]
    numerator = two_sum(e.const(constant), t * e.poly(t, rest))
    return fast_two_sum(*split_quotient(e, *numerator, denominator, denominator_low))


def build_log_ndtr(e, x):
    a, right = e.abs(x), x > 0.0
    # far out the square alone counts
    factor = evaluate_tail_factor(e, e.at_most(a, 2.0 ** (e.mantissa + 2)))
    # the square is limited to where the tail vanishes
    limited = e.at_most(a, e.pick(14.6, 38.8))
    half_square, low = two_product(e, limited, limited * 0.5)
    rise, power = split_exp(e, -half_square, -low)
    tail, tail_low = (scale(e, part, power) for part in multiply_words(
        e, *factor, *fast_two_sum(e.const(1.0), rise)))
    total, rest = fast_two_sum(e.const(1.0), -tail)
    parts = zip((total, rest - tail_low), factor, strict=True)
    logarithm = evaluate_log_of_parts(e, *(e.select(right, a, b) for a, b in parts))
    return e.select(right, -e.abs(logarithm), e.fma(a * -0.5, a, logarithm))


def split_poly(e, t, coefficients):
    """(the first term of P(t), the sum of the others)."""
    constant, *rest = coefficients
    return e.const(constant), t * e.poly(t, rest)


def multiply_poly(e, factor, constant, rest):
    """factor times the polynomial that `split_poly` gave, whose value is not rounded before."""
    return e.fma(factor, constant, factor * rest)


def build_ndtri(e, p):
    distance = p - 0.5
    rest = e.at_least((p * 4.0) * (1.0 - p), e.pick(2.0 ** -149, 2.0 ** -1074))
    w = -evaluate_positive_log(e, rest)
    if e.bits == 32:
        t = (w - QUANTILE_CENTER) / (w + QUANTILE_CENTER)
        factor = distance * e.sqrt(w + QUANTILE_SHIFT)
        return finish_quantile(e, p, multiply_poly(e, factor, *split_poly(e, t, COEFFICIENTS["ndtri", 32])))
    result = multiply_poly(e, distance, *split_poly(e, w - 3.0, COEFFICIENTS["ndtri_center", 64]))
    hard = ~(w < 6.0)
    return e.replace(hard, result, lambda: e.select(hard, e.call(build_ndtri_tail, p, w, cold=True), result))


def build_ndtri_tail(e, p, w):
    """ndtri where w >= 6, for all lanes at once, as data may lie in the tails altogether."""
    s = e.sqrt(w)
    is_near = s < FAR_TAIL
    center = e.select(is_near, TAIL_CENTER, FAR_TAIL_CENTER)
    t = (s - center) / (s + center)
    pieces = (split_poly(e, t, COEFFICIENTS[name, 64]) for name in ("ndtri_tail", "ndtri_far_tail"))
    poly = (e.select(is_near, near, far) for near, far in zip(*pieces, strict=True))
    return finish_quantile(e, p, multiply_poly(e, (p - 0.5) * (s + TAIL_SHIFT), *poly))


def finish_quantile(e, p, result):
    """`result` between zero and one, infinite there, NaN outside."""
    edge = e.select(p == 0.0, -e.inf, e.select(p == 1.0, e.inf, e.nan))
    return e.select((p > 0.0) & (p < 1.0), result, edge)
