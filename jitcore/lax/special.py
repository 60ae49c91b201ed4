"""Special functions: error function, gamma function, Bessel, incomplete gamma and beta, zeta, polygamma.

In: floats of one dtype and shape (scalars broadcast). Out: the same dtype; outside the domain NaN. SciPy
computes them eagerly. Those made by `special_function` have no scalar form: backends call the implementation
as a library routine.

The derivative of the regularised incomplete gamma function by its first argument, which SciPy lacks, is an
equation that expands to other primitives: the power series below the mean of the distribution and the
continued fraction above it are differentiated term by term, in float64, by loops in which each element goes
on until its own sum has settled.

Source: Moore, Algorithm AS 187, Applied Statistics 31 (1982).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes
from jitcore.config import config
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray, aval_of
from jitcore.core.primitive import registry
from jitcore.core.trace import trace_to_jaxpr
from jitcore.lax.bits import and_, not_, or_
from jitcore.lax.control_flow.loops import run_while
from jitcore.lax.define import elementwise
from jitcore.lax.elementary import exp, log, log1p
from jitcore.lax.elementwise import (abs_, add, convert_element_type, div, eq, gt, lt, mul, neg, select_n,
                                     sign, square, sub)
from jitcore.lax.shape import broadcast, full_like
from jitcore.process.lazy import LazyFunctions

__all__ = ["bessel_i0e", "bessel_i1e", "betainc", "digamma", "erf", "erf_inv", "erfc", "erfcx",
           "igamma", "igamma_grad_a", "igammac", "lgamma", "log_ndtr", "ndtri", "polygamma", "zeta"]

special = LazyFunctions("scipy.special")
#: The family: on floats, of which halves are computed in float32.
_smooth = functools.partial(elementwise, accepts="f", compute_half_in_float32=True)


def _half_square(x):
    return mul(square(x), 0.5)


@_smooth(impl=special.ndtri, domain=(0.01, 0.99), cost=30, scipy="ndtri",
         jvp=lambda t, ans, p: mul(t, mul(exp(_half_square(ans)), math.sqrt(2 * math.pi))))
def ndtri(p):
    """x such that a standard normal number is below x with probability p. p: in [0, 1], NaN outside."""


def _log_ndtr_slope(ans, x):
    """Density over probability, as the exponential of a difference: both may underflow."""
    return exp(sub(neg(add(_half_square(x), math.log(math.sqrt(2 * math.pi)))), ans))


@_smooth(impl=special.log_ndtr, domain=(-10, 10), cost=50, scipy="log_ndtr",
         jvp=lambda t, ans, x: mul(t, _log_ndtr_slope(ans, x)))
def log_ndtr(x):
    """Logarithm of the probability that a standard normal number is below x."""


_EPSILON = float(np.finfo(np.float64).eps)
_MOST_TERMS = 10_000.0


def expand_slope(avals: Sequence[ShapedArray], params: dict) -> ClosedJaxpr:
    """The jaxpr of `gammainc_slope` for a and x of these types."""
    return _trace_slope(tuple(avals), config.trace_key)


def run_slope(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """`gammainc_slope` of ndarrays."""
    return run_jaxpr_numpy(expand_slope([aval_of(a), aval_of(x)], {}), [a, x])[0]


@functools.lru_cache(maxsize=64)
def _trace_slope(avals: tuple[ShapedArray, ...], trace_key) -> ClosedJaxpr:
    return ClosedJaxpr(*trace_to_jaxpr(lambda a, x: [gammainc_slope(a, x)], avals))


def gammainc_slope(a, x):
    """d P(a, x) / d a; zero at x = 0 and infinity; NaN for a <= 0, x < 0 and NaN."""
    dtype, shape = aval_of(x).dtype, aval_of(a).shape or aval_of(x).shape
    a, x = (v if aval_of(v).shape else broadcast(v, shape) for v in (a, x))
    a, x = (convert_element_type(v, dtypes.float64) for v in (a, x))
    is_positive = and_(gt(a, 0.0), lt(a, math.inf))
    inside = and_(is_positive, and_(gt(x, 0.0), lt(x, math.inf)))
    at_end = and_(is_positive, or_(eq(x, 0.0), eq(x, math.inf)))
    safe_a, safe_x = (select_n(inside, full_like(v, 1.0), v) for v in (a, x))
    above = and_(gt(safe_x, 1.0), gt(safe_x, safe_a))
    total, slope = _sum_series(safe_a, safe_x, and_(inside, not_(above)))
    value, value_slope = _expand_fraction(safe_a, safe_x, and_(inside, above))
    # P(a, x) = x**a exp(-x) / gamma(a + 1) * total, 1 - P(a, x) = x**a exp(-x) / gamma(a) * value
    order, log_x = select_n(above, add(safe_a, 1.0), safe_a), log(safe_x)
    factor = exp(sub(sub(mul(safe_a, log_x), safe_x), registry["lgamma"].bind(order)))
    total, slope = select_n(above, total, value), select_n(above, slope, value_slope)
    result = mul(factor, add(mul(total, sub(log_x, registry["digamma"].bind(order))), slope))
    result = select_n(inside, full_like(a, math.nan), select_n(above, result, neg(result)))
    return convert_element_type(select_n(at_end, result, full_like(a, 0.0)), dtype)


def _sum_series(a, x, active):
    """1 + x / (a + 1) + x**2 / (a + 1) (a + 2) + ... and its derivative by a."""

    zero, one = full_like(a, 0.0), full_like(a, 1.0)

    def step(n, term, slope, total, total_slope, active):
        n = add(n, one)
        inverse = div(one, add(a, n))
        ratio = mul(x, inverse)
        slope, term = mul(ratio, sub(slope, mul(term, inverse))), mul(ratio, term)
        total, total_slope = add(total, term), add(total_slope, slope)
        grows = or_(gt(abs_(slope), mul(abs_(total_slope), _EPSILON)), gt(term, mul(total, _EPSILON)))
        return [n, term, slope, total, total_slope, and_(grows, lt(n, _MOST_TERMS))]

    _, _, _, total, slope, _ = run_while(_is_active, step, [zero, one, zero, one, zero, active])
    return total, slope


def _expand_fraction(a, x, active):
    """1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...)) and its derivative by a.

    Numerators and denominators of the convergents, and their derivatives, are scaled so that the denominator
    is one. Rounding errors of the derivative are as large as the terms of its difference."""

    one = full_like(a, 1.0)

    def step(n, value, slope, last, last_one, last_top, last_bottom, top, bottom, active):
        n = add(n, one)
        partial, start = mul(n, sub(a, n)), sub(add(add(x, n), add(n, one)), a)

        def follow(here, before):
            return add(mul(start, here), mul(partial, before))

        scale = div(one, follow(one, last_one))
        new = mul(follow(value, last), scale)
        rise = mul(sub(add(follow(top, last_top), mul(n, last)), value), scale)
        fall = mul(sub(add(follow(bottom, last_bottom), mul(n, last_one)), one), scale)
        product = mul(new, fall)
        new_slope = sub(rise, product)
        change = add(abs_(sub(new, value)), abs_(sub(new_slope, slope)))
        size = add(abs_(new), add(abs_(new_slope), abs_(product)))
        moves = and_(gt(change, mul(size, 4 * _EPSILON)), lt(n, _MOST_TERMS))
        before = [mul(part, scale) for part in (value, one, top, bottom)]
        return [n, new, new_slope, *before, rise, fall, moves]

    zero, inverse = full_like(a, 0.0), div(one, sub(add(x, one), a))
    # convergents 0 / 1 and 1 / (x + 1 - a), scaled by the last denominator
    init = [zero, inverse, mul(inverse, inverse), zero, inverse, zero, zero, zero, neg(inverse), active]
    _, value, slope, *_ = run_while(_is_active, step, init)
    return value, slope


def _is_active(*carry):
    return carry[-1]


# -- with native forms --------------------------------------------------------------------------------------
def _gauss(x, factor: float):
    """factor * exp(-x * x)"""
    return mul(exp(neg(square(x))), factor)


@_smooth(impl=special.erf, domain=(-3, 3), cost=16, scipy="erf",
         jvp=lambda t, ans, x: mul(t, _gauss(x, 2 / math.sqrt(math.pi))))
def erf(x):
    """Error function."""


@_smooth(impl=special.erfc, domain=(-3, 3), cost=24, scipy="erfc",
         jvp=lambda t, ans, x: mul(t, _gauss(x, -2 / math.sqrt(math.pi))))
def erfc(x):
    """1 - erf(x), accurate for large x."""


@_smooth(impl=special.erfcx, domain=(-3, 3), cost=40, scipy="erfcx",
         jvp=lambda t, ans, x: mul(t, mul(sub(mul(x, ans), 1 / math.sqrt(math.pi)), 2.0)))
def erfcx(x):
    """exp(x * x) erfc(x), accurate where erfc(x) vanishes."""


@_smooth(impl=special.erfinv, domain=(-0.95, 0.95), cost=24, scipy="erfinv",
         jvp=lambda t, ans, x: mul(t, mul(exp(square(ans)), math.sqrt(math.pi) / 2)))
def erf_inv(x):
    """Inverse of the error function."""


# At -inf SciPy's is -inf.
@_smooth(impl=lambda x: np.where(np.isneginf(x), -x, special.gammaln(x)), domain=(0.1, 10), cost=40,
         scipy="gammaln",
         jvp=lambda t, ans, x: mul(t, digamma(x)))
def lgamma(x):
    """Logarithm of the magnitude of the gamma function."""


@_smooth(impl=special.digamma, domain=(0.1, 10), cost=40, scipy="digamma",
         jvp=lambda t, ans, x: mul(t, polygamma(1.0, x)))
def digamma(x):
    """Derivative of lgamma."""


@_smooth(impl=special.i0e, domain=(-10, 10), cost=30, scipy="i0e",
         jvp=lambda t, ans, x: mul(t, sub(bessel_i1e(x), mul(sign(x), ans))))
def bessel_i0e(x):
    """exp(-|x|) times the modified Bessel function of order 0."""


def _i1e_over_x(ans, x):
    """Near 0 the series of I1(x) / x in x**2, so that its derivatives are right there too."""
    is_small = lt(abs_(x), 0.5)
    quarter, series = mul(mul(x, x), 0.25), mul(x, 0.0)
    for k in reversed(range(9)):
        series = add(mul(series, quarter), 0.5 / (math.factorial(k) * math.factorial(k + 1)))
    return select_n(is_small, div(ans, select_n(is_small, x, 1.0)), mul(exp(neg(mul(x, sign(x)))), series))


@_smooth(impl=special.i1e, domain=(-10, 10), cost=30, scipy="i1e",
         jvp=lambda t, ans, x: mul(t, sub(sub(bessel_i0e(x), mul(sign(x), ans)), _i1e_over_x(ans, x))))
def bessel_i1e(x):
    """exp(-|x|) times the modified Bessel function of order 1."""


# -- library functions --------------------------------------------------------------------------------------
def special_function(*, expand=None, **rules):
    """The family: elementwise on floats, computed by SciPy, float16 and bfloat16 in float32.

    rules: as `elementwise` takes them. expand: what it is in other primitives, as the pass `expand` takes it,
    which then comes instead."""

    def attach(function):
        public = _smooth(**rules)(function)
        public.primitive.lower = None
        if expand is not None:
            public.primitive.traits["expand"] = expand
        return public

    return attach


def refuse_derivative(message: str, kind: type[Exception] = ValueError):
    """The derivative by an operand for which there is no formula: it raises this error."""

    def derivative(t, ans, *operands):
        raise kind(message)

    return derivative


def _gamma_density(a, x):
    return exp(sub(sub(mul(sub(a, 1.0), log(x)), x), lgamma(a)))


@special_function(impl=run_slope, expand=expand_slope, domain=(0.1, 10),
                  jvp=(refuse_derivative("igamma_grad_a gradient with respect to a not supported",
                                         NotImplementedError),
                       lambda t, ans, a, x: mul(t, mul(_gamma_density(a, x), sub(log(x), digamma(a))))))
def igamma_grad_a(a, x):
    """Derivative of igamma by a. a: positive; x: not negative."""


@special_function(impl=special.gammainc, domain=(0.1, 10), scipy="gammainc",
                  jvp=(lambda t, ans, a, x: mul(t, igamma_grad_a(a, x)),
                       lambda t, ans, a, x: mul(t, _gamma_density(a, x))))
def igamma(a, x):
    """Regularised lower incomplete gamma function P(a, x). a: positive; x: not negative."""


@special_function(impl=special.gammaincc, domain=(0.1, 10), scipy="gammaincc",
                  jvp=(lambda t, ans, a, x: mul(t, neg(igamma_grad_a(a, x))),
                       lambda t, ans, a, x: mul(t, neg(_gamma_density(a, x)))))
def igammac(a, x):
    """Regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x)."""


def _betainc(a, b, x):
    # SciPy's float32 loop loses a digit (1e-5 relative)
    return special.betainc(*(arg.astype(np.float64) for arg in (a, b, x))).astype(a.dtype)


def _beta_density(a, b, x):
    log_beta = sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    return exp(sub(add(mul(sub(b, 1.0), log1p(neg(x))), mul(sub(a, 1.0), log(x))), log_beta))


_refuse_beta = refuse_derivative("Betainc gradient with respect to a and b not supported.")


@special_function(impl=_betainc, name="regularized_incomplete_beta", domain=(0.1, 0.9), scipy="betainc",
                  jvp=(_refuse_beta, _refuse_beta,
                       lambda t, ans, a, b, x: mul(t, _beta_density(a, b, x))))
def betainc(a, b, x):
    """Regularised incomplete beta function I_x(a, b). a, b: positive; x: in [0, 1]."""


_ZETA_TERMS = 10
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600)


def _zeta_slope(x, q):
    """d zeta(x, q) / d x in float64: some terms, and Euler and Maclaurin's formula for the rest."""
    dtype = aval_of(x).dtype
    x, q = (convert_element_type(v, dtypes.float64) for v in (x, q))
    total = 0.0
    for term in range(_ZETA_TERMS):
        logarithm = log(add(q, float(term)))
        total = sub(total, mul(logarithm, exp(neg(mul(x, logarithm)))))
    end = add(q, float(_ZETA_TERMS))
    logarithm, above = log(end), sub(x, 1.0)
    power = exp(neg(mul(x, logarithm)))
    total = sub(total, mul(div(mul(power, end), above), add(logarithm, div(1.0, above))))
    total = sub(total, mul(mul(power, logarithm), 0.5))
    # x (x + 1) ... end**(-x - 2 k + 1), and its derivative divided by it
    factor, slope = div(mul(power, x), end), sub(div(1.0, x), logarithm)
    for k, coefficient in enumerate(_BERNOULLI, 1):
        total = add(total, mul(mul(factor, slope), coefficient))
        one, two = add(x, 2.0 * k - 1), add(x, 2.0 * k)
        factor = div(mul(mul(factor, one), two), square(end))
        slope = add(slope, add(div(1.0, one), div(1.0, two)))
    return convert_element_type(total, dtype)


@_smooth(impl=special.zeta, domain=(1.1, 10), cost=300, scipy="zeta",
         jvp=(lambda t, ans, x, q: mul(t, _zeta_slope(x, q)),
              lambda t, ans, x, q: mul(t, neg(mul(x, zeta(add(x, 1.0), q))))))
def zeta(x, q):
    """Hurwitz zeta function, the sum over n of (q + n)**-x. x: greater than 1."""


def _polygamma(m, x):
    whole = (m >= 0) & (m == np.floor(m))
    order = np.where(whole, m, 0).astype(x.dtype)
    sign = np.where(order % 2 == 0, -1, 1)
    derivative = (sign * special.gamma(order + 1) * special.zeta(order + 1, x)).astype(x.dtype)
    value = np.where(order == 0, special.digamma(x), derivative)
    return np.where(whole, value, np.nan).astype(x.dtype)


@_smooth(impl=_polygamma, domain=(1, 10), cost=300, scipy="polygamma",
         jvp=(refuse_derivative("polygamma gradient with respect to m is not supported"),
              lambda t, ans, m, x: mul(t, polygamma(add(m, 1.0), x))))
def polygamma(m, x):
    """Derivative m + 1 times of log(gamma(x)), m a whole number (as a float); NaN for another m."""
