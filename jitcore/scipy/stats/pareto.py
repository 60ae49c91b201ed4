"""The Pareto distribution of shape b.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import exp_of, log_of, positive, promote, standardize, within_unit, without

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def logpdf(x, b, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    y, scale, b = standardize("pareto.logpdf", x, loc, scale, b)
    return without(y < 1, jnp.log(b / scale) - (b + 1) * jnp.log(jnp.maximum(y, 1)), b)


pdf = exp_of(logpdf)


def logsf(x, b, loc=0, scale=1) -> Array:
    """Logarithm of `sf`."""
    y, _, b = standardize("pareto.logsf", x, loc, scale, b)
    return -b * jnp.log(jnp.maximum(y, 1))


sf = exp_of(logsf)


def cdf(x, b, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    return -jnp.expm1(logsf(x, b, loc, scale))


logcdf = log_of(cdf)


def ppf(q, b, loc=0, scale=1) -> Array:
    """The x for which `cdf` is q."""
    q, b, loc, scale = promote("pareto.ppf", q, b, loc, scale)
    return within_unit(q, loc + positive(scale) * jnp.exp(-jnp.log1p(-q) / positive(b)))
