"""Operands of NumPy's functions: what they are to promotion, and their values in a dtype.

In: handles, ndarrays, NumPy and Python scalars, sequences of them. Out: dtypes, or Python's number types
where NEP 50 lets the other operands decide; Arrays of the dtype that NumPy chose, or of an array's that they
are assigned to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array, ConcreteArray
from jitcore.lax.elementwise import cast_to_integer
from jitcore.numpy_semantics.errors import needs_value, not_traceable
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.rewriter.handles import CompoundHandle, Handle, current

#: Dtypes that handles have.
SUPPORTED = frozenset(dtypes.SUPPORTED) - {dtypes.bfloat16}
_PYTHON = (bool, int, float, complex)
#: Of what else an array is made, and how: `ndarray` and `sequences` put themselves here.
CONVERSIONS: dict[type, Callable[[Any], Any]] = {}


def check_dtype(dtype: Any) -> np.dtype:
    """A dtype-like as a dtype that handles have; Python's types are the defaults. Raises: NotTraceable."""
    dtype = np.dtype(dtype)
    if dtype not in SUPPORTED or not dtype.isnative:
        raise not_traceable(f"arrays of dtype {dtype} are not traced")
    return dtype


def is_python_number(x: Any) -> bool:
    """Whether x is a plain or traced Python number: weak in promotion, unless it is a bool."""
    return type(x) is Number or isinstance(x, _PYTHON) and not isinstance(x, np.generic)


def promotion_type(x: Any) -> Any:
    """The dtype of an operand, or int, float or complex for a Python number."""
    if type(x) is Number:
        return dtypes.bool_ if x.python_type is bool else x.python_type
    if is_python_number(x):
        if isinstance(x, bool):
            return dtypes.bool_
        return next(kind for kind in (int, float, complex) if isinstance(x, kind))
    if isinstance(x, CompoundHandle) and not hasattr(type(x), "dtype"):
        raise not_traceable("a number whose type depends on a traced value is used here")
    return check_dtype(x.dtype)


def result_dtype(*operands: Any) -> np.dtype:
    """`np.result_type` of operands, handles and dtypes among them."""
    return check_dtype(np.result_type(*[as_promotable(x) for x in operands]))


def as_promotable(x: Any) -> Any:
    """What `np.result_type` takes for an operand, a dtype or a Python number's type."""
    kind = x if isinstance(x, (np.dtype, type)) else promotion_type(x)
    return kind(0) if is_weak_type(kind) else kind


def is_weak_type(kind: Any) -> bool:
    """Whether this is int, float or complex itself; `np.dtype(float) == float`."""
    return kind is int or kind is float or kind is complex


def as_operand(x: Any) -> Any:
    """x, or an array for a sequence or an Array. Raises: NotTraceable for other objects."""
    if isinstance(x, np.ndarray):
        return adopt_array(x)
    if hasattr(type(x), "to_array"):  # a list of traced length
        return x.to_array()
    if isinstance(x, (Handle, np.generic, *_PYTHON)):
        return x
    for kind, convert in CONVERSIONS.items():
        if isinstance(x, kind):
            return convert(x)
    raise not_traceable(f"an operand of type {type(x).__name__}")


def adopt_array(x: np.ndarray) -> Any:
    """A real array that came up: an operand whose contents are read at each call where the mode has that."""
    adopt = getattr(current.mode, "adopt", None)
    return x if adopt is None or x.dtype not in SUPPORTED else adopt(x)


def shape_of(x: Any) -> tuple:
    return () if is_python_number(x) else tuple(x.shape)


# -- values -------------------------------------------------------------------------------------------------
def to_raw(x: Any, dtype: Any = None) -> Array:
    """The value of an operand as an Array, converted to a dtype where one is given.

    Raises: OverflowError as NumPy for a Python int that the dtype does not hold."""
    dtype = None if dtype is None else np.dtype(dtype)
    if type(x) is Number:
        return _convert_number(x, x.dtype if dtype is None else dtype)
    if isinstance(x, Handle):
        raw = x.read()
    elif isinstance(x, Array):
        raw = x
    elif isinstance(x, (np.ndarray, np.generic)) or is_python_number(x):
        return ConcreteArray(_convert_plain(x, dtype))
    else:
        return to_raw(as_operand(x), dtype)
    return raw if dtype is None else cast_raw(raw, dtype)


