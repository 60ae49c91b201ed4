"""The Pareto distribution of shape b.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import positive, promote, standardize, within_unit, without

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def logpdf(x, b, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    x, b, loc, scale = promote("pareto.logpdf", x, b, loc, scale)
    y, b = standardize(x, loc, scale), positive(b)
    return without(y < 1, jnp.log(b / scale) - (b + 1) * jnp.log(jnp.maximum(y, 1)), b)


def pdf(x, b, loc=0, scale=1) -> Array:
    """Density at x."""
    return jnp.exp(logpdf(x, b, loc, scale))


def logsf(x, b, loc=0, scale=1) -> Array:
    """Logarithm of `sf`."""
    x, b, loc, scale = promote("pareto.logsf", x, b, loc, scale)
    return -positive(b) * jnp.log(jnp.maximum(standardize(x, loc, scale), 1))


def sf(x, b, loc=0, scale=1) -> Array:
    """Probability of a number above x."""
    return jnp.exp(logsf(x, b, loc, scale))


def cdf(x, b, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    return -jnp.expm1(logsf(x, b, loc, scale))


def logcdf(x, b, loc=0, scale=1) -> Array:
    """Logarithm of `cdf`."""
    return jnp.log(cdf(x, b, loc, scale))


def ppf(q, b, loc=0, scale=1) -> Array:
    """The x for which `cdf` is q."""
    q, b, loc, scale = promote("pareto.ppf", q, b, loc, scale)
    return within_unit(q, loc + positive(scale) * jnp.exp(-jnp.log1p(-q) / positive(b)))
