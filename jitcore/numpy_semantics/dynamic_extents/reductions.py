"""Reductions of partial arrays: what is outside becomes the identity, or is left out of the count.

In: a partial array and axes. Out: what NumPy's function gives; an empty extremum fails when the program
runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore import lax
from jitcore.array import Array
from jitcore.numpy_semantics.dynamic_extents import extents
from jitcore.numpy_semantics.dynamic_extents.align import adapt, list_items
from jitcore.numpy_semantics.dynamic_extents.array import PartialArray, accepts_partial
from jitcore.numpy_semantics.dynamic_extents.elementwise import wrap
from jitcore.numpy_semantics.dynamic_extents.reading import compact_array, has_picks
from jitcore.numpy_semantics.dynamic_extents.spans import Item, Span, Whole, join_masks
from jitcore.numpy_semantics.dynamic_extents.writing import assign
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array, wrap_result
from jitcore.numpy_semantics.values.numbers import is_at_most
from jitcore.numpy_semantics.values.promotion import cast_raw

_NOTHING: Any = getattr(np, "_NoValue", None)


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
    """The axes that a reduction of a partial array runs over.

    Attributes:
        axes: of the frame; mask: where its elements are along those axes, or None.
        count: how many elements make one; items: of the result; kept: with reduced axes of extent 1.
    """

    def __init__(self, array: PartialArray, axis: Any, keepdims: Any = False):
        self.array = array
        reduced = list_axes(axis, array.ndim)
        starts = array.find_axes()
        self.keepdims = bool(keepdims) and keepdims is not _NOTHING
        self.axes = tuple(
            starts[place] + i for place in reduced for i in range(len(array.items[place].shape))
        )
        inside = [array.items[place] for place in reduced]
        self.mask = join_masks(inside, [starts[place] for place in reduced], array.frame.shape)
        self.count: Any = 1
        for item in inside:
            self.count = self.count * item.size
        self.items: list[Item] = [item for place, item in enumerate(array.items) if place not in reduced]
        self.kept: list[Item] = [
            Whole(1) if place in reduced else item for place, item in enumerate(array.items)
        ]

    def fill(self, identity: Any) -> NDArray:
        """The frame with a value where no element is."""
        if self.mask is None:
            return self.array.frame
        raw = self.array.frame.read()
        outside = lax.full(raw.shape, identity, raw.dtype)
        return new_array(lax.select(self.mask, raw, outside))

    def finish(self, result: Any, out: Any = None) -> Any:
        """The result of a reduction of the frame over `axes`, without kept axes."""
        if not self.keepdims:
            result = wrap(result, self.items) if self.items else result
        else:
            result = _restore(result, self.array, self.kept)
        if out is None or out is _NOTHING:
            return result
        assign(out, result, list_items(out))
        return out

    def require_elements(self, name: str) -> None:
        if not is_at_most(1, self.count):
            error = ValueError(f"zero-size array to reduction operation {name} which has no identity")
            extents.fail(lax.eq(extents.to_array(self.count), np.int64(0)), error)


def _restore(result: Any, array: PartialArray, kept: Sequence[Item]) -> Any:
    shape = tuple(extent for item in kept for extent in item.shape)
    return wrap(new_array(lax.reshape(result.read(), shape)), kept)


def _find_lowest(dtype: np.dtype):
    if dtype.kind in "fc":
        return -np.inf
    return False if dtype.kind == "b" else np.iinfo(dtype).min


def _find_highest(dtype: np.dtype):
    if dtype.kind in "fc":
        return np.inf
    return True if dtype.kind == "b" else np.iinfo(dtype).max


def _define_reduction(function: Callable, find_identity: Callable, *methods: str, extremum: str = "") -> None:
    def implementation(a, axis=None, dtype=None, out=None, keepdims=False, initial=_NOTHING, where=_NOTHING):
        if where is not _NOTHING and where is not True:
            a = _apply_where(a, where, find_identity(a.dtype))
        reduction = Reduction(a, axis, keepdims)
        options: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
        if initial is not _NOTHING:
            options["initial"] = initial
        elif extremum:
            reduction.require_elements(extremum)
        return reduction.finish(
            function(reduction.fill(find_identity(a.dtype)), axis=reduction.axes, **options), out
        )

    def without_dtype(a, axis=None, out=None, keepdims=False, initial=_NOTHING, where=_NOTHING):
        return implementation(a, axis, None, out, keepdims, initial, where)

    register = without_dtype if extremum or function in (np.any, np.all) else implementation
    accepts_partial(function)(register)
    for name in methods:
        accepts_partial(method=name)(register)


def _apply_where(a: PartialArray, where: Any, identity: Any) -> PartialArray:
    return PartialArray(np.where(adapt(where, a.items), a.frame, a.dtype.type(identity)), a.items)


_define_reduction(np.sum, lambda dtype: 0, "sum")
_define_reduction(np.prod, lambda dtype: 1, "prod")
_define_reduction(np.any, lambda dtype: 0, "any")
_define_reduction(np.all, lambda dtype: 1, "all")
_define_reduction(np.max, _find_lowest, "max", extremum="maximum")
_define_reduction(np.min, _find_highest, "min", extremum="minimum")


@accepts_partial(np.count_nonzero)
def count_nonzero(a, axis=None, *, keepdims=False):
    return np.sum(a != 0, axis=axis, keepdims=keepdims, dtype=np.intp)


@accepts_partial(np.mean, method="mean")
def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=_NOTHING):
    if where is not _NOTHING and where is not True:
        raise not_traceable("np.mean with where= of an array whose extent is traced")
    reduction = Reduction(a, axis, keepdims)
    if dtype is None and a.dtype.kind in "iub":
        dtype = np.float64
    result_dtype = a.dtype if dtype is None else np.dtype(dtype)
    wide = np.float32 if result_dtype == np.float16 else result_dtype
    total = np.sum(reduction.fill(0), axis=reduction.axes, dtype=wide)
    result = total / _as_count(reduction.count, wide)
    return reduction.finish(wrap_result(cast_raw(result.read(), result_dtype)), out)


def _as_count(count: Any, dtype: Any) -> Any:
    """A number of elements as an operand of a division; one of no elements is zero, and gives NaN."""
    real = np.dtype(dtype).type(0).real.dtype
    raw = lax.convert_element_type(extents.to_array(count), real)
    return new_array(raw)


@accepts_partial(np.var, method="var")
def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=_NOTHING, mean=_NOTHING,
        correction=_NOTHING):
    if where is not _NOTHING and where is not True or mean is not _NOTHING:
        raise not_traceable("np.var with where= or mean= of an array whose extent is traced")
    ddof = ddof if correction is _NOTHING else correction
    if dtype is None and a.dtype.kind in "iub":
        dtype = np.float64
    a = a if dtype is None else a.astype(dtype)
    reduction = Reduction(a, axis)
    total = np.sum(reduction.fill(0), axis=reduction.axes, keepdims=True)
    distances = a.frame - total / _as_count(reduction.count, a.dtype)
    squares = np.real(distances * np.conj(distances)) if a.dtype.kind == "c" else distances * distances
    squared = Reduction(PartialArray(squares, a.items), axis, keepdims)
    count = np.maximum(_as_count(reduction.count - ddof, a.dtype), a.dtype.type(0).real)
    result = np.sum(squared.fill(0), axis=squared.axes) / count
    return squared.finish(result, out)


@accepts_partial(np.std, method="std")
def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, **options):
    result = np.sqrt(var(a, axis, dtype, None, ddof, keepdims, **options))
    if out is None:
        return result
    assign(out, result, list_items(out))
    return out


def _split_nan(a: PartialArray, dtype: Any) -> tuple[PartialArray, PartialArray]:
    """Real floats with 0 for NaN, and where they are numbers."""
    if a.dtype.kind != "f" or a.dtype == np.float16 or dtype is not None:
        raise not_traceable("a reduction without NaN of an array whose extent is traced, and of this dtype")
    is_number = np.logical_not(np.isnan(a.frame))
    return (PartialArray(np.where(is_number, a.frame, a.dtype.type(0)), a.items),
            PartialArray(is_number, a.items))


@accepts_partial(np.nansum)
def nansum(a, axis=None, dtype=None, out=None, keepdims=False, **options):
    if out is not None or options:
        raise not_traceable("np.nansum with out= or where= of an array whose extent is traced")
    return np.sum(_split_nan(a, dtype)[0], axis=axis, keepdims=keepdims)


def _define_nan_extremum(function: Callable, reduce: Callable, worst: float) -> None:
    def implementation(a, axis=None, out=None, keepdims=False, **options):
        if out is not None or options:
            raise not_traceable(f"np.{function.__name__} with out= or where= and an extent that is traced")
        is_number = _split_nan(a, None)[1]
        numbers = PartialArray(np.where(is_number.frame, a.frame, a.dtype.type(worst)), a.items)
        found = reduce(numbers, axis=axis, keepdims=keepdims)
        has_number = np.any(is_number, axis=axis, keepdims=keepdims)
        return np.where(has_number, found, a.dtype.type(np.nan))[()]

    accepts_partial(function)(implementation)


_define_nan_extremum(np.nanmax, np.max, -np.inf)
_define_nan_extremum(np.nanmin, np.min, np.inf)


@accepts_partial(np.nanmean)
def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=_NOTHING):
    if out is not None or where is not _NOTHING:
        raise not_traceable("np.nanmean with out= or where= of an array whose extent is traced")
    numbers, is_number = _split_nan(a, dtype)
    count = np.sum(is_number, axis=axis, dtype=a.dtype, keepdims=keepdims)
    return np.sum(numbers, axis=axis, keepdims=keepdims) / count


@accepts_partial(np.nanvar)
def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=_NOTHING, mean=_NOTHING,
           correction=_NOTHING):
    given = [value for value in (where, mean, correction) if value is not _NOTHING]
    if out is not None or given or axis is not None:
        raise not_traceable("np.nanvar with where= or axes of an array whose extent is traced")
    numbers, is_number = _split_nan(a, dtype)
    count = np.sum(is_number, dtype=a.dtype)
    distances = np.where(is_number.frame, numbers.frame - np.sum(numbers) / count, a.dtype.type(0))
    total = np.sum(PartialArray(distances * distances, a.items), keepdims=keepdims)
    return np.where(count > ddof, total / (count - a.dtype.type(ddof)), a.dtype.type(np.nan))[()]


@accepts_partial(np.nanstd)
def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, **options):
    return np.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, **options))


@accepts_partial(np.ptp)
def ptp(a, axis=None, out=None, keepdims=False):
    return np.subtract(
        np.max(a, axis=axis, keepdims=keepdims), np.min(a, axis=axis, keepdims=keepdims), out=out
    )


@accepts_partial(np.average)
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    if returned:
        raise not_traceable("np.average with returned=True of an array whose extent is traced")
    if weights is None:
        return np.mean(a, axis=axis, keepdims=keepdims)
    return np.sum(a * weights, axis=axis, keepdims=keepdims) / np.sum(weights, axis=axis, keepdims=keepdims)


@accepts_partial(np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    if ord not in (None, 2, 1, np.inf) or ord is not None and x.ndim != 1:
        raise not_traceable("np.linalg.norm with this order of an array whose extent is traced")
    size = np.abs(x)
    if ord == 1:
        return np.sum(size, axis=axis, keepdims=keepdims)
    if ord == np.inf:
        return np.max(size, axis=axis, keepdims=keepdims)
    size = size if size.dtype.kind == "f" else size.astype(np.float64)
    return np.sqrt(np.sum(size * size, axis=axis, keepdims=keepdims))


# -- places -------------------------------------------------------------------------------------------------
def _define_search(
    function: Callable, method: str, pick: Callable, find_identity: Callable, name: str
) -> None:
    def implementation(a, axis=None, out=None, *, keepdims=False):
        if axis is None:
            if a.ndim > 1:
                raise not_traceable(
                    f"np.{function.__name__} of all elements of an array whose extents are traced"
                )
            axis = 0
        a = compact_array(a) if has_picks(a) else a
        (place,) = list_axes(axis, a.ndim)
        item = a.items[place]
        reduction = Reduction(a, place, keepdims)
        if not is_at_most(1, item.size):
            error = ValueError(f"attempt to get {function.__name__} of an empty sequence")
            extents.fail(lax.eq(extents.to_array(item.size), np.int64(0)), error)
        filled = reduction.fill(find_identity(a.dtype)).read()
        best = pick(filled, reduction.axes)
        best = lax.broadcast_in_dim(
            best, filled.shape, [i for i in range(filled.ndim) if i not in reduction.axes]
        )
        found = lax.eq(filled, best)
        if a.dtype.kind in "fc":
            found = lax.bitwise_or(found, lax.ne(filled, filled))
        if reduction.mask is not None:
            found = lax.bitwise_and(found, reduction.mask)
        numbers = item.number_places() if isinstance(item, Span) else lax.iota(np.int64, item.size)
        numbers = lax.broadcast_in_dim(numbers, filled.shape, reduction.axes)
        far = lax.full(filled.shape, np.iinfo(np.int64).max, np.int64)
        result = new_array(lax.select(found, numbers, far))
        return reduction.finish(np.min(result, axis=reduction.axes), out)

    accepts_partial(function, method=method)(implementation)


def _reduce_max(raw: Array, axes: Sequence[int]) -> Array:
    return lax.reduce_max(raw, axes)


def _reduce_min(raw: Array, axes: Sequence[int]) -> Array:
    return lax.reduce_min(raw, axes)


_define_search(np.argmax, "argmax", _reduce_max, _find_lowest, "argmax")
_define_search(np.argmin, "argmin", _reduce_min, _find_highest, "argmin")


# -- running sums -------------------------------------------------------------------------------------------
def _define_running(function: Callable, method: str, identity: int, run: Callable) -> None:
    def implementation(a, axis=None, dtype=None, out=None):
        a = compact_array(a) if has_picks(a) else a
        if axis is None:
            if a.ndim > 1:
                raise not_traceable(f"np.{method} of all elements of an array whose extents are traced")
            axis = 0
        (place,) = list_axes(axis, a.ndim)
        wide = function(np.zeros(1, a.dtype), dtype=dtype).dtype
        a = a.astype(wide)
        item = a.items[place]
        filled = Reduction(a, place).fill(identity).read()
        is_backwards = isinstance(item, Span) and item.step < 0
        result = PartialArray(new_array(run(filled, a.find_axes()[place], is_backwards)), a.items)
        if out is None:
            return result
        assign(out, result, list_items(out))
        return out

    accepts_partial(function, method=method)(implementation)


_define_running(np.cumsum, "cumsum", 0, lax.cumsum)
_define_running(np.cumprod, "cumprod", 1, lax.cumprod)
