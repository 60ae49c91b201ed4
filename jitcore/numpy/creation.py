"""Making arrays: from Python values, filled, as ranges, grids and special matrices.

In: Python numbers, nested lists, ndarrays, shapes. Out: Arrays. Where no dtype is given, Python numbers
take the default 32-bit dtypes; ndarrays and NumPy scalars keep theirs. Extents must be known while
tracing.
"""

from __future__ import annotations

import functools
import math
import operator

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array, ConcreteArray, copy_data
from jitcore.core.trace import context, eval_trace, own_ndarray
from jitcore.lax.define import canonicalize_axis
from jitcore.lax.elementwise import convert_dtype as convert_ndarray
from jitcore.lax.parallel.partitioning import place
from jitcore.numpy.arrays.promotion import (apply_elementwise, apply_select, broadcast_array,
                                            canonicalize_shape, convert_dtype, ensure_array, is_operand,
                                            promote_arrays, require_static)
from jitcore.numpy.ufuncs import logic
from jitcore.numpy.ufuncs.arithmetic import add, divide, log10, multiply, power, sign, subtract
from jitcore.transforms.vmap import vmap


# -- from values --------------------------------------------------------------------------------------------
def array(
    object, dtype=None, copy: bool | None = True, order: str | None = "K", ndmin: int = 0, *, device=None):
    """An Array of a number, a (nested) sequence, an ndarray, or an Array; tracers may stand anywhere inside.

    Args:
        dtype: of the result; by default that of the ndarray, or where the elements meet.
        copy: None copies ndarrays, but no Arrays, which nobody writes to; with False the result may lie in
            the memory of an ndarray, and changes when it is written to.
        ndmin: leading axes of extent 1 are added up to this rank.
    Raises: TypeError for objects that are no numbers; ValueError for None and for ragged lists."""
    if order not in ("K", "A", "C", None):
        raise NotImplementedError(f"Only order='K' is supported, got {order!r}")
    if dtype is not None:
        dtype = dtypes.canonicalize_for(_dtype_like(dtype), getattr(object, "dtype", dtypes.bool_))
    if isinstance(object, Array):
        result = object if dtype is None else convert_dtype(object, dtype)
        if copy and result is object and object.__class__ is ConcreteArray:
            result = ConcreteArray(copy_data(object.data), object.weak_type)
    elif isinstance(object, (np.ndarray, np.generic)):
        result = _from_ndarray(object, dtype, copy)
    elif isinstance(object, dtypes.PYTHON_SCALARS):
        weak = dtype is None and not isinstance(object, bool)
        result = ConcreteArray(_scalar_to_numpy(object, dtype), weak)
    else:
        result = _from_sequence(object, dtype)
    missing = ndmin - result.ndim
    result = result if missing <= 0 else lax.reshape(result, (1,) * missing + result.shape)
    return result if device is None else place(result, device)


def asarray(a, dtype=None, order: str | None = None, *, copy: bool | None = None, device=None):
    """Like `array`; what is an Array already is returned as it is.

    With `copy=False` the Array may lie in the memory of an ndarray, and changes when that is written to."""
    return array(a, dtype, copy, order, device=device)


def _dtype_like(dtype):
    return dtype.dtype if isinstance(dtype, (Array, np.ndarray)) else dtype


def _scalar_to_numpy(value, dtype) -> np.ndarray:
    if dtype is None:
        return dtypes.scalar_to_numpy(value)
    if isinstance(value, int) and dtypes.is_integer(dtype):
        return dtypes.scalar_to_numpy(value, dtype)
    natural = np.asarray(value)
    if dtypes.is_integer(dtype) and not np.isfinite(natural):
        raise ValueError(f"cannot convert float {value} to integer")
    return convert_ndarray(natural, dtype)


