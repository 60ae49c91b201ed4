"""The logistic distribution.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import exp_of, positive, promote, standardize

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


def logpdf(x, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    y, scale = standardize("logistic.logpdf", x, loc, scale)
    return -jnp.abs(y) - 2 * jnp.log1p(jnp.exp(-jnp.abs(y))) - jnp.log(scale)


pdf = exp_of(logpdf)


def cdf(x, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    y, _ = standardize("logistic.cdf", x, loc, scale)
    return special.expit(y)


def sf(x, loc=0, scale=1) -> Array:
    """Probability of a number above x."""
    y, _ = standardize("logistic.sf", x, loc, scale)
    return special.expit(-y)


def ppf(q, loc=0, scale=1) -> Array:
    """The x for which `cdf` is q."""
    q, loc, scale = promote("logistic.ppf", q, loc, scale)
    return loc + positive(scale) * special.logit(q)


def isf(q, loc=0, scale=1) -> Array:
    """The x for which `sf` is q."""
    q, loc, scale = promote("logistic.isf", q, loc, scale)
    return loc - positive(scale) * special.logit(q)
