"""Ufuncs of partial arrays: of the frames, where the operands have the same places.

In: a ufunc and operands. Out: a partial array in the frame where they meet, or its reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitcore.numpy_semantics.dynamic_extents.align import align, list_items
from jitcore.numpy_semantics.dynamic_extents.array import FUNCTIONS, PartialArray, accepts_partial
from jitcore.numpy_semantics.dynamic_extents.spans import Item
from jitcore.numpy_semantics.dynamic_extents.writing import assign
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.ufuncs import _raise_casting

_REDUCTIONS = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min,
               np.logical_and: np.all, np.logical_or: np.any}


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence, kwargs: dict) -> Any:
    """Raises: NotTraceable for methods but `reduce`, and for `where=`."""
    if method == "reduce" and ufunc in _REDUCTIONS:
        return FUNCTIONS[_REDUCTIONS[ufunc]](inputs[0], **{"axis": 0, **kwargs})
    if method == "accumulate" and ufunc in (np.add, np.multiply):
        return FUNCTIONS[np.cumsum if ufunc is np.add else np.cumprod](inputs[0], **{"axis": 0, **kwargs})
    if method != "__call__" or ufunc.signature is not None and ufunc is not np.matmul:
        raise not_traceable(
            f"np.{ufunc.__name__}.{method} of an array whose extent is traced is not supported"
        )
    if kwargs.get("where", True) is not True:
        raise not_traceable(f"np.{ufunc.__name__} with where= and an array whose extent is traced")
    kwargs = {name: value for name, value in kwargs.items() if name != "where"}
    outs = kwargs.pop("out", None)
    if ufunc is np.matmul:
        results: Any = FUNCTIONS[np.matmul](*inputs, **kwargs)
    else:
        frames, items = align(inputs)
        results = wrap(ufunc(*frames, **kwargs), items)
    if outs is None:
        return results
    many = results if isinstance(results, tuple) else (results,)
    outs = outs if isinstance(outs, tuple) else (outs,)
    for out, result in zip(outs, many):
        if out is not None:
            _check_casting(ufunc, inputs, result.dtype, out.dtype, kwargs.get("casting", "same_kind"))
            assign(out, result, list_items(out))
    kept = tuple(result if out is None else out for out, result in zip(outs, many))
    return kept if isinstance(results, tuple) else kept[0]


def _check_casting(ufunc, inputs, dtype: np.dtype, wanted: np.dtype, casting: str) -> None:
    """Raises: NumPy's UFuncTypeError where a result of this dtype may not be stored as the wanted one."""
    if not np.can_cast(dtype, wanted, casting):
        _raise_casting(ufunc, inputs, wanted, casting)


def wrap(frames: Any, items: Sequence[Item]) -> Any:
    """Arrays of these items; a plain array where all extents are known."""
    if isinstance(frames, tuple):
        return tuple(wrap(frame, items) for frame in frames)
    if all(item.is_whole for item in items):
        return frames
    return PartialArray(frames, items)


@accepts_partial(np.where)
def where(condition, x=None, y=None):
    if x is None:
        return np.nonzero(condition)
    frames, items = align([condition, x, y])
    return wrap(np.where(*frames), items)


@accepts_partial(np.clip, method="clip")
def clip(a, a_min=None, a_max=None, out=None, **kwargs):
    bounds = [x for x in (a_min, a_max) if x is not None]
    frames, items = align([a, *bounds])
    rest = iter(frames[1:])
    low, high = (None if x is None else next(rest) for x in (a_min, a_max))
    result = wrap(np.clip(frames[0], low, high, **kwargs), items)
    if out is None:
        return result
    assign(out, result, list_items(out))
    return out


def _map_function(function):
    """A function that treats each element by itself, and its one array first."""

    def implementation(a, *args, **kwargs):
        return wrap(function(a.frame, *args, **kwargs), a.items)

    return accepts_partial(function)(implementation)


for _function in (np.real, np.imag, np.angle, np.round, np.around, np.nan_to_num, np.isreal, np.iscomplex,
                  np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.copy, np.real_if_close,
                  np.i0, np.sinc):
    _map_function(_function)


def _map_method(name: str) -> None:
    def implementation(a, *args, **kwargs):
        return PartialArray(getattr(a.frame, name)(*args, **kwargs), a.items)

    accepts_partial(method=name)(implementation)


for _name in ("astype", "conj", "conjugate", "round"):
    _map_method(_name)


@accepts_partial(method="copy")
def copy(a, order="C"):
    return PartialArray(a.frame.copy(), a.items)
