"""Methods of ufuncs on handles: `reduce`, `accumulate`, `outer`, `at`, `reduceat`.

In: a ufunc and what its method takes. Out: what NumPy gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import lax
from jitcore.numpy.indexing.plan import parse_index
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.dispatch import apply_function
from jitcore.numpy_semantics.values.items import NUMPY_RULES, TracedExtent
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array, wrap_result
from jitcore.numpy_semantics.values.promotion import (
    as_operand,
    cast_raw,
    check_aval,
    promotion_type,
    shape_of,
    to_raw,
)

#: The functions that fold and accumulate as these ufuncs do, with the same dtypes.
_REDUCTIONS = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min,
               np.logical_and: np.all, np.logical_or: np.any}
_ACCUMULATIONS = {np.add: np.cumsum, np.multiply: np.cumprod}


def is_function(ufunc: np.ufunc, method: str) -> bool:
    """Whether a method is another function or the ufunc itself, of operands of other shapes."""
    return method == "outer" or ufunc in {"reduce": _REDUCTIONS, "accumulate": _ACCUMULATIONS}.get(method, ())


def reduce(ufunc, array, axis=0, dtype=None, out=None, keepdims=False, initial=np._NoValue, where=True):
    """Folds along an axis, several (tuple), or all (None)."""
    if isinstance(out, tuple):
        (out,) = out
    array = as_operand(array)
    if ufunc in _REDUCTIONS:
        options = {"axis": axis, "out": out, "keepdims": keepdims}
        if ufunc not in (np.logical_and, np.logical_or):
            options |= {} if initial is np._NoValue else {"initial": initial}
        options |= {} if where is True else {"where": where}
        options |= {} if dtype is None else {"dtype": dtype}
        return apply_function(_REDUCTIONS[ufunc], (array,), options)
    if where is not True or initial is not np._NoValue or isinstance(axis, tuple) or dtype is not None:
        raise not_traceable(f"np.{ufunc.__name__}.reduce with initial=, where=, dtype= or several axes")
    found = _fold(ufunc, array if isinstance(array, NDArray) else new_array(to_raw(array)), axis)
    if keepdims:
        found = wrap_result(lax.expand_dims(to_raw(found), _list_axes(axis, array.ndim)))
    return found if out is None else _put(out, found)


def _list_axes(axis: Any, rank: int) -> tuple:
    return tuple(range(rank)) if axis is None else (axis % rank,)


def _fold(ufunc, array: NDArray, axis: Any) -> Any:
    """Element by element: halves of the axis are joined, where the order does not matter."""
    if axis is None:
        array, axis = array.ravel(), 0
    moved = [slice(None)] * array.ndim
    size = array.shape[axis]
    if not size:
        if ufunc.identity is None:
            raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
        shape = tuple(n for i, n in enumerate(array.shape) if i != axis % array.ndim)
        return wrap_result(lax.full(shape, ufunc.identity, array.dtype))

    def part(low, high):
        moved[axis] = slice(low, high)
        return array[tuple(moved)]

    if ufunc.identity is None and ufunc not in (np.fmin, np.fmax) or size < 4:
        found = part(0, 1)
        for i in range(1, size):
            found = ufunc(found, part(i, i + 1))
        array = found
    while array.shape[axis] > 1:
        size = array.shape[axis]
        half = size // 2
        joint, rest = ufunc(part(0, half), part(half, 2 * half)), part(2 * half, size)
        array = joint
        if size % 2:
            array = new_array(lax.concatenate([to_raw(joint), to_raw(rest)], axis % joint.ndim))
    return wrap_result(lax.squeeze(to_raw(array), (axis % array.ndim,)))


def _put(out: NDArray, value: Any) -> NDArray:
    np.positive(value, out=out) if out.dtype != np.bool_ else out.assign(value)
    return out


def accumulate(ufunc, array, axis=0, dtype=None, out=None):
    """All partial folds along an axis."""
    if isinstance(out, tuple):
        (out,) = out
    array = as_operand(array)
    if ufunc in _ACCUMULATIONS:
        return apply_function(_ACCUMULATIONS[ufunc], (array,), {"axis": axis, "dtype": dtype, "out": out})
    if dtype is not None or ufunc not in (np.maximum, np.minimum) or promotion_type(array).kind == "c":
        raise not_traceable(f"np.{ufunc.__name__}.accumulate")
    raw = to_raw(array)
    wide = cast_raw(raw, np.dtype(np.uint8)) if raw.dtype == np.bool_ else raw
    found = (lax.cummax if ufunc is np.maximum else lax.cummin)(wide, axis % raw.ndim)
    found = new_array(check_aval(cast_raw(found, raw.dtype)))
    return found if out is None else _put(out, found)


def outer(ufunc, a, b, **kwargs):
    """The ufunc of every pair of elements."""
    a, b = as_operand(a), as_operand(b)
    return ufunc(a[(..., *[None] * len(shape_of(b)))] if shape_of(a) and shape_of(b) else a, b, **kwargs)


_UPDATES = {
    np.add: "add", np.subtract: "subtract", np.multiply: "multiply", np.maximum: "max", np.minimum: "min",
}


def at(ufunc, array, indices, *values):
    """`array[indices] = ufunc(array[indices], values)`, for repeated indices again and again."""
    if not isinstance(array, NDArray):
        raise not_traceable("ufunc.at into an array that is not traced")
    if not values:
        array[indices] = ufunc(array[indices])
        return
    value = as_operand(values[0])
    update = _UPDATES.get(ufunc)
    if update is None:
        raise not_traceable(f"np.{ufunc.__name__}.at")
    kinds = (array.dtype, promotion_type(value))
    found = ufunc.resolve_dtypes((*kinds, None))
    if not np.can_cast(found[-1], array.dtype, "same_kind"):
        ufunc.at(np.empty(1, array.dtype), [0], np.empty(1, np.dtype(kinds[1])))  # raises
    index = tuple(map(_check_item, array.shape, indices)) if isinstance(indices, tuple) else \
        _check_item(array.shape[0], indices)
    array.write(getattr(jnp.asarray(array.read()).at[index], update)(to_raw(value, array.dtype)))


def _check_item(extent: int, item: Any) -> Any:
    if isinstance(item, slice) or item is Ellipsis or item is None:
        return item
    try:
        found = parse_index((extent,), item, NUMPY_RULES)[0].value
    except TracedExtent:
        raise not_traceable("ufunc.at with a traced mask or slice") from None
    return to_raw(found) if not isinstance(found, np.ndarray) else found


def reduceat(ufunc, array, indices, axis=0, dtype=None, out=None):
    """Folds of the parts that begin at indices, which are known."""
    if isinstance(indices, NDArray):
        raise not_traceable("ufunc.reduceat at traced indices")
    array = as_operand(array)
    bounds = [int(i) for i in indices]
    parts = []
    for start, stop in zip(bounds, [*bounds[1:], array.shape[axis]]):
        index = (slice(None),) * (axis % array.ndim) + (slice(start, max(stop, start + 1)),)
        parts.append(to_raw(reduce(ufunc, array[index], axis, dtype, keepdims=True)))
    found = new_array(lax.concatenate(parts, axis % array.ndim))
    return found if out is None else _put(out[0] if isinstance(out, tuple) else out, found)


METHODS = {"reduce": reduce, "accumulate": accumulate, "outer": outer, "at": at, "reduceat": reduceat}
