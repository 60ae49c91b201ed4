"""The normal distribution of mean `loc` and standard deviation `scale`.

In: points or probabilities, which broadcast against loc and scale. Out: floats.
"""

from __future__ import annotations

import math

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import exp_of, promote

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def logpdf(x, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    x, loc, scale = promote("norm.logpdf", x, loc, scale, complex_too=True)
    standard = (x - loc) / scale
    return -(jnp.square(standard) + math.log(2 * math.pi)) / 2 - jnp.log(scale)


pdf = exp_of(logpdf)


def cdf(x, loc=0, scale=1) -> Array:
    """Probability of a number below x."""
    x, loc, scale = promote("norm.cdf", x, loc, scale)
    return special.ndtr((x - loc) / scale)


def logcdf(x, loc=0, scale=1) -> Array:
    """Logarithm of `cdf`."""
    x, loc, scale = promote("norm.logcdf", x, loc, scale)
    return special.log_ndtr((x - loc) / scale)


def sf(x, loc=0, scale=1) -> Array:
    """Probability of a number above x."""
    x, loc, scale = promote("norm.sf", x, loc, scale)
    return special.ndtr((loc - x) / scale)


def logsf(x, loc=0, scale=1) -> Array:
    """Logarithm of `sf`."""
    x, loc, scale = promote("norm.logsf", x, loc, scale)
    return special.log_ndtr((loc - x) / scale)


def ppf(q, loc=0, scale=1) -> Array:
    """The point below which a number lies with probability q."""
    q, loc, scale = promote("norm.ppf", q, loc, scale)
    return special.ndtri(q) * scale + loc


def isf(q, loc=0, scale=1) -> Array:
    """The point above which a number lies with probability q."""
    q, loc, scale = promote("norm.isf", q, loc, scale)
    return loc - special.ndtri(q) * scale
