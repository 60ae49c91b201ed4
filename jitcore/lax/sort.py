"""Sorting: `sort` of one or several operands by keys, and the largest elements, `top_k`.

In: operands of one shape and a static axis. Out: the same operands in the order of the keys.
Order: NaN last, -0.0 equal to 0.0, complex numbers by real then imaginary part.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.lax.define import canonicalize_axis, define, product
from jitcore.lax.indexing.dimension_numbers import GatherDimensionNumbers, GatherScatterMode
from jitcore.lax.indexing.gather_scatter import gather
from jitcore.lax.shape import broadcasted_iota, reshape
from jitcore.transforms.batch_rules import rebind
from jitcore.transforms.tangents import is_zero, zero_like


def _sort_aval(*avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int) -> list[ShapedArray]:
    if any(aval.shape != avals[0].shape for aval in avals):
        raise TypeError(
            f"Arguments to sort must have equal shapes, got: {' '.join(str(a.shape) for a in avals)}")
    dtypes.reject_narrow("sort", *(key.dtype for key in avals[:num_keys]))
    return list(avals)


def _sort(*xs, dimension: int, is_stable: bool, num_keys: int):
    if len(xs) == 1 and not dtypes.is_complex(xs[0].dtype):
        return [_sort_values(xs[0], dimension, is_stable)]
    order = _argsort([part for key in xs[:num_keys] for part in _key_parts(key)], dimension, is_stable)
    return [np.take_along_axis(x, order, dimension) for x in xs]


def _sort_values(x: np.ndarray, axis: int, is_stable: bool) -> np.ndarray:
    """The sorted values. Equal elements are the same but for the sign of zeros: NumPy's fastest sort will do
    unless these must keep their order."""
    work = x.astype(np.float32) if dtypes.is_half(x.dtype) else x
    signed_zeros = dtypes.is_floating(x.dtype) and is_stable and bool(np.any(np.signbit(work) & (work == 0)))
    return np.sort(work, axis, kind="stable" if signed_zeros else None).astype(x.dtype, copy=False)


def _key_parts(key: np.ndarray) -> list[np.ndarray]:
    """Real arrays in NumPy's dtypes, most significant first, that order like the key."""
    if dtypes.is_complex(key.dtype):
        return [key.real, key.imag]
    return [key.astype(np.float32) if dtypes.is_half(key.dtype) else key]


def _argsort(keys: list[np.ndarray], axis: int, is_stable: bool) -> np.ndarray:
    if len(keys) > 1:
        return np.lexsort(keys[::-1], axis)
    (key,) = keys
    if key.dtype.itemsize <= 4 and key.size >= _WORTH_PACKING and key.shape[axis] < 1 << 31:
        return _argsort_packed(key, axis)
    return np.argsort(key, axis, kind="stable" if is_stable else None)


_WORTH_PACKING = 1000


def _argsort_packed(key: np.ndarray, axis: int) -> np.ndarray:
    """The stable order by sorting numbers of 64 bits, key above position, which NumPy does by vectors:
    several times faster than its stable sort."""
    if key.dtype.kind == "f":  # one NaN and one zero; then floats order like their bits, inverted below zero
        plain = np.where(np.isnan(key), np.float32(np.nan), np.where(key == 0, np.float32(0), key))
        key = plain.view(np.int32)
        key = np.where(key < 0, key ^ np.int32(0x7FFFFFFF), key)
    packed = key.astype(np.uint64 if key.dtype.kind == "u" else np.int64) << 32
    positions = np.arange(key.shape[axis], dtype=packed.dtype)
    packed |= positions.reshape([-1 if k == axis else 1 for k in range(key.ndim)])
    packed.sort(axis)
    packed &= packed.dtype.type(0xFFFFFFFF)
    return packed.view(np.int64)


def take_along(x, order, axis: int):
    """The elements of x at these distinct places along an axis; the other axes run along."""
    if 0 in aval_of(x).shape:
        return x
    rest = tuple(dim for dim in range(aval_of(x).ndim) if dim != axis)
    return gather.primitive.bind(
        x, reshape(order, (*aval_of(order).shape, 1)), slice_sizes=(1,) * (len(rest) + 1),
        dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), rest, rest),
        mode=GatherScatterMode.PROMISE_IN_BOUNDS, fill_value=None, indices_are_sorted=False,
        unique_indices=True)


def _hlo_key(b, key) -> list:
    """Values whose total order is that of a key: one NaN, and one zero."""
    if dtypes.is_complex(key.dtype):
        part = dtypes.real_dtype(key.dtype)
        return [found for side in ("real", "imag") for found in _hlo_key(b, b.op(side, key, dtype=part))]
    if not dtypes.is_floating(key.dtype):
        return [key]
    zero, nan = (b.full(value, key.shape, key.dtype) for value in (0, np.nan))
    key = b.choose(b.compare("EQ", key, zero), zero, key)
    return [b.choose(b.compare("NE", key, key), nan, key)]


def _hlo_sort(b, *xs, dimension: int, is_stable: bool, num_keys: int):
    def comes_first(*values):
        pairs = list(zip(values[::2], values[1::2]))[:num_keys]
        parts = [pair for key in pairs for pair in zip(*(_hlo_key(b, value) for value in key))]
        found = None
        for one, other in reversed(parts):
            less = b.compare_in_total_order("LT", one, other)
            if found is not None:
                less = b.map("or", less, b.map("and", b.compare_in_total_order("EQ", one, other), found))
            found = less
        return [found]

    body = b.region([((), x.dtype) for x in xs for _ in range(2)], comes_first, is_closed=True)
    return b.ops("sort", xs, [(x.shape, x.dtype) for x in xs], [body], dimension=dimension,
                 is_stable=is_stable)


