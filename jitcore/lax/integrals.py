"""Functions that are integrals or hypergeometric series, as SciPy computes them: exponential integrals,
Dawson's, Faddeeva's, Fresnel's, sine and cosine integrals, Bessel's, Owen's, Spence's, 1F1 and 2F1.

In: floats of one dtype and shape (scalars broadcast); Faddeeva's function and log-gamma take complex numbers.
Out: the same dtype. They are public in `jitcore.scipy.special`. Errors are SciPy's, a few ulp, float16 and
bfloat16 go through float32. Backends call the implementation as a library routine; XLA has JAX's.

Derivatives of 1F1 and 2F1 by their parameters, which SciPy lacks, are series that are summed in float64 by
loops in which each element goes on until its own sum has settled.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from jitcore import dtypes
from jitcore.core.jaxpr import aval_of
from jitcore.lax.bits import and_, or_
from jitcore.lax.control_flow.loops import run_while
from jitcore.lax.define import elementwise
from jitcore.lax.elementary import cos, exp, log, log1p, sin, tan
from jitcore.lax.elementwise import (abs_, add, complex_, convert_element_type, div, eq, gt, lt, mul, neg,
                                     real, select_n, sub)
from jitcore.lax.rounding import floor
from jitcore.lax.shape import broadcast, full_like
from jitcore.lax.special import erf, refuse_derivative, special, special_function

__all__ = ["complex_loggamma", "cosine_integral", "dawsn", "exp1", "expi", "expn", "fresnel_cosine",
           "fresnel_sine",
           "hyp1f1", "hyp2f1", "jv", "owens_t", "sine_integral", "spence", "wofz"]

# -- Gauss and exponential integrals
# --------------------------------------------------------------------------
_INVERSE_ROOT_OF_PI = 1 / math.sqrt(math.pi)


@special_function(impl=special.dawsn, domain=(-6, 6), scipy="dawsn",
                  jvp=lambda t, ans, x: mul(t, sub(full_like(x, 1.0), mul(mul(x, ans), 2.0))))
def dawsn(x):
    """Dawson's integral, exp(-x**2) times the integral of exp(t**2) from 0 to x. x: real.

    Error: 2 ulp. Source: scipy.special.dawsn. Example: `dawsn(1.0)` is 0.5380795."""


@special_function(impl=special.exp1, domain=(0.1, 10), scipy="exp1",
                  jvp=lambda t, ans, x: mul(t, neg(div(exp(neg(x)), x))))
def exp1(x):
    """Exponential integral E1, of exp(-t) / t from x to infinity; NaN below 0. x: real.

    Error: 4 ulp. Source: scipy.special.exp1. Example: `exp1(1.0)` is 0.21938393."""


@special_function(impl=special.expi, domain=(0.5, 10), scipy="expi", jvp=lambda t, ans,
                  x: mul(t, div(exp(x), x)))
def expi(x):
    """Exponential integral Ei, the principal value of the integral of exp(t) / t from -inf to x. x: real.

    Error: 4 ulp of the magnitude, away from the root near 0.3725.
    Source: scipy.special.expi. Example: `expi(1.0)` is 1.8951178."""


def _lower_order(ans, n, x):
    """E of n - 1, which at n = 0 is not one of SciPy's."""
    is_first = lt(n, 0.5)
    at_first = div(add(exp(neg(x)), ans), x)
    return select_n(is_first, expn(select_n(is_first, sub(n, 1.0), full_like(n, 0.0)), x), at_first)


@special_function(impl=special.expn, domain=(1, 5), scipy="expn",
                  jvp=(refuse_derivative("expn gradient with respect to n is not supported"),
                       lambda t, ans, n, x: mul(t, neg(_lower_order(ans, n, x)))))
def expn(n, x):
    """Generalised exponential integral, of exp(-x t) / t**n from 1 to infinity. n: a whole number, as a
    float; x: not negative.

    Error: 10 ulp. Source: scipy.special.expn. Example: `expn(2, 1.0)` is 0.14849551."""


