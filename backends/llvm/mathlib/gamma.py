"""lgamma, digamma: one lane value in, one out. Stage: rendering. float32 goes through float64.

Method, x > 0: from 8 on Stirling's series with a minimax polynomial in 1 / x**2; below, the recurrence
leads to an interval of length one that holds 2 (lgamma) or from 1 to 2 (digamma) with a polynomial that
has the function's zero as a factor; the factors of the recurrence are multiplied, so that one logarithm
or one division serves all of them. x <= 0 is cold: reflection.
"""
from jitcore.backends.llvm.mathlib.angle import choose_cos, choose_sin
from jitcore.backends.llvm.mathlib.coefficients import COEFFICIENTS
from jitcore.backends.llvm.mathlib.emitter import PI, Constant, through_double
from jitcore.backends.llvm.mathlib.logarithmic import evaluate_positive_log

SERIES_START = 8
HALF_LOG_TWO_PI = Constant("0.91893853320467274178032973640561763986139747363778341281715154048277")
LOG_PI = Constant("1.1447298858494001741434273513530587116472948129153115715136230714721")
DIGAMMA_ZERO = Constant("1.46163214496836234126265954232572132846819620400644629512959840859878644")


def evaluate_positive_lgamma(e, x):
    """lgamma of finite x > 0."""
    series = x >= float(SERIES_START)
    product, z, below = e.const(1.0), x - 2.0, x < 1.25
    for step in range(1, SERIES_START - 1):
        passed = x >= step + 1.25
        product = e.select(passed, product * (x - float(step)), product)
        z = e.select(passed, x - (step + 2.0), z)
    tiny = x < 0.25
    product = e.select(below, e.select(tiny, e.fma(x, x, x), x), product)
    z = e.select(below, e.select(tiny, x, x - 1.0), z)
    logarithm = evaluate_positive_log(e, e.select(series, x, product))
    near = e.fma(z, e.poly(z, COEFFICIENTS["lgamma", 64]), e.select(below, -logarithm, logarithm))
    inverse = 1.0 / x
    series_tail = e.poly(inverse * inverse, COEFFICIENTS["stirling", 64])
    rest = e.fma(inverse, series_tail, HALF_LOG_TWO_PI.value - 0.5)
    return e.select(series, e.fma(x - 0.5, logarithm - 1.0, rest), near)


def build_lgamma(e, x):
    """log |gamma(x)|; inf at zero and the negative integers."""
    if e.bits == 32:
        return through_double(e, build_lgamma, x)
    result = evaluate_positive_lgamma(e, x)
    result = e.select(x < e.largest, result, e.select(e.is_nan(x), x, e.inf))
    return e.patch(x <= 0.0, result, build_lgamma_reflected, x)


def evaluate_sinpi(e, a):
    """(sin(pi a), cos(pi a)) up to the signs that whole turns give, a scalar a >= 0; exact zeros at the
    integers."""
    double = a + a
    nearest = e.intrinsic("roundeven", double)
    r = (double - nearest) * 0.5
    high, low = PI.split(64, 2)
    angle = r * high
    angle_low = e.fma(r, low, e.fma(r, high, -angle))
    half = nearest * 0.5
    quadrant = e.truncate_int((half - e.intrinsic("floor", half)) * 2.0)
    return [choose(e, quadrant, angle, angle_low, e.const(1.0)) for choose in (choose_sin, choose_cos)]


def build_lgamma_reflected(e, x):
    """lgamma of one x <= 0: log(pi / (a |sin(pi a)|)) - lgamma(a) with a = -x."""
    a = e.abs(x)
    inner = e.at_least(e.at_most(a, 2.0 ** 52), 2.0 ** -60)
    sine = e.abs(evaluate_sinpi(e, inner)[0])
    product = e.select(a < 2.0 ** -60, a, inner * sine)
    pole = product == 0.0
    logarithm = -evaluate_positive_log(e, e.select(pole, 1.0, product))
    result = logarithm + e.select(a < 2.0 ** -60, 0.0, LOG_PI.value - evaluate_positive_lgamma(e, inner))
    return e.select(pole, e.inf, result)


def evaluate_positive_digamma(e, x):
    """digamma of finite x > 0."""
    series, below = x >= float(SERIES_START), x < 1.0
    numerator, denominator, y = e.const(0.0), e.const(1.0), x
    for step in range(1, SERIES_START - 1):
        passed, factor = x >= step + 1.0, x - float(step)
        numerator = e.select(passed, e.fma(numerator, factor, denominator), numerator)
        denominator = e.select(passed, denominator * factor, denominator)
        y = e.select(passed, factor, y)
    y = e.select(below, x + 1.0, y)
    numerator = e.select(series, 1.0, e.select(below, -1.0, numerator))
    quotient = numerator / e.select(series | below, x, denominator)
    zero, zero_low = DIGAMMA_ZERO.split(64, 2)
    near = e.fma((y - zero) - zero_low, e.poly(y - 1.5, COEFFICIENTS["digamma", 64]), quotient)
    square = quotient * quotient
    rest = e.fma(square, -e.poly(square, COEFFICIENTS["digamma_series", 64]), quotient * -0.5)
    return e.select(series, evaluate_positive_log(e, x) + rest, near)


def build_digamma(e, x):
    """The logarithmic derivative of gamma; NaN at the negative integers, -inf at 0.0 and inf at -0.0."""
    if e.bits == 32:
        return through_double(e, build_digamma, x)
    result = evaluate_positive_digamma(e, x)
    result = e.select(x < e.inf, result, x)
    return e.patch(x <= 0.0, result, build_digamma_reflected, x)


def build_digamma_reflected(e, x):
    """digamma of one x <= 0: digamma(a) + 1 / a + pi / tan(pi a) with a = -x."""
    a = e.abs(x)
    inner = e.at_least(e.at_most(a, 2.0 ** 53), 2.0 ** -60)
    sine, cosine = evaluate_sinpi(e, inner)
    result = evaluate_positive_digamma(e, inner) + (1.0 / inner + PI.value * (cosine / sine))
    result = e.select((sine == 0.0) | (a == e.inf), e.nan, result)
    return e.select(a < 2.0 ** -60, -1.0 / x, result)
