"""The binomial distribution: successes of probability p in n tries.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import promote, within

__all__ = ["logpmf", "pmf"]


def logpmf(k, n, p, loc=0) -> Array:
    """Logarithm of the probability of k."""
    k, n, p, loc = promote("binom.logpmf", k, n, p, loc)
    y = k - loc
    ways = special.gammaln(n + 1) - special.gammaln(y + 1) - special.gammaln(n - y + 1)
    logarithm = ways + special.xlogy(y, p) + special.xlog1py(n - y, -p)
    return within((y >= 0) & (y <= n) & (y == jnp.floor(y)), logarithm)


def pmf(k, n, p, loc=0) -> Array:
    """Probability of k."""
    return jnp.exp(logpmf(k, n, p, loc))
