"""What the implementations of NumPy's functions share: operands, results, and NumPy's own word on dtypes.

In: handles and plain values as users give them. Out: Arrays to compute with; handles to return.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes
from jitcore.array import Array
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array, wrap_result
from jitcore.numpy_semantics.values.promotion import (as_operand, cast_raw, promotion_type, result_dtype,
                                                      to_raw)

#: What NumPy's signatures have for arguments that were not given.
NO_VALUE = np._NoValue


def is_given(value: Any) -> bool:
    return value is not None and value is not NO_VALUE


def given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if is_given(value)}


def finish(raw: Array, out: Any = None, is_scalar: bool = True) -> Any:
    """A result, or `out` with the result in it. is_scalar: whether it is a NumPy scalar without axes."""
    if not is_given(out):
        return wrap_result(raw, is_scalar)
    if isinstance(out, tuple):
        (out,) = out
    if not isinstance(out, NDArray):
        raise not_traceable(f"out= of type {type(out).__name__}")
    if tuple(out.shape) != tuple(raw.shape):
        raise ValueError(f"output parameter has shape {tuple(out.shape)}, the result {tuple(raw.shape)}")
    if not np.can_cast(raw.dtype, out.dtype, "same_kind"):
        raise TypeError(f"Cannot cast output from {raw.dtype!r} to {out.dtype!r} "
                        "with casting rule 'same_kind'")
    out.write(cast_raw(raw, out.dtype))
    return out


def require_finite(*raws: Array) -> None:
    """Leaves calls with NaN or infinity to Python, where the library refuses these or goes another way."""
    for raw in raws:
        if raw.dtype.kind in "fc":
            fail(~jnp.all(jnp.isfinite(raw)), ValueError("array must not contain infs or NaNs"))


@functools.cache
def ask_numpy(function: Callable, dtype: np.dtype, **options: Any) -> np.dtype:
    """The dtype of NumPy's result for an array of a dtype."""
    with np.errstate(all="ignore"):
        return function(np.ones(2, dtype), **options).dtype


def dtype_of(x: Any) -> np.dtype:
    """The dtype that an operand has, or would have as an array."""
    kind = promotion_type(as_operand(x))
    return np.dtype(kind)


def to_inexact(x: Any) -> Array:
    """An operand as floating point numbers, as `linalg` and `fft` take it: integers as float64."""
    x = as_operand(x)
    dtype = dtype_of(x)
    return to_raw(x, dtype if dtype.kind in "fc" else dtypes.float64)


def to_common(*operands: Any, inexact: bool = False, is_strong: bool = True) -> list[Array]:
    """Operands in the dtype that NumPy promotes them to. inexact: integers are float64. is_strong: whether
    Python numbers count as arrays of NumPy's default dtypes."""
    operands = tuple(map(as_operand, operands))
    dtype = result_dtype(*(map(dtype_of, operands) if is_strong else operands))
    if inexact and dtype.kind in "biu":
        dtype = dtypes.float64
    return [to_raw(x, dtype) for x in operands]


def as_given(*operands: Any) -> list:
    return list(operands)


def as_arrays(*operands: Any) -> list[NDArray]:
    return [x if isinstance(x, NDArray) else new_array(to_raw(x)) for x in map(as_operand, operands)]


def as_operands(*operands: Any) -> list:
    return list(map(as_operand, operands))


def to_own(*operands: Any, dtype: Any = None) -> list[Array]:
    """Operands in their own dtypes, or in one."""
    return [to_raw(as_operand(x), dtype) for x in operands]


to_flags = functools.partial(to_own, dtype=dtypes.bool_)


def to_inexacts(*operands: Any) -> list[Array]:
    return list(map(to_inexact, operands))


to_common_inexact = functools.partial(to_common, inexact=True)


def to_first(first: Any, *others: Any) -> list[Array]:
    """Operands in the dtype of the first one."""
    raw = to_raw(as_operand(first))
    return [raw, *[to_raw(as_operand(x), raw.dtype) for x in others]]


def to_mask(where: Any) -> Array | None:
    """The operand of a `where=` parameter."""
    return None if where is True or not is_given(where) else to_raw(where, dtypes.bool_)


def as_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of ints. Raises: NeedsValue for a traced extent."""
    return tuple(map(operator.index, shape if isinstance(shape, (list, tuple)) else (shape,)))


def unpack(sequence: Any) -> list:
    """The arrays of a sequence of arrays; along the first axis of one array."""
    return list(sequence if isinstance(sequence, (list, tuple)) else as_operand(sequence))


def as_axis(axis: Any) -> Any:
    """An axis, several as a tuple, or None. Raises: NeedsValue for a traced one."""
    if axis is None or isinstance(axis, tuple):
        return axis
    return tuple(axis) if isinstance(axis, list) else operator.index(axis)