def _faddeeva_slope(t, ans, z):
    return mul(t, add(mul(mul(z, ans), -2.0), complex_(*_parts(z, 0.0, 2 * _INVERSE_ROOT_OF_PI))))


def _parts(z, *values):
    part = real(z)
    return [full_like(part, value) for value in values]


@elementwise(impl=special.wofz, accepts="c", domain=(-3, 3), cost=60, jvp=_faddeeva_slope)
def wofz(z):
    """Faddeeva's function exp(-z**2) erfc(-i z). z: complex.

    Error: 1e-13 of each part. Source: scipy.special.wofz. Example: `wofz(1 + 1j)` is
    0.30474422+0.20821893j."""


# -- of sines and cosines
# -------------------------------------------------------------------------------------
def _half_turn_square(x):
    """pi x**2 / 2, of which whole turns are dropped before they are multiplied by pi."""
    square = mul(x, x)
    turns = mul(square, 0.25)
    return mul(sub(turns, floor(turns)), 2 * math.pi)


@special_function(impl=lambda x: special.fresnel(x)[0], domain=(-3, 3),
                  jvp=lambda t, ans, x: mul(t, sin(_half_turn_square(x))))
def fresnel_sine(x):
    """Fresnel's integral of sin(pi t**2 / 2) from 0 to x. x: real. Error: 4 ulp. Source:
    scipy.special.fresnel."""


@special_function(impl=lambda x: special.fresnel(x)[1], domain=(-3, 3),
                  jvp=lambda t, ans, x: mul(t, cos(_half_turn_square(x))))
def fresnel_cosine(x):
    """Fresnel's integral of cos(pi t**2 / 2) from 0 to x. x: real. Error: 4 ulp. Source:
    scipy.special.fresnel."""


def _over_x(value, x, at_zero: float):
    is_zero = eq(x, 0.0)
    quotient = div(value, select_n(is_zero, x, full_like(x, 1.0)))
    return select_n(is_zero, quotient, full_like(x, at_zero))


@special_function(impl=lambda x: special.sici(x)[0], domain=(-10, 10),
                  jvp=lambda t, ans, x: mul(t, _over_x(sin(x), x, 1.0)))
def sine_integral(x):
    """Integral of sin(t) / t from 0 to x. x: real. Error: 4 ulp. Source: scipy.special.sici."""


@special_function(impl=lambda x: special.sici(x)[1], domain=(0.1, 10),
                  jvp=lambda t, ans, x: mul(t, div(cos(x), x)))
def cosine_integral(x):
    """Euler's constant plus log(x) plus the integral of (cos(t) - 1) / t from 0 to x. x: real.
    Error: 4 ulp of the larger of the parts. Source: scipy.special.sici."""


# -- others
# ---------------------------------------------------------------------------------------------------
@special_function(impl=special.jv, domain=(0.5, 6), scipy="jv",
                  jvp=(refuse_derivative("jv gradient with respect to the order is not supported"),
                       lambda t, ans, n, x: mul(t, mul(sub(jv(sub(n, 1.0), x), jv(add(n, 1.0), x)), 0.5))))
def jv(n, x):
    """Bessel function of the first kind and real order n. x: real.

    Error: 10 ulp of the amplitude. Source: scipy.special.jv. Example: `jv(1, 1.0)` is 0.44005057."""


def _gauss_over_turn(h, a):
    square = add(mul(a, a), 1.0)
    return div(exp(mul(mul(square, mul(h, h)), -0.5)), mul(square, 2 * math.pi))


def _owens_slope(h, a):
    return mul(mul(exp(mul(mul(h, h), -0.5)), erf(mul(mul(a, h), math.sqrt(0.5)))),
               -1 / (2 * math.sqrt(2 * math.pi)))


@special_function(impl=special.owens_t, domain=(-3, 3), scipy="owens_t",
                  jvp=(lambda t, ans, h, a: mul(t, _owens_slope(h, a)),
                       lambda t, ans, h, a: mul(t, _gauss_over_turn(h, a))))
def owens_t(h, a):
    """Owen's T function: the probability of X > h and 0 < Y < a X for two normal numbers X, Y. h, a: real.

    Error: 1e-15 absolute. Source: scipy.special.owens_t. Example: `owens_t(1.0, 0.5)` is 0.04306469."""


