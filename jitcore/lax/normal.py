"""Quantile and logarithmic tail of the normal distribution, where erf and its inverse lose digits.

In: floats. Out: the same dtype. SciPy computes them; backends call the implementation as a library routine.
"""

from __future__ import annotations

from jitcore.lax.lazy import LazyModule
from jitcore.lax.special import special_function

special = LazyModule("scipy.special")


@special_function(impl=special.ndtri, domain=(0.01, 0.99))
def ndtri(p):
    """x such that a standard normal number is below x with probability p. p: in [0, 1], NaN outside."""


@special_function(impl=special.log_ndtr, domain=(-10, 10))
def log_ndtr(x):
    """Logarithm of the probability that a standard normal number is below x."""
