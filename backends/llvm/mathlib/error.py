"""erf, erfc: one lane value in, one out. Stage: rendering.

Method: erf is odd: in pieces where registers hold tables, else x + x P(x**2) up to one, beyond it
1 - exp(Q(|x|)), Q approximating log(erfc). erfc
beyond 1/2 is exp(-x**2) times a polynomial in (x - 4) / (x + 4) divided by 1 + 2 x; x**2 keeps its
rounding error.
"""
import math

from jitcore.backends.llvm.mathlib.coefficients import COEFFICIENTS
from jitcore.backends.llvm.mathlib.double_word import (fast_two_sum, multiply_words, split_quotient,
                                                       two_product, two_sum)
from jitcore.backends.llvm.mathlib.emitter import Constant
from jitcore.backends.llvm.mathlib.exponential import scale, split_exp
from jitcore.backends.llvm.mathlib.logarithmic import evaluate_positive_log
from jitcore.backends.llvm.mathlib.piecewise import evaluate_pieces


def evaluate_near(e, x):
    """erf(x) for |x| <= 1."""
    square = x * x
    first, *rest = COEFFICIENTS["erf", e.bits]
    return e.fma(x, square * e.poly(square, rest) + first, x)


def build_erf(e, x):
    if e.has_avx512:
        return e.copysign(evaluate_pieces(e, "erf", e.abs(x)), x)
    magnitude = e.at_most(e.abs(x), e.pick(4.0, 6.0))
    rise, power = split_exp(e, e.poly(magnitude, COEFFICIENTS["log_erfc", e.bits]), offset=e.bias)
    far = e.fma(rise + 1.0, -e.to_float(power.field << e.mantissa), 1.0)
    return e.copysign(e.select(magnitude < 1.0, evaluate_near(e, x), far), x)


def build_erf_inv(e, x):
    """x P(w) with w = -log(1 - x**2); the ends, one lane in a thousand of uniform data, are cold."""
    w = -evaluate_positive_log(e, (1.0 - x) * (x + 1.0))
    result = x * e.poly(w - 3.0, COEFFICIENTS["erf_inv", e.bits])
    return e.patch(~(w < 6.0), result, build_erf_inv_tail, x)


def build_erf_inv_tail(e, x):
    """erf_inv of one |x| near 1; inf at one, NaN beyond."""
    a = e.abs(x)
    inside = a < 1.0
    a = e.select(inside, a, 0.9999)
    w = -evaluate_positive_log(e, (1.0 - a) * (a + 1.0))
    result = a * e.poly(e.sqrt(w) - 4.27, COEFFICIENTS["erf_inv_tail", e.bits])
    result = e.select(inside, result, e.select(e.abs(x) == 1.0, e.inf, e.nan))
    return e.copysign(result, x)


def build_erfc(e, x):
    """Quotient and exponential keep their rounding errors, which meet in one last sum."""
    magnitude = e.at_most(e.abs(x), e.pick(10.5, 28.0))
    t = (magnitude - 4.0) / (magnitude + 4.0)
    constant, *rest = COEFFICIENTS["erfc", e.bits]
    numerator = fast_two_sum(e.const(constant), t * e.poly(t, rest))
    denominator = two_sum(e.const(1.0), magnitude + magnitude)
    quotient, quotient_low = split_quotient(e, *numerator, *denominator)
    square, square_low = two_product(e, magnitude, magnitude)
    rise, power = split_exp(e, -square, -square_low)
    product, product_low = multiply_words(e, quotient, quotient_low, *fast_two_sum(e.const(1.0), rise))
    far = scale(e, product + product_low, power)
    return e.select(e.abs(x) > 0.5, e.select(x > 0.0, far, 2.0 - far), 1.0 - evaluate_near(e, x))


_INVERSE_ROOT_OF_PI = Constant("0.56418958354775628694807945156077258584405062932900")
#: -1/2, 1*3/4, -1*3*5/8 ...: erfcx(x) sqrt(pi) x - 1 for large x, in powers of 1 / x**2 from the first on.
_FAR = tuple(math.prod(range(1, 2 * k, 2)) / (-2) ** k for k in range(1, 8))


def evaluate_far_erfcx(e, x):
    """A series in 1 / x**2 over x sqrt(pi), whose leading product keeps its rounding error."""
    factor, factor_low = _INVERSE_ROOT_OF_PI.split(e.bits, 2)
    inverse = 1.0 / x
    largest = e.pick((2 - 2.0**-23) * 2.0**127, (2 - 2.0**-52) * 2.0**1023)
    rest = e.fma(-inverse, e.at_most(x, largest), 1.0) * inverse
    first = inverse * factor
    low = e.fma(inverse, factor, -first) + e.fma(inverse, factor_low, rest * factor)
    square = inverse * inverse
    return first + e.fma(first * square, e.poly(square, _FAR), low)


def build_erfcx(e, x):
    """erfc's quotient without its exponential up to 10 or 28, a series in 1 / x**2 beyond; near zero
    exp(x**2), whose x**2 keeps its rounding error, times 1 - erf(x); left of it 2 exp(x**2) - erfcx(-x)."""
    limit, size = e.pick(10.5, 28.0), e.abs(x)
    magnitude = e.at_most(size, limit)
    t = (magnitude - 4.0) / (magnitude + 4.0)
    constant, *rest = COEFFICIENTS["erfc", e.bits]
    numerator = fast_two_sum(e.const(constant), t * e.poly(t, rest))
    right, right_low = split_quotient(e, *numerator, *two_sum(e.const(1.0), magnitude + magnitude))
    square, square_low = two_product(e, magnitude, magnitude)
    rise, power = split_exp(e, square, square_low)
    growth, growth_low = fast_two_sum(e.const(1.0), rise)
    left, left_low = (scale(e, part + part, power) for part in (growth, growth_low))
    most = e.pick(1e35, 1e300)  # beside an infinity it need not be one
    left_low = e.at_least(e.at_most(left_low, most), -most)
    positive = e.select(size > limit, evaluate_far_erfcx(e, size), right + right_low)
    near = 1.0 - evaluate_near(e, x)
    whole = e.select(x > 0.0, positive, left - positive + left_low)
    return e.select(size > 0.5, whole, e.fma(near, rise, near))
