"""The Bernoulli distribution: 1 with probability p, else 0.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import promote, within, within_unit

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


def logpmf(k, p, loc=0) -> Array:
    """Logarithm of the probability of k."""
    k, p, loc = promote("bernoulli.logpmf", k, p, loc)
    y = k - loc
    return within((y == 0) | (y == 1), jnp.where(y == 0, jnp.log1p(-p), jnp.log(p)))


def pmf(k, p, loc=0) -> Array:
    """Probability of k."""
    return jnp.exp(logpmf(k, p, loc))


def cdf(k, p, loc=0) -> Array:
    """Probability of a number up to k."""
    k, p, loc = promote("bernoulli.cdf", k, p, loc)
    return jnp.where(k < loc, 0, jnp.where(k < loc + 1, 1 - p, 1))


def ppf(q, p, loc=0) -> Array:
    """The least k for which `cdf` is q at least; loc - 1 for q = 0."""
    q, p, loc = promote("bernoulli.ppf", q, p, loc)
    return within_unit(q, loc + jnp.where(q <= 0, -1, jnp.where(q <= 1 - p, 0, 1)))
