"""The gamma distribution of shape a.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import exp_of, log_of, standardize, without

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def logpdf(x, a, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    y, scale, a = standardize("gamma.logpdf", x, loc, scale, a)
    return without(y < 0, special.xlogy(a - 1, y) - y - special.gammaln(a) - jnp.log(scale), a)


pdf = exp_of(logpdf)


def cdf(x, a, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    y, _, a = standardize("gamma.cdf", x, loc, scale, a)
    return special.gammainc(a, jnp.maximum(y, 0))


def sf(x, a, loc=0, scale=1) -> Array:
    """Probability of a number above x."""
    y, _, a = standardize("gamma.sf", x, loc, scale, a)
    return special.gammaincc(a, jnp.maximum(y, 0))


logcdf = log_of(cdf)
logsf = log_of(sf)
