"""The methods of a `Ufunc`: `reduce`, `accumulate`, `outer`, `at`, `reduceat`.

In: the ufunc and its arguments. Out: arrays. The folds that have a primitive use it; the others are loops
along the axis.
"""

from __future__ import annotations

import math

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.lax.define import canonicalize_axis
from jitcore.numpy import reductions
from jitcore.numpy.arrays.promotion import (apply_select, canonicalize_axes, convert_dtype, ensure_array,
                                            ensure_arrays, reject_out)
from jitcore.numpy.creation import asarray
from jitcore.numpy.indexing.reading import get_item, read_with_mode
from jitcore.numpy.indexing.update import update_item
from jitcore.numpy.shaping import broadcast_to, moveaxis
from jitcore.numpy.ufuncs.arithmetic import Ufunc

#: By ufunc: the function that folds as it does; the one of partial folds; the update that combines with it.
REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
              "logical_or": "any"}
_WITH_INITIAL = ("add", "multiply", "maximum", "minimum")
ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}
UPDATES = {"add": "add", "subtract": "subtract", "multiply": "multiply", "maximum": "max", "minimum": "min"}


def reduce(self, a, axis=0, dtype=None, out=None, keepdims: bool = False, initial=None, where=None):
    """Folds the function along one axis, several (tuple) or all (None), in the order of the elements. Same
    as: `numpy.ufunc.reduce`.

    Args:
        initial: what the fold begins with; the identity, or the first element, where it is None.
        where: a mask that broadcasts to a; other elements are left out.
    Raises: ValueError for an empty axis or a mask without a beginning, and a mask that is not of bools."""
    name = self.__name__
    reject_out(f"{name}.reduce", out)
    a = ensure_array(name, a)
    if where is not None:
        where = _check_mask(self, where, initial)
    if dtype is not None:
        a = convert_dtype(a, dtypes.canonicalize_for(dtype, a.dtype))
    if name in REDUCTIONS and (initial is None or name in _WITH_INITIAL):
        options = {} if initial is None else {"initial": initial}
        return getattr(reductions, REDUCTIONS[name])(a, axis, keepdims=keepdims, where=where, **options)
    axes = canonicalize_axes(axis, a.ndim)
    result = _fold(self, _join_axes(a, axes), self.identity if initial is None else initial,
                   None if where is None else _join_axes(broadcast_to(where, a.shape), axes), dtype)
    return lax.expand_dims(result, axes) if keepdims else result


def _check_mask(ufunc, where, initial) -> Array:
    if ufunc.identity is None and initial is None:
        raise ValueError(f"reduction operation {ufunc.__name__!r} does not have an identity, so to use a "
                         "where mask one has to specify 'initial'.")
    where = ensure_array(f"{ufunc.__name__}.reduce", where)
    if where.dtype != dtypes.bool_:
        raise ValueError(f"where argument must have dtype=bool; got dtype={where.dtype}")
    return where


def _join_axes(a, axes: tuple[int, ...]) -> Array:
    """a with these axes in front, as one."""
    rest = [extent for i, extent in enumerate(a.shape) if i not in axes]
    return lax.reshape(moveaxis(a, axes, range(len(axes))), (math.prod(a.shape[i] for i in axes), *rest))


def _fold(ufunc, a, first, where, dtype) -> Array:
    """The function along the first axis, from `first` on, or from the first element."""
    one = lax.full((), 1, a.dtype)
    dtype = dtype or ufunc(one, one).dtype
    if first is None and a.shape[0] == 0:
        raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
    a = convert_dtype(a, dtype)
    if first is None:
        kept, a = a[0], a[1:]
    else:
        first = asarray(first)
        kept = broadcast_to(convert_dtype(first, dtype), a.shape[1:])

    def step(kept, row):
        new = convert_dtype(ufunc(kept, row[0]), dtype)
        return new if where is None else apply_select(row[1], new, kept), None

    return lax.scan(step, kept, (a,) if where is None else (a, where))[0]


