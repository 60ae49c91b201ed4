"""The generalised normal distribution of shape p: a density of exp(-|x| ** p).

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

import math

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import positive, promote, standardize

__all__ = ["cdf", "logpdf", "pdf"]


def logpdf(x, p, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    x, p, loc, scale = promote("gennorm.logpdf", x, p, loc, scale)
    y, p = standardize(x, loc, scale), positive(p)
    return jnp.log(p / scale) - math.log(2) - special.gammaln(1 / p) - jnp.abs(y) ** p


def pdf(x, p, loc=0, scale=1) -> Array:
    """Density at x."""
    return jnp.exp(logpdf(x, p, loc, scale))


def cdf(x, p, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    x, p, loc, scale = promote("gennorm.cdf", x, p, loc, scale)
    y, p = standardize(x, loc, scale), positive(p)
    return 0.5 * (1 + jnp.sign(y) * special.gammainc(1 / p, jnp.abs(y) ** p))
