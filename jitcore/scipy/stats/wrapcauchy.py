"""The Cauchy distribution wrapped around the circle, of concentration c.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

import math

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import standardize, without

__all__ = ["logpdf", "pdf"]


def logpdf(x, c, loc=0, scale=1) -> Array:
    """Logarithm of the density at x, an angle in [0, 2 pi].

    Args:
        x, loc: real; c: between 0 and 1; scale: positive; all broadcast.

    Returns: float of the shape they broadcast to; -inf outside. Example: `logpdf(0.0, 0.5)` is -0.7392648.
    Source: scipy.stats.wrapcauchy."""
    y, scale, c = standardize("wrapcauchy.logpdf", x, loc, scale, c)
    distance = jnp.square(1 - c) + 4 * c * jnp.square(jnp.sin(y / 2))
    logarithm = jnp.log1p(-c * c) - math.log(2 * math.pi) - jnp.log(distance * scale)
    return jnp.where((c > 0) & (c < 1), without((y < 0) | (y > 2 * math.pi), logarithm), jnp.nan)


def pdf(x, c, loc=0, scale=1) -> Array:
    """Density at x. Example: `pdf(0.0, 0.5)` is 0.47746482. Source: scipy.stats.wrapcauchy."""
    return jnp.exp(logpdf(x, c, loc, scale))
