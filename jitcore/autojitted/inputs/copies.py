"""Copies of arguments, for trials whose writes nobody may see, and comparison of what trials gave."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitcore.rewriter.journal import BOUND_METHODS, list_children

#: Relative difference of floating-point results that another order of operations explains.
_TOLERANCE = {"f": 1e-7, "c": 1e-7}
_SHARED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodType, np.ufunc,
           np.vectorize)


def copy_values(values: Sequence[Any]) -> list[Any] | None:
    """The values with arrays and containers of their own; what was one object is one object. None where
    functions or methods among them know what would be copied: they would change it, and not the copy."""
    known: dict[int, Any] = {}
    found = [_copy(value, known) for value in values]
    return None if any(_knows(value, known) for value in values) else found


def _knows(value: Any, copied: Mapping[int, Any]) -> bool:
    """Whether a function or method that can be reached from a value knows an object that was copied."""
    waiting, seen = [(value, False)], set()
    while waiting:
        value, is_known = waiting.pop()
        if is_known and id(value) in copied:
            return True
        if (id(value), is_known) in seen:
            continue
        seen.add((id(value), is_known))
        if isinstance(value, types.FunctionType):
            inner, is_known = [*(value.__closure__ or ()), *(value.__defaults__ or ())], True
        else:
            inner = [] if isinstance(value, np.ndarray) else list_children(value) or ()
            is_known |= isinstance(value, (*BOUND_METHODS, functools.partial))
        waiting += [(one, is_known) for one in inner]
    return False


def _copy(value: Any, known: dict[int, Any]) -> Any:
    if id(value) in known:
        return known[id(value)]
    made: Any
    if isinstance(value, np.ndarray):
        made = known[id(value)] = np.copy(value, order="K", subok=True)
        return made
    kind = type(value)
    if kind is list:
        made = known[id(value)] = []
        made.extend([_copy(item, known) for item in value])
        return made
    if kind is dict:
        made = known[id(value)] = {}
        made.update({key: _copy(item, known) for key, item in value.items()})
        return made
    if isinstance(value, tuple):
        items = [_copy(item, known) for item in value]
        return tuple(items) if kind is tuple else kind(*items)
    if isinstance(value, _SHARED) or not hasattr(value, "__dict__") or kind.__new__ is not object.__new__:
        return value
    made = known[id(value)] = object.__new__(kind)
    made.__dict__.update({name: _copy(item, known) for name, item in vars(value).items()})
    return made


def is_alike(one: Any, other: Any) -> bool:
    """Whether two results are of the same types and their values equal but for rounding."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (np.ndarray, np.generic)):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        return _is_close(np.asarray(one), np.asarray(other))
    if isinstance(one, (float, complex)):
        return _is_close(np.asarray(one), np.asarray(other))
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_alike, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(is_alike(one[key], other[key]) for key in one)
    if hasattr(one, "__dict__") and type(one).__eq__ is object.__eq__:
        return is_alike(vars(one), vars(other))
    return bool(one == other)


def _is_close(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype.kind not in _TOLERANCE:
        return bool(np.array_equal(one, other))
    tolerance = max(_TOLERANCE[one.dtype.kind], 50 * float(np.finfo(one.dtype).eps))
    finite = np.isfinite(one)
    if not np.array_equal(finite, np.isfinite(other)):
        return False
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return False
    scale = np.max(np.abs(one[finite]), initial=0.0)
    return bool(
        np.all(
            np.abs(one[finite] - other[finite]) <= tolerance * np.maximum(np.abs(one[finite]), 1e-3 * scale)
        )
    )
