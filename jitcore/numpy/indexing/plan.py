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

from jitcore import dtypes, lax
from jitcore.array import Array, ConcreteArray
from jitcore.core.trace import Tracer, origin_of, user_snippet
from jitcore.errors import arguments as argument_errors
from jitcore.numpy.arrays.promotion import (apply_elementwise, apply_select, broadcast_shapes, convert_dtype,
                                            promote)
from jitcore.numpy.creation import array


class Entry(NamedTuple):
    """One item of an index.

    kind: "slice", "integer" (known), "scalar" (traced), "array", "mask" (one whose elements are not known),
    "new", "bool" or "gap" (an Ellipsis that stands for no axis)."""

    kind: str
    axis: int = -1
    value: object = None
    start: int = 0
    size: int = 0
    step: int = 1


class IndexRules:
    """What may stand in an index, what of it may be traced, and what is out of range: for Arrays. Arrays of
    other kinds have subclasses."""

    too_many = "Too many indices: array is {}-dimensional, but {} were indexed"
    takes_lists = False

    def normalize(self, item):
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
            return int(item) if isinstance(item, np.integer) else self.normalize(item)
        if not isinstance(item, (Array, np.ndarray)):
            if hasattr(type(item), "__index__"):
                return operator.index(item)
            kind = np.asarray(item).dtype if isinstance(item, (float, complex, np.generic)) else type(item)
            raise TypeError(f"Indexer must have integer or boolean type, got indexer with type {kind}")
        if dtypes.kind_of(item.dtype) not in "biu":
            raise TypeError(
                f"Indexer must have integer or boolean type, got indexer with type {item.dtype.name}")
        if isinstance(item, ConcreteArray) and not item.shape and item.dtype == dtypes.bool_:
            return bool(item.data)
        return item

    def parse_item(self, item, axis: int, shape: tuple, position: int) -> list[Entry]:
        """The entries of a normalized item. axis: the first one that it indexes; position: in the index."""
        if item is None or item is Ellipsis:
            return [Entry("new" if item is None else "gap")]
        if isinstance(item, (bool, np.bool_)):
            return [Entry("bool", value=bool(item))]
        if isinstance(item, slice):
            return [self.parse_slice(item, axis, shape[axis], position)]
        if getattr(item, "dtype", None) == np.bool_:
            return self.parse_mask(item, axis, shape)
        if getattr(item, "shape", ()):
            return [Entry("array", axis, self.check_array(item, axis, shape[axis]))]
        return [self.parse_integer(item, axis, shape[axis])]

    def parse_integer(self, index, axis: int, extent) -> Entry:
        if isinstance(index, Array):
            return Entry("scalar", axis, self.check_array(index, axis, extent))
        return Entry("integer", axis, check_known_index(index, axis, extent))

    def parse_mask(self, mask, axis: int, shape: tuple) -> list[Entry]:
        """A boolean array as the integer arrays that `nonzero` gives; axes of it may be empty, as in NumPy.
        Raises: for a traced mask."""
        if isinstance(mask, Tracer):
            raise argument_errors.boolean_index_error(mask.aval.short(), origin_of(mask.owner, mask),
                                                      user_snippet())
        expected = shape[axis : axis + mask.ndim]
        if len(expected) < mask.ndim or any(m not in (e, 0) for m, e in zip(mask.shape, expected)):
            raise IndexError(f"boolean index did not match shape of indexed array in index {axis}: "
                             f"got {tuple(mask.shape)}, expected {list(expected)}")
        return [Entry("array", axis + i, found) for i, found in enumerate(np.nonzero(np.asarray(mask)))]

    def check_array(self, item, axis: int, extent):
        """Index arrays counted from the front; known ones are checked, those of Arrays may lie outside
        (clamped or dropped)."""
        if isinstance(item, np.ndarray):
            return check_known_array(item, axis, extent)
        if dtypes.kind_of(item.dtype) == "u":
            return item
        if item.dtype.itemsize < 4:
            item = convert_dtype(item, dtypes.int32)
        negative = apply_elementwise(lax.lt.primitive, promote("index", item, 0))
        return apply_select(negative, apply_elementwise(lax.add.primitive, promote("index", item, extent)),
                            item)

    def parse_slice(self, item: slice, axis: int, extent, position: int) -> Entry:
        bounds = [_check_bound(bound, item, position) for bound in (item.start, item.stop, item.step)]
        if isinstance(extent, int) and all(bound is None or isinstance(bound, int) for bound in bounds):
            return parse_known_slice(slice(*bounds), axis, extent)
        return _parse_symbolic_slice(*bounds, axis, extent)


