"""Quantile and logarithmic tail of the normal distribution, where erf and its inverse lose digits.

In: floats. Out: the same dtype. SciPy computes them eagerly.
"""

from __future__ import annotations

import math

from jitcore.lax.define import elementwise
from jitcore.lax.elementary import exp
from jitcore.lax.elementwise import add, mul, neg, square, sub
from jitcore.lax.lazy import LazyModule

special = LazyModule("scipy.special")


def _half_square(x):
    return mul(square(x), 0.5)


def _ndtri_slope(ans):
    return mul(exp(_half_square(ans)), math.sqrt(2 * math.pi))


@elementwise(impl=special.ndtri, accepts="f", domain=(0.01, 0.99), compute_half_in_float32=True,
             jvp=lambda t, ans, p: mul(t, _ndtri_slope(ans)))
def ndtri(p):
    """x such that a standard normal number is below x with probability p. p: in [0, 1], NaN outside."""


def _log_ndtr_slope(ans, x):
    """Density over probability, as the exponential of a difference: both may underflow."""
    return exp(sub(neg(add(_half_square(x), math.log(math.sqrt(2 * math.pi)))), ans))


@elementwise(impl=special.log_ndtr, accepts="f", domain=(-10, 10), compute_half_in_float32=True,
             jvp=lambda t, ans, x: mul(t, _log_ndtr_slope(ans, x)))
def log_ndtr(x):
    """Logarithm of the probability that a standard normal number is below x."""
