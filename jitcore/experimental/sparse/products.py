"""Products of sparse arrays along axes: `bcoo_dot_general` and what `@` means.

In: arrays of which one is sparse. Out: a dense array, where one is dense, else a sparse one. Each entry takes
the row of the dense array that it meets, times its value, and adds it to its place of the result.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore.core.trace import Tracer
from jitcore.experimental.sparse.operations import (bcoo_sum_duplicates, bcoo_transpose, bcoo_update_layout,
                                                    find_outside, gather, is_sparse, map_batch, scatter)
from jitcore.experimental.sparse.structure import Coordinates
from jitcore.lax.define import canonicalize_axis

Axes = Sequence[int]


def _bring_forward(mat: Coordinates, contracted: Axes,
                   batch: Axes) -> tuple[Coordinates, list[int], list[int]]:
    """With the batch axes of a product as the only batch axes, in front, and no dense ones; the sparse axes
    that are contracted, and the others.

    Raises: NotImplementedError for batch axes that are sparse or dense ones."""
    if any(axis >= mat.n_batch for axis in batch):
        raise NotImplementedError(f"dot_general: batch axes {tuple(batch)} of a sparse array with "
                                  f"n_batch={mat.n_batch}.\n"
                                  "To fix: make it with n_batch for these axes, BCOO.fromdense(mat, "
                                  "n_batch=...).")
    order = [*batch, *(axis for axis in range(mat.ndim) if axis not in batch)]
    rest = [axis for axis in order if axis < mat.n_batch] + list(range(mat.n_batch, mat.ndim))
    mat = bcoo_update_layout(bcoo_transpose(mat, permutation=rest), n_batch=len(batch), n_dense=0)
    places = [rest.index(axis) - len(batch) for axis in contracted]
    return mat, places, [axis for axis in range(mat.n_sparse) if axis not in places]


def _multiply_dense(lhs: Coordinates, rhs: Any, numbers: tuple) -> Any:
    """A sparse array with a dense one: [*batch, *rest of lhs, *rest of rhs]."""
    (contracted, rhs_contracted), (batch, rhs_batch) = numbers
    lhs, places, free = _bring_forward(lhs, contracted, batch)
    rest = [axis for axis in range(rhs.ndim) if axis not in (*rhs_contracted, *rhs_batch)]
    rhs = jnp.transpose(rhs, [*rhs_batch, *rhs_contracted, *rest])
    shape = tuple(lhs.sparse_shape[axis] for axis in free)

    def multiply(data, indices, rhs):
        rows = gather(rhs, indices[:, np.asarray(places, int)])
        return scatter(data.reshape(-1, *[1] * len(rest)) * rows, indices[:, np.asarray(free, int)], shape)

    return map_batch(multiply, len(batch))(lhs.data, lhs.indices, rhs)


def _multiply_sparse(lhs: Coordinates, rhs: Coordinates, numbers: tuple) -> Coordinates:
    """Each entry of one with each of the other: those that meet."""
    (contracted, rhs_contracted), (batch, rhs_batch) = numbers
    lhs, places, free = _bring_forward(lhs, contracted, batch)
    rhs, rhs_places, rhs_free = _bring_forward(rhs, rhs_contracted, rhs_batch)
    shape = [lhs.sparse_shape[axis] for axis in free] + [rhs.sparse_shape[axis] for axis in rhs_free]

    def multiply(data, indices, others, other_indices):
        met = functools.reduce(jnp.logical_and, [
            indices[:, None, a] == other_indices[None, :, b] for a, b in zip(places, rhs_places)],
            jnp.ones((len(data), len(others)), bool))
        met = met & ~find_outside(indices, lhs.sparse_shape)[:, None]
        met = met & ~find_outside(other_indices, rhs.sparse_shape)[None]
        product = jnp.where(met, data[:, None] * others[None], 0)
        both = [indices[:, None, np.asarray(free, int)], other_indices[None, :, np.asarray(rhs_free, int)]]
        pairs = jnp.concatenate([jnp.broadcast_to(x, (*met.shape, x.shape[-1])) for x in both], -1)
        pairs = jnp.where(met[..., None], pairs, np.asarray(shape, pairs.dtype))
        return jnp.ravel(product), pairs.reshape(len(data) * len(others), len(shape))

    found = map_batch(multiply, len(batch))(lhs.data, lhs.indices, rhs.data, rhs.indices)
    result = lhs.with_entries(*found, shape)
    is_traced = isinstance(found[1], Tracer)
    return bcoo_sum_duplicates(result, min(result.nse, math.prod(shape)) if is_traced else None)


def bcoo_dot_general(lhs: Any, rhs: Any, *, dimension_numbers: tuple, precision: Any = None,
                     preferred_element_type: Any = None, out_sharding: Any = None) -> Any:
    """The product of two arrays, of which one is sparse, as `lax.dot_general` has it.

    Args:
        lhs, rhs: arrays of one dtype; others are promoted.
        dimension_numbers: ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)). Batch axes of a
            sparse array have to be batch axes of its layout.
        preferred_element_type: dtype of the result. precision, out_sharding: accepted.

    Returns: [*batch, *other axes of lhs, *of rhs], sparse where both are.
    Raises: ValueError for extents that differ; NotImplementedError for batch axes that are sparse ones.
    Cost: of a sparse with a dense array, one row of the dense one for each entry; of two sparse ones, the
        product of their numbers of entries.
    Source: `jax.experimental.sparse.bcoo_dot_general`.

    Example:
        >>> import jitcore.numpy as jnp
        >>> from jitcore.experimental import sparse
        >>> m = sparse.BCOO.fromdense(jnp.eye(2))
        >>> sparse.bcoo_dot_general(m, jnp.ones((2, 3)), dimension_numbers=(((1,), (0,)), ((), ()))).shape
        (2, 3)"""
    lhs, rhs = (x if is_sparse(x) else jnp.asarray(x) for x in (lhs, rhs))
    (left, right), (left_batch, right_batch) = (tuple(map(tuple, pair)) for pair in dimension_numbers)
    for axes, other_axes in ((left, right), (left_batch, right_batch)):
        extents, others = [lhs.shape[axis] for axis in axes], [rhs.shape[axis] for axis in other_axes]
        if extents != others:
            raise ValueError(f"dot_general: axes {axes} of shape {lhs.shape} and {other_axes} of "
                             f"{rhs.shape} differ in extent")
    left, left_batch = ([canonicalize_axis(a, lhs.ndim) for a in axes] for axes in (left, left_batch))
    right, right_batch = ([canonicalize_axis(a, rhs.ndim) for a in axes] for axes in (right, right_batch))
    numbers = (left, right), (left_batch, right_batch)
    if is_sparse(lhs) and is_sparse(rhs):
        out = _multiply_sparse(lhs, rhs, numbers)
    elif is_sparse(lhs):
        out = _multiply_dense(lhs, rhs, numbers)
    else:
        out = _multiply_dense(rhs, lhs, ((right, left), (right_batch, left_batch)))
        count, rest = len(left_batch), rhs.ndim - len(right) - len(right_batch)
        order = [*range(count), *range(count + rest, out.ndim), *range(count, count + rest)]
        out = jnp.transpose(out, order)
    return out if preferred_element_type is None else out.astype(preferred_element_type)


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *,  # noqa: N803  JAX's names
                             dimension_numbers: tuple) -> Any:
    """The entries at given places of the product of two dense arrays, no others of which are computed.

    Args:
        A, B, dimension_numbers: as for `lax.dot_general`.
        indices: [*batch, nse, n_sparse], of a sparse array that has the shape of the product.

    Returns: the data of that array, [*batch, nse, *dense axes]; zeros for places outside.
    Cost: nse products of what is contracted, for each place of dense axes.
    Source: `jax.experimental.sparse.bcoo_dot_general_sampled`.

    Example:
        >>> import jitcore.numpy as jnp
        >>> from jitcore.experimental import sparse
        >>> places = jnp.array([[0, 0], [1, 1]])
        >>> a = jnp.array([[1., 2.], [3., 4.]])
        >>> numbers = ((1,), (0,)), ((), ())
        >>> sparse.bcoo_dot_general_sampled(a, a, places, dimension_numbers=numbers).tolist()
        [7.0, 22.0]"""
    lhs, rhs, indices = jnp.asarray(A), jnp.asarray(B), jnp.asarray(indices)
    (left, right), (left_batch, right_batch) = dimension_numbers
    left, left_batch = ([canonicalize_axis(a, lhs.ndim) for a in axes] for axes in (left, left_batch))
    right, right_batch = ([canonicalize_axis(a, rhs.ndim) for a in axes] for axes in (right, right_batch))
    left_rest = [axis for axis in range(lhs.ndim) if axis not in (*left, *left_batch)]
    right_rest = [axis for axis in range(rhs.ndim) if axis not in (*right, *right_batch)]
    entries = indices.shape[:-1]
    columns = [np.arange(extent).reshape(-1, *(1,) * (len(entries) - n - 1))
               for n, extent in enumerate(entries[:-1])]
    columns += [indices[..., column] for column in range(indices.shape[-1])]
    batch = len(left_batch)
    axes = [f"{n}" for n in range(batch + len(left_rest) + len(right_rest))]  # of the product
    if len(columns) > len(axes):
        raise ValueError(f"bcoo_dot_general_sampled: indices of shape {indices.shape} for a product of "
                         f"{len(axes)} axes")
    letter = {name: chr(ord("a") + n) for n, name in enumerate([*axes, *(f"c{n}" for n in range(len(left)))])}
    entry = "".join(chr(ord("A") + n) for n in range(len(entries)))
    sums = "".join(letter[f"c{n}"] for n in range(len(left)))

    def read_rows(operand, own: list[int], order: Axes):
        """Those of an operand, of which the product's axes `own` come first; and the letters of its axes."""
        operand = jnp.transpose(operand, order)
        chosen = [columns[axis] for axis in own if axis < len(columns)]
        dense = "".join(letter[f"{axis}"] for axis in own if axis >= len(columns))
        if not chosen:
            return operand, dense + sums
        chosen = [jnp.broadcast_to(column, entries) for column in chosen]
        return operand.at[tuple(chosen)].get(mode="fill", fill_value=0), entry + dense + sums

    own = [*range(batch), *range(batch, batch + len(left_rest))]
    rows, names = read_rows(lhs, own, [*left_batch, *left_rest, *left])
    own = [*range(batch), *range(batch + len(left_rest), len(axes))]
    others, other_names = read_rows(rhs, own, [*right_batch, *right_rest, *right])
    result = (entry if columns else "") + "".join(letter[name] for name in axes[len(columns):])
    out = jnp.einsum(f"{names},{other_names}->{result}", rows, others)
    return out if columns else jnp.broadcast_to(out, (*entries, *out.shape))


def matmul(lhs: Any, rhs: Any) -> Any:
    """`lhs @ rhs`. Raises: TypeError for scalars; ValueError for extents that differ."""
    lhs, rhs = (x if is_sparse(x) else jnp.asarray(x) for x in (lhs, rhs))
    if not lhs.ndim or not rhs.ndim:
        raise TypeError(f"matmul of arrays of shapes {lhs.shape} and {rhs.shape}: a scalar is multiplied by "
                        "*")
    batch = tuple(range(lhs.ndim - 2)) if lhs.ndim == rhs.ndim and lhs.ndim > 2 else ()
    numbers = ((lhs.ndim - 1,), (max(0, rhs.ndim - 2),)), (batch, batch)
    out = bcoo_dot_general(lhs, rhs, dimension_numbers=numbers)
    if rhs.ndim > max(2, lhs.ndim) and lhs.ndim == 2:  # rows of lhs stand behind the batch
        order = [*range(1, rhs.ndim - 1), 0, rhs.ndim - 1]
        out = bcoo_transpose(out, permutation=order) if is_sparse(out) else jnp.transpose(out, order)
    return out


__all__ = ["bcoo_dot_general", "bcoo_dot_general_sampled", "matmul"]
