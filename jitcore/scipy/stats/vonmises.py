"""The von Mises distribution of concentration kappa: a normal distribution around the circle.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

import math

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import standardize

__all__ = ["logpdf", "pdf"]


def logpdf(x, kappa, loc=0, scale=1) -> Array:
    """Logarithm of the density at x, an angle in radians.

    Args:
        x, loc: real; kappa: not negative; scale: positive; all broadcast.

    Returns: float of the shape they broadcast to. Example: `logpdf(0.0, 1.0)` is -1.0737917.
    Source: scipy.stats.vonmises."""
    y, scale, kappa = standardize("vonmises.logpdf", x, loc, scale, kappa)
    # cos(y) - 1 without its rounding near 0
    distance = 2 * jnp.square(jnp.sin(y / 2))
    return -kappa * distance - math.log(2 * math.pi) - jnp.log(special.i0e(kappa) * scale)


def pdf(x, kappa, loc=0, scale=1) -> Array:
    """Density at x. Example: `pdf(0.0, 1.0)` is 0.34171049. Source: scipy.stats.vonmises."""
    return jnp.exp(logpdf(x, kappa, loc, scale))
