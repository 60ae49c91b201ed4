"""The exponential distribution.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import exp_of, log_of, positive, promote, standardize, within_unit, without

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def logpdf(x, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    y, scale = standardize("expon.logpdf", x, loc, scale)
    return without(y < 0, -y - jnp.log(scale))


pdf = exp_of(logpdf)


def cdf(x, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    y, _ = standardize("expon.cdf", x, loc, scale)
    return -jnp.expm1(-jnp.maximum(y, 0))


def logsf(x, loc=0, scale=1) -> Array:
    """Logarithm of `sf`."""
    y, _ = standardize("expon.logsf", x, loc, scale)
    return -jnp.maximum(y, 0)


sf = exp_of(logsf)
logcdf = log_of(cdf)


def ppf(q, loc=0, scale=1) -> Array:
    """The x for which `cdf` is q."""
    q, loc, scale = promote("expon.ppf", q, loc, scale)
    return within_unit(q, loc - positive(scale) * jnp.log1p(-q))
