"""Functions along an axis: softmax and its logarithm, standardisation, one-hot codes.

In: an array. Out: an array of its shape (with one more axis for `one_hot`).
"""

from __future__ import annotations

import operator

import numpy as np

from jitcore import dtypes, lax, numpy as jnp
from jitcore.array import Array
from jitcore.core.symbolic import DimExpr
from jitcore.lax.elementary import rsqrt
from jitcore.lax.elementwise import convert_element_type, eq
from jitcore.lax.shape import broadcasted_iota, canonicalize_axis, expand_dims
from jitcore.numpy.arrays.promotion import ensure_array
from jitcore.scipy.special import logsumexp


def softmax(x, axis=-1, where=None) -> Array:
    """exp(x) divided by its sum along the axes.

    Args:
        axis: int, tuple of ints, or None for all axes.
        where: which elements count; the others give 0."""
    x = ensure_array("softmax", x)
    weights = jnp.exp(_shift_by_maximum(x, axis, where))
    result = weights / jnp.sum(weights, axis, where=where, keepdims=True)
    return result if where is None else jnp.where(where, result, 0)


def log_softmax(x, axis=-1, where=None) -> Array:
    """Logarithm of `softmax`; elements that do not count give -inf."""
    x = ensure_array("log_softmax", x)
    shifted = _shift_by_maximum(x, axis, where)
    result = shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis, where=where, keepdims=True))
    return result if where is None else jnp.where(where, result, -np.inf)


def _shift_by_maximum(x: Array, axis, where) -> Array:
    """x minus its maximum, so that exp does not overflow."""
    largest = jnp.max(x, axis, where=where, initial=-np.inf, keepdims=True)
    return (x if where is None else jnp.where(where, x, -np.inf)) - largest


def logmeanexp(x, axis=None, where=None, keepdims: bool = False) -> Array:
    """log(mean(exp(x))) without overflow."""
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    counted = jnp.ones_like(ensure_array("logmeanexp", x), dtype=total.dtype)
    return total - jnp.log(jnp.sum(counted, axis=axis, where=where, keepdims=keepdims))


def standardize(x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None, *,
                algorithm: str = "fast") -> Array:
    """(x - mean) / sqrt(variance + epsilon) along the axes.

    Args:
        mean, variance: computed from x when None.
        algorithm: how the variance is computed: "fast", the mean of squares minus the square of the mean, or
            "stable", the mean of squared deviations.
    Raises: ValueError for another algorithm."""
    x = ensure_array("standardize", x)
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"Unknown algorithm '{algorithm}'. Expected 'fast' or 'stable'.")
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None and algorithm == "stable":
        variance = jnp.mean(jnp.square(x - mean), axis, keepdims=True, where=where)
    elif variance is None:
        squares = jnp.mean(jnp.square(x), axis, keepdims=True, where=where)
        # Rounding can make the difference negative.
        variance = jnp.maximum(squares - jnp.square(mean), 0)
    return (x - mean) * rsqrt(jnp.asarray(variance + epsilon))


def one_hot(x, num_classes: int, *, dtype=None, axis: int = -1) -> Array:
    """1 at each element's index along a new axis, 0 elsewhere; all 0 for an index outside [0, num_classes).

    Args:
        x: integers.
        dtype: the default float when None.
        axis: where the new axis stands in the result."""
    x = jnp.asarray(x)
    dtype = dtypes.default_dtype("f") if dtype is None else dtypes.canonicalize(dtype)
    axis = canonicalize_axis(axis, len(x.shape) + 1)
    count = num_classes if isinstance(num_classes, DimExpr) else operator.index(num_classes)
    shape = (*x.shape[:axis], count, *x.shape[axis:])
    indices = jnp.broadcast_to(expand_dims(x, (axis,)), shape)
    return convert_element_type(eq(indices, broadcasted_iota(x.dtype, shape, axis)), dtype)


def scaled_matmul(lhs, rhs, lhs_scales, rhs_scales, preferred_element_type=np.float32) -> Array:
    """Products of matrices in blocks along the summed axis that share a factor.

    Args:
        lhs: [b, m, k]; rhs: [b, n, k]. lhs_scales: [b, m, k / s]; rhs_scales: [b, n, k / t], factors of
            blocks of s and t elements. preferred_element_type: dtype of the result; sums are in float32.

    Returns: [b, m, n]. Raises: ValueError for shapes that do not fit. Example: of `[[[1, 2, 3]]]`,
    `[[[4, 5, 6]]]` and twice `[[[0.5]]]` it is `[[[8]]]`. Source: jax.nn.scaled_matmul."""
    arrays = lhs, rhs, lhs_scales, rhs_scales = [jnp.asarray(x) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    if any(x.ndim != 3 for x in arrays):
        raise ValueError("scaled_matmul requires all inputs to be 3-dimensional arrays")
    if lhs.shape[::2] != rhs.shape[::2]:
        raise ValueError("scaled_matmul requires inputs a and b to have matching batch (B) and contract (K) "
                         f"dimensions, but got shapes {lhs.shape} and {rhs.shape}")
    return lax.scaled_dot(lhs, rhs, lhs_scale=lhs_scales, rhs_scale=rhs_scales,
                          dimension_numbers=(((2,), (2,)), ((0,), (0,))),
                          preferred_element_type=preferred_element_type)
