"""The Cauchy distribution.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

import math

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import positive, promote, standardize, within_unit

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def logpdf(x, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    x, loc, scale = promote("cauchy.logpdf", x, loc, scale, complex_too=True)
    y = standardize(x, loc, scale)
    return -jnp.log(math.pi * scale) - jnp.log1p(jnp.square(y))


def pdf(x, loc=0, scale=1) -> Array:
    """Density at x."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    x, loc, scale = promote("cauchy.cdf", x, loc, scale)
    y = standardize(x, loc, scale)
    return jnp.arctan2(jnp.ones_like(y), -y) / math.pi


def sf(x, loc=0, scale=1) -> Array:
    """Probability of a number above x."""
    x, loc, scale = promote("cauchy.sf", x, loc, scale)
    y = standardize(x, loc, scale)
    return jnp.arctan2(jnp.ones_like(y), y) / math.pi


def logcdf(x, loc=0, scale=1) -> Array:
    """Logarithm of `cdf`."""
    return jnp.log(cdf(x, loc, scale))


def logsf(x, loc=0, scale=1) -> Array:
    """Logarithm of `sf`."""
    return jnp.log(sf(x, loc, scale))


def ppf(q, loc=0, scale=1) -> Array:
    """The x for which `cdf` is q."""
    q, loc, scale = promote("cauchy.ppf", q, loc, scale)
    return within_unit(q, loc + positive(scale) * _standard_quantile(q))


def isf(q, loc=0, scale=1) -> Array:
    """The x for which `sf` is q."""
    q, loc, scale = promote("cauchy.isf", q, loc, scale)
    return within_unit(q, loc - positive(scale) * _standard_quantile(q))


def _standard_quantile(q) -> Array:
    """The tangent, which is infinite at the ends, where rounded arguments would give large numbers."""
    is_end = (q == 0) | (q == 1)
    return jnp.where(is_end, jnp.where(q == 0, -jnp.inf, jnp.inf), jnp.tan(math.pi * (q - 0.5)))
