"""The uniform distribution on [loc, loc + scale].

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import exp_of, positive, promote, standardize, within_unit, without

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


def logpdf(x, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    x, loc, scale = promote("uniform.logpdf", x, loc, scale)
    scale = positive(scale)
    return without((x < loc) | (x > loc + scale), 0 * x - jnp.log(scale), scale)


pdf = exp_of(logpdf)


def cdf(x, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    y, _ = standardize("uniform.cdf", x, loc, scale)
    return jnp.clip(y, 0, 1)


def ppf(q, loc=0, scale=1) -> Array:
    """The x for which `cdf` is q."""
    q, loc, scale = promote("uniform.ppf", q, loc, scale)
    return within_unit(q, loc + positive(scale) * q)
