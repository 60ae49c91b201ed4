"""Reading parts of arrays: `x[index]`, and `where`.

In: an array and an index. Out: an array. Outside a trace an index that NumPy alone decides goes to NumPy;
inside one a static index is one `slice`, a traced integer one `dynamic_slice`, everything else one
`gather`. Traced indices out of range are clamped; known ones raise IndexError.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import ConcreteArray
from jitcore.config import config
from jitcore.core.trace import context, eval_trace
from jitcore.numpy.arrays.promotion import ensure_array
from jitcore.numpy.indexing.plan import UNCHECKED, UNWRAPPED, Entry, IndexPlan, parse_index, plan_index

_CHECK = lax.GatherScatterMode.CHECK
_CLIP = lax.GatherScatterMode.CLIP
_IN_BOUNDS = lax.GatherScatterMode.PROMISE_IN_BOUNDS


def get_item(x, index):
    """`x[index]`. Raises: IndexError, TypeError as NumPy; NonConcreteBooleanIndexError for a traced mask."""
    if x.__class__ is ConcreteArray and context.trace is eval_trace and is_plain(index):
        data = x.data[index]
        if data.__class__ is not np.ndarray:
            data = np.asarray(data)
        elif not data.flags.c_contiguous:
            data = np.ascontiguousarray(data)
        return ConcreteArray(data, x.weak_type)
    entries = parse_index(x.shape, index)
    kinds = {entry.kind for entry in entries}
    if kinds <= {"slice", "integer", "new"}:
        return _read_static(x, entries)
    if kinds <= {"slice", "integer", "new", "scalar"} and not config.check_bounds:
        return _read_dynamic(x, entries)
    return gather_plan(x, plan_index(x.shape, entries))


def is_plain(index) -> bool:
    """Whether NumPy reads the index as we do: ints, slices of ints, None, Ellipsis, ndarrays of integers or
    bools."""
    kind = index.__class__
    if kind is int or index is None or index is Ellipsis:
        return True
    if kind is tuple:
        return all(item.__class__ is not tuple and is_plain(item) for item in index)
    if kind is slice:
        return all(b is None or b.__class__ is int for b in (index.start, index.stop, index.step))
    return kind is np.ndarray and index.dtype.kind in "biu" and index.ndim > 0


def _read_static(x, entries: list[Entry]):
    """Integers and slices known now: `slice`, then `rev` for negative steps, then dropped and new axes."""
    starts, limits, strides, reversed_axes = [], [], [], []
    for entry in entries:
        if entry.kind == "integer":
            bounds = entry.value, entry.value + 1, 1
        elif entry.kind == "slice" and entry.step < 0:
            last = entry.start + (entry.size - 1) * entry.step
            bounds = last, entry.start + 1, -entry.step
            reversed_axes.append(entry.axis)
        elif entry.kind == "slice":
            bounds = entry.start, entry.start + (entry.size - 1) * entry.step + 1, entry.step
        else:
            continue
        for values, value in zip((starts, limits, strides), bounds):
            values.append(value)
    if any(s != 0 for s in starts) or tuple(limits) != tuple(x.shape) or any(s != 1 for s in strides):
        x = lax.slice(x, starts, limits, None if all(s == 1 for s in strides) else strides)
    if reversed_axes:
        x = lax.rev(x, reversed_axes)
    return _drop_and_add_axes(x, entries)


def _drop_and_add_axes(x, entries: list[Entry]):
    dropped = [entry.axis for entry in entries if entry.kind in ("integer", "scalar")]
    if dropped:
        x = lax.squeeze(x, dropped)
    left = [entry.kind for entry in entries if entry.kind in ("slice", "new")]
    new_axes = [i for i, kind in enumerate(left) if kind == "new"]
    return lax.expand_dims(x, new_axes) if new_axes else x


def _read_dynamic(x, entries: list[Entry]):
    """Traced integers: strided slices first, then one `dynamic_slice` (which clamps)."""
    if any(entry.kind == "slice" and entry.step != 1 for entry in entries):
        whole = [Entry("slice", e.axis, None, 0, x.shape[e.axis]) if e.kind != "slice" else e
                 for e in entries if e.kind != "new"]
        x = _read_static(x, whole)
        entries = [Entry("slice", e.axis, None, 0, e.size) if e.kind == "slice" else e for e in entries]
    by_axis = [entry for entry in entries if entry.kind != "new"]
    starts = [entry.start if entry.kind == "slice" else entry.value for entry in by_axis]
    sizes = [entry.size if entry.kind == "slice" else 1 for entry in by_axis]
    return _drop_and_add_axes(lax.dynamic_slice(x, starts, sizes, allow_negative_indices=False), entries)


def gather_plan(x, plan: IndexPlan, mode=None, fill_value=None, is_sorted: bool = False,
                is_unique: bool = False):
    """`x[index]` of a planned index by one gather."""
    if any(isinstance(size, int) and size == 0 for size in plan.core_shape):
        return lax.full(plan.shape, 0, x.dtype)
    if mode is None:
        mode = _IN_BOUNDS if plan.is_known else _CHECK if config.check_bounds else _CLIP
    numbers = lax.GatherDimensionNumbers(plan.window_dims, plan.collapsed, plan.index_map)
    out = lax.gather(x, plan.indices, numbers, plan.slice_sizes, indices_are_sorted=is_sorted,
                            unique_indices=is_unique, mode=mode, fill_value=fill_value)
    return lax.expand_dims(out, plan.new_axes) if plan.new_axes else out


def read_with_mode(x, index, *, mode=None, fill_value=None, indices_are_sorted=False, unique_indices=False,
                   wrap_negative_indices=True):
    """`x.at[index].get(...)`: reading with a choice of what lies out of range."""
    x = ensure_array("get", x)
    if mode is None and fill_value is None and wrap_negative_indices:
        return get_item(x, index)
    rules = UNCHECKED if wrap_negative_indices else UNWRAPPED
    if mode is None and fill_value is None:
        return gather_plan(x, plan_index(x.shape, parse_index(x.shape, index, rules)))
    mode = lax.GatherScatterMode.from_any(mode)
    if fill_value is not None:
        fill_value = (
            np.asarray(fill_value).astype(x.dtype)[()] if x.dtype != dtypes.bool_ else bool(fill_value))
    plan = plan_index(x.shape, parse_index(x.shape, index, rules))
    return gather_plan(x, plan, mode, fill_value, indices_are_sorted, unique_indices)
