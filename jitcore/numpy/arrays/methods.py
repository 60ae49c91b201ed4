"""Methods and properties of arrays, installed on `Array`: `x.sum()`, `x.T`, `x.at`, `x.astype(...)`.

In: an Array. Out: what the function of `jitcore.numpy` of that name gives. One table says which function
each method is.
"""

from __future__ import annotations

import inspect

from jitcore import dtypes, lax
from jitcore.array import Array, ConcreteArray
from jitcore.core.source import api_boundary
from jitcore.numpy import creation, cumulative, diagonals, products, reductions, shaping, sorting
from jitcore.numpy.indexing import searching, taking
from jitcore.numpy.indexing.update import IndexUpdateHelper
from jitcore.numpy.ufuncs import arithmetic, rounding

_FUNCTIONS = {
    cumulative: "cumprod cumsum",
    diagonals: "diagonal trace",
    products: "dot",
    reductions: "all any argmax argmin max mean min prod ptp std sum var",
    rounding: "clip round",
    searching: "nonzero searchsorted",
    shaping: "astype ravel squeeze swapaxes",
    sorting: "argpartition argsort sort",
    taking: "choose repeat take",
    arithmetic: "conjugate",
}
METHODS = {name: getattr(module, name) for module, names in _FUNCTIONS.items() for name in names.split()}
METHODS |= {"conj": arithmetic.conjugate, "flatten": shaping.ravel}


def reshape(self, *args, order: str = "C"):
    """`x.reshape(2, 3)` or `x.reshape((2, 3))`. Same as: `numpy.ndarray.reshape`."""
    shape = args[0] if len(args) == 1 else args
    return shaping.reshape(self, shape, order)


def transpose(self, *axes):
    """`x.transpose(1, 0)`, `x.transpose((1, 0))`, or reversed axes. Same as: `numpy.ndarray.transpose`."""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        axes = axes[0]
    return shaping.transpose(self, axes if axes is None or len(axes) else None)


def compress(self, condition, axis: int | None = None):
    """Slices along axis where the condition holds. Same as: `numpy.ndarray.compress`."""
    return taking.compress(condition, self, axis)


def copy(self, order: str = "K"):
    """A copy that shares no memory (a traced value is itself: it has none)."""
    return creation.array(self, copy=True)


def _is_special(dtype) -> bool:
    return dtype == dtypes.bool_ or dtypes.is_complex(dtype)


def view(self, dtype=None, type=None):
    """The same bits read as another dtype; the last axis takes a change of width. Same as:
    `numpy.ndarray.view`."""
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported.")
    if dtype is None:
        return self
    dtype = dtypes.canonicalize(dtype)
    dtypes.reject_narrow("view", *filter(dtypes.is_key, (self.dtype, dtype)))
    own, size = self.dtype.itemsize, dtype.itemsize
    if own == size and not any(map(_is_special, (dtype, self.dtype))):
        return lax.bitcast_convert_type(self, dtype)
    if isinstance(self, ConcreteArray):
        return ConcreteArray(self.data.view(dtype))
    if not self.ndim and own == size:
        return lax.reshape(view(lax.reshape(self, (1,)), dtype), ())
    if not self.ndim or self.shape[-1] * own % size:
        raise ValueError(f"view() of {self.aval.long()} as {dtype.name}: its last axis has no whole number "
                         "of elements")
    if dtypes.bool_ in (dtype, self.dtype):  # a byte
        octets = self.astype(dtypes.uint8) if self.dtype == dtypes.bool_ else view(self, dtypes.uint8)
        return octets != 0 if dtype == dtypes.bool_ else view(octets, dtype)
    if dtypes.is_complex(self.dtype):  # pairs of numbers
        parts = [lax.expand_dims(part, (self.ndim,)) for part in (self.real, self.imag)]
        pairs = lax.concatenate(parts, self.ndim)
        return view(lax.reshape(pairs, (*self.shape[:-1], 2 * self.shape[-1])), dtype)
    if dtypes.is_complex(dtype):
        pairs = view(self, dtypes.real_dtype(dtype))
        pairs = lax.reshape(pairs, (*self.shape[:-1], self.shape[-1] * own // size, 2))
        return lax.complex(pairs[..., 0], pairs[..., 1])
    shape, extent = self.shape[:-1], self.shape[-1] * own // size
    if own < size:
        return lax.bitcast_convert_type(lax.reshape(self, (*shape, extent, size // own)), dtype)
    return lax.reshape(lax.bitcast_convert_type(self, dtype), (*shape, extent))


def byteswap(self):
    """Every element with its bytes in reversed order. Same as: `numpy.ndarray.byteswap`."""
    width = self.dtype.itemsize
    if width == 1:
        return self
    if dtypes.is_complex(self.dtype):
        parts = [byteswap(part) for part in (lax.real(self), lax.imag(self))]
        return lax.complex(*parts)
    octets = lax.bitcast_convert_type(self, dtypes.uint8)
    return lax.bitcast_convert_type(lax.rev(octets, (octets.ndim - 1,)), self.dtype)


def clone(self):
    """A copy."""
    return copy(self)


def to_device(self, device, *, stream=None):
    """The array itself: there is one CPU device."""
    return self


PLAIN_METHODS = {"reshape": reshape, "transpose": transpose, "compress": compress, "copy": copy, "view": view,
                 "byteswap": byteswap, "clone": clone, "to_device": to_device}
PROPERTIES = {
    "T": (shaping.transpose, "The array with its axes reversed."),
    "mT": (shaping.matrix_transpose, "The array with its last two axes exchanged."),
    "real": (arithmetic.real, "Real part."),
    "imag": (arithmetic.imag, "Imaginary part; zeros for real arrays."),
    "at": (IndexUpdateHelper, "Updates of parts: `x.at[i].set(v)` returns a new array."),
    "flat": (lambda x: iter(lax.reshape(x, (x.size,))), "Iterator over the elements."),
}


def define_method(name: str, function):
    """A method that passes the array as the function's first argument."""

    def method(self, *args, **kwargs):
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = function.__doc__
    parameters = list(inspect.signature(function).parameters.values())
    method.__signature__ = inspect.Signature(
        [parameters[0].replace(name="self", default=inspect.Parameter.empty), *parameters[1:]])
    return method


def install_methods(cls: type[Array]) -> None:
    """Puts methods and properties on the array class."""
    for name, function in METHODS.items():
        setattr(cls, name, api_boundary(define_method(name, function)))
    for name, method in PLAIN_METHODS.items():
        setattr(cls, name, api_boundary(method))
    for name, (function, doc) in PROPERTIES.items():
        setattr(cls, name, property(api_boundary(function), doc=doc))
