"""The normal distribution cut off below `a` and above `b` standard deviations.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

import math

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import positive, promote, without

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _log_of_rest(logarithm) -> Array:
    """log(1 - exp(logarithm)), accurate near 0 and far below it."""
    is_near = logarithm > -math.log(2)
    near = jnp.log(-jnp.expm1(jnp.where(is_near, logarithm, -1)))
    return jnp.where(is_near, near, jnp.log1p(-jnp.exp(jnp.where(is_near, -1, logarithm))))


def _log_mass(a, b) -> Array:
    """Logarithm of the probability of a standard normal number between a and b.

    On one side of 0 it is a difference of probabilities in the left tail, around 0 what is left of 1 without
    both tails. Source: scipy.stats.truncnorm."""
    is_right = a > 0
    low, high = jnp.where(is_right, -b, a), jnp.where(is_right, -a, b)
    in_tail = is_right | (b <= 0)
    low, high = jnp.where(in_tail, low, -2), jnp.where(in_tail, high, -1)
    below = special.log_ndtr(high)
    tail = below + _log_of_rest(special.log_ndtr(low) - below)
    return jnp.where(in_tail, tail, jnp.log1p(-special.ndtr(a) - special.ndtr(-b)))


def _prepare(name: str, *args) -> tuple[Array, ...]:
    x, a, b, loc, scale = promote(f"truncnorm.{name}", *args)
    return jnp.broadcast_arrays((x - loc) / positive(scale), a, b, scale)


def logpdf(x, a, b, loc=0, scale=1) -> Array:
    """Logarithm of the density at x.

    Args:
        x: points; a, b: bounds, in standard deviations from loc; loc, scale: of the normal distribution; all
            broadcast.

    Returns: float of the shape they broadcast to, within 1e-12 relative in float64; -inf outside of the
    bounds.
    Example: `logpdf(0.0, -1.0, 1.0)` is -0.53722453. Source: scipy.stats.truncnorm."""
    x, a, b, scale = _prepare("logpdf", x, a, b, loc, scale)
    logarithm = -(jnp.square(x) + math.log(2 * math.pi)) / 2 - _log_mass(a, b) - jnp.log(scale)
    return _known(a, b, without((x < a) | (x > b), logarithm))


def _known(a, b, value) -> Array:
    return jnp.where(a < b, value, jnp.nan)


def pdf(x, a, b, loc=0, scale=1) -> Array:
    """Density at x. Example: `pdf(0.0, -1.0, 1.0)` is 0.5843686. Source: scipy.stats.truncnorm."""
    return jnp.exp(logpdf(x, a, b, loc, scale))


def _log_below(x, a, b) -> Array:
    """Logarithm of the probability of a number up to x; near 1 by the other side."""
    inside = (x > a) & (x < b)
    middle = jnp.where(inside, x, (jnp.maximum(a, -1e3) + jnp.minimum(b, 1e3)) / 2)
    total = _log_mass(a, b)
    below, above = _log_mass(a, middle) - total, _log_mass(middle, b) - total
    below = jnp.where(below > -0.1, _log_of_rest(jnp.minimum(above, 0)), below)
    outside = jnp.where(x >= b, 0, jnp.where(x <= a, -jnp.inf, jnp.nan))
    return _known(a, b, jnp.where(inside, below, outside))


def logcdf(x, a, b, loc=0, scale=1) -> Array:
    """Logarithm of `cdf`. Example: `logcdf(0.0, -1.0, 1.0)` is -0.6931472. Source: scipy.stats.truncnorm."""
    x, a, b, _ = _prepare("logcdf", x, a, b, loc, scale)
    return _log_below(x, a, b)


def cdf(x, a, b, loc=0, scale=1) -> Array:
    """Probability of a number up to x. Example: `cdf(0.0, -1.0, 1.0)` is 0.5. Source:
    scipy.stats.truncnorm."""
    return jnp.exp(logcdf(x, a, b, loc, scale))


def logsf(x, a, b, loc=0, scale=1) -> Array:
    """Logarithm of `sf`. Example: `logsf(0.0, -1.0, 1.0)` is -0.6931472. Source: scipy.stats.truncnorm."""
    x, a, b, _ = _prepare("logsf", x, a, b, loc, scale)
    return _log_below(-x, -b, -a)


def sf(x, a, b, loc=0, scale=1) -> Array:
    """Probability of a number above x. Example: `sf(0.0, -1.0, 1.0)` is 0.5. Source:
    scipy.stats.truncnorm."""
    return jnp.exp(logsf(x, a, b, loc, scale))
