"""The Cauchy distribution.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

import math

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import promote

__all__ = ["cdf", "logpdf", "pdf"]


def logpdf(x, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    x, loc, scale = promote("cauchy.logpdf", x, loc, scale)
    y = (x - loc) / scale
    return -jnp.log(math.pi * scale) - jnp.log1p(jnp.square(y))


def pdf(x, loc=0, scale=1) -> Array:
    """Density at x."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    x, loc, scale = promote("cauchy.cdf", x, loc, scale)
    y = (x - loc) / scale
    return jnp.arctan2(jnp.ones_like(y), -y) / math.pi
