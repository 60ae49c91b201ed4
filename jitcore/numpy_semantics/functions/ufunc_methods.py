"""Methods of ufuncs on handles: `reduce`, `accumulate`, `outer`, `at`, `reduceat`.

In: a ufunc and what its method takes. Out: what NumPy gives.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import lax
from jitcore.numpy.indexing.plan import parse_index
from jitcore.numpy.ufuncs.methods import ACCUMULATIONS, REDUCTIONS, UPDATES
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import finish, given
from jitcore.numpy_semantics.functions.dispatch import apply_function
from jitcore.numpy_semantics.values.items import NUMPY_RULES, TracedExtent
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array, wrap_result
from jitcore.numpy_semantics.values.promotion import (as_operand, cast_raw, check_aval, promotion_type,
                                                      shape_of, to_raw)

#: Running folds that NumPy has as functions.
_RUNNING_FOLDS = ("cumsum", "cumprod")


def is_function(ufunc: np.ufunc, method: str) -> bool:
    """Whether a method is another function or the ufunc itself, of operands of other shapes."""
    name = ufunc.__name__
    is_fold = name in REDUCTIONS if method == "reduce" else ACCUMULATIONS.get(name) in _RUNNING_FOLDS
    return method == "outer" or method in ("reduce", "accumulate") and is_fold


def reduce(ufunc, array, axis=0, dtype=None, out=None, keepdims=False, initial=np._NoValue, where=True):
    """Folds along an axis, several (tuple), or all (None)."""
    if isinstance(out, tuple):
        (out,) = out
    array, function = as_operand(array), REDUCTIONS.get(ufunc.__name__)
    options = given(initial=initial, where=None if where is True else where, dtype=dtype)
    if function is not None:
        if function in ("all", "any"):
            options.pop("initial", None)
        options |= {"axis": axis, "out": out, "keepdims": keepdims}
        return apply_function(getattr(np, function), (array,), options)
    if options or isinstance(axis, tuple):
        raise not_traceable(f"np.{ufunc.__name__}.reduce with initial=, where=, dtype= or several axes")
    found = to_raw(_fold(ufunc, array if isinstance(array, NDArray) else new_array(to_raw(array)), axis))
    if keepdims:
        found = lax.expand_dims(found, tuple(range(array.ndim)) if axis is None else (axis % array.ndim,))
    return finish(found, out)


def _fold(ufunc, array: NDArray, axis: int | None) -> Any:
    """Element by element: halves of the axis are joined, where the order does not matter."""
    array, axis = (array.ravel(), 0) if axis is None else (array, axis % array.ndim)
    size = array.shape[axis]
    if not size:
        if ufunc.identity is None:
            raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
        shape = (*array.shape[:axis], *array.shape[axis + 1 :])
        return wrap_result(lax.full(shape, ufunc.identity, array.dtype))

    def part(low, high):
        return array[(slice(None),) * axis + (slice(low, high),)]

    if ufunc.identity is None and ufunc not in (np.fmin, np.fmax) or size < 4:
        array = functools.reduce(ufunc, [part(i, i + 1) for i in range(size)])
    while array.shape[axis] > 1:
        size = array.shape[axis]
        joint = ufunc(part(0, size // 2), part(size // 2, size // 2 * 2))
        rest = [to_raw(part(size - 1, size))] if size % 2 else []
        array = new_array(lax.concatenate([to_raw(joint), *rest], axis)) if rest else joint
    return wrap_result(lax.squeeze(to_raw(array), (axis,)))


def accumulate(ufunc, array, axis=0, dtype=None, out=None):
    """All partial folds along an axis."""
    if isinstance(out, tuple):
        (out,) = out
    array, function = as_operand(array), ACCUMULATIONS.get(ufunc.__name__)
    if function in _RUNNING_FOLDS:
        options = {"axis": axis, "dtype": dtype, "out": out}
        return apply_function(getattr(np, function), (array,), options)
    if dtype is not None or function is None or promotion_type(array).kind == "c":
        raise not_traceable(f"np.{ufunc.__name__}.accumulate")
    raw = to_raw(array)
    wide = cast_raw(raw, np.dtype(np.uint8)) if raw.dtype == np.bool_ else raw
    return finish(check_aval(cast_raw(getattr(lax, function)(wide, axis % raw.ndim), raw.dtype)), out)


def outer(ufunc, a, b, **kwargs):
    """The ufunc of every pair of elements."""
    a, b = as_operand(a), as_operand(b)
    return ufunc(a[(..., *[None] * len(shape_of(b)))] if shape_of(a) and shape_of(b) else a, b, **kwargs)


#: Of these, ints give the same last bits in any width.
_WRAPPING = ("add", "subtract", "multiply")


def at(ufunc, array, indices, *values):
    """`array[indices] = ufunc(array[indices], values)`, for repeated indices again and again."""
    if not isinstance(array, NDArray):
        raise not_traceable("ufunc.at into an array that is not traced")
    if not values:
        array[indices] = ufunc(array[indices])
        return
    value = as_operand(values[0])
    update = UPDATES.get(ufunc.__name__)
    if update is None:
        raise not_traceable(f"np.{ufunc.__name__}.at")
    kinds = (array.dtype, promotion_type(value))
    found = ufunc.resolve_dtypes((*kinds, None))
    if not np.can_cast(found[-1], array.dtype, "same_kind"):
        ufunc.at(np.empty(1, array.dtype), [0], np.empty(1, np.dtype(kinds[1])))  # raises
    if found[-1] != array.dtype and not (found[-1].kind in "iu" and update in _WRAPPING):
        raise not_traceable(f"np.{ufunc.__name__}.at computes in {found[-1]} for an array of {array.dtype}")
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
    return finish(lax.concatenate(parts, axis % array.ndim), out)


METHODS = {"reduce": reduce, "accumulate": accumulate, "outer": outer, "at": at, "reduceat": reduceat}
