"""NumPy's functions of shapes over handles: views where NumPy gives views."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

import jitcore.numpy as jnp
from jitcore.numpy import joining, shaping
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import as_shape, is_given
from jitcore.numpy_semantics.functions.tables import creates, implements
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.promotion import as_operand, to_raw
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.numpy_semantics.values.views import Broadcast, Diagonal


def as_array(x: Any) -> NDArray:
    """An operand as an array: itself, or a new one."""
    x = as_operand(x)
    return x if isinstance(x, NDArray) else new_array(to_raw(x))


# -- attributes as functions --------------------------------------------------------------------------------
@implements(np.shape)
def shape(a):
    return as_operand(a).shape if not isinstance(a, Number) else ()


@implements(np.ndim)
def ndim(a):
    return len(shape(a))


@implements(np.size)
def size(a, axis=None):
    a = as_array(a)
    if axis is None:
        return a.size
    extents = [a.shape[i] for i in normalize_axis_tuple(axis, a.ndim)]
    return int(np.prod(extents))


@implements(np.iscomplexobj)
def iscomplexobj(x):
    return as_operand(x).dtype.kind == "c"


@implements(np.isrealobj)
def isrealobj(x):
    return not iscomplexobj(x)


@creates(np.isscalar)
def isscalar(element):
    return isinstance(element, (Number, Scalar)) or not isinstance(element, NDArray) and np.isscalar(element)


# -- axes ---------------------------------------------------------------------------------------------------
@implements(np.transpose, np.permute_dims)
def transpose(a, axes=None):
    return as_array(a).transpose(axes)


@implements(np.linalg.matrix_transpose)
def matrix_transpose(x, /):
    return as_array(x).mT


# -- compositions of transpose and x[...] -------------------------------------------------------------------
def _define_view(compose: Callable, *, method: bool = False) -> None:
    """NumPy's function of the name of one of `jitcore.numpy`, which views arrays of every kind."""
    name = compose.__name__
    first = next(iter(inspect.signature(compose).parameters))

    def view(*args, **options):
        a, *rest = args or (options.pop(first),)
        return compose(as_array(a), *rest, **options)

    implements(getattr(np, name), method=name if method else None, is_view=True)(view)


for _compose in (
    joining.array_split, joining.dsplit, joining.hsplit, joining.split, joining.unstack, joining.vsplit,
    shaping.expand_dims, shaping.flip, shaping.fliplr, shaping.flipud, shaping.matrix_transpose,
    shaping.moveaxis, shaping.rollaxis, shaping.rot90):
    _define_view(_compose)
_define_view(shaping.squeeze, method=True)
_define_view(shaping.swapaxes, method=True)


def _define_at_least(compose: Callable) -> None:
    def extend(*arys):
        found = [compose(as_array(a)) for a in arys]
        return found[0] if len(found) == 1 else tuple(found)

    implements(getattr(np, compose.__name__), is_view=True)(extend)


for _compose in (shaping.atleast_1d, shaping.atleast_2d, shaping.atleast_3d):
    _define_at_least(_compose)


# -- shapes -------------------------------------------------------------------------------------------------
@implements(np.reshape)
def reshape(a, /, shape, order="C", *, copy=None):
    return as_array(a).reshape(shape, order=order, copy=copy)


@implements(np.ravel)
def ravel(a, order="C"):
    return as_array(a).ravel(order)


@implements(np.broadcast_to, is_view=True)
def broadcast_to(array, shape, subok=False):
    array = as_array(array)
    return array.add_view(Broadcast(array.shape, as_shape(shape)))


@implements(np.broadcast_arrays)
def broadcast_arrays(*args, subok=False):
    arrays = list(map(as_array, args))
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    return tuple(a if a.shape == shape else a.add_view(Broadcast(a.shape, shape, is_read_only=False))
                 for a in arrays)


@implements(np.astype)
def astype(x, dtype, /, *, copy=True, device=None):
    return x.astype(dtype, copy=copy)


# -- parts --------------------------------------------------------------------------------------------------
@implements(np.diagonal, np.linalg.diagonal, method="diagonal")
def diagonal(a, offset=0, axis1=0, axis2=1):
    a = as_array(a)
    one, other = normalize_axis_index(axis1, a.ndim), normalize_axis_index(axis2, a.ndim)
    order = [i for i in range(a.ndim) if i not in (one, other)]
    moved = a.transpose([*order, one, other])
    return moved.add_view(Diagonal(moved.shape, operator.index(offset)))


@implements(np.diag)
def diag(v, k=0):
    v = as_array(v)
    return new_array(jnp.diag(v.read(), k)) if v.ndim == 1 else diagonal(v, k)


@implements(np.real)
def real(val):
    val = as_operand(val)
    return val.real


@implements(np.imag)
def imag(val):
    return as_operand(val).imag


@implements(method="conjugate")
def conjugate(self):
    return np.conjugate(self) if self.dtype.kind == "c" else self  # NumPy gives the array itself


implements(method="conj")(conjugate)


# -- memory -------------------------------------------------------------------------------------------------
@implements(np.may_share_memory, np.shares_memory)
def may_share_memory(a, b, /, max_work=None):
    one, other = as_array(a), as_array(b)
    if one.storage is not other.storage:
        if one.storage.may_be_other or other.storage.may_be_other:
            raise not_traceable("whether arrays share memory that may be one array")
        return False
    if is_given(max_work) or not one.is_same(other):
        raise not_traceable("whether two views of one array share memory")
    return True
