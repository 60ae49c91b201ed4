"""Special functions: error function, gamma function, Bessel, incomplete gamma and beta, zeta, polygamma.

In: floats of one dtype and shape (scalars broadcast). Out: the same dtype; outside the domain NaN.
SciPy computes them eagerly. Those made by `special_function` have no scalar form: backends call the
implementation as a library routine.
"""

from __future__ import annotations

import math

import numpy as np

from jitcore.lax.define import elementwise
from jitcore.lax.elementary import exp, log, log1p
from jitcore.lax.elementwise import abs_, add, div, lt, mul, neg, select_n, sign, square, sub
from jitcore.lax.incomplete_gamma import expand_slope, run_slope
from jitcore.lax.lazy import LazyModule

special = LazyModule("scipy.special")


# -- with native forms --------------------------------------------------------------------------------------
def _gauss(x, factor: float):
    """factor * exp(-x * x)"""
    return mul(exp(neg(square(x))), factor)


@elementwise(impl=special.erf, accepts="f", domain=(-3, 3), compute_half_in_float32=True,
             jvp=lambda t, ans, x: mul(t, _gauss(x, 2 / math.sqrt(math.pi))))
def erf(x):
    """Error function."""


@elementwise(impl=special.erfc, accepts="f", domain=(-3, 3), compute_half_in_float32=True,
             jvp=lambda t, ans, x: mul(t, _gauss(x, -2 / math.sqrt(math.pi))))
def erfc(x):
    """1 - erf(x), accurate for large x."""


@elementwise(impl=special.erfinv, accepts="f", domain=(-0.95, 0.95), compute_half_in_float32=True,
             jvp=lambda t, ans, x: mul(t, mul(exp(square(ans)), math.sqrt(math.pi) / 2)))
def erf_inv(x):
    """Inverse of the error function."""


def _lgamma(x):
    return np.where(np.isneginf(x), -x, special.gammaln(x))  # SciPy's is -inf there


@elementwise(impl=_lgamma, accepts="f", domain=(0.1, 10), compute_half_in_float32=True,
             jvp=lambda t, ans, x: mul(t, digamma(x)))
def lgamma(x):
    """Logarithm of the magnitude of the gamma function."""


@elementwise(impl=special.digamma, accepts="f", domain=(0.1, 10), compute_half_in_float32=True,
             jvp=lambda t, ans, x: mul(t, polygamma(1.0, x)))
def digamma(x):
    """Derivative of lgamma."""


@elementwise(impl=special.i0e, accepts="f", domain=(-10, 10), compute_half_in_float32=True,
             jvp=lambda t, ans, x: mul(t, sub(bessel_i1e(x), mul(sign(x), ans))))
def bessel_i0e(x):
    """exp(-|x|) times the modified Bessel function of order 0."""


def _i1e_slope(ans, x):
    return sub(sub(bessel_i0e(x), mul(sign(x), ans)), _i1e_over_x(ans, x))


def _i1e_over_x(ans, x):
    """Near 0 the series of I1(x) / x in x**2, so that its derivatives are right there too."""
    is_small = lt(abs_(x), 0.5)
    quarter, series = mul(mul(x, x), 0.25), mul(x, 0.0)
    for k in reversed(range(9)):
        series = add(mul(series, quarter), 0.5 / (math.factorial(k) * math.factorial(k + 1)))
    return select_n(is_small, div(ans, select_n(is_small, x, 1.0)), mul(exp(neg(mul(x, sign(x)))), series))


@elementwise(impl=special.i1e, accepts="f", domain=(-10, 10), compute_half_in_float32=True,
             jvp=lambda t, ans, x: mul(t, _i1e_slope(ans, x)))
def bessel_i1e(x):
    """exp(-|x|) times the modified Bessel function of order 1."""


# -- library functions --------------------------------------------------------------------------------------
def special_function(*, impl, domain: tuple[float, float], name: str | None = None, jvp=None, expand=None):
    """The family: elementwise on floats, computed by SciPy, float16 and bfloat16 in float32.

    expand: what it is in other primitives, as the pass `expand` takes it, which then comes instead."""

    def attach(function):
        public = elementwise(
            impl=impl, accepts="f", name=name, domain=domain, compute_half_in_float32=True, jvp=jvp
        )(function)
        public.primitive.lower = None
        if expand is not None:
            public.primitive.traits["expand"] = expand
        return public

    return attach


def _refuse(message: str, kind: type[Exception] = ValueError):
    """The derivative by an operand for which there is no formula: it raises this error."""

    def derivative(t, ans, *operands):
        raise kind(message)

    return derivative


def _gamma_density(a, x):
    return exp(sub(sub(mul(sub(a, 1.0), log(x)), x), lgamma(a)))


def _gamma_density_slope(a, x):
    return mul(_gamma_density(a, x), sub(log(x), digamma(a)))


@special_function(impl=run_slope, expand=expand_slope, domain=(0.1, 10),
                  jvp=(_refuse("igamma_grad_a gradient with respect to a not supported", NotImplementedError),
                       lambda t, ans, a, x: mul(t, _gamma_density_slope(a, x))))
def igamma_grad_a(a, x):
    """Derivative of igamma by a. a: positive; x: not negative."""


@special_function(impl=special.gammainc, domain=(0.1, 10),
                  jvp=(lambda t, ans, a, x: mul(t, igamma_grad_a(a, x)),
                       lambda t, ans, a, x: mul(t, _gamma_density(a, x))))
def igamma(a, x):
    """Regularised lower incomplete gamma function P(a, x). a: positive; x: not negative."""


@special_function(impl=special.gammaincc, domain=(0.1, 10),
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


_refuse_beta = _refuse("Betainc gradient with respect to a and b not supported.")


@special_function(impl=_betainc, name="regularized_incomplete_beta", domain=(0.1, 0.9),
                  jvp=(_refuse_beta, _refuse_beta,
                       lambda t, ans, a, b, x: mul(t, _beta_density(a, b, x))))
def betainc(a, b, x):
    """Regularised incomplete beta function I_x(a, b). a, b: positive; x: in [0, 1]."""


@elementwise(impl=special.zeta, accepts="f", domain=(1.1, 10), compute_half_in_float32=True,
             jvp=(_refuse("zeta gradient with respect to x is not supported"),
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


@elementwise(impl=_polygamma, accepts="f", domain=(1, 10), compute_half_in_float32=True,
             jvp=(_refuse("polygamma gradient with respect to m is not supported"),
                  lambda t, ans, m, x: mul(t, polygamma(add(m, 1.0), x))))
def polygamma(m, x):
    """Derivative m + 1 times of log(gamma(x)), m a whole number (as a float); NaN for another m."""
