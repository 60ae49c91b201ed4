"""The exponential distribution.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import positive, promote, standardize, within_unit, without

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def logpdf(x, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    x, loc, scale = promote("expon.logpdf", x, loc, scale)
    y = standardize(x, loc, scale)
    return without(y < 0, -y - jnp.log(scale))


def pdf(x, loc=0, scale=1) -> Array:
    """Density at x."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    x, loc, scale = promote("expon.cdf", x, loc, scale)
    y = standardize(x, loc, scale)
    return -jnp.expm1(-jnp.maximum(y, 0))


def sf(x, loc=0, scale=1) -> Array:
    """Probability of a number above x."""
    return jnp.exp(logsf(x, loc, scale))


def logsf(x, loc=0, scale=1) -> Array:
    """Logarithm of `sf`."""
    x, loc, scale = promote("expon.logsf", x, loc, scale)
    return -jnp.maximum(standardize(x, loc, scale), 0)


def logcdf(x, loc=0, scale=1) -> Array:
    """Logarithm of `cdf`."""
    return jnp.log(cdf(x, loc, scale))


def ppf(q, loc=0, scale=1) -> Array:
    """The x for which `cdf` is q."""
    q, loc, scale = promote("expon.ppf", q, loc, scale)
    return within_unit(q, loc - positive(scale) * jnp.log1p(-q))