def accumulate(self, a, axis: int = 0, dtype=None, out=None):
    """All partial folds along one axis. Same as: `numpy.ufunc.accumulate`."""
    name = self.__name__
    reject_out(f"{name}.accumulate", out)
    a = ensure_array(name, a)
    a = a if dtype is None else convert_dtype(a, dtypes.canonicalize_for(dtype, a.dtype))
    axis = canonicalize_axis(axis, a.ndim)
    if name in ("add", "multiply") and a.dtype == dtypes.bool_ and dtype is None:
        a = convert_dtype(a, dtypes.canonicalize(int))  # as their reductions count
    if name in ACCUMULATIONS and a.dtype != dtypes.bool_:
        return getattr(lax, ACCUMULATIONS[name])(a, axis)
    one = lax.full((), 1, a.dtype)
    dtype = dtype or self(one, one).dtype
    a = convert_dtype(moveaxis(a, axis, 0), dtype)
    if a.shape[0] == 0:
        return moveaxis(a, 0, axis)

    def step(kept, row):
        new = convert_dtype(self(kept, row), dtype)
        return new, new

    rest = lax.scan(step, a[0], a[1:])[1]
    return moveaxis(lax.concatenate([a[:1], rest], 0), 0, axis)


def outer(self, a, b, /):
    """The function of every pair: shape a.shape + b.shape. Same as: `numpy.ufunc.outer`."""
    a, b = ensure_arrays(self.__name__, a, b)
    return self(lax.reshape(a, a.shape + (1,) * b.ndim), lax.reshape(b, (1,) * a.ndim + b.shape))


def at(self, a, indices, b=None, /, *, inplace: bool = True):
    """A copy of a with b applied at the indices, repeated ones one after the other (`inplace` must be False).

    Raises: NotImplementedError for inplace=True: arrays are immutable."""
    if inplace:
        raise NotImplementedError("jnp ufuncs cannot modify arrays in-place: call at(..., inplace=False).")
    name = self.__name__
    a = ensure_array(name, a)
    is_ordered = name in ("maximum", "minimum")
    if name in UPDATES and a.dtype != dtypes.bool_ and not (is_ordered and dtypes.is_complex(a.dtype)):
        return update_item(a, indices, b, UPDATES[name])
    b = asarray(b)
    a = convert_dtype(a, self(lax.full((), 1, a.dtype), lax.full((), 1, b.dtype)).dtype)
    # places in the flat array; those of indices out of range lie behind its end, where updates are dropped
    places = read_with_mode(lax.reshape(lax.iota(dtypes.int32, a.size), a.shape), indices, mode="fill",
                            fill_value=a.size)
    values = lax.reshape(broadcast_to(b, places.shape), (places.size,))

    def step(flat, update):
        place, value = update
        return update_item(flat, place, convert_dtype(self(flat[place], value), a.dtype)), None

    flat = lax.scan(step, lax.reshape(a, (a.size,)), (lax.reshape(places, (places.size,)), values))[0]
    return lax.reshape(flat, a.shape)


def reduceat(self, a, indices, axis: int = 0, dtype=None, out=None):
    """Folds between successive indices along one axis; where the next is not larger, one element alone. Same
    as: `numpy.ufunc.reduceat`."""
    reject_out(f"{self.__name__}.reduceat", out)
    a = ensure_array(self.__name__, a)
    axis = canonicalize_axis(axis, a.ndim)
    a = moveaxis(a if dtype is None else convert_dtype(a, dtypes.canonicalize_for(dtype, a.dtype)), axis, 0)
    starts = asarray(indices)
    first = get_item(a, starts)
    stops = lax.concatenate([starts[1:], lax.full((1,), a.shape[0], starts.dtype)], 0)
    place_shape = (starts.shape[0],) + (1,) * (a.ndim - 1)

    def step(kept, element):  # all segments at once; an element counts for those that it lies in
        place, value = element
        is_inside = lax.reshape((starts < place) & (place < stops), place_shape)
        new = convert_dtype(self(kept, lax.expand_dims(value, (0,))), a.dtype)
        return apply_select(is_inside, new, kept), None

    places = lax.iota(starts.dtype, a.shape[0])
    return moveaxis(lax.scan(step, first, (places, a))[0], 0, axis)


def install_methods() -> None:
    """Puts the methods on the class."""
    for method in (reduce, accumulate, outer, at, reduceat):
        setattr(Ufunc, method.__name__, method)
