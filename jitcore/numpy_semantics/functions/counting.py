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
from jitcore.numpy.statistics import count_between, count_in_bins
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import dtype_of, to_common
from jitcore.numpy_semantics.functions.rows import adapts
from jitcore.numpy_semantics.functions.shaping import as_array
from jitcore.numpy_semantics.functions.tables import implements
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array, wrap_result
from jitcore.numpy_semantics.values.promotion import as_operand, cast_raw, to_raw
from jitcore.rewriter.handles import Handle


@adapts(np.digitize, count=2, convert=to_common, dtype=dtypes.int64)
def digitize(values, edges, right=False):
    rises, falls = jnp.all(edges[:-1] <= edges[1:]), jnp.all(edges[:-1] >= edges[1:])
    fail(~(rises | falls), ValueError("bins must be monotonically increasing or decreasing"))
    side, is_known = "left" if right else "right", isinstance(rises, ConcreteArray)
    if is_known and rises.data:
        return jnp.searchsorted(edges, values, side=side)
    rising = edges[::-1] if is_known else jnp.where(rises, edges, edges[::-1])
    found = cast_raw(jnp.searchsorted(rising, values, side=side), dtypes.int64)
    turned = np.int64(edges.size) - found
    return turned if is_known else jnp.where(rises, found, turned)


@implements(np.histogram)
def histogram(a, bins=10, range=None, density=None, weights=None):  # noqa: A002
    if isinstance(bins, str) or isinstance(bins, Handle) and not isinstance(bins, NDArray):
        raise not_traceable("np.histogram() whose number of bins depends on values")
    own = dtype_of(a)
    if "c" in (own.kind, "" if isinstance(bins, (int, np.integer)) else dtype_of(bins).kind):
        raise not_traceable("np.histogram() of complex numbers")
    values = to_raw(as_operand(a), own if own.kind == "f" else dtypes.float64).reshape(-1)
    edges_dtype = np.result_type(own, np.float32 if own.kind == "f" else np.float64)
    found_weights = None if weights is None else to_raw(as_operand(weights)).reshape(-1)
    is_equal = isinstance(bins, (int, np.integer))
    if is_equal:
        edges = cast_raw(_make_edges(values, bins, range).read(), edges_dtype)
    else:
        edges = to_raw(as_operand(bins))
        _check_rise(edges)
    counts = count_between(values, edges, found_weights, is_equal)
    counts = new_array(cast_raw(counts, dtypes.int64 if weights is None else found_weights.dtype))
    if density:
        counts = counts / np.diff(new_array(edges)).astype(float) / counts.sum()
    return counts, new_array(edges) if is_equal else as_array(bins)


def _make_edges(values: Array, count: int, limits: Any) -> NDArray:
    """Those of equal bins, with NumPy's bits."""
    if limits is not None and not any(isinstance(limit, Handle) for limit in limits):
        return new_array(to_raw(np.histogram_bin_edges(np.empty(0, values.dtype), count, limits)))
    if limits is None and not values.size:
        return new_array(to_raw(np.linspace(0, 1, count + 1)))
    if limits is None:
        _check_range(values)
        limits = wrap_result(jnp.min(values)), wrap_result(jnp.max(values))
    low, high = limits
    fail(to_raw(high < low), ValueError("max must be larger than min in range parameter."))
    is_point = low == high
    return np.linspace(np.where(is_point, low - 0.5, low), np.where(is_point, high + 0.5, high), count + 1)


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a, bins=10, range=None, weights=None):  # noqa: A002
    return histogram(a, bins, range)[1]


def _check_range(values: Array) -> None:
    """Equal bins lie between the least and the largest value, which have to be finite."""
    if values.size:
        is_finite = jnp.isfinite(jnp.min(values)) & jnp.isfinite(jnp.max(values))
        fail(~is_finite, ValueError("autodetected range of [nan, nan] is not finite"))


def _check_rise(edges: Array) -> None:
    error = ValueError("`bins` must increase monotonically, when an array")
    fail(jnp.any(edges[:-1] > edges[1:]), error)


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
    if weights is not None and dtype_of(weights).kind not in "biuf":
        raise not_traceable("np.histogramdd with such weights")
    weights = jnp.ones(raws[0].shape, dtypes.int64) if weights is None else to_raw(weights, dtypes.float64)
    are_equal = [isinstance(one, (int, np.integer)) for one in bins]
    counts = cast_raw(count_in_bins(raws, edges, are_equal, weights), dtypes.float64)
    if density:
        total = jnp.sum(counts)
        for i, own in enumerate(edges):
            counts = counts / jnp.diff(own).reshape([-1 if k == i else 1 for k in _RANGE(count)])
        counts = counts / total
    returned = [new_array(raw) if is_equal else as_array(given)
                for raw, is_equal, given in zip(edges, are_equal, bins)]
    return new_array(counts), returned


def _list_columns(sample: Any) -> list[NDArray]:
    """The coordinates of points."""
    if isinstance(sample, (list, tuple)):
        columns = list(map(as_array, sample))
    else:
        sample = as_array(sample)
        columns = [sample] if sample.ndim == 1 else [sample[:, i] for i in _RANGE(sample.shape[1])]
    if any(column.ndim != 1 or column.is_padded for column in columns):
        raise not_traceable("np.histogramdd of such points")
    kinds = [column.dtype.kind in "iu" or column.dtype == dtypes.float64 for column in columns]
    if not all(kinds) or not columns[0].size:
        raise not_traceable("np.histogramdd of such numbers")
    return columns


def _check_bins(raw: Array, bins: Any, limits: Any) -> Array:
    """The edges of bins."""
    if isinstance(bins, (int, np.integer)):
        if limits is not None and any(isinstance(limit, Handle) for limit in limits):
            raise not_traceable("np.histogramdd between limits that are traced")
        if limits is not None:
            np.histogramdd(np.zeros((1, 1)), [int(bins)], [limits])  # NumPy's errors
        return _make_edges(raw, int(bins), limits).read()
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
