"""NumPy's functions that make arrays: what rewritten code calls instead of them.

The contents are recorded in the trace, so that stores into them are too. Contents that NumPy leaves undefined
are zeros.
"""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import lax
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import as_shape, dtype_of, to_common, to_own
from jitcore.numpy_semantics.functions.grids import make_spaced
from jitcore.numpy_semantics.functions.tables import creates, implements
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array, wrap_result
from jitcore.numpy_semantics.values.promotion import (as_operand, cast_raw, check_dtype, is_python_number,
                                                      to_item, to_raw)
from jitcore.numpy_semantics.values.sequences import has_handle, stack_sequence
from jitcore.numpy_semantics.values.storage import Order, find_own_order, name_order
from jitcore.rewriter.functions import resolve
from jitcore.rewriter.handles import Handle


def _fill(shape: Any, value: Any, dtype: Any, order: str | None = "C", like: Any = None) -> NDArray:
    """A new array of one value, or of an operand that is broadcast to the shape."""
    shape, dtype = as_shape(shape), check_dtype(dtype)
    if is_python_number(value) and not isinstance(value, Handle):
        with np.errstate(all="ignore"):
            value = np.full((), value, dtype)
    raw = to_raw(as_operand(value), dtype)
    extra = len(shape) - raw.ndim
    if extra < 0 or any(own not in (1, extent) for own, extent in zip(raw.shape, shape[extra:])):
        raise ValueError(f"could not broadcast input array from shape {tuple(raw.shape)} into shape {shape}")
    return new_array(jnp.broadcast_to(raw, shape), _find_order(len(shape), order, like))


def _find_order(ndim: int, order: str | None, like: Any = None) -> Order | None:
    """The order of the axes of a new array. like: an operand that it is made like."""
    if isinstance(like, NDArray) and not like.is_padded:
        return find_own_order(like, order, ndim)
    return name_order(order, ndim)


# -- contents of one value ----------------------------------------------------------------------------------
def _define_filled(function, like, value) -> None:
    def make(shape, dtype=float, order="C", *, device=None, like=None):
        return _fill(shape, value, float if dtype is None else dtype, order)

    def make_like(prototype, dtype=None, order="K", subok=True, shape=None, *, device=None):
        prototype = as_operand(prototype)
        shape = prototype.shape if shape is None else shape
        return _fill(shape, value, dtype or dtype_of(prototype), order, prototype)

    creates(function)(make)
    implements(like, knows_order=True, always=True)(make_like)


_define_filled(np.zeros, np.zeros_like, 0)
_define_filled(np.ones, np.ones_like, 1)
_define_filled(np.empty, np.empty_like, 0)


@creates(np.ndarray)
def ndarray(shape, dtype=float, buffer=None, offset=0, strides=None, order=None):
    if buffer is not None or offset or strides is not None:
        raise not_traceable("np.ndarray() over a buffer")
    return _fill(shape, 0, dtype, order)


@creates(np.full)
def full(shape, fill_value, dtype=None, order="C", *, device=None, like=None):
    return _fill(shape, fill_value, dtype or dtype_of(fill_value), order)


@implements(np.full_like, knows_order=True, always=True)
def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None):
    a = as_operand(a)
    return _fill(a.shape if shape is None else shape, fill_value, dtype or dtype_of(a), order, a)


# -- from values --------------------------------------------------------------------------------------------
@creates(np.array, knows_order=True)
def array(object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, ndmax=0, like=None):  # noqa: A002
    found = _read(object, dtype, order) if copy else _read_or_share(object, dtype, order, copy)
    return found if len(found.shape) >= ndmin else found[(None,) * (ndmin - len(found.shape))]


def _read(value: Any, dtype: Any, order: str | None) -> NDArray:
    """A new array with the contents of something array-like."""
    if isinstance(value, (list, tuple)) and not has_handle(value):
        value = np.array(value, dtype)
    value = stack_sequence(value, dtype) if isinstance(value, (list, tuple)) else as_operand(value)
    raw = to_raw(value) if dtype is None else to_item(value, check_dtype(dtype))
    return new_array(raw, _find_order(raw.ndim, order, value))


def _read_or_share(a: Any, dtype: Any, order: str | None, copy: bool | None) -> NDArray:
    """The array itself if it has the dtype and the order, else a copy.

    Raises: ValueError if a copy is needed and not allowed (False)."""
    is_array = isinstance(a, NDArray) and dtype in (None, a.dtype)
    found = a.arrange(order) if is_array else _read(a, dtype, order or "K")
    if copy is not None and found is not a:
        np.array([], copy=False)  # NumPy says it
    return found


def _define_as_array(function, fixed_order: str | None = None) -> None:
    def convert(a, dtype=None, order=None, *, copy=None, **options):
        order = fixed_order or order
        return _read(a, dtype, order or "K") if copy else _read_or_share(a, dtype, order, copy)

    creates(function, knows_order=True)(convert)