def _spence_slope(x):
    """log(x) / (1 - x), near 1 a series in 1 - x: the quotient of two small numbers is rounded."""
    distance = sub(full_like(x, 1.0), x)
    is_near = lt(abs_(distance), 1e-2)
    series = mul(distance, 0.0)
    for k in reversed(range(1, 12)):
        series = sub(mul(series, distance), full_like(x, 1 / k))
    return select_n(is_near, div(log(x), select_n(is_near, distance, full_like(x, 1.0))), series)


@special_function(impl=special.spence, domain=(0.1, 10), scipy="spence",
                  jvp=lambda t, ans, x: mul(t, _spence_slope(x)))
def spence(x):
    """Spence's function, the integral of log(t) / (1 - t) from 1 to x, the dilogarithm of 1 - x. x: not
    negative.

    Error: 10 ulp. Source: scipy.special.spence. Example: `spence(0.0)` is 1.6449341."""


# -- gamma function of complex numbers
# ------------------------------------------------------------------------
#: Bernoulli's numbers B[2k] over 2k, of Stirling's series of digamma.
_STIRLING = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_SHIFT = 12


def complex_digamma(z):
    """Derivative of `complex_loggamma`, in operations that have derivatives of all orders. Error: 1e-13
    relative."""
    part = real(z)
    is_left = lt(part, 0.5)
    right = select_n(is_left, z, sub(full_like(z, 1.0), z))
    far, shift = add(right, float(_SHIFT)), mul(z, 0.0)
    for k in range(_SHIFT):
        shift = add(shift, div(full_like(z, 1.0), add(right, float(k))))
    inverse = div(full_like(z, 1.0), far)
    square, series = mul(inverse, inverse), mul(z, 0.0)
    for number in reversed(_STIRLING):
        series = mul(add(series, number), square)
    value = sub(sub(sub(log(far), mul(inverse, 0.5)), series), shift)
    angle = mul(select_n(is_left, full_like(z, 0.25), z), math.pi)
    return select_n(is_left, value, sub(value, div(full_like(z, math.pi), tan(angle))))


@elementwise(impl=special.loggamma, accepts="c", domain=(0.5, 5), cost=100,
             jvp=lambda t, ans, z: mul(t, complex_digamma(z)))
def complex_loggamma(z):
    """Principal branch of the logarithm of the gamma function. z: complex.
    Error: 1e-13 relative. Source: scipy.special.loggamma."""


# Neither has a scalar form.
wofz.primitive.lower = complex_loggamma.primitive.lower = None


# -- hypergeometric functions
# ---------------------------------------------------------------------------------
_EPSILON = float(np.finfo(np.float64).eps)
_MOST_TERMS = 5_000.0


def _is_active(*carry):
    return carry[-1]