def to_scalar_operand(x: Any, dtype: np.dtype) -> Any:
    """`to_raw`, but a NumPy scalar for what is known and has no axes: kernels look at such values."""
    if isinstance(x, (Handle, Array)) or not (is_python_number(x) or isinstance(x, np.generic)):
        return to_raw(x, dtype)
    return _convert_plain(x, dtype)[()]


def _convert_plain(x: Any, dtype: np.dtype | None) -> np.ndarray:
    if dtype is None:
        dtype = np.dtype(type(x)) if is_python_number(x) else x.dtype
    check_dtype(dtype)
    with np.errstate(all="ignore"):
        if isinstance(x, (np.ndarray, np.generic)):
            return np.require(x, dtype, ["C_CONTIGUOUS"]).reshape(np.shape(x)).copy()
        return np.asarray(x, dtype) if dtype.kind != "b" else np.asarray(bool(x))


def _convert_number(x: Number, dtype: np.dtype) -> Array:
    raw = x.read()
    if x.python_type is int and dtype.kind in "iu":
        info = np.iinfo(dtype)
        if dtype != dtypes.int64 and not (info.min <= x.low and x.high <= info.max):
            low, high = np.int64(info.min), np.int64(min(info.max, 2**63 - 1))
            outside = lax.bitwise_or(lax.lt(raw, low), lax.gt(raw, high))
            fail(outside, OverflowError(f"Python integer out of bounds for {dtype}"))
    return cast_raw(raw, dtype)


def cast_raw(raw: Array, dtype: Any) -> Array:
    """An Array converted as `astype` does; never weakly typed."""
    dtype = check_dtype(dtype)
    if raw.dtype == dtype:
        return raw
    if isinstance(raw, ConcreteArray):
        with np.errstate(all="ignore"):
            return ConcreteArray(raw.data.astype(dtype))
    if raw.dtype.kind == "c" and dtype.kind not in "cb":
        raw = lax.real(raw)
    if dtype.kind == "b":
        return lax.ne(raw, raw.dtype.type(0))
    if raw.dtype.kind == "f" and dtype.kind in "iu":
        raw = _truncate(raw, dtype)
    return _convert(raw, dtype)


def _convert(raw: Array, dtype: np.dtype) -> Array:
    if raw.dtype == dtype:
        return raw
    return lax.convert_element_type.primitive.bind(raw, new_dtype=dtype, weak_type=False)


#: Narrow integers keep the low bits of a float that they do not hold, as NumPy's loops do: what the float is
#: converted to first.
_WIDE = {
    **dict.fromkeys((dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16), dtypes.int32),
    dtypes.uint32: dtypes.int64}
with np.errstate(invalid="ignore"):
    #: Whether NumPy's C casts give the least number for what an integer does not hold: x86. Others saturate.
    _CASTS_TO_LEAST = np.array([np.inf]).astype(np.int64)[0] == np.iinfo(np.int64).min


def _truncate(raw: Array, dtype: np.dtype) -> Array:
    """Floats as integers of a width from which NumPy's C cast to the dtype goes on with the low bits."""
    wide = _WIDE.get(dtype, dtype)
    if not _CASTS_TO_LEAST:
        return _convert(raw, wide)
    if dtype == dtypes.uint64:
        return _truncate_unsigned(raw)
    if dtype == dtypes.uint32 and raw.dtype != dtypes.float16 and math.prod(raw.shape) != 1:
        # What is outside of both 32-bit types depends on where in its vectors NumPy's loop meets it.
        low, high = raw.dtype.type(-(2.0**31)), raw.dtype.type(2.0**32)
        outside = lax.bitwise_not(lax.bitwise_and(lax.gt(raw, low), lax.lt(raw, high)))
        outside = lax.reduce_or(outside, tuple(range(raw.ndim)))
        fail(outside, ValueError("a float that uint32 does not hold"))
    return cast_to_integer(raw, wide)


def _truncate_unsigned(raw: Array) -> Array:
    """Floats as uint64: from 2**63 on, the rest is converted and the top bit is set."""
    if raw.dtype == dtypes.float16:
        raw = _convert(raw, dtypes.float32)
    top = raw.dtype.type(2.0**63)
    is_large = lax.ge(raw, lax.full_like(raw, top))
    low = cast_to_integer(lax.select(is_large, lax.sub(raw, top), raw), dtypes.int64)
    bits = lax.shift_left(_convert(is_large, dtypes.uint64), np.uint64(63))
    return lax.bitwise_xor(_convert(low, dtypes.uint64), bits)