class UncheckedRules(IndexRules):
    """Known indices that are not in range are treated as traced ones."""

    wraps = True  # negative ones count from the end

    def parse_item(self, item, axis, shape, position):
        extent = shape[axis] if axis < len(shape) else 0
        return super().parse_item(_hide_outside(item, extent, self.wraps), axis, shape, position)


class UnwrappedRules(UncheckedRules):
    """Negative indices are out of range."""

    wraps = False

    def check_array(self, item, axis, extent):
        if isinstance(item, np.ndarray):
            return super().check_array(item, axis, extent)
        return convert_dtype(item, dtypes.int32) if item.dtype.itemsize < 4 else item


RULES, UNCHECKED, UNWRAPPED = IndexRules(), UncheckedRules(), UnwrappedRules()


def parse_index(shape: tuple, index, rules: IndexRules = RULES) -> list[Entry]:
    """The entries of an index of an array of this shape, Ellipsis expanded, every axis named.

    Raises: IndexError for too many or out-of-range indices; TypeError for what is no index."""
    if isinstance(index, list) and not rules.takes_lists:
        raise TypeError("Using a non-tuple sequence for multidimensional indexing is not allowed; "
                        "use `arr[array(seq)]` instead of `arr[seq]`.")
    items = [rules.normalize(item) for item in (index if isinstance(index, tuple) else (index,))]
    items = expand_ellipsis(items, len(shape), rules.too_many)
    if any(map(_selects_nothing, items)):
        items = list(map(_forget_places, items))
    entries, axis = [], 0
    for position, item in enumerate(items):
        entries += rules.parse_item(item, axis, shape, position)
        axis += count_axes(item)
    if any(entry.kind in ("array", "mask", "bool") for entry in entries):
        return entries
    return [entry for entry in entries if entry.kind != "gap"]


def expand_ellipsis(items: list, rank: int, too_many: str) -> list:
    """The items of an index with whole slices for axes that none of them names.

    too_many: the text of the IndexError for more items than axes."""
    consumed = sum(map(count_axes, items))
    if consumed > rank:
        raise IndexError(too_many.format(rank, consumed))
    positions = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(positions) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    rest = [slice(None)] * (rank - consumed)
    if not positions:
        return items + rest
    # An Ellipsis that stands for no axis still separates the index arrays on its two sides.
    return items[: positions[0]] + (rest or [Ellipsis]) + items[positions[0] + 1 :]


def count_axes(item) -> int:
    """How many axes a normalized item indexes."""
    if item is None or item is Ellipsis or isinstance(item, (bool, np.bool_)):
        return 0
    return item.ndim if getattr(item, "dtype", None) == np.bool_ else 1


def _selects_nothing(item) -> bool:
    """Whether an index array is known to be empty, or a mask without True."""
    known = item.data if isinstance(item, ConcreteArray) else item
    return isinstance(known, np.ndarray) and known.ndim > 0 and (
        not known.size or (known.dtype == np.bool_ and not known.any()))


def _forget_places(item):
    """NumPy looks at no index of a selection that is empty."""
    is_known = isinstance(item, np.ndarray) and item.dtype != np.bool_
    return np.zeros_like(item) if is_known else item


