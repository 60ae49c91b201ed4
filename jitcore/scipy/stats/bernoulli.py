"""The Bernoulli distribution: 1 with probability p, else 0.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import exp_of, known, no_count, probability, promote, within_unit, without

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


def logpmf(k, p, loc=0) -> Array:
    """Logarithm of the probability of k."""
    k, p, loc = promote("bernoulli.logpmf", k, p, loc)
    y, p = k - loc, probability(p)
    return without(no_count(y, 1), special.xlogy(y, p) + special.xlog1py(1 - y, -p), p)


pmf = exp_of(logpmf)


def cdf(k, p, loc=0) -> Array:
    """Probability of a number up to k."""
    k, p, loc = promote("bernoulli.cdf", k, p, loc)
    y, p = k - loc, probability(p)
    return known(jnp.where(y < 0, 0, jnp.where(y < 1, 1 - p, 1)), y, p)


def ppf(q, p, loc=0) -> Array:
    """The least k for which `cdf` is q at least; loc - 1 for q = 0."""
    q, p, loc = promote("bernoulli.ppf", q, p, loc)
    p = probability(p)
    return known(within_unit(q, loc + jnp.where(q <= 0, -1, jnp.where(q <= 1 - p, 0, 1))), p)
