"""Student's t distribution of df degrees of freedom.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

import math

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.gamma_ratios import log_gamma_ratio
from jitcore.scipy.stats.support import positive, promote, standardize

__all__ = ["logpdf", "pdf"]


def logpdf(x, df, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    x, df, loc, scale = promote("t.logpdf", x, df, loc, scale)
    y, df = standardize(x, loc, scale), positive(df)
    constant = log_gamma_ratio(df / 2, 0.5) - jnp.log(df * math.pi) / 2 - jnp.log(scale)
    return constant - (df + 1) / 2 * jnp.log1p(jnp.square(y) / df)


def pdf(x, df, loc=0, scale=1) -> Array:
    """Density at x."""
    return jnp.exp(logpdf(x, df, loc, scale))
