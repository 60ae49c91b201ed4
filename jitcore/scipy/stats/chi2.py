"""The chi-square distribution of df degrees of freedom.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import positive, promote, standardize, without

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def logpdf(x, df, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    x, df, loc, scale = promote("chi2.logpdf", x, df, loc, scale)
    y, df = standardize(x, loc, scale), positive(df)
    logarithm = special.xlogy(df / 2 - 1, y / 2) - y / 2 - special.gammaln(df / 2) - jnp.log(2 * scale)
    return without(y < 0, logarithm, df)


def pdf(x, df, loc=0, scale=1) -> Array:
    """Density at x."""
    return jnp.exp(logpdf(x, df, loc, scale))


def cdf(x, df, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    x, df, loc, scale = promote("chi2.cdf", x, df, loc, scale)
    y, df = standardize(x, loc, scale), positive(df)
    return special.gammainc(df / 2, jnp.maximum(y, 0) / 2)


def sf(x, df, loc=0, scale=1) -> Array:
    """Probability of a number above x."""
    x, df, loc, scale = promote("chi2.sf", x, df, loc, scale)
    y, df = standardize(x, loc, scale), positive(df)
    return special.gammaincc(df / 2, jnp.maximum(y, 0) / 2)


def logcdf(x, df, loc=0, scale=1) -> Array:
    """Logarithm of `cdf`."""
    return jnp.log(cdf(x, df, loc, scale))


def logsf(x, df, loc=0, scale=1) -> Array:
    """Logarithm of `sf`."""
    return jnp.log(sf(x, df, loc, scale))
