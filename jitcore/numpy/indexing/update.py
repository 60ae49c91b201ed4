"""Writing parts of arrays: `x.at[index].set(v)` and its like, which return a new array.

In: an array, an index, values that broadcast to `x[index]`. Out: the array with those elements replaced
or combined. A contiguous static part is one `dynamic_update_slice`, a traced mask one selection,
everything else one scatter. Traced indices out of range are dropped; known ones raise IndexError.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array, ConcreteArray
from jitcore.config import config
from jitcore.core.trace import Tracer, context, eval_trace, user_snippet
from jitcore.errors import arguments
from jitcore.lax.derived import map_elements
from jitcore.numpy.arrays.promotion import (apply_select, broadcast_array, convert_dtype, ensure_array,
                                            is_operand, promote_arrays)
from jitcore.numpy.creation import asarray
from jitcore.numpy.indexing.plan import RULES, UNCHECKED, UNWRAPPED, Entry, parse_index, plan_index
from jitcore.numpy.indexing.reading import is_plain, read_with_mode
from jitcore.numpy.ufuncs import arithmetic

# How values meet old elements: the function of both (None: the value alone), and the scatter of values.
COMBINATIONS = {
    "set": (None, lax.scatter), "add": (arithmetic.add, lax.scatter_add),
    "subtract": (arithmetic.subtract, lax.scatter_sub), "multiply": (arithmetic.multiply, lax.scatter_mul),
    "min": (arithmetic.minimum, lax.scatter_min), "max": (arithmetic.maximum, lax.scatter_max),
}


class IndexUpdateHelper:
    """`x.at`: index it to name the elements to update."""

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array

    def __getitem__(self, index) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"IndexUpdateHelper({self.array!r})"


def _define(name: str, doc: str, function: Callable | None = None) -> Callable:
    """A method of `IndexUpdateRef`: values are combined into the elements; a function is applied to the array
    and what the values multiply up to at each element."""

    def update(self, values, *, indices_are_sorted=False, unique_indices=False, mode=None,
               wrap_negative_indices=True):
        options = indices_are_sorted, unique_indices, mode, wrap_negative_indices
        if function is None:
            return update_item(self.array, self.index, values, name, *options)
        x = ensure_array("at", self.array)
        factors = update_item(lax.full_like(x, 1), self.index, values, "multiply", *options)
        return function(x, factors)

    update.__name__, update.__qualname__, update.__doc__ = name, f"IndexUpdateRef.{name}", doc
    return update


class IndexUpdateRef:
    """`x.at[index]`: elements of an array, to be read or replaced in a copy.

    Every method takes `indices_are_sorted`, `unique_indices` (promises that a backend may use), `mode`: what
    happens to traced indices out of range, "drop" (the default), "clip" or "promise_in_bounds"; and
    `wrap_negative_indices`: whether negative ones count from the end, or are out of range."""

    __slots__ = ("array", "index")

    def __init__(self, array, index):
        self.array, self.index = array, index

    def __repr__(self) -> str:
        return f"IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(self, *, indices_are_sorted=False, unique_indices=False, mode=None, fill_value=None,
            wrap_negative_indices=True):
        """`x[index]`; mode "fill" gives fill_value (NaN by default) where a traced index is out of range."""
        return read_with_mode(self.array, self.index, mode=mode, fill_value=fill_value,
                              indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                              wrap_negative_indices=wrap_negative_indices)

    set = _define("set", "Like `x[index] = values`, on a copy.")
    add = _define("add", "Like `x[index] += values`, on a copy; repeated indices add up.")
    subtract = _define("subtract", "Like `x[index] -= values`, on a copy; repeated indices add up.")
    multiply = _define("multiply", "Like `x[index] *= values`, on a copy; repeated indices multiply up.")
    mul = multiply
    divide = _define("divide", "Like `x[index] /= values`, on a copy, which is of floats; repeated indices "
                     "divide repeatedly.", arithmetic.divide)
    power = _define("power", "Like `x[index] **= values`, on a copy; repeated indices raise repeatedly.",
                    arithmetic.power)
    min = _define("min", "Like `x[index] = minimum(x[index], values)`, on a copy.")
    max = _define("max", "Like `x[index] = maximum(x[index], values)`, on a copy.")

    def apply(self, function, *, indices_are_sorted=False, unique_indices=False, mode=None,
              wrap_negative_indices=True):
        """A copy in which function, of a scalar, replaced the elements, as often as their indices repeat."""
        def scatter(x, indices, values, numbers, **promises):
            return lax.scatter_apply(x, indices, function, numbers, update_shape=values.shape, **promises)

        zero = lax.full((), 0, ensure_array("at", self.array).dtype)
        return update_item(self.array, self.index, zero, (lambda x, _: map_elements(function, x), scatter),
                           indices_are_sorted, unique_indices, mode, wrap_negative_indices)


def update_item(x, index, values, combination: str | tuple = "set", is_sorted=False, is_unique=False,
                mode=None, wraps=True) -> Array:
    """x with values combined into `x[index]`, in the dtype of x; combination: of COMBINATIONS, or its name.

    Raises: IndexError, TypeError for the index; ValueError where values do not broadcast to `x[index]`."""
    x = ensure_array("at", x)
    dtype, weak = x.dtype, x.weak_type
    if combination == "set" and mode is None and wraps and context.trace is eval_trace and is_plain(index):
        out = _set_now(x, index, values)
        if out is not None:
            return out
    function, scatter = COMBINATIONS[combination] if isinstance(combination, str) else combination
    x, values = promote_arrays("at", x, values if is_operand(values) else asarray(values))
    mask = _find_traced_mask(index)
    if mask is not None:
        return convert_dtype(_update_masked(x, mask, values, function), dtype, weak)
    rules = UNWRAPPED if not wraps else RULES if mode is None else UNCHECKED
    entries = parse_index(x.shape, index, rules)
    if mode is None and all(e.kind in ("integer", "new") or (e.kind == "slice" and e.step == 1)
                            for e in entries):
        out = _update_static(x, entries, values, function)
    else:
        out = _scatter(x, entries, values, scatter, is_sorted, is_unique, mode)
    return convert_dtype(out, dtype, weak)


def _set_now(x, index, values) -> ConcreteArray | None:
    """Outside a trace: a copy that NumPy writes to; None where dtypes or shapes need the general rules."""
    if values.__class__ is ConcreteArray:
        values = values.data
    same_dtype = isinstance(values, (np.ndarray, np.generic)) and values.dtype == x.dtype
    fits = same_dtype or values.__class__ is float and x.dtype.kind in "fc"
    if x.__class__ is not ConcreteArray or not fits:
        return None
    out = x.data.copy()
    try:
        out[index] = values
    except ValueError:
        return None
    return ConcreteArray(out, x.weak_type)


def _find_traced_mask(index):
    item = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    return item if isinstance(item, Tracer) and item.dtype == dtypes.bool_ else None


def _update_masked(x, mask, values, function: Callable | None):
    """Where a traced mask holds. The values must not depend on how many elements that are."""
    rest = x.shape[mask.ndim :]
    if mask.shape != x.shape[: mask.ndim]:
        raise IndexError(f"boolean index did not match shape of indexed array in index 0: got {mask.shape}, "
                         f"expected {list(x.shape[: mask.ndim])}")
    if values.ndim > len(rest):
        parse_index(x.shape, mask)  # raises the error for traced masks
    mask = lax.reshape(mask, mask.shape + (1,) * len(rest)) if rest and mask.ndim else mask
    return apply_select(mask, values if function is None else function(x, values), x)


def _fit_values(values, shape: tuple):
    """values broadcast to the shape of `x[index]`; leading axes of extent 1 may be dropped."""
    while values.ndim > len(shape) and values.shape[0] == 1:
        values = lax.squeeze(values, (0,))
    is_other = any(own != 1 and own != wanted for own, wanted in zip(values.shape[::-1], shape[::-1]))
    if values.ndim > len(shape) or is_other:
        raise arguments.broadcast_error([values.shape, shape], user_snippet())
    return broadcast_array(values, shape)


def _update_static(x, entries: list[Entry], values, function: Callable | None):
    """A contiguous part known now: read, combine, and write it as one slice."""
    kept = [entry for entry in entries if entry.kind != "integer"]
    values = _fit_values(values, tuple(1 if entry.kind == "new" else entry.size for entry in kept))
    by_axis = [entry for entry in entries if entry.kind != "new"]
    sizes = tuple(entry.size if entry.kind == "slice" else 1 for entry in by_axis)
    starts = [entry.start if entry.kind == "slice" else entry.value for entry in by_axis]
    values = lax.reshape(values, sizes)
    whole = sizes == x.shape
    if function is not None:
        limits = [start + size for start, size in zip(starts, sizes)]
        values = function(x if whole else lax.slice(x, starts, limits), values)
    if whole:
        return values
    if any(isinstance(size, int) and size == 0 for size in sizes):
        return x
    return lax.dynamic_update_slice(x, values, [np.int32(s) for s in starts], allow_negative_indices=False)


def _scatter(x, entries: list[Entry], values, scatter: Callable, is_sorted: bool, is_unique: bool, mode):
    plan = plan_index(x.shape, entries)
    values = _fit_values(values, plan.shape)
    if any(isinstance(size, int) and size == 0 for size in plan.core_shape):
        return x
    if plan.new_axes:
        values = lax.reshape(values, plan.core_shape)
    if mode is None:
        names = lax.GatherScatterMode
        outside = names.CHECK if config.check_bounds else names.FILL_OR_DROP
        mode = names.PROMISE_IN_BOUNDS if plan.is_known else outside
    numbers = lax.ScatterDimensionNumbers(plan.window_dims, plan.collapsed, plan.index_map)
    return scatter(x, plan.indices, values, numbers, indices_are_sorted=is_sorted, unique_indices=is_unique,
                   mode=mode)
