"""The beta distribution of shapes a and b.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import exp_of, log_of, standardize, without

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def logpdf(x, a, b, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    y, scale, a, b = standardize("beta.logpdf", x, loc, scale, a, b)
    logarithm = special.xlogy(a - 1, y) + special.xlog1py(b - 1, -y) - special.betaln(a, b) - jnp.log(scale)
    return without((y < 0) | (y > 1), logarithm, a, b)


pdf = exp_of(logpdf)


def cdf(x, a, b, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    y, _, a, b = standardize("beta.cdf", x, loc, scale, a, b)
    return special.betainc(a, b, jnp.clip(y, 0, 1))


def sf(x, a, b, loc=0, scale=1) -> Array:
    """Probability of a number above x."""
    y, _, a, b = standardize("beta.sf", x, loc, scale, a, b)
    y = jnp.clip(y, 0, 1)
    is_near = y < 0.5  # where 1 - y is rounded
    far = special.betainc(b, a, 1 - jnp.where(is_near, 0.5, y))
    return jnp.where(is_near, 1 - special.betainc(a, b, jnp.where(is_near, y, 0.5)), far)


logcdf = log_of(cdf)
logsf = log_of(sf)
