"""The binomial distribution: successes of probability p in n tries.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import exp_of, no_count, nonnegative, probability, promote, without

__all__ = ["logpmf", "pmf"]


def logpmf(k, n, p, loc=0) -> Array:
    """Logarithm of the probability of k."""
    k, n, p, loc = promote("binom.logpmf", k, n, p, loc)
    y, n, p = k - loc, nonnegative(n), probability(p)
    ways = -jnp.log1p(n) - special.betaln(y + 1, n - y + 1)
    logarithm = ways + special.xlogy(y, p) + special.xlog1py(n - y, -p)
    return without(no_count(y, n), logarithm, n, p)


pmf = exp_of(logpmf)
