"""The generalised normal distribution of shape p: a density of exp(-|x| ** p).

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

import math

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import exp_of, standardize

__all__ = ["cdf", "logpdf", "pdf"]


def logpdf(x, p, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    y, scale, p = standardize("gennorm.logpdf", x, loc, scale, p)
    return jnp.log(p / scale) - math.log(2) - special.gammaln(1 / p) - jnp.abs(y) ** p


pdf = exp_of(logpdf)


def cdf(x, p, loc=0, scale=1) -> Array:
    """Probability of a number up to x."""
    y, _, p = standardize("gennorm.cdf", x, loc, scale, p)
    return 0.5 * (1 + jnp.sign(y) * special.gammainc(1 / p, jnp.abs(y) ** p))
