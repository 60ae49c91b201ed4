"""The beta-binomial distribution: successes in n tries whose probability is beta distributed.

In: points, which broadcast against the parameters. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import no_count, nonnegative, positive, promote, without

__all__ = ["logpmf", "pmf"]


def logpmf(k, n, a, b, loc=0) -> Array:
    """Logarithm of the probability of k successes.

    Args:
        k, n: whole numbers; a, b: positive; all broadcast.

    Returns: float of the shape they broadcast to; -inf outside of 0 to n. Example: `logpmf(1, 2, 1.0, 1.0)`
    is -1.0986123, log(1 / 3). Source: scipy.stats.betabinom."""
    k, n, a, b, loc = promote("betabinom.logpmf", k, n, a, b, loc)
    y, n, a, b = k - loc, nonnegative(n), positive(a), positive(b)
    ways = -jnp.log1p(n) - special.betaln(y + 1, n - y + 1)
    logarithm = ways + special.betaln(y + a, n - y + b) - special.betaln(a, b)
    return without(no_count(y, n), logarithm, n, a, b)


def pmf(k, n, a, b, loc=0) -> Array:
    """Probability of k successes. Example: `pmf(1, 2, 1.0, 1.0)` is 0.33333334. Source:
    scipy.stats.betabinom."""
    return jnp.exp(logpmf(k, n, a, b, loc))
