"""The Cauchy distribution.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

import math

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import exp_of, log_of, positive, promote, standardize, within_unit

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def logpdf(x, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    y, scale = standardize("cauchy.logpdf", x, loc, scale, complex_too=True)
    return -jnp.log(math.pi * scale) - jnp.log1p(jnp.square(y))


pdf = exp_of(logpdf)


def cdf(x, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    y, _ = standardize("cauchy.cdf", x, loc, scale)
    return jnp.arctan2(jnp.ones_like(y), -y) / math.pi


def sf(x, loc=0, scale=1) -> Array:
    """Probability of a number above x."""
    y, _ = standardize("cauchy.sf", x, loc, scale)
    return jnp.arctan2(jnp.ones_like(y), y) / math.pi


logcdf = log_of(cdf)
logsf = log_of(sf)


def ppf(q, loc=0, scale=1) -> Array:
    """The x for which `cdf` is q."""
    q, loc, scale = promote("cauchy.ppf", q, loc, scale)
    return within_unit(q, loc + positive(scale) * _standard_quantile(q))


def isf(q, loc=0, scale=1) -> Array:
    """The x for which `sf` is q."""
    q, loc, scale = promote("cauchy.isf", q, loc, scale)
    return within_unit(q, loc - positive(scale) * _standard_quantile(q))


def _standard_quantile(q) -> Array:
    """The tangent, which is infinite at the ends, where rounded arguments would give large numbers."""
    is_end = (q == 0) | (q == 1)
    return jnp.where(is_end, jnp.where(q == 0, -jnp.inf, jnp.inf), jnp.tan(math.pi * (q - 0.5)))