_define_as_array(np.asarray)
_define_as_array(np.asanyarray)
_define_as_array(np.ascontiguousarray, "C")
_define_as_array(np.asfortranarray, "F")


@creates(np.asarray_chkfinite)
def asarray_chkfinite(a, dtype=None, order=None):
    found = array(a, dtype, copy=False)
    if found.dtype.kind in "fc":
        finite = jnp.all(jnp.isfinite(found.read()))
        fail(lax.bitwise_not(finite), ValueError("array must not contain infs or NaNs"))
    return found


@implements(np.copy, knows_order=True, always=True)
def copy(a, order="K", subok=False):
    return _read(a, None, order)


@creates(np.fromiter)
def fromiter(iter, dtype, count=-1, *, like=None):  # noqa: A002
    values = list(iter if count < 0 else itertools.islice(iter, count))
    if len(values) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(values)} items.")
    found = _read(values, dtype, "C")
    if found.ndim != 1:
        raise ValueError("setting an array element with a sequence.")
    return found


@creates(np.fromfunction)
def fromfunction(function, shape, *, dtype=float, like=None, **options):
    return resolve(function)(*indices(shape, dtype=dtype), **options)


# -- sequences of numbers -----------------------------------------------------------------------------------
def _is_known(*values: Any) -> bool:
    return not any(isinstance(value, Handle) for value in values)


@creates(np.arange)
def arange(*bounds, dtype=None, device=None, like=None, **named):
    if _is_known(*bounds, *named.values()):
        return new_array(to_raw(np.arange(*bounds, dtype=dtype, **named)))
    if len(bounds) == 4:
        *bounds, dtype = bounds
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
    extent = stop - start
    if not _is_known(step, extent) or not all(map(is_python_number, (start, step, extent))):
        common = np.result_type(*map(dtype_of, (start, stop, step)))
        if not common == np.dtype(common if dtype is None else dtype) == np.float64:
            raise not_traceable("np.arange() whose length is traced")
        return make_spaced(start, stop, step)
    found = np.result_type(*(dtype_of(x) for x in (start, stop, step))) if dtype is None else np.dtype(dtype)
    places = np.arange(len(np.arange(0, extent, step)))
    if not len(places):
        return _fill(0, 0, found)
    return new_array(cast_raw((places * step + start).read(), found))


@implements(np.linspace, always=True)
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    if _is_known(start, stop):
        found = np.linspace(start, stop, num, endpoint, retstep, dtype, axis)
        return (_adopt(found[0]), found[1]) if retstep else _adopt(found)
    first, last = to_common(start, stop, inexact=True, is_strong=False)
    intervals = num - 1 if endpoint else num
    step = (last - first) / first.dtype.type(intervals) if intervals > 0 else None
    places = np.arange(num).reshape((-1,) + (1,) * max(first.ndim, last.ndim)).astype(first.dtype)
    raw = places * (step if step is not None else last - first) + first
    if endpoint and num > 1:
        raw = raw.at[-1].set(jnp.broadcast_to(last, raw.shape[1:]))
    if axis:
        raw = jnp.moveaxis(raw, 0, axis)
    found_dtype = raw.dtype if dtype is None else np.dtype(dtype)
    if np.issubdtype(found_dtype, np.integer):
        raw = jnp.floor(raw)
    raw = new_array(cast_raw(raw, found_dtype))
    return (raw, wrap_result(step) if step is not None else np.nan) if retstep else raw


@creates(np.logspace)
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    found = np.power(base, linspace(start, stop, num=num, endpoint=endpoint, axis=axis))
    return found if dtype is None else found.astype(dtype)


# -- patterns that depend on shapes alone -------------------------------------------------------------------
def _adopt(found: Any) -> Any:
    """What NumPy has made, as arrays of the program."""
    return type(found)(map(_adopt, found)) if isinstance(found, (list, tuple)) else new_array(to_raw(found))


def _define_known(function) -> None:
    """A function of plain numbers: its result is a constant of the program, as an array of its own."""

    @creates(function)
    def make(*args, **options):
        if not _is_known(*args, *options.values()):
            raise not_traceable(f"np.{function.__name__}() of traced numbers")
        return _adopt(function(*args, **options))


for _function in (
    np.eye, np.identity, np.tri, np.hanning, np.hamming, np.blackman, np.bartlett, np.kaiser, np.tril_indices,
    np.triu_indices, np.diag_indices, np.mask_indices, np.fft.fftfreq, np.fft.rfftfreq, np.geomspace):
    _define_known(_function)


@creates(np.indices)
def indices(dimensions, dtype=int, sparse=False):
    return _adopt(np.indices(as_shape(dimensions), dtype, sparse))


@implements(np.meshgrid, always=True)
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    return tuple(map(new_array, jnp.meshgrid(*to_own(*xi), sparse=sparse, indexing=indexing)))