def _hide_outside(item, extent, wraps: bool):
    """Known integers as an Array where some lie outside of the axis."""
    is_integer = isinstance(item, (int, np.ndarray)) and not isinstance(item, bool)
    if not is_integer or not isinstance(extent, int) or np.asarray(item).dtype.kind not in "iu":
        return item
    known = np.asarray(item)
    if not known.size or ((-extent if wraps else 0) <= known.min() and known.max() < extent):
        return item
    limit = np.iinfo(np.int32)
    return ConcreteArray(np.clip(known, limit.min // 2, limit.max).astype(np.int32))


def _array_of_sequence(item):
    if any(isinstance(leaf, Array) for leaf in item):
        return array(item)
    found = np.asarray(item)
    return found.astype(np.int32) if not found.size else found


def check_known_index(index: int, axis: int, extent) -> int:
    """A known position, from 0 on. Raises: IndexError outside."""
    if isinstance(extent, int) and not -extent <= index < extent:
        raise IndexError(f"index {index!r} is out of bounds for axis {axis} with size {extent}")
    return index + extent if index < 0 else index


def check_known_array(item: np.ndarray, axis: int, extent) -> np.ndarray:
    """Known positions, from 0 on. Raises: IndexError for those outside."""
    if not isinstance(extent, int):
        return np.where(item < 0, item + extent, item).astype(np.int32)
    bad = item[(item < -extent) | (item >= extent)]
    if bad.size:
        raise IndexError(f"index {bad.flat[0]} is out of bounds for axis {axis} with size {extent}")
    item = item.astype(np.int64)
    return np.where(item < 0, item + extent, item)


def parse_known_slice(item: slice, axis: int, extent: int) -> Entry:
    """The entry of a slice whose bounds are known."""
    places = range(*item.indices(extent))
    size = len(places)
    return Entry("slice", axis, None, places.start if size else 0, size, places.step if size > 1 else 1)


def _parse_symbolic_slice(start, stop, step, axis: int, extent) -> Entry:
    """A slice of an axis of unknown extent, or with symbolic bounds; the bounds are taken to lie inside."""
    if (start, stop, step) == (None, None, -1):
        return Entry("slice", axis, None, extent - 1, extent, -1)
    if step not in (None, 1):
        raise NotImplementedError("slices of a symbolic extent must have step 1")
    start = 0 if start is None else _from_end(start, extent)
    stop = extent if stop is None else _from_end(stop, extent)
    return Entry("slice", axis, None, start, stop - start)


def _from_end(bound, extent):
    return bound + extent if isinstance(bound, int) and bound < 0 else bound


def _check_bound(bound, item: slice, position: int):
    if isinstance(bound, Tracer):
        text = f"slice({item.start!r}, {item.stop!r}, {item.step!r})"
        raise argument_errors.slice_bound_error(text, position, origin_of(bound.owner, bound), user_snippet())
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
    core_shape: without. new_axes: their positions. is_known: no index depends on an Array."""

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
    return IndexPlan(_assemble_indices(components, batch_shape), tuple(index_map),
                     tuple(i for i, (kind, *_) in enumerate(core) if kind == "window"),
                     tuple(sorted(collapsed)), tuple(slice_sizes), tuple(size for _, size in core),
                     tuple(new_axes), tuple(1 if kind == "new" else size for kind, size in result),
                     not any(isinstance(value, Array) for value, _ in components))


def _join_index_shapes(entries: Sequence[Entry]) -> tuple:
    shapes = [entry.value.shape for entry in entries if entry.kind == "array"]
    shapes += [(1,) if entry.value else (0,) for entry in entries if entry.kind == "bool"]
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        text = f"index arrays could not be broadcast together: shapes={list(map(tuple, shapes))}"
        raise IndexError(text) from None


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
        is_small = all(c.dtype.itemsize <= 4 or not c.size or c.max() < 2**31 for c in known)
        dtype = np.int32 if is_small else np.int64
        return np.stack(known, -1).astype(dtype) if known else np.zeros((*batch_shape, 0), np.int32)
    wide = any(isinstance(v, Array) and v.dtype in (dtypes.int64, dtypes.uint32, dtypes.uint64)
               for v, _ in components)
    dtype = dtypes.int64 if wide else dtypes.int32
    columns = []
    for value, end in components:
        value = convert_dtype(value, dtype) if isinstance(value, Array) else np.asarray(value).astype(dtype)
        rank = len(value.shape)
        dims = tuple(range(end - rank, end))
        value = value if rank or isinstance(value, Array) else value[()]
        columns.append(lax.broadcast_in_dim(value, (*batch_shape, 1), dims))
    return columns[0] if len(columns) == 1 else lax.concatenate(columns, len(batch_shape))


def _expand_known(value: np.ndarray, end: int, batch_shape: tuple) -> np.ndarray:
    trailing = (1,) * (len(batch_shape) - end)
    return np.broadcast_to(value.reshape(value.shape + trailing) if value.ndim else value, batch_shape)
