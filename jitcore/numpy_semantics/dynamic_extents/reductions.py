"""Reductions of padded arrays: what is outside becomes the identity, or is left out of the count.

In: a padded array and axes. Out: what NumPy's function gives; an empty extremum fails when the program
runs.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore import lax
from jitcore.lax.reduce import highest_value, lowest_value
from jitcore.numpy_semantics.dynamic_extents import extents
from jitcore.numpy_semantics.dynamic_extents.align import align, find_frame, finish, list_items
from jitcore.numpy_semantics.dynamic_extents.array import FUNCTIONS, accepts_padded, wrap
from jitcore.numpy_semantics.dynamic_extents.reading import compact_array, join_axes, move_forward
from jitcore.numpy_semantics.dynamic_extents.spans import Item, Span, Whole, find_axes, join_masks
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import NO_VALUE, given, is_given
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import is_at_most
from jitcore.numpy_semantics.values.promotion import as_operand


def list_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes as numbers from the front. Raises: AxisError for one that is not there."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    places = tuple(np.lib.array_utils.normalize_axis_index(operator.index(one), ndim) for one in axes)
    if len(set(places)) < len(places):
        raise ValueError("duplicate value in 'axis'")
    return places


class Reduction:
    """The axes that a reduction of an array runs over.

    Attributes:
        axes: of the frame; mask: where the array's elements are along those axes, or None.
        count: how many elements make one; items: of the result, reduced axes of extent 1 if it keeps them.
    """

    def __init__(self, array: NDArray, axis: Any, keepdims: Any = False):
        self.frame, items = find_frame(array), list_items(array)
        reduced, starts = list_axes(axis, len(items)), find_axes(items)
        inside = [items[place] for place in reduced]
        self.axes = tuple(starts[place] + i for place in reduced for i in range(len(items[place].shape)))
        self.mask = join_masks(inside, [starts[place] for place in reduced], self.frame.shape)
        self.count: Any = math.prod(item.size for item in inside)
        self.keeps = is_given(keepdims) and bool(keepdims)
        self.items: list[Item] = [Whole(1) if place in reduced else item for place, item in enumerate(items)
                                  if self.keeps or place not in reduced]

    def fill(self, value: Any) -> NDArray:
        """The frame with a value where no element is."""
        if self.mask is None:
            return self.frame
        raw = self.frame.read()
        outside = lax.full(raw.shape, np.asarray(value)[()], raw.dtype)
        return new_array(lax.select(self.mask, raw, outside))

    def finish(self, result: Any, out: Any = None) -> Any:
        """The result of a reduction of the frame over `axes`, without kept axes; quantiles have axes more."""
        added = result.shape[: result.ndim - self.frame.ndim + len(self.axes)]
        if self.keeps:
            kept = [extent for item in self.items for extent in item.shape]
            result = new_array(lax.reshape(result.read(), (*added, *kept)))
        return finish(wrap(result, [*map(Whole, added), *self.items]), out)

    def require_elements(self, text: str) -> None:
        if not is_at_most(1, self.count):
            extents.fail(lax.eq(extents.to_array(self.count), np.int64(0)), ValueError(text))


# -- what is outside becomes the identity -------------------------------------------------------------------
def _define_reduction(function: Callable, find_identity: Callable, needs: str = "") -> None:
    """needs: the ufunc that has no result of no elements."""
    signature = inspect.signature(function)

    def reduce(a, axis=None, out=None, keepdims=False, where=True, **options):
        identity = find_identity(a.dtype)
        if is_given(where) and where is not True:
            (frame, where), items = align([a, where])
            a = wrap(np.where(where, frame, a.dtype.type(identity)), items)
        reduction, options = Reduction(a, axis, keepdims), given(**options)
        if needs and "initial" not in options:
            text = f"zero-size array to reduction operation {needs} which has no identity"
            reduction.require_elements(text)
        return reduction.finish(function(reduction.fill(identity), axis=reduction.axes, **options), out)

    def implementation(*args, **kwargs):
        return reduce(**signature.bind(*args, **kwargs).arguments)

    is_method = hasattr(np.ndarray, function.__name__)
    accepts_padded(function, method=function.__name__ if is_method else None)(implementation)


_define_reduction(np.sum, lambda dtype: 0)
_define_reduction(np.prod, lambda dtype: 1)
_define_reduction(np.any, lambda dtype: 0)
_define_reduction(np.all, lambda dtype: 1)
_define_reduction(np.max, lowest_value, needs="maximum")
_define_reduction(np.min, highest_value, needs="minimum")


@accepts_padded(np.count_nonzero)
def count_nonzero(a, axis=None, *, keepdims=False):
    return np.sum(a != 0, axis=axis, keepdims=keepdims, dtype=np.intp)


# -- what is outside is NaN, which is left out --------------------------------------------------------------
def _define_without_nan(function: Callable, needs: str = "") -> None:
    """A function that leaves NaN out; it does as the one that does not, where the dtype has none."""
    plain = getattr(np, function.__name__.removeprefix("nan"))
    _define_reduction(function, lambda dtype: np.nan, needs)
    of_floats = FUNCTIONS[function]
    accepts_padded(function)(lambda a, *args, **kwargs: (of_floats if a.dtype.kind in "fc" else plain)(
        a, *args, **kwargs))


for _function in (np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd, np.nanmedian, np.nanquantile,
                  np.nanpercentile):
    _define_without_nan(_function)
_define_without_nan(np.nanmax, "fmax")
_define_without_nan(np.nanmin, "fmin")


def _define_quantile(function: Callable, without_nan: Callable) -> None:
    """NaN where there is one, else as the function without NaN: there is none but outside."""

    def implementation(a, *args, axis=None, out=None, keepdims=False, **kwargs):
        a = a if a.dtype.kind == "f" else a.astype(np.float64)
        found = without_nan(a, *args, axis=axis, keepdims=keepdims, **kwargs)
        has_nan = np.any(np.isnan(a), axis=axis, keepdims=keepdims)
        return finish(np.where(has_nan, a.dtype.type(np.nan), found)[()], out)

    accepts_padded(function)(implementation)


_define_quantile(np.median, np.nanmedian)
_define_quantile(np.quantile, np.nanquantile)
_define_quantile(np.percentile, np.nanpercentile)


# -- what is outside does not count -------------------------------------------------------------------------
def _count(a: Any, axis: Any, dtype: np.dtype, keepdims: Any, where: Any) -> Any:
    """How many elements a reduction takes, as a divisor; one of no elements is zero, and gives NaN."""
    real = dtype.type(0).real.dtype
    if is_given(where) and where is not True:
        return np.sum(np.ones_like(a, real), axis=axis, keepdims=keepdims, where=where)
    count = math.prod([a.shape[place] for place in list_axes(axis, a.ndim)])
    return new_array(lax.convert_element_type(extents.to_array(count), real))


@accepts_padded(np.mean, method="mean")
def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True):
    found = np.dtype(dtype if is_given(dtype) else a.dtype if a.dtype.kind in "fc" else np.float64)
    wide = np.dtype(np.float32) if found == np.float16 else found
    total = np.sum(a, axis=axis, dtype=wide, keepdims=keepdims, where=where)
    result = total / _count(a, axis, wide, keepdims, where)
    return finish(result if result.dtype == found else result.astype(found), out)


@accepts_padded(np.var, method="var")
def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=NO_VALUE,
        correction=NO_VALUE):
    a = a.astype(dtype if is_given(dtype) else a.dtype if a.dtype.kind in "fc" else np.float64)
    options = {"axis": axis, "where": where}
    if not is_given(mean):
        mean = np.sum(a, keepdims=True, **options) / _count(a, axis, a.dtype, True, where)
    distances = a - mean
    squares = np.real(distances * np.conj(distances)) if a.dtype.kind == "c" else distances * distances
    free = _count(a, axis, a.dtype, keepdims, where) - (correction if is_given(correction) else ddof)
    total = np.sum(squares, keepdims=keepdims, **options)
    return finish(total / np.maximum(free, total.dtype.type(0)), out)


@accepts_padded(np.std, method="std")
def std(a, axis=None, dtype=None, out=None, *args, **options):
    return finish(np.sqrt(var(a, axis, dtype, None, *args, **options)), out)


@accepts_padded(np.average)
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    if returned:
        raise not_traceable("np.average with returned=True of an array whose extent is traced")
    if weights is None:
        return np.mean(a, axis=axis, keepdims=keepdims)
    weights = as_operand(weights)
    if weights.ndim == 1 < a.ndim:
        weights = weights[tuple(slice(None) if place == axis % a.ndim else None for place in range(a.ndim))]
    total = np.sum(weights, axis=axis, keepdims=keepdims)
    extents.fail(np.any(total == 0).read(), ZeroDivisionError("Weights sum to zero, can't be normalized"))
    return np.sum(a * weights, axis=axis, keepdims=keepdims) / total


# -- places -------------------------------------------------------------------------------------------------
def _find_axis(a: Any, axis: Any) -> tuple[Any, int]:
    """An array in which elements are numbered, and one axis of it: the only one of all elements for None."""
    a = compact_array(a if is_given(axis) else join_axes(a))
    return a, list_axes(axis if is_given(axis) else 0, a.ndim)[0]


def _define_search(function: Callable, find_identity: Callable) -> None:
    name = function.__name__

    def implementation(a, axis=None, out=None, *, keepdims=False):
        if axis is None and a.ndim > 1 and keepdims:
            raise not_traceable(f"np.{name} of all elements of an array whose extents are traced")
        a, place = _find_axis(a, axis)
        a = move_forward(a) if list_items(a)[place].step < 0 else a
        item, reduction = list_items(a)[place], Reduction(a, place, keepdims)
        reduction.require_elements(f"attempt to get {name} of an empty sequence")
        found = function(reduction.fill(find_identity(a.dtype)), axis=reduction.axes[0])
        if isinstance(item, Span):  # places outside of it win where no element is better than they are
            number = np.maximum(found - item.low, 0)
            found = number if item.step == 1 else number // item.step
        return reduction.finish(found, out)

    accepts_padded(function, method=name)(implementation)


_define_search(np.argmax, lowest_value)
_define_search(np.argmin, highest_value)


# -- running sums -------------------------------------------------------------------------------------------
def _define_running(function: Callable, identity: int, run: Callable) -> None:
    def implementation(a, axis=None, dtype=None, out=None):
        a, place = _find_axis(a, axis)
        a = a.astype(function(np.zeros(1, a.dtype), dtype=dtype).dtype)
        filled = Reduction(a, place).fill(identity).read()
        is_backwards = list_items(a)[place].step < 0
        frame_axis = find_axes(list_items(a))[place]
        return finish(wrap(new_array(run(filled, frame_axis, is_backwards)), list_items(a)), out)

    accepts_padded(function, method=function.__name__)(implementation)


_define_running(np.cumsum, 0, lax.cumsum)
_define_running(np.cumprod, 1, lax.cumprod)
