"""What an index expression means: the analysis shared by reading `x[index]` and writing `x.at[index]`.

In: a shape and an index (integers, slices, None, Ellipsis, integer and boolean arrays, in NumPy's
combinations).
Out: a list of entries, one per axis or new axis, and for general indices an `IndexPlan`: one index array
and the dimension numbers of one gather or scatter. An index known now is checked now (IndexError out of
range).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jitcore import dtypes, errors, lax
from jitcore.array import Array, ConcreteArray
from jitcore.core.trace import Tracer, origin_of, user_snippet
from jitcore.numpy.arrays.promotion import (
    apply_elementwise,
    apply_select,
    broadcast_shapes,
    convert_dtype,
    promote,
)


class Entry(NamedTuple):
    """One item of an index.

    kind: "slice", "integer" (known), "scalar" (traced), "array", "new", "bool" or "gap" (an Ellipsis that
    stands for no axis)."""

    kind: str
    axis: int = -1
    value: object = None
    start: int = 0
    size: int = 0
    step: int = 1


def parse_index(shape: tuple, index, *, is_checked: bool = True) -> list[Entry]:
    """The entries of an index of an array of this shape, Ellipsis expanded, every axis named.

    is_checked: whether known indices have to be in range; else those that are not are treated as traced ones.
    Raises: IndexError for too many or out-of-range indices; TypeError for what is no index."""
    items = _expand_ellipsis(shape, [_normalize_item(item) for item in _to_items(index)])
    entries, axis = [], 0
    for position, item in enumerate(items):
        if not is_checked:
            item = _hide_outside(item, shape[axis] if axis < len(shape) else 0)
        if item is None:
            entries.append(Entry("new"))
        elif item is Ellipsis:
            entries.append(Entry("gap"))
        elif isinstance(item, (bool, np.bool_)):
            entries.append(Entry("bool", value=bool(item)))
        elif isinstance(item, slice):
            entries.append(_parse_slice(item, axis, shape[axis], position))
            axis += 1
        elif isinstance(item, int):
            entries.append(Entry("integer", axis, _check_index(item, axis, shape[axis])))
            axis += 1
        elif item.dtype == dtypes.bool_:
            entries += _parse_mask(item, axis, shape)
            axis += item.ndim
        else:
            kind = "scalar" if not item.shape else "array"
            if kind == "array" and isinstance(item, np.ndarray) and any(map(_selects_nothing, items)):
                item = np.zeros_like(item)  # NumPy looks at no index of a selection that is empty
            entries.append(Entry(kind, axis, _check_index_array(item, axis, shape[axis])))
            axis += 1
    if any(entry.kind in ("array", "bool") for entry in entries):
        return entries
    return [entry for entry in entries if entry.kind != "gap"]


def _hide_outside(item, extent):
    """Known integers as an Array where some lie outside of the axis."""
    is_integer = isinstance(item, (int, np.ndarray)) and not isinstance(item, bool)
    if not is_integer or not isinstance(extent, int) or np.asarray(item).dtype.kind not in "iu":
        return item
    known = np.asarray(item)
    if not known.size or (-extent <= known.min() and known.max() < extent):
        return item
    limit = np.iinfo(np.int32)
    return ConcreteArray(np.clip(known, limit.min // 2, limit.max).astype(np.int32))


def _to_items(index) -> tuple:
    if isinstance(index, list):
        raise TypeError("Using a non-tuple sequence for multidimensional indexing is not allowed; "
                        "use `arr[array(seq)]` instead of `arr[seq]`.")
    return index if isinstance(index, tuple) else (index,)


def _normalize_item(item):
    """None, Ellipsis, bool, int, slice, or an array of integers or bools."""
    if item is None or item is Ellipsis or isinstance(item, (bool, np.bool_, slice)):
        return item
    if isinstance(item, (int, np.integer)):
        return int(item)
    if isinstance(item, str):
        raise TypeError(f"string indexing is not supported; got idx={item!r}")
    if isinstance(item, (list, tuple)):
        item = _array_of_sequence(item)
    if isinstance(item, np.ndarray) and not item.shape:
        item = item[()]
        return int(item) if isinstance(item, np.integer) else _normalize_item(item)
    if not isinstance(item, (Array, np.ndarray)):
        if hasattr(type(item), "__index__"):
            return operator.index(item)
        kind = np.asarray(item).dtype if isinstance(item, (float, complex, np.generic)) else type(item)
        raise TypeError(f"Indexer must have integer or boolean type, got indexer with type {kind}")
    if dtypes.kind_of(item.dtype) not in "biu":
        raise TypeError(f"Indexer must have integer or boolean type, got indexer with type {item.dtype.name}")
    if isinstance(item, ConcreteArray) and not item.shape and item.dtype == dtypes.bool_:
        return bool(item.data)
    return item


def _array_of_sequence(item):
    from jitcore.numpy.creation import array

    if any(isinstance(leaf, Array) for leaf in item):
        return array(item)
    found = np.asarray(item)
    return found.astype(np.int32) if not found.size else found


def _expand_ellipsis(shape: tuple, items: list) -> list:
    consumed = sum(_count_axes(item) for item in items)
    if consumed > len(shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but {consumed} were indexed")
    rest = [slice(None)] * (len(shape) - consumed)
    positions = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(positions) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if not positions:
        return items + rest
    # An Ellipsis that stands for no axis still separates the index arrays on its two sides.
    return items[: positions[0]] + (rest or [Ellipsis]) + items[positions[0] + 1 :]


def _count_axes(item) -> int:
    if item is None or item is Ellipsis or isinstance(item, (bool, np.bool_)):
        return 0
    if isinstance(item, (Array, np.ndarray)) and item.dtype == dtypes.bool_:
        return item.ndim
    return 1


def _selects_nothing(item) -> bool:
    """Whether an index array is known to be empty, or a mask without True."""
    known = item.data if isinstance(item, ConcreteArray) else item
    return isinstance(known, np.ndarray) and known.ndim > 0 and (
        not known.size or (known.dtype == np.bool_ and not known.any()))


def _check_index(index: int, axis: int, extent) -> int:
    if isinstance(extent, int) and not -extent <= index < extent:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {extent}")
    return index + extent if index < 0 else index


def _check_index_array(item, axis: int, extent):
    """Known indices are checked and made non-negative; those of Arrays may lie outside (clamped or
    dropped)."""
    if isinstance(item, np.ndarray):
        item = item.astype(np.int64 if item.dtype.itemsize == 8 and isinstance(extent, int) else item.dtype)
        if item.size and isinstance(extent, int):
            bad = item[(item < -extent) | (item >= extent)]
            if bad.size:
                raise IndexError(f"index {bad.flat[0]} is out of bounds for axis {axis} with size {extent}")
        wrapped = np.where(item < 0, item + extent, item)
        return wrapped.astype(np.int32 if not isinstance(extent, int) or extent < 2**31 else np.int64)
    if dtypes.kind_of(item.dtype) == "u":
        return item
    if item.dtype.itemsize < 4:
        item = convert_dtype(item, dtypes.int32)
    negative = apply_elementwise(lax.lt.primitive, promote("index", item, 0))
    return apply_select(negative, apply_elementwise(lax.add.primitive, promote("index", item, extent)), item)


def _parse_mask(mask, axis: int, shape: tuple) -> list[Entry]:
    """A boolean array as the integer arrays that `nonzero` gives. Raises: for a traced mask."""
    if isinstance(mask, Tracer):
        raise errors.boolean_index_error(mask.aval.short(), origin_of(mask.trace, mask), user_snippet())
    expected = shape[axis : axis + mask.ndim]
    if tuple(mask.shape) != tuple(expected):
        raise IndexError(f"boolean index did not match shape of indexed array in index {axis}: "
                         f"got {tuple(mask.shape)}, expected {list(expected)}")
    return [
        Entry("array", axis + i, found.astype(np.int32))
        for i, found in enumerate(np.nonzero(np.asarray(mask)))
    ]


def _parse_slice(item: slice, axis: int, extent, position: int) -> Entry:
    bounds = [_check_bound(bound, item, position) for bound in (item.start, item.stop, item.step)]
    if isinstance(extent, int) and all(bound is None or isinstance(bound, int) for bound in bounds):
        start, stop, step = slice(*bounds).indices(extent)
        size = len(range(start, stop, step))
        return Entry("slice", axis, None, start if size else 0, size, step if size > 1 else 1)
    return _parse_symbolic_slice(*bounds, axis, extent)


def _parse_symbolic_slice(start, stop, step, axis: int, extent) -> Entry:
    """A slice of an axis of unknown extent, or with symbolic bounds; the bounds are taken to lie inside."""
    if step not in (None, 1):
        raise NotImplementedError("slices of a symbolic extent must have step 1")
    start = (
        0 if start is None else start if isinstance(start, int) and start >= 0 else _from_end(start, extent)
    )
    stop = extent if stop is None else _from_end(stop, extent)
    return Entry("slice", axis, None, start, stop - start)


def _from_end(bound, extent):
    return bound + extent if isinstance(bound, int) and bound < 0 else bound


def _check_bound(bound, item: slice, position: int):
    if isinstance(bound, Tracer):
        text = f"slice({item.start!r}, {item.stop!r}, {item.step!r})"
        raise errors.slice_bound_error(text, position, origin_of(bound.trace, bound), user_snippet())
    if bound is None or (not isinstance(bound, float) and not hasattr(type(bound), "__index__")):
        if isinstance(bound, (str, bytes, complex)):
            raise TypeError(f"slice indices must be integers or None, got {bound!r}")
        return bound
    return operator.index(bound)


class IndexPlan(NamedTuple):
    """A general index as one gather or scatter.

    indices: array of shape `batch + (k,)`; index_map: the axis that each of the k components positions.
    window_dims: axes of the result (without new axes) that run through a slice. collapsed: axes of the
    array that the result lacks. slice_sizes: extent of a slice along each axis. shape: of the result with
    its new axes;
    core_shape: without. new_axes: their positions. is_known: no index depends on an Array.
    """

    indices: object
    index_map: tuple[int, ...]
    window_dims: tuple[int, ...]
    collapsed: tuple[int, ...]
    slice_sizes: tuple
    core_shape: tuple
    new_axes: tuple[int, ...]
    shape: tuple
    is_known: bool


def plan_index(shape: tuple, entries: Sequence[Entry]) -> IndexPlan:
    """The plan of a parsed index. Raises: IndexError where index arrays do not broadcast."""
    has_arrays = any(entry.kind in ("array", "bool") for entry in entries)
    advanced = ("array", "bool", "integer", "scalar") if has_arrays else ()
    joint = _join_index_shapes(entries) if has_arrays else ()
    result, new_axes = _lay_out_result(entries, advanced, joint)
    core = [dim for dim in result if dim[0] != "new"]
    batch_dims = [i for i, (kind, *_) in enumerate(core) if kind != "window"]
    batch_shape = tuple(core[i][1] for i in batch_dims)
    first_joint = next((n for n, i in enumerate(batch_dims) if core[i][0] == "joint"), len(batch_dims))
    components, index_map, slice_sizes = [], [], list(shape)
    for entry in entries:
        if entry.kind in ("integer", "scalar", "array"):
            components.append((entry.value, first_joint + len(joint)))
            index_map.append(entry.axis)
            slice_sizes[entry.axis] = 1
        elif entry.kind == "slice" and entry.step != 1:
            position = next(n for n, i in enumerate(batch_dims) if core[i][0] == entry.axis)
            steps = np.arange(entry.size, dtype=np.int32) * entry.step + entry.start
            components.append((steps.astype(np.int32), position + 1))
            index_map.append(entry.axis)
            slice_sizes[entry.axis] = 1
        elif entry.kind == "slice":
            slice_sizes[entry.axis] = entry.size
            if not (isinstance(entry.start, int) and entry.start == 0):
                components.append((entry.start, 0))
                index_map.append(entry.axis)
    collapsed = [entry.axis for entry in entries if entry.kind in ("integer", "scalar", "array")]
    collapsed += [entry.axis for entry in entries if entry.kind == "slice" and entry.step != 1]
    return IndexPlan(
        _assemble_indices(components, batch_shape), tuple(index_map),
        tuple(i for i, (kind, *_) in enumerate(core) if kind == "window"), tuple(sorted(collapsed)),
        tuple(slice_sizes), tuple(size for _, size in core), tuple(new_axes),
        tuple(1 if kind == "new" else size for kind, size in result),
        not any(isinstance(value, Array) for value, _ in components))


def _join_index_shapes(entries: Sequence[Entry]) -> tuple:
    shapes = [entry.value.shape for entry in entries if entry.kind == "array"]
    shapes += [(1,) if entry.value else (0,) for entry in entries if entry.kind == "bool"]
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError(
            f"index arrays could not be broadcast together: shapes={list(map(tuple, shapes))}"
        ) from None


def _lay_out_result(entries: Sequence[Entry], advanced: tuple, joint: tuple) -> tuple[list, list]:
    """The result's dimensions as (kind or axis, extent), and the positions of its new axes.

    The joint dimensions of index arrays stand where these stand together, else in front."""
    positions = [i for i, entry in enumerate(entries) if entry.kind in advanced]
    together = positions == list(range(positions[0], positions[0] + len(positions))) if positions else True
    joint_dims = [("joint", size) for size in joint]
    result = [] if together else list(joint_dims)
    for i, entry in enumerate(entries):
        if positions and together and i == positions[0]:
            result += joint_dims
        if entry.kind == "new":
            result.append(("new", 1))
        elif entry.kind == "slice":
            result.append((entry.axis if entry.step != 1 else "window", entry.size))
    return result, [i for i, (kind, _) in enumerate(result) if kind == "new"]


def _assemble_indices(components: list, batch_shape: tuple):
    """The index array of shape `batch_shape + (k,)`. A component's last axis is the batch axis before
    `end`."""
    if all(not isinstance(value, Array) for value, _ in components):
        known = [_expand_known(np.asarray(value), end, batch_shape) for value, end in components]
        dtype = (
            np.int32
            if all(c.dtype.itemsize <= 4 or not c.size or c.max() < 2**31 for c in known)
            else np.int64
        )
        return np.stack(known, -1).astype(dtype) if known else np.zeros((*batch_shape, 0), np.int32)
    wide = any(
        isinstance(v, Array) and v.dtype in (dtypes.int64, dtypes.uint32, dtypes.uint64)
        for v, _ in components
    )
    dtype = dtypes.int64 if wide else dtypes.int32
    columns = []
    for value, end in components:
        value = convert_dtype(value, dtype) if isinstance(value, Array) else np.asarray(value).astype(dtype)
        rank = len(value.shape)
        dims = tuple(range(end - rank, end))
        columns.append(lax.broadcast_in_dim(value if rank or isinstance(value, Array) else value[()],
                                                  (*batch_shape, 1), dims))
    return columns[0] if len(columns) == 1 else lax.concatenate(columns, len(batch_shape))


def _expand_known(value: np.ndarray, end: int, batch_shape: tuple) -> np.ndarray:
    trailing = (1,) * (len(batch_shape) - end)
    return np.broadcast_to(value.reshape(value.shape + trailing) if value.ndim else value, batch_shape)
