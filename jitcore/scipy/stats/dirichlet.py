"""The Dirichlet distribution of shape parameters alpha: points of the simplex.

In: points [k, ...] or [k - 1, ...], of which the last number is left out, and alpha [k]. Out: floats.
"""

from __future__ import annotations

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.scipy import special
from jitcore.scipy.stats.support import promote, without

__all__ = ["logpdf", "pdf"]


def logpdf(x, alpha) -> Array:
    """Logarithm of the density at x.

    Args:
        x: [k, ...], numbers that add up to 1 along the first axis, or [k - 1, ...], of which the last is the
            rest.
        alpha: [k], positive.

    Returns: float[...]; -inf outside of the simplex. Raises: ValueError for other shapes.
    Example: `logpdf(jnp.array([0.5, 0.5]), jnp.array([2.0, 2.0]))` is 0.4054651, log(1.5).
    Source: scipy.stats.dirichlet."""
    x, alpha = promote("dirichlet.logpdf", x, alpha)
    if alpha.ndim != 1:
        raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={alpha.shape}")
    if not x.ndim or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError("`x` must have either the same number of entries as `alpha` or one entry fewer; "
                         f"got x.shape={x.shape}, alpha.shape={alpha.shape}")
    if x.shape[0] != alpha.shape[0]:
        x = jnp.concatenate([x, 1 - jnp.sum(x, 0, keepdims=True)])
    constant = jnp.sum(special.gammaln(alpha)) - special.gammaln(jnp.sum(alpha))
    weights = jnp.reshape(alpha, (-1, *[1] * (x.ndim - 1)))
    outside = jnp.any(x <= 0, 0) | (jnp.abs(jnp.sum(x, 0) - 1) >= 1e-6)
    return without(outside, jnp.sum(special.xlogy(weights - 1, x), 0) - constant)


def pdf(x, alpha) -> Array:
    """Density at x; shapes as of `logpdf`. Example: `pdf(jnp.array([0.5, 0.5]), jnp.array([2.0, 2.0]))` is
    1.5.
    Source: scipy.stats.dirichlet."""
    return jnp.exp(logpdf(x, alpha))
