"""Arrays of nested sequences with traced elements: what `np.array` makes of lists of numbers.

In: lists and tuples with handles among the elements. Out: an `NDArray` of its own memory; NumPy's functions
for arguments that are such sequences, in which NumPy does not look for handles.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore import lax
from jitcore.array import Array
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.dispatch import apply_function
from jitcore.numpy_semantics.values.lists import Run, find_runs
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.operators import ACCEPTED
from jitcore.numpy_semantics.values.promotion import (CONVERSIONS, check_dtype, promotion_type, shape_of,
                                                      to_item)
from jitcore.rewriter.handles import Handle


def stack_sequence(values: Any, dtype: Any = None) -> NDArray:
    """`np.array` of nested sequences with handles among the elements."""
    leaves, shape = _flatten_sequence(values)
    if dtype is None:
        kinds = [promotion_type(leaf) for leaf in leaves]
        dtype = np.result_type(*map(np.dtype, kinds)) if kinds else np.dtype(float)
    dtype = check_dtype(dtype)
    if not leaves:
        return new_array(lax.full(shape, 0, dtype))
    if not shape:
        return new_array(to_item(leaves[0], dtype))
    parts = [_read_run(leaves, run, dtype) for run in find_runs(leaves)]
    return new_array(lax.reshape(lax.concatenate(parts, 0), (*shape, *parts[0].shape[1:])))


CONVERSIONS[list] = CONVERSIONS[tuple] = stack_sequence


def _read_run(leaves: list, run: Run, dtype: np.dtype) -> Array:
    """Elements of a sequence as rows of an array."""
    if run.stop - run.start == 1:
        return lax.expand_dims(to_item(leaves[run.start], dtype, is_packed=True), (0,))
    rows = lax.slice_in_dim(run.stack, run.first, run.first + run.stop - run.start)
    return to_item(new_array(rows), dtype)


def _flatten_sequence(values: Any) -> tuple[list, tuple]:
    """The operands that nested sequences are made of, and the shape of the nesting."""
    if not isinstance(values, (list, tuple)):
        if not isinstance(values, ACCEPTED):
            raise not_traceable(f"an array with an element of type {type(values).__name__}")
        return [values], ()
    parts = [_flatten_sequence(value) for value in values]
    shapes = {shape + (() if len(own) != 1 or shape else shape_of(own[0])) for own, shape in parts}
    if len(shapes) > 1:
        raise ValueError(
            "setting an array element with a sequence. The requested array has an inhomogeneous shape")
    inner = parts[0][1] if parts else ()
    return [leaf for own, _ in parts for leaf in own], (len(parts), *inner)


def has_handle(value: Any) -> bool:
    """Whether nested sequences have a handle among their elements."""
    return isinstance(value, (list, tuple)) and any(
        isinstance(part, Handle) or has_handle(part) for part in value)


def for_handles(plain: Callable, inside: bool = False) -> Callable[[Callable], Callable]:
    """Decorator: the form of a function for traced arguments; calls without any are the function's own.
    inside: whether elements of sequences count."""

    def register(compute: Callable) -> Callable:
        def call(*args, **kwargs):
            values = (*args, *kwargs.values())
            is_traced = has_handle(values) if inside else any(isinstance(x, Handle) for x in values)
            return (compute if is_traced else plain)(*args, **kwargs)

        call.__name__ = getattr(plain, "__name__", type(plain).__name__)
        return call

    return register


def define_form(function: Callable) -> Callable:
    """One of NumPy's functions, for sequences with handles too."""
    is_ufunc = isinstance(function, np.ufunc) or isinstance(getattr(function, "__self__", None), np.ufunc)

    def call(*args, **kwargs):
        if not any(map(has_handle, args)) and not any(map(has_handle, kwargs.values())):
            return function(*args, **kwargs)
        if is_ufunc:
            return function(*[stack_sequence(x) if has_handle(x) else x for x in args], **kwargs)
        return apply_function(function, args, kwargs)

    return functools.update_wrapper(call, function, ("__name__", "__qualname__"), ())
