"""The Gumbel distribution of smallest values.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import exp_of, log_of, positive, promote, standardize, within_unit

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def logpdf(x, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    y, scale = standardize("gumbel_l.logpdf", x, loc, scale)
    return y - jnp.exp(y) - jnp.log(scale)


pdf = exp_of(logpdf)


def cdf(x, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    y, _ = standardize("gumbel_l.cdf", x, loc, scale)
    return -jnp.expm1(-jnp.exp(y))


def logsf(x, loc=0, scale=1) -> Array:
    """Logarithm of `sf`."""
    y, _ = standardize("gumbel_l.logsf", x, loc, scale)
    return -jnp.exp(y)


sf = exp_of(logsf)
logcdf = log_of(cdf)


def ppf(q, loc=0, scale=1) -> Array:
    """The x for which `cdf` is q."""
    q, loc, scale = promote("gumbel_l.ppf", q, loc, scale)
    return within_unit(q, loc + positive(scale) * jnp.log(-jnp.log1p(-q)))
