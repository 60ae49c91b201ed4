"""The Bernoulli distribution: 1 with probability p, else 0.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy.stats.support import promote, within

__all__ = ["logpmf", "pmf"]


def logpmf(k, p, loc=0) -> Array:
    """Logarithm of the probability of k."""
    k, p, loc = promote("bernoulli.logpmf", k, p, loc)
    y = k - loc
    return within((y == 0) | (y == 1), jnp.where(y == 0, jnp.log1p(-p), jnp.log(p)))


def pmf(k, p, loc=0) -> Array:
    """Probability of k."""
    return jnp.exp(logpmf(k, p, loc))
