"""The Gumbel distribution of smallest values.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import positive, promote, standardize, within_unit

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def logpdf(x, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    x, loc, scale = promote("gumbel_l.logpdf", x, loc, scale)
    y = standardize(x, loc, scale)
    return y - jnp.exp(y) - jnp.log(scale)


def pdf(x, loc=0, scale=1) -> Array:
    """Density at x."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    x, loc, scale = promote("gumbel_l.cdf", x, loc, scale)
    y = standardize(x, loc, scale)
    return -jnp.expm1(-jnp.exp(y))


def logcdf(x, loc=0, scale=1) -> Array:
    """Logarithm of `cdf`."""
    x, loc, scale = promote("gumbel_l.logcdf", x, loc, scale)
    y = standardize(x, loc, scale)
    return jnp.log(-jnp.expm1(-jnp.exp(y)))


def sf(x, loc=0, scale=1) -> Array:
    """Probability of a number above x."""
    x, loc, scale = promote("gumbel_l.sf", x, loc, scale)
    y = standardize(x, loc, scale)
    return jnp.exp(-jnp.exp(y))


def logsf(x, loc=0, scale=1) -> Array:
    """Logarithm of `sf`."""
    x, loc, scale = promote("gumbel_l.logsf", x, loc, scale)
    y = standardize(x, loc, scale)
    return -jnp.exp(y)


def ppf(q, loc=0, scale=1) -> Array:
    """The x for which `cdf` is q."""
    q, loc, scale = promote("gumbel_l.ppf", q, loc, scale)
    return within_unit(q, loc + positive(scale) * jnp.log(-jnp.log1p(-q)))
