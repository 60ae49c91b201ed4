"""The Poisson distribution of mean mu.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import promote, within

__all__ = ["cdf", "logpmf", "pmf"]


def logpmf(k, mu, loc=0) -> Array:
    """Logarithm of the probability of k."""
    k, mu, loc = promote("poisson.logpmf", k, mu, loc)
    y = k - loc
    return within((y >= 0) & (y == jnp.floor(y)), special.xlogy(y, mu) - special.gammaln(y + 1) - mu)


def pmf(k, mu, loc=0) -> Array:
    """Probability of k."""
    return jnp.exp(logpmf(k, mu, loc))


def cdf(k, mu, loc=0) -> Array:
    """Probability of a number up to k."""
    k, mu, loc = promote("poisson.cdf", k, mu, loc)
    y = k - loc
    return jnp.where(y < 0, 0, special.gammaincc(jnp.floor(jnp.maximum(y, 0)) + 1, mu))