def _from_ndarray(x, dtype, copy: bool | None) -> ConcreteArray:
    dtypes.reject_mask(x)
    x = np.asarray(x)
    if copy is not False and (dtype is None or dtype == x.dtype):
        return own_ndarray(x)
    data = np.require(x, dtypes.canonicalize(x.dtype), ["C_CONTIGUOUS", "ALIGNED"]).reshape(x.shape)
    if dtype is not None and data.dtype != dtype:
        with np.errstate(all="ignore"):
            data = np.asarray(convert_ndarray(data, dtype))
    return ConcreteArray(copy_data(data) if copy is not False and np.may_share_memory(data, x) else data)


def _from_sequence(x, dtype) -> Array:
    if x is None:
        raise ValueError("None is not a valid value for jnp.array")
    if isinstance(x, (list, tuple)):
        kinds = _element_types(x)
        if any(issubclass(kind, Array) for kind in kinds):
            return _stack_nested(x, dtype)
        accepted = (*dtypes.PYTHON_SCALARS, np.generic, np.ndarray)
        bad = next((kind for kind in kinds if not issubclass(kind, accepted)), None)
        if bad is type(None):
            raise ValueError("None is not a valid value for jnp.array")
        if bad is not None:
            raise TypeError(f"Value of type {bad} is not a valid jitcore array element. "
                            "Only arrays of numeric types are supported.")
        return _from_plain_sequence(x, dtype, kinds)
    if hasattr(x, "__jax_array__"):
        return array(x.__jax_array__(), dtype)
    if isinstance(x, (str, bytes, dict, set)):
        raise TypeError(f"Value {x!r} with type {type(x)} is not a valid jitcore array type. "
                        "Only arrays of numeric types are supported.")
    if hasattr(x, "__dlpack__"):
        return _from_ndarray(np.from_dlpack(x), dtype, False)
    if hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        return _from_ndarray(np.asarray(x), dtype, False)
    if isinstance(x, (memoryview, bytearray)):
        return _from_ndarray(np.asarray(x), dtype, True)
    if isinstance(x, range) or hasattr(x, "__len__"):
        return _from_sequence(list(x), dtype)
    raise TypeError(f"Unexpected input type for array: {type(x)}")


def _element_types(x) -> set[type]:
    """Classes of the leaves of nested lists."""
    kinds = set(map(type, x))
    for nested in kinds & {list, tuple}:
        for item in x:
            if type(item) is nested:
                kinds |= _element_types(item)
    return kinds - {list, tuple}


def _from_plain_sequence(x, dtype, kinds: set[type]) -> ConcreteArray:
    if dtype is not None and dtypes.is_inexact(dtype) or kinds <= {bool}:
        return ConcreteArray(np.array(x, dtype or (dtypes.bool_ if kinds else dtypes.default_dtype("f"))))
    natural = np.array(x)
    if natural.dtype == object:
        raise OverflowError("a Python int in the sequence is too large for any integer dtype")
    if dtype is None:
        python_types = [kind for kind in kinds if kind in dtypes.PYTHON_SCALARS]
        if len(python_types) == len(kinds):
            dtype = dtypes.default_dtype(natural.dtype.kind)
        else:
            typed = {leaf.dtype for leaf in _iterate_leaves(x) if isinstance(leaf, (np.generic, np.ndarray))}
            dtype = dtypes.result_type(*typed, *python_types)
    if dtypes.is_integer(dtype) and dtypes.is_integer(natural.dtype) and natural.size:
        dtypes.check_integer_fits(int(natural.max()), dtype)
        dtypes.check_integer_fits(int(natural.min()), dtype)
    return ConcreteArray(np.asarray(convert_ndarray(natural, dtype)))


def _iterate_leaves(x):
    for item in x:
        if isinstance(item, (list, tuple)):
            yield from _iterate_leaves(item)
        else:
            yield item


