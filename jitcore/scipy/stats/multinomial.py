"""The multinomial distribution: how often each of k outcomes comes in n tries.

In: counts [..., k], tries n, probabilities p [..., k]. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import promote_arrays
from jitcore.scipy import special
from jitcore.scipy.stats.support import no_count, promote, without

__all__ = ["logpmf", "pmf"]


def logpmf(x, n, p) -> Array:
    """Logarithm of the probability of the counts x.

    Args:
        x: [..., k], whole numbers; n: [...]; p: [..., k], probabilities that add up to 1.

    Returns: float[...]; -inf where the counts do not add up to n.
    Example: `logpmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))` is -0.6931472. Source:
    scipy.stats.multinomial."""
    (p,) = promote("multinomial.logpmf", p)
    x, n = (jnp.asarray(count, p.dtype) for count in promote_arrays("multinomial.logpmf", x, n))
    logarithm = special.gammaln(n + 1) + jnp.sum(special.xlogy(x, p) - special.gammaln(x + 1), -1)
    total = jnp.sum(x, -1)
    return without((total < n) | (total > n) | jnp.any(no_count(x), -1), logarithm)


def pmf(x, n, p) -> Array:
    """Probability of the counts x; shapes as of `logpmf`.
    Example: `pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))` is 0.5. Source: scipy.stats.multinomial."""
    return jnp.exp(logpmf(x, n, p))
