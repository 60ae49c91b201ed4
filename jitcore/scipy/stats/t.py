"""Student's t distribution of df degrees of freedom.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

import math

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.gamma_ratios import log_gamma_ratio
from jitcore.scipy.stats.support import exp_of, standardize

__all__ = ["logpdf", "pdf"]


def logpdf(x, df, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    y, scale, df = standardize("t.logpdf", x, loc, scale, df)
    constant = log_gamma_ratio(df / 2, 0.5) - jnp.log(df * math.pi) / 2 - jnp.log(scale)
    return constant - (df + 1) / 2 * jnp.log1p(jnp.square(y) / df)


pdf = exp_of(logpdf)
