"""The Poisson distribution of mean mu.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

import math

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import exp_of, known, no_count, nonnegative, promote, without

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


def logpmf(k, mu, loc=0) -> Array:
    """Logarithm of the probability of k."""
    k, mu, loc = promote("poisson.logpmf", k, mu, loc)
    y, mu = k - loc, nonnegative(mu)
    return without(no_count(y), special.xlogy(y, mu) - special.gammaln(y + 1) - mu, mu)


pmf = exp_of(logpmf)


def cdf(k, mu, loc=0) -> Array:
    """Probability of a number up to k."""
    k, mu, loc = promote("poisson.cdf", k, mu, loc)
    y, mu = k - loc, nonnegative(mu)
    return known(jnp.where(y < 0, 0, special.gammaincc(jnp.floor(jnp.maximum(y, 0)) + 1, mu)), mu)


#: Of 1 / mu, ... in the entropy of a large mean. Source: Knessl: Integral representations and asymptotic
#: expansions for Shannon and Renyi entropies, Applied Mathematics Letters 11 (1998).
_ENTROPY = (-1 / 12, -1 / 24, -19 / 360, -9 / 80, -863 / 2520, -1375 / 1008, -33953 / 5040)
_LARGE_MEAN, _COUNTS = 100, 256


def entropy(mu, loc=0) -> Array:
    """Entropy, in nats; `loc` does not change it.

    Args:
        mu: mean, not negative, which broadcasts against loc.

    Returns: float of the shape they broadcast to, within 1e-13 in float64: a sum over counts up to a mean of
    100, an asymptotic series above. NaN for a negative mean. Example: `entropy(1.0)` is 1.3048422.
    Source: scipy.stats.poisson."""
    mu, loc = promote("poisson.entropy", mu, loc)
    mu = jnp.broadcast_to(mu, jnp.broadcast_shapes(mu.shape, loc.shape))
    is_large = mu > _LARGE_MEAN
    small = jnp.where(is_large | (mu < 0), 1, mu)[..., None]
    logarithms = logpmf(jnp.arange(_COUNTS, dtype=mu.dtype), small)
    counted = -jnp.sum(jnp.exp(logarithms) * jnp.where(logarithms == -jnp.inf, 0, logarithms), -1)
    large = jnp.where(is_large, mu, 1)
    series = jnp.zeros_like(mu)
    for weight in reversed(_ENTROPY):
        series = (series + weight) / large
    return jnp.where(mu < 0, jnp.nan, jnp.where(
        is_large, (jnp.log(large) + math.log(2 * math.pi * math.e)) / 2 + series, counted))
