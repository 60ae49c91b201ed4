"""Padded arrays with other axes or in another order.

In: a padded array. Out: views of the same frame, or new arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitcore.numpy import shaping
from jitcore.numpy_semantics.dynamic_extents import extents
from jitcore.numpy_semantics.dynamic_extents.align import adapt, assign
from jitcore.numpy_semantics.dynamic_extents.array import PaddedArray, accepts_padded, wrap
from jitcore.numpy_semantics.dynamic_extents.reading import compact_array, join_axes, share
from jitcore.numpy_semantics.dynamic_extents.reductions import Reduction, list_axes
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.numbers import Number

for _compose in (shaping.expand_dims, shaping.flip, shaping.fliplr, shaping.flipud, shaping.matrix_transpose,
                 shaping.moveaxis, shaping.rollaxis, shaping.rot90):
    accepts_padded(getattr(np, _compose.__name__))(_compose)
accepts_padded(np.swapaxes, method="swapaxes")(shaping.swapaxes)


@accepts_padded(np.transpose, method="transpose")
def transpose(a, *axes):
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        axes = axes[0] or ()
    order = list_axes(tuple(axes), a.ndim) if axes else tuple(reversed(range(a.ndim)))
    starts = a.find_axes()
    frame_order = [starts[place] + i for place in order for i in range(len(a.items[place].shape))]
    return PaddedArray(a.frame.transpose(frame_order), [a.items[place] for place in order])


@accepts_padded(np.squeeze, method="squeeze")
def squeeze(a, axis=None):
    if axis is None:
        raise not_traceable("np.squeeze without an axis of an array whose extents are traced")
    return shaping.squeeze(a, axis)


@accepts_padded(np.ravel, method="ravel")
def ravel(a, order="C"):
    return a if a.ndim == 1 else share(a, join_axes(a).copy())  # a view or not: nobody may write to either


@accepts_padded(method="flatten")
def flatten(a, order="C"):
    return join_axes(a).copy()


@accepts_padded(np.reshape)
def reshape(a, shape=None, order="C", **options):
    """New axes of extent 1 only."""
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    wanted = [extent for extent in shape if not _is_int(extent, 1)]
    own = [item for item in a.items if not (item.is_whole and item.size == 1)]
    pairs = zip(wanted, own)
    is_kept = [_is_int(extent, -1) or extents.is_equal(extent, item.size) for extent, item in pairs]
    if len(wanted) != len(own) or not all(is_kept) or sum(_is_int(extent, -1) for extent in wanted) > 1:
        raise not_traceable("a reshape of an array whose extents are traced")
    dropped = tuple(slice(None) if item in own else 0 for item in a.items)
    rest = iter([slice(None)] * len(own))
    view = a[dropped]
    return view[tuple(None if _is_int(extent, 1) else next(rest) for extent in shape)]


def _is_int(extent: Any, value: int) -> bool:
    return not isinstance(extent, Number) and extent == value


@accepts_padded(method="reshape")
def reshape_method(a, *shape, order="C"):
    return reshape(a, shape[0] if len(shape) == 1 else shape, order)


@accepts_padded(method="fill")
def fill(a, value):
    assign(a, value)


@accepts_padded(np.shape)
def shape(a):
    return a.shape


@accepts_padded(np.ndim)
def ndim(a):
    return a.ndim


@accepts_padded(np.size)
def size(a, axis=None):
    return a.size if axis is None else a.shape[axis]


@accepts_padded(np.sort)
def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    if order is not None or axis is None:
        raise not_traceable("np.sort of all elements of an array whose extents are traced")
    a = compact_array(a)
    (place,) = list_axes(axis, a.ndim)
    a = _move_to_front(a, place)
    last: Any = np.nan
    if a.dtype.kind not in "fc":
        last = True if a.dtype.kind == "b" else np.iinfo(a.dtype).max
    return wrap(np.sort(Reduction(a, place).fill(last), axis=a.find_axes()[place]), a.items)


def _move_to_front(a: PaddedArray, place: int) -> PaddedArray:
    """The same array with the elements along one axis at 0, 1, 2 ..."""
    item = a.items[place]
    if item.is_whole or item.step == 1 and extents.is_known(item.low, 0):
        return a
    items = [*a.items[:place], item.front(), *a.items[place + 1 :]]
    return PaddedArray(adapt(a, items), items)


@accepts_padded(method="sort")
def sort_in_place(a, axis=-1, kind=None, order=None, *, stable=None):
    assign(a, sort(a, axis, kind, order))


@accepts_padded(np.diff)
def diff(a, n=1, axis=-1):
    a = compact_array(a)
    (place,) = list_axes(axis, a.ndim)
    for _ in range(n):
        before, behind = [slice(None)] * a.ndim, [slice(None)] * a.ndim
        before[place], behind[place] = slice(None, -1), slice(1, None)
        a = np.subtract(a[tuple(behind)], a[tuple(before)])
    return a


@accepts_padded(np.copyto)
def copyto(dst, src, casting="same_kind", where=True):
    assign(dst, src if where is True else np.where(where, src, dst))