def _jvp_sort(primitive, primals, tangents, *, dimension: int, **params):
    places = broadcasted_iota(dtypes.int32, aval_of(primals[0]).shape, dimension)
    *outs, order = primitive.bind(*primals, places, dimension=dimension, **params)
    return outs, [t if is_zero(t) else take_along(t, order, dimension) for t in tangents]


@define("sort", impl=_sort, aval=_sort_aval, jvp=_jvp_sort,
        batch=rebind(lambda size, *, dimension, **_: {"dimension": dimension + 1}), hlo=_hlo_sort,
        multiple_results=True, stores_result=True, same_elements=True)
def sort(operand, dimension: int = -1, is_stable: bool = True, num_keys: int = 1):
    """Sorts along an axis.

    Args:
        operand: array, or a sequence of arrays of one shape, which are put in the order of the first
            num_keys ones, the most significant first.
        is_stable: elements with equal keys keep their order.
    Returns: like operand: an array or a tuple.
    Raises: TypeError for no operands or unequal shapes; ValueError for a num_keys that is out of range."""
    several = isinstance(operand, Sequence)
    operands = tuple(operand) if several else (operand,)
    if not operands:
        raise TypeError("Sort requires at least one operand")
    if not 1 <= num_keys <= len(operands):
        raise ValueError(f"num_keys={num_keys} must be between 1 and len(operand)={len(operands)}")
    axis = canonicalize_axis(dimension, aval_of(operands[0]).ndim)
    outs = sort.primitive.bind(*operands, dimension=axis, is_stable=bool(is_stable),
                               num_keys=operator.index(num_keys))
    return tuple(outs) if several else outs[0]


def sort_key_val(keys, values, dimension: int = -1, is_stable: bool = True) -> tuple[Array, Array]:
    """keys sorted along an axis, and values in the same order."""
    return sort((keys, values), dimension, is_stable, num_keys=1)


def argsort(operand, dimension: int = -1, is_stable: bool = True, index_dtype=dtypes.int32) -> Array:
    """Indices that sort operand along an axis. index_dtype: integer dtype of the result."""
    shape = aval_of(operand).shape
    axis = canonicalize_axis(dimension, len(shape))
    return sort_key_val(operand, broadcasted_iota(index_dtype, shape, axis), axis, is_stable)[1]


# -- largest elements ---------------------------------------------------------------------------------------
def _top_k_aval(x: ShapedArray, *, k: int, axis: int) -> list[ShapedArray]:
    dtypes.reject_narrow("top_k", x.dtype)
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    if dtypes.is_complex(x.dtype):
        raise ValueError("top_k is not compatible with complex inputs.")
    if k > x.shape[axis]:
        raise ValueError("k argument to top_k must be no larger than size along axis; "
                         f"got k={k} with shape={list(x.shape)} and axis={axis}")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return [x.update(shape=shape), ShapedArray(shape, dtypes.int32)]


def _total_order(x: np.ndarray) -> np.ndarray:
    """An array that orders like x, and -0.0 below 0.0 too: the bits of floats as integers, NaN on top."""
    if not dtypes.is_floating(x.dtype):
        return x
    bits = np.where(np.isnan(x), np.array(np.nan, x.dtype), x).view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def _select_largest(keys: np.ndarray, k: int) -> np.ndarray:
    """Indices, ascending, of the k largest keys of each row; of equal keys the first ones. Cost: linear."""
    limit = np.partition(keys, keys.shape[1] - k, 1)[:, [-k]]
    chosen = keys >= limit
    if np.count_nonzero(chosen) > k * len(keys):  # several equal the smallest: take the first
        above, equal = keys > limit, keys == limit
        wanted = k - np.count_nonzero(above, 1)[:, None]
        chosen = above | (equal & (np.cumsum(equal, 1) <= wanted))
    return np.nonzero(chosen)[1].reshape(len(keys), k)


def _top_k(x, *, k: int, axis: int):
    moved = np.moveaxis(x, axis, -1)
    rows = moved.reshape(product(moved.shape[:-1]), moved.shape[-1])
    if not k or not rows.size:
        shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
        return [np.empty(shape, x.dtype), np.empty(shape, np.int32)]
    keys = _total_order(rows)
    largest = _select_largest(keys, k)
    # a stable ascending sort of the reversed row, read backwards, keeps equal elements in their order
    ascending = np.argsort(np.take_along_axis(keys, largest, 1)[:, ::-1], 1, kind="stable")
    order = np.take_along_axis(largest, k - 1 - ascending[:, ::-1], 1)
    order = np.moveaxis(order.reshape(*moved.shape[:-1], k), -1, axis)
    return [np.take_along_axis(x, order, axis), order.astype(np.int32)]


def _jvp_top_k(primitive, primals, tangents, *, k: int, axis: int):
    largest, places = primitive.bind(*primals, k=k, axis=axis)
    return [largest, places], [take_along(tangents[0], places, axis), zero_like(places)]


@define("top_k", impl=_top_k, aval=_top_k_aval, jvp=_jvp_top_k,
        batch=rebind(lambda size, *, axis, **_: {"axis": axis + 1}),
        multiple_results=True)
def top_k(operand, k: int, *, axis: int = -1) -> list[Array]:
    """The k largest elements along an axis, largest first, and their indices (int32).

    NaN counts as largest, -0.0 as less than 0.0; of equal elements the first comes first.
    Raises: ValueError when the axis is shorter than k."""
    axis = canonicalize_axis(axis, aval_of(operand).ndim)
    return top_k.primitive.bind(operand, k=operator.index(k), axis=axis)
