"""The chi-square distribution of df degrees of freedom.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import exp_of, log_of, standardize, without

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def logpdf(x, df, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    y, scale, df = standardize("chi2.logpdf", x, loc, scale, df)
    logarithm = special.xlogy(df / 2 - 1, y / 2) - y / 2 - special.gammaln(df / 2) - jnp.log(2 * scale)
    return without(y < 0, logarithm, df)


pdf = exp_of(logpdf)


def cdf(x, df, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    y, _, df = standardize("chi2.cdf", x, loc, scale, df)
    return special.gammainc(df / 2, jnp.maximum(y, 0) / 2)


def sf(x, df, loc=0, scale=1) -> Array:
    """Probability of a number above x."""
    y, _, df = standardize("chi2.sf", x, loc, scale, df)
    return special.gammaincc(df / 2, jnp.maximum(y, 0) / 2)


logcdf = log_of(cdf)
logsf = log_of(sf)