def _stack_nested(x, dtype) -> Array:
    """Nested sequences with Arrays or tracers inside: each level is a concatenation of its items."""
    items = [_stack_nested(item, dtype) if isinstance(item, (list, tuple)) else array(item, dtype, False)
             for item in x]
    if len({item.shape for item in items}) > 1:
        raise ValueError("All input arrays must have the same shape.")
    items = promote_arrays("array", *items)
    stacked = lax.concatenate([lax.reshape(item, (1, *item.shape)) for item in items], 0)
    return convert_dtype(stacked, stacked.dtype)


def copy(a, order: str | None = None):
    """A copy of a. Same as: `numpy.copy`."""
    return array(a, copy=True)


def frombuffer(buffer, dtype=float, count: int = -1, offset: int = 0):
    """A 1-D Array of the bytes of a buffer. Same as: `numpy.frombuffer`."""
    return asarray(np.frombuffer(buffer, dtypes.canonicalize(dtype), count, offset))


def fromstring(string: str, dtype=float, count: int = -1, *, sep: str):
    """A 1-D Array of the numbers in a text. Same as: `numpy.fromstring`."""
    return asarray(np.fromstring(string, dtypes.canonicalize(dtype), count, sep=sep))


def from_dlpack(x, /, *, device=None, copy: bool | None = None):
    """An Array that shares the memory of x where layout allows. Same as: `numpy.from_dlpack`."""
    return asarray(np.from_dlpack(x), copy=copy)


def fromfunction(function, shape, *, dtype=float, **kwargs):
    """An array of what the function gives for the indices of each element, as scalars of `dtype`.

    Same as: `numpy.fromfunction` for a function of each element: it is batched, not called with grids, so
    that it may give arrays, too, whose axes come last."""
    shape = canonicalize_shape(shape)
    batched = functools.partial(function, **kwargs)
    for axis in reversed(range(len(shape))):
        batched = vmap(batched, in_axes=tuple(0 if place == axis else None for place in range(len(shape))))
    return batched(*(lax.iota(dtypes.canonicalize(dtype), extent) for extent in shape))


# -- filled -------------------------------------------------------------------------------------------------
def full(shape, fill_value, dtype=None, *, device=None):
    """An array of this shape, every element `fill_value` (which broadcasts). Same as: `numpy.full`."""
    shape = canonicalize_shape(shape)
    if dtypes.is_key(_dtype_like(dtype)):
        return place(lax.full(shape, fill_value, _dtype_like(dtype)), device)
    if dtype is not None and fill_value.__class__ is int:
        fill_value = dtypes.wrap_integer(fill_value, dtypes.canonicalize(_dtype_like(dtype)))
    fill_value = array(fill_value, dtype, False)
    if not fill_value.ndim and context.trace is eval_trace and fill_value.__class__ is ConcreteArray:
        return place(ConcreteArray(np.full(shape, fill_value.data), fill_value.weak_type), device)
    return place(broadcast_array(fill_value, shape), device)


def _filled(shape, value: int, dtype):
    shape = canonicalize_shape(shape)
    dtype = dtypes.default_dtype("f") if dtype is None else dtypes.canonicalize(_dtype_like(dtype))
    if dtypes.is_key(dtype):
        return lax.full(shape, value, dtype)
    if context.trace is eval_trace:
        return ConcreteArray(np.zeros(shape, dtype) if value == 0 else np.ones(shape, dtype))
    return lax.broadcast_in_dim(dtype.type(value), shape, ())


def zeros(shape, dtype=None, *, device=None):
    """Zeros of this shape; float by default. Same as: `numpy.zeros`."""
    return place(_filled(shape, 0, dtype), device)


def ones(shape, dtype=None, *, device=None):
    """Ones of this shape; float by default. Same as: `numpy.ones`."""
    return place(_filled(shape, 1, dtype), device)


def empty(shape, dtype=None, *, device=None):
    """Zeros of this shape: arrays are never uninitialised. Same as: `jax.numpy.empty`."""
    return place(_filled(shape, 0, dtype), device)


