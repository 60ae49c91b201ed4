"""Products of padded arrays: elementwise products and sums, so that the compiler sees the bounds of the
loops.

In: two operands. Out: as `np.matmul`, `np.dot`, `np.inner`, `np.outer`, `np.vdot`. Only products of two
matrices are products of the frames, with zeros outside.
"""

import numpy as np

from jitcore.numpy_semantics.dynamic_extents.align import adapt, finish, join_items, list_items
from jitcore.numpy_semantics.dynamic_extents.array import accepts_padded, wrap
from jitcore.numpy_semantics.dynamic_extents.reading import join_axes
from jitcore.numpy_semantics.dynamic_extents.reductions import Reduction
from jitcore.numpy_semantics.errors import not_traceable


@accepts_padded(np.matmul)
def matmul(x1, x2, dtype=None, **options):
    if not np.ndim(x1) or not np.ndim(x2):
        raise ValueError("matmul: Input operand does not have enough dimensions")
    if dtype is not None:
        x1, x2 = x1.astype(dtype), x2.astype(dtype)
    return _multiply(x1, x2)


@accepts_padded(np.dot, method="dot")
def dot(a, b, out=None):
    return finish(_multiply(a, b) if np.ndim(a) and np.ndim(b) else np.multiply(a, b), out)


@accepts_padded(np.inner)
def inner(a, b):
    return _multiply(a, np.transpose(b)) if np.ndim(a) and np.ndim(b) else np.multiply(a, b)


@accepts_padded(np.vdot)
def vdot(a, b):
    return _multiply(np.conj(join_axes(a)), join_axes(b))


@accepts_padded(np.outer)
def outer(a, b, out=None):
    return np.multiply(join_axes(a)[:, None], join_axes(b)[None, :], out=out)


def _multiply(a, b):
    """The sum of products over the last axis of one operand and the first of the other."""
    if np.ndim(a) > 2 or np.ndim(b) > 2:
        raise not_traceable("a product of stacks of matrices whose extents are traced")
    if np.ndim(a) == np.ndim(b) == 2:
        return _multiply_matrices(a, b)
    products = np.multiply(a[:, None] if np.ndim(b) == 2 else a, b)
    axis, dtype = np.ndim(a) - 1, np.result_type(a.dtype, b.dtype)
    return np.any(products, axis=axis) if dtype.kind == "b" else np.sum(products, axis=axis, dtype=dtype)


def _multiply_matrices(a, b):
    """The product of the frames, with zeros where the axis that is summed up has no element."""
    (rows, own), (other, columns) = list_items(a), list_items(b)
    (joint,) = join_items([[own], [other]])
    a = Reduction(wrap(adapt(a, [rows, joint]), [rows, joint]), 1).fill(0)
    b = Reduction(wrap(adapt(b, [joint, columns]), [joint, columns]), 0).fill(0)
    first, count = len(rows.shape), len(joint.shape)
    if first == count == len(columns.shape) == 1:
        return wrap(np.matmul(a, b), [rows, columns])
    axes = tuple(range(first, first + count)), tuple(range(count))
    return wrap(np.tensordot(a, b, axes), [rows, columns])
