"""The geometric distribution: the first success, of probability p, is at the k-th try.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import exp_of, no_count, probability, promote, without

__all__ = ["logpmf", "pmf"]


def logpmf(k, p, loc=0) -> Array:
    """Logarithm of the probability of k."""
    k, p, loc = promote("geom.logpmf", k, p, loc)
    y, p = k - loc, probability(p)
    return without(no_count(y - 1), special.xlog1py(y - 1, -p) + jnp.log(p), p)


pmf = exp_of(logpmf)