def sum_slopes(tops: Sequence, bottoms: Sequence, x, active) -> list:
    """The hypergeometric series and its derivatives by each of its parameters, tops first.

    A term is the last one times (top + k) ... x / ((bottom + k) ... (k + 1)): its derivatives follow by the
    product rule, also where a parameter is a whole number that ends the series."""
    zero, one = full_like(x, 0.0), full_like(x, 1.0)
    parameters = [*tops, *bottoms]

    def step(k, *rest):
        *state, _ = rest
        terms, sums = state[:len(state) // 2], state[len(state) // 2:]
        factors = [add(parameter, k) for parameter in parameters]
        base = div(x, add(k, one))
        for factor in factors[len(tops):]:
            base = div(base, factor)
        ratio = functools.reduce(mul, factors[:len(tops)], base)
        slopes = []
        for i, factor in enumerate(factors):
            if i < len(tops):
                others = functools.reduce(mul, [f for j, f in enumerate(factors[:len(tops)]) if j != i], base)
            else:
                others = neg(div(ratio, factor))
            slopes.append(add(mul(terms[i + 1], ratio), mul(terms[0], others)))
        new = [mul(terms[0], ratio), *slopes]
        sums = [add(total, term) for total, term in zip(sums, new)]
        moves = functools.reduce(or_, [gt(abs_(term), mul(abs_(total), _EPSILON)) for term,
                                       total in zip(new, sums)])
        return [add(k, one), *new, *sums, and_(active_at(k), moves)]

    def active_at(k):
        return lt(k, _MOST_TERMS)

    start = [one, *[zero] * len(parameters)]
    return run_while(_is_active, step, [zero, *start, *start, active])[len(start) + 1:-1]


def _in_float64(function: Callable) -> Callable:
    """A derivative of float64 operands of one shape, given in the dtype of the operands."""

    def derivative(t, ans, *operands):
        dtype = aval_of(ans).dtype
        shape = aval_of(ans).shape
        wide = [convert_element_type(v if aval_of(v).shape == shape else broadcast(v, shape), dtypes.float64)
                for v in operands]
        return mul(t, convert_element_type(function(*wide), dtype))

    return derivative


def _kummer_slope(which: int) -> Callable:
    """d 1F1(a, b, x) by a or b. Below 0 by 1F1(a, b, x) = exp(x) 1F1(b - a, b, -x), whose terms have one
    sign."""

    def slope(a, b, x):
        below = lt(x, 0.0)
        top = select_n(below, a, sub(b, a))
        found = sum_slopes([top], [b], abs_(x), eq(x, x))[1:]
        first = neg(found[0]) if which == 0 else add(found[0], found[1])
        return select_n(below, found[which], mul(first, exp(select_n(below, full_like(x, 0.0), x))))

    return _in_float64(slope)


@special_function(impl=special.hyp1f1, domain=(0.5, 4), scipy="hyp1f1",
                  jvp=(_kummer_slope(0), _kummer_slope(1),
                       lambda t, ans, a, b, x: mul(t, mul(div(a, b), hyp1f1(add(a, 1.0), add(b, 1.0), x)))))
def hyp1f1(a, b, x):
    """Kummer's confluent hypergeometric function 1F1, with derivatives by all three. a, b, x: real.

    Error: 1e-14 relative for |a|, |b|, |x| up to 10. Source: scipy.special.hyp1f1.
    Example: `hyp1f1(0.5, 1.5, -1.0)` is 0.74682413."""


def _gauss_slope(which: int) -> Callable:
    """d 2F1(a, b, c, x) by a, b or c for x < 1, NaN elsewhere. Below 0 by Pfaff's formula: 2F1 is
    (1 - x)**-a times 2F1(a, c - b, c, x / (x - 1))."""

    def slope(a, b, c, x):
        below, inside = lt(x, 0.0), lt(x, 1.0)
        safe = select_n(inside, full_like(x, 0.0), x)
        second = select_n(below, b, sub(c, b))
        y = select_n(below, safe, div(safe, sub(safe, 1.0)))
        value, by_a, by_second, by_c = sum_slopes([a, second], [c], y, inside)
        logarithm = log1p(neg(select_n(below, full_like(x, 0.0), safe)))
        found = (sub(by_a, mul(logarithm, value)), select_n(below, by_second, neg(by_second)),
                 select_n(below, by_c, add(by_c, by_second)))[which]
        return select_n(inside, full_like(x, math.nan), mul(exp(neg(mul(a, logarithm))), found))

    return _in_float64(slope)


@special_function(impl=special.hyp2f1, domain=(0.2, 0.8), scipy="hyp2f1",
                  jvp=(_gauss_slope(0), _gauss_slope(1), _gauss_slope(2),
                       lambda t, ans, a, b, c, x: mul(t, mul(div(mul(a, b), c), hyp2f1(
                           add(a, 1.0), add(b, 1.0), add(c, 1.0), x)))))
def hyp2f1(a, b, c, x):
    """Gauss's hypergeometric function 2F1, with derivatives by all four, those by parameters for x < 1.
    a, b, c, x: real.

    Error: 1e-13 relative for parameters up to 10 and x < 0.9. Source: scipy.special.hyp2f1.
    Example: `hyp2f1(1.0, 1.0, 2.0, 0.5)` is 1.3862944."""
