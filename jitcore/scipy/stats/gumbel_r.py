"""The Gumbel distribution of largest values.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import exp_of, log_of, positive, promote, standardize, within_unit

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def logpdf(x, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    y, scale = standardize("gumbel_r.logpdf", x, loc, scale)
    return -y - jnp.exp(-y) - jnp.log(scale)


pdf = exp_of(logpdf)


def sf(x, loc=0, scale=1) -> Array:
    """Probability of a number above x."""
    y, _ = standardize("gumbel_r.sf", x, loc, scale)
    return -jnp.expm1(-jnp.exp(-y))


def logcdf(x, loc=0, scale=1) -> Array:
    """Logarithm of `cdf`."""
    y, _ = standardize("gumbel_r.logcdf", x, loc, scale)
    return -jnp.exp(-y)


cdf = exp_of(logcdf)
logsf = log_of(sf)


def ppf(q, loc=0, scale=1) -> Array:
    """The x for which `cdf` is q."""
    q, loc, scale = promote("gumbel_r.ppf", q, loc, scale)
    return within_unit(q, loc + positive(scale) * -jnp.log(-jnp.log(q)))
