"""The Laplace distribution.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import exp_of, standardize

__all__ = ["cdf", "logpdf", "pdf"]


def logpdf(x, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    y, scale = standardize("laplace.logpdf", x, loc, scale)
    return -jnp.abs(y) - jnp.log(2 * scale)


pdf = exp_of(logpdf)


def cdf(x, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    y, _ = standardize("laplace.cdf", x, loc, scale)
    return jnp.where(y < 0, jnp.exp(-jnp.abs(y)) / 2, 1 - jnp.exp(-jnp.abs(y)) / 2)
