"""The negative binomial distribution: failures before the n-th success of probability p.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import exp_of, no_count, positive, probability, promote, without

__all__ = ["logpmf", "pmf"]


def logpmf(k, n, p, loc=0) -> Array:
    """Logarithm of the probability of k."""
    k, n, p, loc = promote("nbinom.logpmf", k, n, p, loc)
    y, n, p = k - loc, positive(n), probability(p)
    ways = -jnp.log(n + y) - special.betaln(n, y + 1)
    return without(no_count(y), ways + n * jnp.log(p) + special.xlog1py(y, -p), n, p)


pmf = exp_of(logpmf)
