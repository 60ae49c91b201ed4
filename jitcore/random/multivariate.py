"""Random vectors and matrices: correlated normal vectors, orthogonal matrices.

In: a key, moments, a shape. Out: arrays whose last one or two axes are the vector's or matrix's.
"""

from __future__ import annotations

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.lax.shape import broadcast_shapes
from jitcore.random.continuous import normal
from jitcore.random.parameters import read_call, read_shape


def multivariate_normal(key, mean, cov, shape=None, dtype=None, method: str = "cholesky") -> Array:
    """Normal vectors of this mean and covariance.

    Args:
        mean: float[..., n].
        cov: float[..., n, n], symmetric; positive definite for the default method.
        shape: what the leading axes of both broadcast to; just that by default.
        method: how the covariance is factored: "cholesky", "eigh" or "svd".
    Returns: float[*shape, n].
    Raises: ValueError for operands that do not fit, or another method."""
    if method not in ("cholesky", "eigh", "svd"):
        raise ValueError("method must be one of {'svd', 'eigh', 'cholesky'}")
    dtype = dtypes.canonicalize(float if dtype is None else dtype)
    mean, cov = (jnp.asarray(value, dtype) for value in (mean, cov))
    if len(mean.shape) < 1:
        raise ValueError(f"multivariate_normal requires mean.ndim >= 1, got mean.ndim == {len(mean.shape)}")
    if len(cov.shape) < 2:
        raise ValueError(f"multivariate_normal requires cov.ndim >= 2, got cov.ndim == {len(cov.shape)}")
    n = mean.shape[-1]
    if cov.shape[-2:] != (n, n):
        raise ValueError(f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, "
                         f"but got cov.shape == {cov.shape}.")
    batch = broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    shape = batch if shape is None else read_shape("multivariate_normal", shape)
    if broadcast_shapes(shape, batch) != shape:
        raise ValueError(f"multivariate_normal parameters of batch shape {batch} do not broadcast to {shape}")
    samples = normal(key, (*shape, n), dtype)
    return mean + jnp.einsum("...ij,...j->...i", _factor(cov, method), samples)


def _factor(cov: Array, method: str) -> Array:
    """A matrix whose product with its transpose is the covariance."""
    if method == "cholesky":
        return jnp.linalg.cholesky(cov)
    if method == "svd":
        vectors, values, _ = jnp.linalg.svd(cov)
    else:
        values, vectors = jnp.linalg.eigh(cov)
    return vectors * jnp.sqrt(values)[..., None, :]


def orthogonal(key, n: int, shape=(), dtype=None, m: int | None = None) -> Array:
    """Random matrices of shape (*shape, n, m) with orthonormal rows or columns; m is n by default.

    Complex ones are unitary. All rotations (and reflections) are equally likely."""
    _, shape, dtype = read_call("orthogonal", key, shape, dtype, accepts="fc")
    m = n if m is None else m
    q, r = jnp.linalg.qr(normal(key, (*shape, max(n, m), min(n, m)), dtype))
    # Signs of the diagonal make the factorisation unique, and so the distribution uniform.
    q = q * jnp.expand_dims(jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1)), -2)
    return jnp.swapaxes(q, -1, -2) if n < m else q
