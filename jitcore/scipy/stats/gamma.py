"""The gamma distribution of shape a.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import positive, promote, standardize, without

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def logpdf(x, a, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    x, a, loc, scale = promote("gamma.logpdf", x, a, loc, scale)
    y, a = standardize(x, loc, scale), positive(a)
    return without(y < 0, special.xlogy(a - 1, y) - y - special.gammaln(a) - jnp.log(scale), a)


def pdf(x, a, loc=0, scale=1) -> Array:
    """Density at x."""
    return jnp.exp(logpdf(x, a, loc, scale))


def cdf(x, a, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    x, a, loc, scale = promote("gamma.cdf", x, a, loc, scale)
    y, a = standardize(x, loc, scale), positive(a)
    return special.gammainc(a, jnp.maximum(y, 0))


def sf(x, a, loc=0, scale=1) -> Array:
    """Probability of a number above x."""
    x, a, loc, scale = promote("gamma.sf", x, a, loc, scale)
    y, a = standardize(x, loc, scale), positive(a)
    return special.gammaincc(a, jnp.maximum(y, 0))


def logcdf(x, a, loc=0, scale=1) -> Array:
    """Logarithm of `cdf`."""
    return jnp.log(cdf(x, a, loc, scale))


def logsf(x, a, loc=0, scale=1) -> Array:
    """Logarithm of `sf`."""
    return jnp.log(sf(x, a, loc, scale))
