"""The Pareto distribution of shape b.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import promote, within

__all__ = ["logpdf", "pdf"]


def logpdf(x, b, loc=0, scale=1) -> Array:
    """Logarithm of the density at x."""
    x, b, loc, scale = promote("pareto.logpdf", x, b, loc, scale)
    y = (x - loc) / scale
    return within(y >= 1, jnp.log(b / scale) - (b + 1) * jnp.log(jnp.maximum(y, 1)))


def pdf(x, b, loc=0, scale=1) -> Array:
    """Density at x."""
    return jnp.exp(logpdf(x, b, loc, scale))
