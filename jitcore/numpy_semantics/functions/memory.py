"""How arrays lie in memory, over handles: `x.view(dtype)`, `sliding_window_view`, `x.flags`.

In: an array. Out: views with steps of their own kinds; facts about the layout, where that is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.lib.stride_tricks import as_strided

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import as_shape
from jitcore.numpy_semantics.functions.shaping import as_array
from jitcore.numpy_semantics.functions.tables import implements
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import NDArray
from jitcore.numpy_semantics.values.promotion import check_dtype
from jitcore.numpy_semantics.values.views import Step


# -- bytes as another dtype ---------------------------------------------------------------------------------
def _unsigned(size: int) -> np.dtype:
    return np.dtype(f"u{size}")


def _to_bits(raw: Array) -> Array:
    """The elements as unsigned integers; complex ones as two along the last axis."""
    if raw.dtype.kind == "c":
        raw = lax.concatenate([lax.expand_dims(part, (raw.ndim,)) for part in (lax.real(raw), lax.imag(raw))],
                              raw.ndim)
        raw = lax.reshape(raw, (*raw.shape[:-2], raw.shape[-2] * 2) if raw.ndim > 1 else raw.shape)
    if raw.dtype.kind == "b":
        return lax.convert_element_type(raw, dtypes.uint8)
    wanted = _unsigned(raw.dtype.itemsize)
    return raw if raw.dtype == wanted else lax.bitcast_convert_type(raw, wanted)


def _resize_bits(raw: Array, size: int) -> Array:
    """Unsigned integers of another size along the last axis, in little-endian order."""
    own, (*shape, extent) = raw.dtype.itemsize, raw.shape
    if own == size:
        return raw
    if own < size:
        raw = lax.reshape(raw, (*shape, extent // (size // own), size // own))
    found = lax.bitcast_convert_type(raw, _unsigned(size))
    return found if own < size else lax.reshape(found, (*shape, extent * (own // size)))


def _reinterpret(raw: Array, dtype: np.dtype) -> Array:
    """The bytes along the last axis as elements of another dtype."""
    if raw.dtype == dtype:
        return raw
    part = np.empty(0, dtype).real.dtype
    bits = _resize_bits(_to_bits(raw), part.itemsize)
    if dtype.kind == "b":
        fail(jnp.any(bits > 1), ValueError("a byte of a bool that is neither 0 nor 1"))
        return lax.ne(bits, bits.dtype.type(0))
    found = bits if bits.dtype == part else lax.bitcast_convert_type(bits, part)
    if dtype.kind != "c":
        return found
    pairs = lax.reshape(found, (*found.shape[:-1], found.shape[-1] // 2, 2))
    return lax.complex(pairs[..., 0], pairs[..., 1])


class Bits(Step):
    """The same bytes as elements of another dtype; along the last axis more or fewer where sizes differ."""

    def __init__(self, base: tuple, before: np.dtype, dtype: np.dtype):
        self.base, self.before, self.dtype = base, before, dtype
        self.shape = base
        if before.itemsize != dtype.itemsize:
            self.shape = (*base[:-1], base[-1] * before.itemsize // dtype.itemsize)

    def is_same(self, other):
        return (self.base, self.before, self.dtype) == (other.base, other.before, other.dtype)

    def dtype_of(self, dtype):
        return self.dtype

    def find_strides(self, strides):
        own, new = self.before.itemsize, self.dtype.itemsize
        if own == new:
            return strides
        if any(stride * own % new for stride in strides[:-1]):
            return None
        return (*[stride * own // new for stride in strides[:-1]], 1)

    def read(self, raw):
        return self._reinterpret(raw, self.dtype, self.shape)

    def write(self, raw, value):
        if self.before.kind == "b":
            raise not_traceable("a store of bytes into an array of bools")
        return self._reinterpret(value, self.before, self.base)

    def _reinterpret(self, raw: Array, dtype: np.dtype, shape: tuple) -> Array:
        found = _reinterpret(raw if raw.ndim else lax.reshape(raw, (1,)), dtype)
        return lax.reshape(found, shape)


@implements(method="view")
def view(self: NDArray, dtype: Any = None, type: Any = None) -> NDArray:  # noqa: A002  NumPy's name
    if type is np.ndarray or dtype is np.ndarray:
        dtype, type = (None if dtype is np.ndarray else dtype), None  # noqa: A001
    if type is not None:
        raise not_traceable("view() as an array of another class")
    if dtype is None:
        return self.add_view()
    before, dtype = self.dtype, check_dtype(dtype)
    if dtype == before:
        return self.add_view()
    if before.itemsize != dtype.itemsize:
        _check_last_axis(self, before.itemsize, dtype.itemsize)
    return self.add_view(Bits(self.shape, before, dtype))


def _check_last_axis(array: NDArray, own: int, new: int) -> None:
    """Raises: ValueError where an array cannot be seen with elements of another size."""
    if not array.ndim:
        raise ValueError("Changing the dtype of a 0d array is only supported if the itemsize is unchanged")
    strides = array.find_strides()
    if strides is None:
        raise not_traceable("a view of another item size, of an array whose layout is not known")
    if array.shape[-1] != 1 and strides[-1] != 1 and array.size:
        raise ValueError("To change to a dtype of a different size, the last axis must be contiguous")
    if new > own and array.shape[-1] * own % new:
        raise ValueError("When changing to a larger dtype, its size must be a divisor of the total size in "
                         "bytes of the last axis of the array.")


# -- windows ------------------------------------------------------------------------------------------------
_INSIDE = "promise_in_bounds"


class Sliding(Step):
    """All windows of some extents along some axes, as new axes behind the others; read-only."""

    is_read_only = True

    def __init__(self, base: tuple, extents: tuple, axes: tuple):
        self.base, self.extents, self.axes = base, extents, axes
        shape = list(base)
        for extent, axis in zip(extents, axes):
            shape[axis] -= extent - 1
        self.shape = (*shape, *extents)

    def is_same(self, other):
        return (self.base, self.extents, self.axes) == (other.base, other.extents, other.axes)

    def find_strides(self, strides):
        return (*strides, *[strides[axis] for axis in self.axes])

    def read(self, raw):
        for extent, axis in zip(self.extents, self.axes):
            count = raw.shape[axis] - extent + 1
            first, own = (lax.broadcasted_iota(dtypes.uint64, (count, extent), i) for i in (0, 1))
            raw = jnp.moveaxis(raw.at[(slice(None),) * axis + (first + own,)].get(mode=_INSIDE), axis + 1, -1)
        return raw


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=False):
    if writeable:
        raise not_traceable("sliding windows that are written")
    array, extents = as_array(x), as_shape(window_shape)
    if any(extent < 0 for extent in extents):
        raise ValueError("`window_shape` cannot contain negative values")
    if axis is None:
        axes = tuple(range(array.ndim))
        if len(extents) != len(axes):
            raise ValueError("Since axis is None, must provide window_shape for all dimensions of `x`; got "
                             f"{len(extents)} window_shape elements and `x.ndim` is {array.ndim}.")
    else:
        axes = normalize_axis_tuple(axis, array.ndim, allow_duplicate=True)
        if len(extents) != len(axes):
            raise ValueError("Must provide matching length window_shape and axis; got "
                             f"{len(extents)} window_shape elements and {len(axes)} axes elements.")
    step_shape = list(array.shape)
    for extent, place in zip(extents, axes):
        if step_shape[place] < extent:
            raise ValueError("window shape cannot be larger than input array shape")
        step_shape[place] -= extent - 1
    return array.add_view(Sliding(array.shape, extents, axes))


# -- facts --------------------------------------------------------------------------------------------------
_NAMES = {"C": "c_contiguous", "F": "f_contiguous", "W": "writeable", "A": "aligned", "B": "behaved",
          "O": "owndata", "CONTIGUOUS": "c_contiguous", "FORTRAN": "f_contiguous"}


class Flags:
    """`x.flags`, to be read."""

    def __init__(self, array: NDArray):
        self._array = array

    def __getitem__(self, key: str) -> bool:
        return getattr(self, _NAMES.get(key, key.lower()))

    def __getattr__(self, name: str) -> bool:
        """NumPy itself decides, on an array that lies so."""
        if name not in ("c_contiguous", "f_contiguous", "contiguous", "fnc", "forc"):
            raise not_traceable(f"x.flags.{name} of a traced array")
        strides = self._array.find_strides()
        if strides is None:
            raise not_traceable("whether an array is contiguous whose layout is not known")
        return getattr(as_strided(np.zeros(1, np.int8), self._array.shape, strides).flags, name)

    @property
    def writeable(self) -> bool:
        array = self._array
        return not (array.storage.is_read_only or any(step.is_read_only for step in array.steps))


@implements(np.isfortran, always=True)
def isfortran(a):
    return Flags(a).fnc if isinstance(a, NDArray) else a.flags.fnc