def full_like(a, fill_value, dtype=None, shape=None, *, device=None):
    """`full` with the shape and dtype of a, which need be no array. Same as: `numpy.full_like`."""
    if is_operand(a) or not (hasattr(a, "shape") and hasattr(a, "dtype")):
        a = ensure_array("full_like", a)
    shape = a.shape if shape is None else shape
    if dtype is not None:
        return full(shape, fill_value, dtypes.canonicalize_for(_dtype_like(dtype), a.dtype), device=device)
    filled = full(shape, fill_value, a.dtype, device=device)
    return convert_dtype(filled, filled.dtype, getattr(a, "weak_type", False))


def zeros_like(a, dtype=None, shape=None, *, device=None):
    """Zeros of the shape and dtype of a. Same as: `numpy.zeros_like`."""
    return full_like(a, 0, dtype, shape, device=device)


def ones_like(a, dtype=None, shape=None, *, device=None):
    """Ones of the shape and dtype of a. Same as: `numpy.ones_like`."""
    return full_like(a, 1, dtype, shape, device=device)


def empty_like(prototype, dtype=None, shape=None, *, device=None):
    """Zeros of the shape and dtype of prototype. Same as: `jax.numpy.empty_like`."""
    return full_like(prototype, 0, dtype, shape, device=device)


# -- ranges -------------------------------------------------------------------------------------------------
def arange(start, stop=None, step=None, dtype=None, *, device=None):
    """start, start + step, ... below stop. Same as: `numpy.arange`; integers are 32-bit by default.

    Raises: ConcretizationTypeError for traced bounds: the length would be unknown."""
    for name, value in (("start" if stop is not None else "stop", start), ("stop", stop), ("step", step)):
        require_static("arange", name, value)
    if stop is None and step is not None:
        start, stop = 0, start
    given = [v for v in (start, stop, step) if v is not None]
    if any(dtypes.is_complex(getattr(v, "dtype", np.dtype(bool))) or isinstance(v, complex) for v in given):
        raise ValueError("arange of complex numbers, which have no order: use dtype=")
    if dtype is None:
        types = [v if isinstance(v, dtypes.PYTHON_SCALARS) else getattr(v, "dtype", int) for v in given]
        dtype = dtypes.result_type(*types)
        dtype = dtypes.default_dtype("i") if dtype == dtypes.bool_ else dtype
    dtype = dtypes.canonicalize(_dtype_like(dtype))
    given = [operator.index(v) if _is_integer_scalar(v) else v for v in given]
    if stop is None and not isinstance(given[0], (int, float, np.generic, Array)):
        return lax.iota(dtype, given[0])  # a symbolic extent
    given = [v.data[()] if isinstance(v, ConcreteArray) else v for v in given]
    if dtype == dtypes.bfloat16:
        return convert_dtype(asarray(np.arange(*given, dtype=np.float32)), dtype)
    if context.trace is not eval_trace and len(given) == 1 and dtypes.is_integer(dtype):
        return lax.iota(dtype, max(math.ceil(given[0]), 0))
    return ConcreteArray(np.arange(*given, dtype=dtype))


def _is_integer_scalar(value) -> bool:
    return isinstance(value, (int, np.integer)) or (isinstance(value, ConcreteArray) and not value.shape
                                                    and dtypes.is_integer(value.dtype))


