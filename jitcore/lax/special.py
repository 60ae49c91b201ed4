"""Special functions: incomplete gamma and beta, Bessel, zeta, polygamma.

In: floats of one dtype and shape (scalars broadcast). Out: the same dtype; outside the domain NaN.
SciPy computes them; they have no scalar form, so that backends call the implementation as a library routine.
"""

from __future__ import annotations

import numpy as np

from jitcore.lax.define import elementwise
from jitcore.lax.lazy import LazyModule

special = LazyModule("scipy.special")


def special_function(*, impl, name: str | None = None, domain: tuple[float, float]):
    """The family: elementwise on floats, computed by SciPy, float16 and bfloat16 in float32."""

    def attach(function):
        public = elementwise(
            impl=impl, accepts="f", name=name, domain=domain, compute_half_in_float32=True
        )(function)  # fmt: skip
        public.primitive.lower = None
        return public

    return attach


@special_function(impl=special.gammainc, domain=(0.1, 10))
def igamma(a, x):
    """Regularised lower incomplete gamma function P(a, x). a: positive; x: not negative."""


@special_function(impl=special.gammaincc, domain=(0.1, 10))
def igammac(a, x):
    """Regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x)."""


def _betainc(a, b, x):
    # SciPy's float32 loop loses a digit (1e-5 relative)
    return special.betainc(*(arg.astype(np.float64) for arg in (a, b, x))).astype(a.dtype)


@special_function(impl=_betainc, name="regularized_incomplete_beta", domain=(0.1, 0.9))
def betainc(a, b, x):
    """Regularised incomplete beta function I_x(a, b). a, b: positive; x: in [0, 1]."""


@special_function(impl=special.i0e, domain=(-10, 10))
def bessel_i0e(x):
    """exp(-|x|) times the modified Bessel function of order 0."""


@special_function(impl=special.i1e, domain=(-10, 10))
def bessel_i1e(x):
    """exp(-|x|) times the modified Bessel function of order 1."""


@special_function(impl=special.zeta, domain=(1.1, 10))
def zeta(x, q):
    """Hurwitz zeta function, the sum over n of (q + n)**-x. x: greater than 1."""


def _polygamma(m, x):
    whole = (m >= 0) & (m == np.floor(m))
    order = np.where(whole, m, 0).astype(x.dtype)
    sign = np.where(order % 2 == 0, -1, 1)
    derivative = (sign * special.gamma(order + 1) * special.zeta(order + 1, x)).astype(x.dtype)
    value = np.where(order == 0, special.digamma(x), derivative)
    return np.where(whole, value, np.nan).astype(x.dtype)


@special_function(impl=_polygamma, domain=(1, 10))
def polygamma(m, x):
    """Derivative m + 1 times of log(gamma(x)), m a whole number (as a float); NaN for another m."""
