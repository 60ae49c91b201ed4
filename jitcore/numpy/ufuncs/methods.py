"""The methods of a `Ufunc`: `reduce`, `accumulate`, `outer`, `at`, `reduceat`.

In: the ufunc and its arguments. Out: arrays. The folds that have a primitive use it; the others go along the
axis step by step.
"""

from __future__ import annotations

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.lax.define import canonicalize_axis
from jitcore.numpy import reductions
from jitcore.numpy.arrays.promotion import (canonicalize_axes, convert_dtype, ensure_array, ensure_arrays,
                                            reject_out)
from jitcore.numpy.creation import asarray
from jitcore.numpy.indexing.reading import get_item
from jitcore.numpy.indexing.update import update_item
from jitcore.numpy.shaping import moveaxis
from jitcore.numpy.ufuncs.arithmetic import Ufunc

#: By ufunc: the function that folds as it does; the one of partial folds; the update that combines with it.
REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
              "logical_or": "any"}
ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}
UPDATES = {"add": "add", "subtract": "subtract", "multiply": "multiply", "maximum": "max", "minimum": "min"}


def reduce(self, a, axis=0, dtype=None, out=None, keepdims: bool = False, initial=None, where=None):
    """Folds the function along one axis, several (tuple) or all (None). Same as: `numpy.ufunc.reduce`.

    Raises: ValueError for an empty axis without identity."""
    name = self.__name__
    reject_out(f"{name}.reduce", out)
    a = ensure_array(name, a)
    if dtype is not None:
        a = convert_dtype(a, dtypes.canonicalize_for(dtype, a.dtype))
    if name in REDUCTIONS:
        options = {} if initial is None else {"initial": initial}
        return getattr(reductions, REDUCTIONS[name])(a, axis, keepdims=keepdims, where=where, **options)
    if where is not None:
        raise NotImplementedError(f"where argument of jnp.{name}.reduce is not supported.")
    axes = canonicalize_axes(axis, a.ndim)
    kept = a
    for i in sorted(axes, reverse=True):
        kept = _fold_axis(self, kept, i)
    if initial is not None:
        kept = self(asarray(initial, kept.dtype), kept)
    return lax.expand_dims(kept, axes) if keepdims else kept


def _fold_axis(ufunc, a, axis: int) -> Array:
    extent = a.shape[axis]
    if extent == 0:
        if ufunc.identity is None:
            raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
        return lax.full((*a.shape[:axis], *a.shape[axis + 1 :]), ufunc.identity, a.dtype)
    result = lax.index_in_dim(a, 0, axis, False)
    for i in range(1, extent):
        result = ufunc(result, lax.index_in_dim(a, i, axis, False))
    return result


def accumulate(self, a, axis: int = 0, dtype=None, out=None):
    """All partial folds along one axis. Same as: `numpy.ufunc.accumulate`."""
    name = self.__name__
    reject_out(f"{name}.accumulate", out)
    a = ensure_array(name, a)
    a = a if dtype is None else convert_dtype(a, dtypes.canonicalize_for(dtype, a.dtype))
    axis = canonicalize_axis(axis, a.ndim)
    if name in ACCUMULATIONS and a.dtype != dtypes.bool_:
        return getattr(lax, ACCUMULATIONS[name])(a, axis)
    parts = []
    for i in range(a.shape[axis]):
        part = lax.index_in_dim(a, i, axis, False)
        parts.append(self(parts[-1], part) if parts else part)
    return lax.concatenate([lax.expand_dims(part, (axis,)) for part in parts], axis) if parts else a


def outer(self, a, b, /):
    """The function of every pair: shape a.shape + b.shape. Same as: `numpy.ufunc.outer`."""
    a, b = ensure_arrays(self.__name__, a, b)
    return self(lax.reshape(a, a.shape + (1,) * b.ndim), b)


def at(self, a, indices, b=None, /, *, inplace: bool = True):
    """A copy of a with b applied at the indices, repeated ones too (`inplace` must be False).

    Raises: NotImplementedError for inplace=True: arrays are immutable."""
    if inplace:
        raise NotImplementedError("jnp ufuncs cannot modify arrays in-place: call at(..., inplace=False).")
    name = self.__name__
    a = ensure_array(name, a)
    if name in UPDATES:
        return update_item(a, indices, b, UPDATES[name])
    return update_item(a, indices, self(get_item(a, indices), b))


def reduceat(self, a, indices, axis: int = 0, dtype=None, out=None):
    """Folds between successive indices, which are known, along one axis; where the next is not larger, one
    element alone. Same as: `numpy.ufunc.reduceat`."""
    reject_out(f"{self.__name__}.reduceat", out)
    a = ensure_array(self.__name__, a)
    axis = canonicalize_axis(axis, a.ndim)
    a = moveaxis(a if dtype is None else convert_dtype(a, dtypes.canonicalize_for(dtype, a.dtype)), axis, 0)
    bounds = [int(i) for i in indices]
    parts = []
    for start, stop in zip(bounds, [*bounds[1:], a.shape[0]]):
        part = get_item(a, slice(start, stop if stop > start else start + 1))
        parts.append(lax.expand_dims(self.reduce(part, 0), (0,)))
    return moveaxis(lax.concatenate(parts, 0), 0, axis)


def install_methods() -> None:
    """Puts the methods on the class."""
    for method in (reduce, accumulate, outer, at, reduceat):
        setattr(Ufunc, method.__name__, method)
