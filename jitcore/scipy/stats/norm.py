"""The normal distribution of mean `loc` and standard deviation `scale`.

In: points or probabilities, which broadcast against loc and scale. Out: floats.
"""

from __future__ import annotations

import math

from jitcore import dtypes
from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.numpy.promotion import promote_arrays
from jitcore.scipy import special

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _promote(name: str, *args) -> list[Array]:
    return promote_arrays(f"norm.{name}", *args, to=dtypes.inexact_dtype)


def logpdf(x, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    x, loc, scale = _promote("logpdf", x, loc, scale)
    standard = (x - loc) / scale
    return -(jnp.square(standard) + math.log(2 * math.pi)) / 2 - jnp.log(scale)


def pdf(x, loc=0, scale=1) -> Array:
    """Density at x."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x, loc=0, scale=1) -> Array:
    """Probability of a number below x."""
    x, loc, scale = _promote("cdf", x, loc, scale)
    return special.ndtr((x - loc) / scale)


def logcdf(x, loc=0, scale=1) -> Array:
    """Logarithm of `cdf`."""
    x, loc, scale = _promote("logcdf", x, loc, scale)
    return special.log_ndtr((x - loc) / scale)


def sf(x, loc=0, scale=1) -> Array:
    """Probability of a number above x."""
    x, loc, scale = _promote("sf", x, loc, scale)
    return special.ndtr((loc - x) / scale)


def logsf(x, loc=0, scale=1) -> Array:
    """Logarithm of `sf`."""
    x, loc, scale = _promote("logsf", x, loc, scale)
    return special.log_ndtr((loc - x) / scale)


def ppf(q, loc=0, scale=1) -> Array:
    """The point below which a number lies with probability q."""
    q, loc, scale = _promote("ppf", q, loc, scale)
    return special.ndtri(q) * scale + loc


def isf(q, loc=0, scale=1) -> Array:
    """The point above which a number lies with probability q."""
    q, loc, scale = _promote("isf", q, loc, scale)
    return loc - special.ndtri(q) * scale
