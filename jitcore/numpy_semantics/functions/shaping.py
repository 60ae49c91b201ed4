"""NumPy's functions of shapes over handles: views where NumPy gives views."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from jitcore.numpy_semantics.functions.calls import as_shape, is_given
from jitcore.numpy_semantics.functions.tables import creates, implements
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array, unwrap_array
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.promotion import as_operand, to_raw
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.numpy_semantics.values.views import Axis, Broadcast, Diagonal, Window


def as_array(x: Any) -> NDArray:
    """An operand as an array: itself, or a new one."""
    x = as_operand(x)
    return x if isinstance(x, NDArray) else new_array(to_raw(x))


def view_axes(array: NDArray, dims: Any, changed: dict[int, Axis] | None = None) -> NDArray:
    """The view with these axes in this order (None: a new one); some of them others than whole."""
    axes = [(changed or {}).get(i, Axis(0, extent)) for i, extent in enumerate(array.shape)]
    whole = Window(array.shape, [Axis(0, extent) for extent in array.shape], range(array.ndim))
    chosen = whole.select(axes, dims)
    return array.add_view(Window(array.shape, chosen.axes, chosen.dims))


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


@implements(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x, /):
    return as_array(x).mT


@implements(np.swapaxes, method="swapaxes")
def swapaxes(a, axis1, axis2):
    a = as_array(a)
    order = list(range(a.ndim))
    one, other = normalize_axis_index(axis1, a.ndim), normalize_axis_index(axis2, a.ndim)
    order[one], order[other] = order[other], order[one]
    return a.transpose(order)


@implements(np.moveaxis)
def moveaxis(a, source, destination):
    a = as_array(a)
    sources = normalize_axis_tuple(source, a.ndim, "source")
    targets = normalize_axis_tuple(destination, a.ndim, "destination")
    if len(sources) != len(targets):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [axis for axis in range(a.ndim) if axis not in sources]
    for target, axis in sorted(zip(targets, sources)):
        order.insert(target, axis)
    return a.transpose(order)


@implements(np.rollaxis)
def rollaxis(a, axis, start=0):
    a = as_array(a)
    axis, start = normalize_axis_index(axis, a.ndim), start + a.ndim if start < 0 else start
    order = [other for other in range(a.ndim) if other != axis]
    order.insert(start - 1 if axis < start else start, axis)
    return a.transpose(order)


@implements(np.expand_dims)
def expand_dims(a, axis):
    a = as_array(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = a.ndim + len(axes)
    new = normalize_axis_tuple(axes, rank)
    own = iter(range(a.ndim))
    return view_axes(a, [None if place in new else next(own) for place in range(rank)])


@implements(np.squeeze, method="squeeze")
def squeeze(a, axis=None):
    a = as_array(a)
    if axis is None:
        dropped = tuple(i for i, extent in enumerate(a.shape) if extent == 1)
    else:
        dropped = normalize_axis_tuple(axis, a.ndim)
        if any(a.shape[i] != 1 for i in dropped):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    if not dropped:
        return a
    return view_axes(a, [i for i in range(a.ndim) if i not in dropped])


def _define_at_least(function: Callable, extend: Callable) -> None:
    def convert(*arys):
        found = [extend(as_array(a)) for a in arys]
        return found[0] if len(found) == 1 else tuple(found)

    implements(function)(convert)


def _extend_to_3d(a: NDArray) -> NDArray:
    dims = {0: [None, None, None], 1: [None, 0, None], 2: [0, 1, None]}.get(a.ndim)
    return a if dims is None else view_axes(a, dims)


def _extend_in_front(a: NDArray, ndim: int) -> NDArray:
    return view_axes(a, [None] * (ndim - a.ndim) + [*range(a.ndim)]) if a.ndim < ndim else a


_define_at_least(np.atleast_1d, lambda a: _extend_in_front(a, 1))
_define_at_least(np.atleast_2d, lambda a: _extend_in_front(a, 2))
_define_at_least(np.atleast_3d, _extend_to_3d)


# -- shapes -------------------------------------------------------------------------------------------------
@implements(np.reshape)
def reshape(a, /, shape, order="C", *, copy=None):
    return as_array(a).reshape(shape, order=order, copy=copy)


@implements(np.ravel)
def ravel(a, order="C"):
    return as_array(a).ravel(order)


@implements(np.broadcast_to)
def broadcast_to(array, shape, subok=False):
    array = as_array(array)
    shape = as_shape(shape)
    np.broadcast_to(np.empty(()), shape)
    fits = len(array.shape) <= len(shape) and all(
        own in (1, extent) for own, extent in zip(array.shape[::-1], shape[::-1]))
    if not fits:
        raise ValueError("operands could not be broadcast together with remapped shapes "
                         f"[original->remapped]: {array.shape}  and requested shape {shape}")
    return array.add_view(Broadcast(array.shape, shape))


@implements(np.broadcast_arrays)
def broadcast_arrays(*args, subok=False):
    arrays = list(map(as_array, args))
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    return tuple(a if a.shape == shape else a.add_view(Broadcast(a.shape, shape, is_read_only=False))
                 for a in arrays)


@implements(np.astype)
def astype(x, dtype, /, *, copy=True, device=None):
    return x.astype(dtype, copy=copy)


# -- reversing ----------------------------------------------------------------------------------------------
@implements(np.flip)
def flip(m, axis=None):
    m = as_array(m)
    axes = range(m.ndim) if axis is None else normalize_axis_tuple(axis, m.ndim)
    changed = {i: Axis(m.shape[i] - 1, m.shape[i], -1) for i in axes if m.shape[i] > 1}
    return view_axes(m, range(m.ndim), changed)


@implements(np.fliplr)
def fliplr(m):
    if as_array(m).ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(m, 1)


@implements(np.flipud)
def flipud(m):
    if not as_array(m).ndim:
        raise ValueError("Input must be >= 1-d.")
    return flip(m, 0)


@implements(np.rot90)
def rot90(m, k=1, axes=(0, 1)):
    m = as_array(m)
    one, other = normalize_axis_tuple(axes, m.ndim)
    k = operator.index(k) % 4
    if k == 0:
        return m.add_view()
    if k == 2:
        return flip(flip(m, one), other)
    return swapaxes(flip(m, other), one, other) if k == 1 else flip(swapaxes(m, one, other), other)


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
    import jitcore.numpy as jnp

    v = as_array(v)
    return new_array(jnp.diag(v.read(), k)) if v.ndim == 1 else diagonal(v, k)


@implements(np.real)
def real(val):
    val = as_operand(val)
    return val.real


@implements(np.imag)
def imag(val):
    return as_operand(val).imag


def _split(ary: Any, indices_or_sections: Any, axis: int, *, is_even: bool) -> list:
    ary = as_array(ary)
    axis = normalize_axis_index(axis, ary.ndim)
    extent = ary.shape[axis]
    if isinstance(indices_or_sections, (int, np.integer)):
        if is_even and extent % indices_or_sections:
            raise ValueError("array split does not result in an equal division")
        bounds = np.array_split(np.arange(extent), indices_or_sections)
        places = [0, *np.cumsum([len(part) for part in bounds]).tolist()]
    else:
        places = [0, *[slice(None, int(i)).indices(extent)[1] for i in indices_or_sections], extent]
    spans = [(start, max(stop - start, 0)) for start, stop in zip(places, places[1:])]
    return [view_axes(ary, range(ary.ndim), {axis: Axis(start, count)}) for start, count in spans]


@implements(np.split)
def split(ary, indices_or_sections, axis=0):
    return _split(ary, indices_or_sections, axis, is_even=True)


@implements(np.array_split)
def array_split(ary, indices_or_sections, axis=0):
    return _split(ary, indices_or_sections, axis, is_even=False)


@implements(np.vsplit)
def vsplit(ary, indices_or_sections):
    return split(ary, indices_or_sections, 0)


@implements(np.hsplit)
def hsplit(ary, indices_or_sections):
    return split(ary, indices_or_sections, 1 if as_array(ary).ndim > 1 else 0)


@implements(np.dsplit)
def dsplit(ary, indices_or_sections):
    return split(ary, indices_or_sections, 2)


@implements(np.unstack)
def unstack(x, /, *, axis=0):
    moved = moveaxis(x, axis, 0)
    return tuple(unwrap_array(part) for part in moved)


@implements(method="conjugate")
def conjugate(self):
    return np.conjugate(self) if self.dtype.kind == "c" else self  # NumPy gives the array itself


implements(method="conj")(conjugate)


# -- memory -------------------------------------------------------------------------------------------------
@implements(np.may_share_memory, np.shares_memory)
def may_share_memory(a, b, /, max_work=None):
    one, other = as_array(a), as_array(b)
    from jitcore.numpy_semantics.errors import not_traceable

    if one.storage is not other.storage:
        if one.storage.may_be_other or other.storage.may_be_other:
            raise not_traceable("whether arrays share memory that may be one array")
        return False
    if is_given(max_work) or not one.is_same(other):
        raise not_traceable("whether two views of one array share memory")
    return True