def int_of_scalar(raw: Array) -> Number:
    """The Python int of an integer scalar, with its dtype's bounds. One beyond 64 bits is left to Python."""
    info = np.iinfo(raw.dtype)
    low, high = info.min, info.max
    if raw.dtype == dtypes.uint64:
        fail(lax.ge(raw, np.uint64(2**63)), OverflowError("an int beyond 64 bits"))
        high = 2**63 - 1
    return Number(int, cast_raw(raw, dtypes.int64), interval=(low, high))


def check_aval(raw: Array) -> Array:
    """An Array of any origin as handles hold it: strongly typed, of a dtype that they have."""
    check_dtype(raw.dtype)
    if raw.weak_type:
        return lax.convert_element_type.primitive.bind(raw, new_dtype=raw.dtype, weak_type=False)
    return raw


# -- values on their way into an array ----------------------------------------------------------------------
def to_item(value: Any, dtype: np.dtype, *, is_packed: bool = False) -> Array:
    """The value of an operand as elements of this dtype: converted as item assignment does.

    is_packed: whether it goes to where basic indices, lists or `fill` put it. There NumPy takes a scalar for
    the Python number that it is, if the dtype is one of signed integers; elsewhere its C cast takes it.
    Raises: TypeError for a complex number into a real one; what Python's `int` raises for a float;
    OverflowError for an int that does not fit."""
    kind = promotion_type(value)
    is_scalar = isinstance(value, (Scalar, np.generic))
    is_single = is_weak_type(kind) or is_packed and dtype.kind == "i" and is_scalar
    if is_single and not isinstance(value, Handle):
        value = _set_item(value, dtype)
    elif kind is complex and dtype.kind not in "cb":
        raise TypeError("float() argument must be a string or a real number, not 'complex'")
    elif is_single and dtype.kind in "iu":
        _check_whole(value.read(), dtype)
    if getattr(kind, "kind", "") == "c" and dtype.kind not in "cb":
        raise not_traceable("complex numbers lose their imaginary part, of which NumPy warns")
    return to_raw(value, dtype)


def _set_item(value: Any, dtype: np.dtype) -> np.generic:
    """What NumPy stores, or raises, for a number that is known."""
    cell = np.zeros((), dtype)
    with np.errstate(all="ignore"):
        cell[()] = value
    return cell[()]


def _check_whole(raw: Array, dtype: np.dtype) -> None:
    """Leaves a number that no integer of the dtype holds to Python, which raises."""
    if raw.dtype.kind not in "iuf" or np.can_cast(raw.dtype, dtype):
        return
    limits = np.iinfo(dtype)
    if raw.dtype.kind == "f":
        raw = cast_raw(raw, dtypes.float64)
        above = lax.ge(raw, np.float64(float(limits.max) + 1))
        below = lax.le(raw, np.float64(float(limits.min) - 1)) if limits.bits < 64 else (
            lax.lt(raw, np.float64(limits.min)))
        outside = lax.bitwise_or(lax.bitwise_or(above, below), lax.ne(raw, raw))
    else:
        own = np.iinfo(raw.dtype)
        outside = lax.gt(raw, raw.dtype.type(limits.max)) if own.max > limits.max else False
        if own.min < limits.min:
            outside = lax.bitwise_or(outside, lax.lt(raw, raw.dtype.type(limits.min)))
    fail(outside, OverflowError(f"a number that {dtype} does not hold"))


def drop_leading_ones(raw: Array, ndim: int) -> Array:
    """Without the leading axes of extent 1 that are too many."""
    extra = raw.ndim - ndim
    if extra > 0 and all(extent == 1 for extent in raw.shape[:extra]):
        return lax.squeeze(raw, tuple(range(extra)))
    return raw


def complete_shape(size: int, shape: Any) -> tuple:
    """A shape with an extent for -1. Raises: ValueError where it does not fit the size."""
    extents = tuple([_extent(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,))])
    return np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (size,), (0,)).reshape(extents).shape


def _extent(extent: Any) -> int:
    if isinstance(extent, Handle):
        raise needs_value(extent, "a shape")
    return extent.__index__()


def repeat_elements(raw: Array, size: int) -> Array:
    """The elements again and again, as `a.flat = v` takes them."""
    count = -(-size // raw.shape[0])
    tiled = lax.reshape(lax.broadcast_in_dim(raw, (count, raw.shape[0]), (1,)), (count * raw.shape[0],))
    return lax.slice(tiled, [0], [size])
