"""Products of partial arrays: elementwise products and sums, so that the compiler sees the bounds of the
loops.

In: two operands. Out: as `np.matmul`, `np.dot`, `np.inner`, `np.outer`, `np.vdot`. Only products of two
matrices are products of the frames, with zeros outside.
"""

from __future__ import annotations

import numpy as np

from jitcore.numpy_semantics.dynamic_extents.align import adapt, join_items, list_items
from jitcore.numpy_semantics.dynamic_extents.array import PartialArray, accepts_partial
from jitcore.numpy_semantics.dynamic_extents.elementwise import wrap
from jitcore.numpy_semantics.dynamic_extents.reductions import Reduction
from jitcore.numpy_semantics.dynamic_extents.spans import Item
from jitcore.numpy_semantics.dynamic_extents.writing import assign
from jitcore.numpy_semantics.errors import not_traceable


@accepts_partial(np.matmul)
def matmul(x1, x2, dtype=None, **options):
    if not np.ndim(x1) or not np.ndim(x2):
        raise ValueError("matmul: Input operand does not have enough dimensions")
    if dtype is not None:
        x1, x2 = x1.astype(dtype), x2.astype(dtype)
    return _multiply(x1, x2)


@accepts_partial(np.dot, method="dot")
def dot(a, b, out=None):
    if not np.ndim(a) or not np.ndim(b):
        result = np.multiply(a, b)
    else:
        result = _multiply(a, b)
    if out is None:
        return result
    assign(out, result, list_items(out))
    return out


@accepts_partial(np.inner)
def inner(a, b):
    if np.ndim(a) == np.ndim(b) == 1:
        return _multiply(a, b)
    if np.ndim(a) == 2 and np.ndim(b) <= 2 and np.ndim(b):
        return _multiply(a, b.T)
    raise not_traceable("np.inner of arrays of these ranks whose extents are traced")


@accepts_partial(np.vdot)
def vdot(a, b):
    if np.ndim(a) != 1 or np.ndim(b) != 1:
        raise not_traceable("np.vdot of matrices whose extents are traced")
    return _multiply(np.conj(a), b)


@accepts_partial(np.outer)
def outer(a, b, out=None):
    if np.ndim(a) != 1 or np.ndim(b) != 1:
        raise not_traceable("np.outer of matrices whose extents are traced")
    return np.multiply(a[:, None], b[None, :], out=out)


def _multiply(a, b):
    """The sum of products over the last axis of one operand and the first of the other."""
    if np.ndim(a) > 2 or np.ndim(b) > 2:
        raise not_traceable("a product of stacks of matrices whose extents are traced")
    if np.ndim(a) == np.ndim(b) == 2:
        return _multiply_matrices(a, b)
    dtype = np.result_type(a.dtype, b.dtype)
    if np.ndim(a) == 2:
        return _sum(np.multiply(a, b), 1, dtype)
    if np.ndim(b) == 2:
        return _sum(np.multiply(a[:, None], b), 0, dtype)
    return _sum(np.multiply(a, b), 0, dtype)


def _sum(products, axis: int, dtype: np.dtype):
    return np.any(products, axis=axis) if dtype.kind == "b" else np.sum(products, axis=axis, dtype=dtype)


def _multiply_matrices(a, b):
    own, other = list_items(a), list_items(b)
    (joint,) = join_items([[own[1]], [other[0]]])
    a = _fill_outside(adapt(a, [own[0], joint]), [own[0], joint], 1)
    b = _fill_outside(adapt(b, [joint, other[1]]), [joint, other[1]], 0)
    rows, columns = len(own[0].shape), len(other[1].shape)
    if rows == columns == len(joint.shape) == 1:
        return wrap(np.matmul(a, b), [own[0], other[1]])
    axes = (tuple(range(rows, rows + len(joint.shape))), tuple(range(len(joint.shape))))
    return wrap(np.tensordot(a, b, axes), [own[0], other[1]])


def _fill_outside(frame, items: list[Item], axis: int):
    """Zeros where the item of one axis has no element."""
    if items[axis].is_whole:
        return frame
    return Reduction(PartialArray(frame, items), axis).fill(0)
