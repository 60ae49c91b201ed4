"""Products of vectors, matrices and tensors: `dot`, `matmul`, `einsum`, `tensordot`, `outer` and their like.

In: arrays. Out: one array in the dtype where they meet. Each contraction of two arrays is one
`dot_general`, with a transposition of the result where its axes come out in another order.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.lax.define import canonicalize_axis
from jitcore.numpy.arrays.promotion import (broadcast_array, broadcast_shapes, convert_dtype, ensure_array,
                                            promote_arrays)
from jitcore.numpy.indexing.reading import get_item
from jitcore.numpy.ufuncs.arithmetic import conjugate, multiply, subtract
from jitcore.process.lazy import LazyFunctions


def contract_pair(a, b, a_labels, b_labels, out_labels, dtype=None, precision=None) -> Array:
    """The sum of products over the labels that `out_labels` lacks; each operand has each label at most once.

    dtype: of the accumulation and the result."""
    a, a_labels = _sum_lonely(a, a_labels, (*b_labels, *out_labels))
    b, b_labels = _sum_lonely(b, b_labels, (*a_labels, *out_labels))
    shared = [label for label in a_labels if label in b_labels]
    free = [label for label in out_labels if label not in shared]
    if free and free[0] in b_labels:  # the result has its axes in the order of the operands
        a, a_labels, b, b_labels = b, b_labels, a, a_labels
    batch = [label for label in out_labels if label in shared]
    contracted = [label for label in shared if label not in out_labels]
    numbers = tuple(tuple(tuple(labels.index(one) for one in group) for labels in (a_labels, b_labels))
                    for group in (contracted, batch))
    dtype = dtypes.result_type(a.dtype, b.dtype) if dtype is None else dtype
    out = lax.dot_general(a, b, numbers, precision, dtype)
    natural = batch + [label for label in (*a_labels, *b_labels) if label not in shared]
    return _permute(out, [natural.index(label) for label in out_labels])


def _sum_lonely(x, labels, others) -> tuple[Array, list]:
    """Sums over the labels that appear nowhere else."""
    lonely = tuple(i for i, label in enumerate(labels) if label not in others)
    kept = [label for i, label in enumerate(labels) if i not in lonely]
    add_up = lax.reduce_or if x.dtype == dtypes.bool_ else lax.reduce_sum
    return (add_up(x, lonely) if lonely else x), kept


def _permute(x, order: Sequence[int]) -> Array:
    return x if list(order) == list(range(len(order))) else lax.transpose(x, tuple(order))


def _prepare(name: str, a, b, preferred_element_type) -> tuple[Array, Array, np.dtype | None]:
    a, b = promote_arrays(name, a, b, borrow=True)
    if preferred_element_type is not None:
        return a, b, dtypes.canonicalize(preferred_element_type)
    return a, b, a.dtype


def _weaken(out, a, b, preferred_element_type) -> Array:
    """The result, with a weak type where both operands have one and no dtype is asked for."""
    weak = a.weak_type and b.weak_type and preferred_element_type is None
    return convert_dtype(out, out.dtype, True) if weak else out


def matmul(a, b, *, precision=None, preferred_element_type=None, out_sharding=None):
    """Matrix product of the last two axes; leading axes broadcast; vectors are rows (a) or columns (b).

    Raises: ValueError for scalars; TypeError where the inner extents differ. Same as: `numpy.matmul`."""
    a, b, dtype = _prepare("matmul", a, b, preferred_element_type)
    for position, x in enumerate((a, b)):
        if not x.ndim:
            raise ValueError(f"matmul input operand {position} must have ndim at least 1, but it has ndim 0")
    a_batch, b_batch = a.shape[:-2], b.shape[:-2]
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise TypeError(f"matmul: the inner extents differ, got shapes {a.shape} and {b.shape}.")
    batch = broadcast_shapes(a_batch, b_batch)
    rank = len(batch)
    a, a_labels = _label_batch(a, len(a_batch), batch)
    b, b_labels = _label_batch(b, len(b_batch), batch)
    a_labels += ["k"] if a.ndim - len(a_labels) == 1 else ["m", "k"]
    b_labels += ["k"] if b.ndim - len(b_labels) == 1 else ["k", "n"]
    out_labels = [*range(rank), *(["m"] if "m" in a_labels else []), *(["n"] if "n" in b_labels else [])]
    out = contract_pair(a, b, a_labels, b_labels, out_labels, dtype, precision)
    return _weaken(out, a, b, preferred_element_type)


def _label_batch(x, count: int, batch: tuple) -> tuple[Array, list]:
    """x without the batch axes along which it is broadcast, and the labels of those that are left."""
    offset = len(batch) - count
    broadcast = [i for i in range(count) if x.shape[i] != batch[offset + i]]
    labels = [offset + i for i in range(count) if i not in broadcast]
    return (lax.squeeze(x, broadcast) if broadcast else x), labels


def dot(a, b, *, precision=None, preferred_element_type=None, out_sharding=None):
    """Sum of products over the last axis of a and the last but one of b. Same as: `numpy.dot`."""
    a, b, dtype = _prepare("dot", a, b, preferred_element_type)
    if not a.ndim or not b.ndim:
        return convert_dtype(multiply(a, b), dtype, a.weak_type and b.weak_type)
    b_axis = max(b.ndim - 2, 0)
    if a.shape[-1] != b.shape[b_axis]:
        raise TypeError(f"dot: the contracted extents differ, got shapes {a.shape} and {b.shape}.")
    out = lax.dot_general(a, b, (((a.ndim - 1,), (b_axis,)), ((), ())), precision, dtype)
    return _weaken(out, a, b, preferred_element_type)


def vdot(a, b, *, precision=None, preferred_element_type=None):
    """Sum of conjugate(a) * b over all elements. Same as: `numpy.vdot`."""
    a, b = (ensure_array("vdot", x, i) for i, x in enumerate((a, b)))
    a, b = (lax.reshape(x, (x.size,)) for x in (conjugate(a), b))
    return dot(a, b, precision=precision, preferred_element_type=preferred_element_type)


def inner(a, b, *, precision=None, preferred_element_type=None):
    """Sum of products over the last axes of both. Same as: `numpy.inner`."""
    a, b, _ = _prepare("inner", a, b, preferred_element_type)
    if not a.ndim or not b.ndim:
        return dot(a, b, precision=precision, preferred_element_type=preferred_element_type)
    return tensordot(a, b, (-1, -1), precision=precision, preferred_element_type=preferred_element_type)


def outer(a, b, out=None):
    """Product of every pair of elements of the flattened operands. Same as: `numpy.outer`."""
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.outer is not supported.")
    a, b = promote_arrays("outer", a, b)
    return multiply(lax.reshape(a, (a.size, 1)), lax.reshape(b, (1, b.size)))


def tensordot(a, b, axes=2, *, precision=None, preferred_element_type=None, out_sharding=None):
    """Sum of products over `axes`: that many last and first axes, or two sequences of axes. Same as:
    `numpy.tensordot`."""
    a, b, dtype = _prepare("tensordot", a, b, preferred_element_type)
    if isinstance(axes, Sequence):
        a_axes, b_axes = ((x,) if not isinstance(x, (tuple, list)) else tuple(x) for x in axes)
    else:
        count = operator.index(axes)
        if count > min(a.ndim, b.ndim):
            raise TypeError(
                f"Number of tensordot axes (axes {count}) exceeds input ranks ({a.ndim} and {b.ndim})")
        a_axes, b_axes = tuple(range(a.ndim - count, a.ndim)), tuple(range(count))
    a_axes = tuple(canonicalize_axis(i, a.ndim) for i in a_axes)
    b_axes = tuple(canonicalize_axis(i, b.ndim) for i in b_axes)
    out = lax.dot_general(a, b, ((a_axes, b_axes), ((), ())), precision, dtype)
    return _weaken(out, a, b, preferred_element_type)


def vecdot(x1, x2, /, *, axis: int = -1, precision=None, preferred_element_type=None):
    """Sum of conjugate(x1) * x2 along one axis; other axes broadcast. Same as: `numpy.vecdot`."""
    x1, x2, dtype = _prepare("vecdot", x1, x2, preferred_element_type)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"axes must match; got shapes {x1.shape} and {x2.shape} with {axis=}")
    x1, x2 = (_move_axis_last(x, axis) for x in (conjugate(x1), x2))
    shape = broadcast_shapes(x1.shape, x2.shape)
    x1, x2 = (broadcast_array(x, shape) for x in (x1, x2))
    labels = list(range(len(shape)))
    out = contract_pair(x1, x2, labels, labels, labels[:-1], dtype, precision)
    return _weaken(out, x1, x2, preferred_element_type)


def _move_axis_last(x, axis: int):
    axis = canonicalize_axis(axis, x.ndim)
    return _permute(x, [i for i in range(x.ndim) if i != axis] + [axis])


def _with_axes(name: str, operands: list[Array], counts: tuple[int, int]) -> list[Array]:
    """The operands. Raises: ValueError for one of fewer axes than it needs to have."""
    for operand, count in zip(operands, counts):
        if operand.ndim < count:
            raise ValueError(f"{name} needs an array of {count} or more axes here, got shape {operand.shape}")
    return operands


def matvec(x1, x2, /):
    """Products of stacks of matrices and vectors. Same as: `numpy.matvec`."""
    x1, x2 = _with_axes("matvec", promote_arrays("matvec", x1, x2), (2, 1))
    return get_item(matmul(x1, lax.expand_dims(x2, (-1,))), (Ellipsis, 0))


def vecmat(x1, x2, /):
    """Products of stacks of conjugated vectors and matrices. Same as: `numpy.vecmat`."""
    x1, x2 = _with_axes("vecmat", promote_arrays("vecmat", x1, x2), (1, 2))
    return get_item(matmul(lax.expand_dims(conjugate(x1), (-2,)), x2), (Ellipsis, 0, slice(None)))


def kron(a, b):
    """Kronecker product. Same as: `numpy.kron`."""
    a, b = promote_arrays("kron", a, b)
    rank = max(a.ndim, b.ndim)
    a, b = (lax.reshape(x, (1,) * (rank - x.ndim) + x.shape) for x in (a, b))
    shape = tuple(m * n for m, n in zip(a.shape, b.shape))
    a = lax.reshape(a, tuple(extent for n in a.shape for extent in (n, 1)))
    b = lax.reshape(b, tuple(extent for n in b.shape for extent in (1, n)))
    return lax.reshape(multiply(a, b), shape)


def cross(a, b, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None):
    """Cross product of vectors with 2 or 3 components along an axis. Same as: `numpy.cross`."""
    a, b = promote_arrays("cross", a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _move_axis_last(a, axisa), _move_axis_last(b, axisb)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError("Dimension must be either 2 or 3 for cross product")
    parts_a, parts_b = ([get_item(x, (Ellipsis, i)) for i in range(x.shape[-1])] for x in (a, b))
    if len(parts_a) == len(parts_b) == 2:
        return subtract(multiply(parts_a[0], parts_b[1]), multiply(parts_a[1], parts_b[0]))
    for parts in (parts_a, parts_b):
        if len(parts) == 2:
            parts.append(lax.full_like(parts[0], 0))
    components = [subtract(multiply(parts_a[i], parts_b[j]), multiply(parts_a[j], parts_b[i]))
                  for i, j in ((1, 2), (2, 0), (0, 1))]
    out = lax.concatenate([lax.expand_dims(c, (c.ndim,)) for c in components], components[0].ndim)
    target = canonicalize_axis(axisc, out.ndim)
    order = list(range(out.ndim - 1))
    order.insert(target, out.ndim - 1)
    return convert_dtype(_permute(out, order), out.dtype)


# -- einsum -------------------------------------------------------------------------------------------------
opt_einsum = LazyFunctions("opt_einsum")  # only `einsum` needs it


def einsum(subscripts, /, *operands, out=None, optimize="optimal", precision=None,
           preferred_element_type=None, _dot_general=None, out_sharding=None):
    """Sums of products in index notation, `einsum("ij,jk->ik", a, b)`. Same as: `numpy.einsum`.

    Args:
        optimize: how to find the order of pairwise contractions ("optimal", "auto", "greedy", False: left
        to right).
    Raises: ValueError for malformed subscripts or extents that differ."""
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.einsum is not supported.")
    operands = (subscripts, *operands)
    strategy = "optimal" if optimize is True else optimize or _left_to_right(operands)
    options = {"einsum_call": True, "use_blas": True, "optimize": strategy}
    operands, contractions = _plan_contractions(operands, options)
    arrays = [ensure_array("einsum", x, i) for i, x in enumerate(operands)]
    wanted = preferred_element_type
    dtype = dtypes.result_type(*arrays) if wanted is None else dtypes.canonicalize(wanted)
    weak = all(x.weak_type for x in arrays)
    arrays = [convert_dtype(x, dtypes.result_type(*operands), weak) for x in arrays]
    for positions, _, expression, *_ in contractions:
        # opt_einsum names the operands of a step in the order of popping: from the last position down.
        chosen = [arrays.pop(i) for i in sorted(positions, reverse=True)]
        arrays.append(_contract_expression(expression, chosen, dtype, precision))
    return convert_dtype(arrays[0], dtype, weak)


def _plan_contractions(operands: tuple, options: dict) -> tuple[list, list]:
    """The arrays among the operands, and the contractions. Symbolic extents are planned for as if 64."""
    arrays = {}

    def stand_in(operand):
        shape = getattr(operand, "shape", ())
        if all(isinstance(extent, int) for extent in shape):
            return operand
        dummy = np.broadcast_to(np.zeros(()), [n if isinstance(n, int) else 64 for n in shape])
        arrays[id(dummy)] = operand
        return dummy

    found, contractions = opt_einsum.contract_path(*map(stand_in, operands), **options)
    return [arrays.get(id(x), x) for x in found], contractions


def einsum_path(subscripts, /, *operands, optimize="greedy"):
    """The order in which `einsum` contracts, as pairs of positions, and a report.

    Same as: `jax.numpy.einsum_path`."""
    path, info = opt_einsum.contract_path(subscripts, *operands, optimize=optimize)
    return path, str(info)


def _left_to_right(operands):
    count = len(operands) - 1 if isinstance(operands[0], str) else len(operands) // 2
    return [(0, 1)] + [(0, i) for i in range(count - 2, 0, -1)] if count > 1 else [(0,)]


def _contract_expression(expression: str, arrays: list, dtype, precision) -> Array:
    inputs, output = expression.split("->")
    terms = inputs.split(",")
    taken = [_take_diagonals(x, term) for x, term in zip(arrays, terms)]
    if len(taken) == 1:
        x, labels = _sum_lonely(*taken[0], output)
        return _permute(x, [labels.index(label) for label in output])
    (a, a_labels), (b, b_labels) = taken
    a, a_labels, b, b_labels = _drop_broadcast_axes(a, a_labels, b, b_labels)
    return contract_pair(a, b, a_labels, b_labels, list(output), dtype, precision)


def _drop_broadcast_axes(a, a_labels: list, b, b_labels: list):
    """An axis of extent 1 that meets a longer one broadcasts: it is dropped and the other stays."""
    for label in [label for label in a_labels if label in b_labels]:
        m, n = a.shape[a_labels.index(label)], b.shape[b_labels.index(label)]
        if m == n:
            continue
        if isinstance(m, int) and m == 1:
            a = lax.squeeze(a, (a_labels.index(label),))
            a_labels = [one for one in a_labels if one != label]
        elif isinstance(n, int) and n == 1:
            b = lax.squeeze(b, (b_labels.index(label),))
            b_labels = [one for one in b_labels if one != label]
    return a, a_labels, b, b_labels


def _take_diagonals(x, term: str) -> tuple[Array, list]:
    """x with every label once: the diagonal where a label repeats."""
    labels = list(term)
    for label in dict.fromkeys(term):
        axes = [i for i, one in enumerate(labels) if one == label]
        if len(axes) < 2:
            continue
        rest = [i for i in range(len(labels)) if i not in axes]
        x = _permute(x, axes + rest)
        steps = np.arange(x.shape[0], dtype=np.int32)
        x = get_item(x, (steps,) * len(axes))
        labels = [label] + [labels[i] for i in rest]
    return x, labels


__all__ = ["cross", "dot", "einsum", "einsum_path", "inner", "kron", "matmul", "matvec", "outer", "tensordot",
           "vdot", "vecdot", "vecmat"]
