"""Joining and splitting arrays.

In: sequences of arrays, or an array and where to cut it. Out: one array, or a list of parts.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.lax.define import canonicalize_axis
from jitcore.numpy.arrays import promotion
from jitcore.numpy.arrays.promotion import convert_dtype, ensure_array, promote_arrays, require_static
from jitcore.numpy.creation import asarray
from jitcore.numpy.indexing.reading import get_item
from jitcore.numpy.shaping import as_viewed, atleast_1d, atleast_2d, atleast_3d, moveaxis, ravel


# -- joining ------------------------------------------------------------------------------------------------
def _to_list(name: str, arrays) -> list:
    if isinstance(arrays, (Array, np.ndarray)):
        return [get_item(ensure_array(name, arrays), i) for i in range(arrays.shape[0])]
    if not isinstance(arrays, Sequence) or not len(arrays):
        raise ValueError(f"Need at least one array to {name}.")
    return [asarray(x) if isinstance(x, (list, tuple)) else ensure_array(name, x, i)
            for i, x in enumerate(arrays)]


def concatenate(arrays, axis: int | None = 0, dtype=None):
    """Arrays joined along an existing axis (flattened for None). Same as: `numpy.concatenate`."""
    arrays = _to_list("concatenate", arrays)
    if axis is None:
        arrays, axis = [ravel(x) for x in arrays], 0
    if arrays[0].ndim == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    axis = canonicalize_axis(axis, arrays[0].ndim)
    arrays = promote_arrays("concatenate", *arrays)
    if dtype is not None:
        arrays = [convert_dtype(x, dtypes.canonicalize_for(dtype, x.dtype)) for x in arrays]
    return arrays[0] if len(arrays) == 1 else lax.concatenate(arrays, axis)


def concat(arrays, /, *, axis: int | None = 0):
    """Arrays joined along an existing axis. Same as: `numpy.concat`."""
    return concatenate(arrays, axis)


def stack(arrays, axis: int = 0, out=None, dtype=None):
    """Arrays of one shape joined along a new axis. Same as: `numpy.stack`."""
    promotion.reject_out("stack", out)
    arrays = _to_list("stack", arrays)
    if len({x.shape for x in arrays}) > 1:
        raise ValueError("All input arrays must have the same shape.")
    axis = canonicalize_axis(axis, arrays[0].ndim + 1)
    return concatenate([lax.expand_dims(x, (axis,)) for x in arrays], axis, dtype)


def vstack(tup, dtype=None):
    """Arrays joined along the first axis; vectors are rows. Same as: `numpy.vstack`."""
    return concatenate([atleast_2d(x) for x in _to_list("vstack", tup)], 0, dtype)


def hstack(tup, dtype=None):
    """Arrays joined along the second axis, vectors along their only one. Same as: `numpy.hstack`."""
    arrays = [atleast_1d(x) for x in _to_list("hstack", tup)]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1, dtype)


def dstack(tup, dtype=None):
    """Arrays joined along the third axis. Same as: `numpy.dstack`."""
    return concatenate([atleast_3d(x) for x in _to_list("dstack", tup)], 2, dtype)


def column_stack(tup):
    """Vectors as columns, matrices as they are, joined along the second axis. Same as:
    `numpy.column_stack`."""
    arrays = _to_list("column_stack", tup)
    return concatenate([x if x.ndim > 1 else lax.reshape(x, (x.size, 1)) for x in arrays], 1)


def block(arrays):
    """An array of nested lists of blocks. Same as: `numpy.block`.

    Raises: ValueError for lists whose depths differ; TypeError for tuples."""
    depth = _nesting_depth(arrays, ())

    def join(item, level: int):
        if isinstance(item, list):
            parts = [join(one, level + 1) for one in item]
            rank = max(depth, *[x.ndim for x in parts])
            parts = [lax.reshape(x, (1,) * (rank - x.ndim) + x.shape) for x in parts]
            return concatenate(parts, level - depth)
        return asarray(item)

    return join(arrays, 0)


def _nesting_depth(item, place: tuple[int, ...]) -> int:
    """How deep lists are nested. Raises: TypeError for a tuple; ValueError for depths that differ."""
    if isinstance(item, tuple):
        raise TypeError(f"block takes nested lists, got a tuple at {list(place)}; tuples do not nest")
    if not isinstance(item, list):
        return 0
    depths = {_nesting_depth(part, (*place, i)) for i, part in enumerate(item)}
    if len(depths) != 1:
        what = f"lists of different depths, {sorted(depths)}," if depths else "an empty list"
        raise ValueError(f"block got {what} at {list(place)}")
    return 1 + depths.pop()


def append(arr, values, axis: int | None = None):
    """values joined to the end of arr. Same as: `numpy.append`."""
    return concatenate([asarray(arr), asarray(values)], axis)


# -- splitting ----------------------------------------------------------------------------------------------
def _split(name: str, ary, indices_or_sections, axis: int, is_even: bool) -> list:
    ary = as_viewed(name, ary)
    axis = canonicalize_axis(axis, ary.ndim)
    require_static(name, "indices_or_sections", indices_or_sections)
    bounds = _list_bounds(ary.shape[axis], indices_or_sections, is_even)
    return [ary[(*(slice(None),) * axis, slice(start, builtins.max(start, stop)))]
            for start, stop in zip(bounds, bounds[1:])]


def _list_bounds(extent: int, indices_or_sections, is_even: bool) -> list[int]:
    """Where the parts of an axis begin, and its end."""
    is_array = isinstance(indices_or_sections, np.ndarray) and indices_or_sections.ndim
    if is_array or isinstance(indices_or_sections, Sequence):
        return [0, *[slice(None, operator.index(i)).indices(extent)[1] for i in indices_or_sections], extent]
    count = operator.index(indices_or_sections)
    if is_even and extent % count:
        raise ValueError("array split does not result in an equal division")
    width, extra = divmod(extent, count)
    return [i * width + builtins.min(i, extra) for i in range(count + 1)]


def split(ary, indices_or_sections, axis: int = 0):
    """Equal parts, or the parts between indices. Raises: ValueError for unequal parts. Same as:
    `numpy.split`."""
    return _split("split", ary, indices_or_sections, axis, True)


def array_split(ary, indices_or_sections, axis: int = 0):
    """Parts of nearly equal extent, or the parts between indices. Same as: `numpy.array_split`."""
    return _split("array_split", ary, indices_or_sections, axis, False)


def vsplit(ary, indices_or_sections):
    """`split` along the first axis. Same as: `numpy.vsplit`."""
    return _split("vsplit", ary, indices_or_sections, 0, True)


def hsplit(ary, indices_or_sections):
    """`split` along the second axis, of vectors the first. Same as: `numpy.hsplit`."""
    ary = as_viewed("hsplit", ary)
    return _split("hsplit", ary, indices_or_sections, 0 if ary.ndim == 1 else 1, True)


def dsplit(ary, indices_or_sections):
    """`split` along the third axis. Same as: `numpy.dsplit`."""
    return _split("dsplit", ary, indices_or_sections, 2, True)


def unstack(x, /, *, axis: int = 0) -> tuple:
    """The slices along one axis, as a tuple. Same as: `numpy.unstack`."""
    x = moveaxis(x, axis, 0)
    return tuple(x[i] for i in range(x.shape[0]))


# -- bits ---------------------------------------------------------------------------------------------------
def packbits(a, axis: int | None = None, bitorder: str = "big"):
    """Eight truth values after the other as the bits of bytes, along an axis, of the flat array for None.

    Args:
        a: bools or integers, of which what is not 0 is a one. bitorder: "big" for the first as the highest
            bit, else "little". What is missing of the last byte is 0.

    Returns: uint8, with one element for eight. Raises: TypeError for floats; ValueError for another bitorder.
    Example: `packbits(jnp.array([1, 0, 1]))` is `[160]`. Source: numpy.packbits."""
    a = ensure_array("packbits", a)
    if dtypes.kind_of(a.dtype) not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    if bitorder not in ("big", "little"):
        raise ValueError("'order' must be either 'little' or 'big'")
    a, axis = (ravel(a), 0) if axis is None else (a, canonicalize_axis(axis, a.ndim))
    bits = lax.convert_element_type(moveaxis(a, axis, -1) != 0, np.uint8)
    missing = -bits.shape[-1] % 8
    bits = lax.pad(bits, np.uint8(0), [(0, 0, 0)] * (bits.ndim - 1) + [(0, missing, 0)])
    bits = lax.reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8))
    places = np.arange(8, dtype=np.uint8)[:: -1 if bitorder == "big" else 1]
    return moveaxis(lax.reduce_or(bits << places, (bits.ndim - 1,)), -1, axis)


__all__ = ["append", "array_split", "block", "column_stack", "concat", "concatenate", "dsplit", "dstack",
           "hsplit", "hstack", "packbits", "split", "stack", "unstack", "vsplit", "vstack"]