def linspace(start, stop, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype=None,
             axis: int = 0, *, device=None):
    """num evenly spaced values from start to stop. Same as: `numpy.linspace`; start and stop may be
    arrays."""
    num = operator.index(require_static("linspace", "num", num))
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    start, stop = promote_arrays("linspace", start, stop, to=dtypes.inexact_dtype)
    wanted = start.dtype if dtype is None else dtypes.canonicalize(_dtype_like(dtype))
    divisions = num - 1 if endpoint else num
    step = (
        divide(subtract(stop, start), start.dtype.type(max(divisions, 1)))
        if divisions > 0
        else asarray(np.nan))
    shape = np.broadcast_shapes(start.shape, stop.shape)
    start, stop = (lax.reshape(broadcast_array(x, shape), (1, *shape)) for x in (start, stop))
    if num > 1:
        steps = asarray(np.arange(num).reshape(-1, *[1] * len(shape)) / divisions,
                        dtypes.real_dtype(start.dtype))
        steps = convert_dtype(steps, start.dtype)
        out = add(multiply(start, subtract(1, steps)), multiply(stop, steps))
        if endpoint:
            out = lax.concatenate([_take_first(out, num - 1), convert_dtype(stop, out.dtype)], 0)
    else:
        out = broadcast_array(start, (num, *shape)) if num else zeros((0, *shape), start.dtype)
    if axis:
        rank = len(shape) + 1
        order = list(range(1, rank))
        order.insert(canonicalize_axis(axis, rank), 0)
        out = lax.transpose(out, order)
    if dtypes.is_integer(wanted) and not dtypes.is_integer(out.dtype):
        out = apply_elementwise(lax.floor.primitive, (out,))
    out = convert_dtype(out, wanted)
    return (out, step) if retstep else out


def _take_first(x, count: int):
    return lax.slice_in_dim(x, 0, count)


def logspace(start, stop, num: int = 50, endpoint: bool = True, base=10.0, dtype=None, axis: int = 0):
    """base ** linspace(start, stop). Same as: `numpy.logspace`."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    out = power(base, exponents)
    return out if dtype is None else convert_dtype(out, dtypes.canonicalize(dtype))


def geomspace(start, stop, num: int = 50, endpoint: bool = True, dtype=None, axis: int = 0):
    """num values from start to stop with a constant ratio. Same as: `numpy.geomspace`."""
    start, stop = promote_arrays("geomspace", start, stop, to=dtypes.inexact_dtype)
    if dtypes.is_complex(start.dtype):
        factor = sign(start)
        start, stop = divide(start, factor), divide(stop, factor)
    else:
        both_negative = logic.logical_and(logic.less(start, 0), logic.less(stop, 0))
        factor = apply_select(both_negative, start.dtype.type(-1), start.dtype.type(1))
        start, stop = multiply(start, factor), multiply(stop, factor)
    out = power(10.0, linspace(log10(start), log10(stop), num, endpoint))
    if endpoint and num > 1:  # the ends exactly as given
        ends = [lax.reshape(broadcast_array(v, out.shape[1:]), (1, *out.shape[1:])) for v in (start, stop)]
        out = lax.concatenate([ends[0], lax.slice_in_dim(out, 1, num - 1), ends[1]], 0)
    out = multiply(out, factor)
    if axis:
        order = list(range(1, out.ndim))
        order.insert(canonicalize_axis(axis, out.ndim), 0)
        out = lax.transpose(out, order)
    return out if dtype is None else convert_dtype(out, dtypes.canonicalize(dtype))


def indices(dimensions, dtype=None, sparse: bool = False):
    """Index grids of a shape, stacked (or a tuple of open grids with `sparse`). Same as: `numpy.indices`."""
    dimensions = canonicalize_shape(tuple(dimensions))
    dtype = dtypes.default_dtype("i") if dtype is None else dtypes.canonicalize(dtype)
    if sparse:
        rank = len(dimensions)
        return tuple(lax.reshape(lax.iota(dtype, n), (1,) * i + (n,) + (1,) * (rank - i - 1))
                     for i, n in enumerate(dimensions))
    grids = [lax.broadcasted_iota(dtype, dimensions, i) for i in range(len(dimensions))]
    if not grids:
        return zeros((0,), dtype)
    return lax.concatenate([lax.reshape(grid, (1, *dimensions)) for grid in grids], 0)


__all__ = ["arange", "array", "asarray", "copy", "empty", "empty_like", "from_dlpack", "frombuffer",
           "fromfunction", "fromstring", "full", "full_like", "geomspace", "indices", "linspace", "logspace",
           "ones", "ones_like", "zeros", "zeros_like"]
