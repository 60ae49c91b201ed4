"""NumPy's histograms over handles.

In: numbers of any kind. Out: counts and edges. Bins are known; where their edges depend on values, those are
computed as NumPy does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes
from jitcore.array import Array, ConcreteArray
from jitcore.functionalize.arithmetic import fail
from jitcore.functionalize.calls import dtype_of, to_common
from jitcore.functionalize.errors import not_traceable
from jitcore.functionalize.functions_shaping import as_array
from jitcore.functionalize.ndarray import NDArray, new_array, wrap_result
from jitcore.functionalize.numbers import Number
from jitcore.functionalize.promotion import as_operand, cast_raw, to_raw
from jitcore.functionalize.tables import implements
from jitcore.rewriter.handles import Handle


@implements(np.digitize)
def digitize(x, bins, right=False):
    values, edges = to_common(x, bins)
    rises, falls = jnp.all(edges[:-1] <= edges[1:]), jnp.all(edges[:-1] >= edges[1:])
    fail(Number(bool, ~(rises | falls)), ValueError("bins must be monotonically increasing or decreasing"))
    side, count = "left" if right else "right", np.int64(edges.size)
    if isinstance(rises, ConcreteArray):
        turned = not bool(rises.data)
        found = cast_raw(jnp.searchsorted(edges[::-1] if turned else edges, values, side=side), dtypes.int64)
        return wrap_result(count - found if turned else found)
    rising = jnp.where(rises, edges, edges[::-1])
    found = cast_raw(jnp.searchsorted(rising, values, side=side), dtypes.int64)
    return wrap_result(jnp.where(rises, found, count - found))


@implements(np.histogram)
def histogram(a, bins=10, range=None, density=None, weights=None):  # noqa: A002
    if isinstance(bins, str) or isinstance(bins, Handle) and not isinstance(bins, NDArray):
        raise not_traceable("np.histogram() whose number of bins depends on values")
    own = dtype_of(a)
    if "c" in (own.kind, "" if isinstance(bins, (int, np.integer)) else dtype_of(bins).kind):
        raise not_traceable("np.histogram() of complex numbers")
    values = to_raw(as_operand(a), own if own.kind == "f" else dtypes.float64).reshape(-1)
    edges_dtype = np.result_type(own, np.float32 if own.kind == "f" else np.float64)
    known_edges = None if isinstance(bins, (int, np.integer)) else to_raw(as_operand(bins))
    found_weights = None if weights is None else to_raw(as_operand(weights)).reshape(-1)
    if known_edges is not None:
        _check_rise(known_edges)
    if range is None and known_edges is None:
        _check_range(values)
    counts, edges = jnp.histogram(values, bins if known_edges is None else known_edges, range,
                                  weights=found_weights, density=density)  # fmt: skip
    counts_dtype = dtypes.float64 if density else dtypes.int64 if weights is None else found_weights.dtype
    return new_array(cast_raw(counts, counts_dtype)), (
        new_array(cast_raw(edges, edges_dtype)) if known_edges is None else as_array(bins))  # fmt: skip


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a, bins=10, range=None, weights=None):  # noqa: A002
    return histogram(a, bins, range)[1]


def _check_range(values: Array) -> None:
    """Equal bins lie between the least and the largest value, which have to be finite."""
    if values.size:
        is_finite = jnp.isfinite(jnp.min(values)) & jnp.isfinite(jnp.max(values))
        fail(Number(bool, ~is_finite), ValueError("autodetected range of [nan, nan] is not finite"))


def _check_rise(edges: Array) -> None:
    error = ValueError("`bins` must increase monotonically, when an array")
    fail(Number(bool, jnp.any(edges[:-1] > edges[1:])), error)


_RANGE = range


@implements(np.histogramdd)
def histogramdd(sample, bins=10, range=None, density=None, weights=None):  # noqa: A002
    columns = _list_columns(sample)
    count = len(columns)
    bins = list(bins) if isinstance(bins, (list, tuple)) else [bins] * count
    if isinstance(bins[0] if bins else None, NDArray) and len(bins) == 1:
        bins *= count
    if len(bins) != count:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    ranges = [None] * count if range is None else list(range)
    if len(ranges) != count:
        raise ValueError("range argument must have one entry per dimension")
    raws = [to_raw(column, dtypes.float64) for column in columns]
    edges = [_check_bins(raw, one, limits) for raw, one, limits in zip(raws, bins, ranges)]
    found_weights = None
    if weights is not None:
        if dtype_of(weights).kind not in "biuf":
            raise not_traceable("np.histogramdd with such weights")
        found_weights = to_raw(as_operand(weights), dtypes.float64)
    counts, found = jnp.histogramdd(raws, edges, ranges, found_weights)
    counts = cast_raw(counts, dtypes.float64)
    if density:
        total = jnp.sum(counts)
        for i, own in enumerate(found):
            counts = counts / jnp.diff(own).reshape([-1 if k == i else 1 for k in _RANGE(count)])
        counts = counts / total
    returned = [new_array(raw) if isinstance(one, int) else as_array(given)
                for raw, one, given in zip(found, edges, bins)]  # fmt: skip
    return new_array(counts), returned


def _list_columns(sample: Any) -> list[NDArray]:
    """The coordinates of points."""
    if isinstance(sample, (list, tuple)):
        columns = list(map(as_array, sample))
    else:
        sample = as_array(sample)
        columns = [sample] if sample.ndim == 1 else [sample[:, i] for i in _RANGE(sample.shape[1])]
    if any(column.ndim != 1 or column.is_partial for column in columns):
        raise not_traceable("np.histogramdd of such points")
    kinds = [column.dtype.kind in "iu" or column.dtype == dtypes.float64 for column in columns]
    if not all(kinds) or not columns[0].size:
        raise not_traceable("np.histogramdd of such numbers")
    return columns


def _check_bins(raw: Array, bins: Any, limits: Any) -> Any:
    """A number of bins, or their edges."""
    if isinstance(bins, (int, np.integer)):
        if limits is None:
            _check_range(raw)
        elif any(isinstance(limit, Handle) for limit in limits):
            raise not_traceable("np.histogramdd between limits that are traced")
        else:
            np.histogramdd(np.zeros((1, 1)), [int(bins)], [limits])  # NumPy's errors
        return int(bins)
    edges = as_array(bins)
    if edges.ndim != 1 or edges.size < 2 or edges.dtype.kind not in "iuf":
        raise not_traceable("np.histogramdd with such edges")
    found = to_raw(edges, dtypes.float64)
    _check_rise(found)
    return found


@implements(np.histogram2d)
def histogram2d(x, y, bins=10, range=None, density=None, weights=None):  # noqa: A002
    if len(as_array(x)) != len(as_array(y)):
        raise ValueError("x and y must have same length.")
    count = 1 if isinstance(bins, (int, np.integer)) else len(bins)
    if count not in (1, 2):
        bins = [as_array(bins)] * 2
    elif not isinstance(bins, (int, np.integer)):
        bins = list(bins) * (3 - count)
    counts, edges = histogramdd([x, y], bins, range, density, weights)
    return counts, *edges
