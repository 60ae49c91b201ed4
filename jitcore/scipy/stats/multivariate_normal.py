"""The normal distribution of vectors.

In: points, [..., n], their mean, [..., n] or a number, and covariance, [..., n, n] or a number.
Out: floats, [...].
"""

from __future__ import annotations

import math

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.lax.linalg import cholesky, triangular_solve
from jitcore.scipy.stats.support import promote

__all__ = ["logpdf", "pdf"]


def logpdf(x, mean, cov, allow_singular: None = None) -> Array:
    """Logarithm of the density at x; NaN where the covariance is not positive definite.

    Raises: NotImplementedError for allow_singular; ValueError for covariances that are no square matrices."""
    if allow_singular is not None:
        raise NotImplementedError("allow_singular argument of multivariate_normal.logpdf")
    x, mean, cov = promote("multivariate_normal.logpdf", x, mean, cov, complex_too=True)
    if not mean.ndim and not cov.ndim:
        return -0.5 * (jnp.square(x - mean) / cov + math.log(2 * math.pi) + jnp.log(cov))
    n = mean.shape[-1] if mean.ndim else cov.shape[-1]
    if cov.ndim < 2:
        cov = jnp.eye(n, dtype=cov.dtype) * (cov[..., None] if cov.ndim else cov)
    if cov.shape[-2:] != (n, n):
        raise ValueError(f"multivariate_normal.logpdf got incompatible shapes {mean.shape} and {cov.shape}")
    difference = x - mean
    factor = cholesky(cov)
    shape = jnp.broadcast_shapes(difference.shape[:-1], factor.shape[:-2])
    factor = jnp.broadcast_to(factor, (*shape, n, n))
    difference = jnp.broadcast_to(difference, (*shape, n))[..., None]
    scaled = triangular_solve(factor, difference, left_side=True, lower=True)[..., 0]
    logarithms = jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1))
    return -0.5 * (jnp.sum(jnp.square(scaled), -1) + n * math.log(2 * math.pi)) - jnp.sum(logarithms, -1)


def pdf(x, mean, cov) -> Array:
    """Density at x."""
    return jnp.exp(logpdf(x, mean, cov))
