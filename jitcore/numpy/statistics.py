"""Histograms, order statistics, covariance.

In: samples. Out: counts, quantiles, matrices. A number of bins must be known while tracing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core.trace import Tracer, origin_of, user_snippet
from jitcore.errors import arguments as argument_errors
from jitcore.numpy import cumulative, products, reductions
from jitcore.numpy.arrays.dtype_names import finfo
from jitcore.numpy.arrays.promotion import (apply_select, broadcast_array, canonicalize_axes, convert_dtype,
                                            ensure_array, promote_arrays, reject_out)
from jitcore.numpy.creation import asarray, linspace
from jitcore.numpy.indexing import searching
from jitcore.numpy.indexing.reading import get_item, read_with_mode
from jitcore.numpy.indexing.update import update_item
from jitcore.numpy.joining import concatenate
from jitcore.numpy.shaping import atleast_2d, moveaxis, ravel
from jitcore.numpy.ufuncs import arithmetic, logic


# -- counting -----------------------------------------------------------------------------------------------
def bincount(x, weights=None, minlength: int = 0, *, length: int | None = None):
    """How often each non-negative integer occurs, or the sum of its weights. Same as: `numpy.bincount`.

    length: of the result; required while tracing. Larger values are dropped then."""
    x = ensure_array("bincount", x)
    if dtypes.kind_of(x.dtype) not in "biu":
        raise TypeError(f"x argument to bincount must have an integer type; got {x.dtype.name}")
    if x.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    minlength = operator.index(minlength)
    x = convert_dtype(x, dtypes.default_dtype("i")) if x.dtype == dtypes.bool_ else x
    if length is None:
        if isinstance(x, Tracer):
            raise argument_errors.argument_value_error("jnp.bincount", "x", x.aval.long(),
                                                       origin_of(x.owner, x), user_snippet())
        length = max(minlength, int(x.data.max()) + 1 if x.size else 0)
    else:
        length = operator.index(length)
    ones = lax.full((), 1, dtypes.default_dtype("i"))
    weights = ones if weights is None else ensure_array("bincount", weights)
    zeros = lax.full((length,), 0, weights.dtype)
    return update_item(zeros, arithmetic.maximum(x, 0), weights, "add", mode="drop")


def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """The edges of equal bins over the range of a, or `bins` itself if those are edges. Same as:
    `numpy.histogram_bin_edges`."""
    if isinstance(bins, str):
        raise NotImplementedError("string values for `bins` not implemented.")
    a = ravel(ensure_array("histogram_bin_edges", asarray(a)))
    dtype = dtypes.inexact_dtype(a.dtype)
    bins = asarray(bins) if not isinstance(bins, int) else bins
    if not isinstance(bins, int) and bins.ndim == 1:
        return convert_dtype(bins, dtypes.inexact_dtype(dtypes.result_type(bins, dtype)))
    count = operator.index(bins)
    if count < 1:
        raise ValueError(f"histogram: bins must be positive, got {count}")
    if range is None:
        low, high = (reductions.min(a), reductions.max(a)) if a.size else (0, 1)
    else:
        low, high = range
    low, high = (asarray(x, dtype) for x in (low, high))
    is_point = logic.equal(low, high)
    low, high = (apply_select(is_point, arithmetic.add(x, shift), x)
                 for x, shift in ((low, -0.5), (high, 0.5)))
    return linspace(low, high, count + 1, dtype=dtype)


def histogram(a, bins=10, range=None, weights=None, density=None):
    """(counts or summed weights per bin, edges); the last bin includes its right edge. Same as:
    `numpy.histogram`.

    density: divide by the total and the widths of the bins."""
    a = ravel(ensure_array("histogram", asarray(a)))
    dtype, edges = dtypes.inexact_dtype(a.dtype), histogram_bin_edges(a, bins, range)
    counts = count_between(a, edges, weights, isinstance(bins, int))
    counts = convert_dtype(counts, dtype if weights is None else dtypes.inexact_dtype(counts.dtype))
    if density:
        counts = arithmetic.divide(arithmetic.divide(counts, cumulative.diff(edges)), reductions.sum(counts))
    return counts, edges


def count_between(a, edges, weights, is_equal: bool) -> Array:
    """How many elements lie in each bin, an int, or their weights summed. is_equal: whether all bins are
    equally wide."""
    if weights is None:
        weights = _ones_to_count(a.shape)
    else:
        a, weights = promote_arrays("histogram", a, ravel(asarray(weights)))
    (a,) = promote_arrays("histogram", a, to=dtypes.inexact_dtype)
    return count_in_bins([a], [edges], [is_equal], weights)


def _ones_to_count(shape: tuple) -> Array:
    """Weights of points that are counted: integers, which do not round, wide enough for all of them."""
    count = math.prod(shape)
    is_few = isinstance(count, int) and count < 2**31
    return lax.full(shape, 1, dtypes.int32 if is_few else dtypes.int64)


def _find_in_equal_bins(edges, x) -> Array:
    """The number of the bin of each x between equally spaced edges, NaN anywhere: computed, and moved by one
    where rounding put x on the wrong side of an edge. What lies outside gets any number. Source: the
    definition of `numpy.histogram`.

    Edges are read only where x may be that close to one. In widths of bins, the computed place of x is at
    most 4 roundings of `count` away from the exact one, and an edge at most 4 roundings of the larger of
    `low` and `high`; `margin` is twice as much."""
    count, eps = edges.shape[0] - 1, float(finfo(x.dtype).eps)
    wide = dtypes.float32 if x.dtype.itemsize < 4 else x.dtype  # whose range holds all that is computed
    number, whole = wide.type, dtypes.uint32.type
    low, high = (convert_dtype(get_item(edges, end), wide) for end in (0, -1))
    scale = arithmetic.divide(number(count), arithmetic.subtract(high, low))
    largest = arithmetic.maximum(arithmetic.absolute(low), arithmetic.absolute(high))
    reach = arithmetic.multiply(largest, scale)
    margin = arithmetic.multiply(arithmetic.add(reach, number(count)), number(4 * eps))
    place = arithmetic.multiply(arithmetic.subtract(convert_dtype(x, wide), low), scale)
    guess = arithmetic.minimum(convert_dtype(place, dtypes.uint32), whole(count - 1))
    from_edge = arithmetic.absolute(arithmetic.subtract(place, lax.round_half_even(place)))
    is_clear = logic.greater(from_edge, margin)

    def edge_at(position):
        return read_with_mode(edges, position, mode="promise_in_bounds")

    up = logic.greater_equal(x, edge_at(arithmetic.add(guess, whole(1))))
    up = convert_dtype(logic.logical_and(up, logic.less(guess, whole(count - 1))), dtypes.uint32)
    down = convert_dtype(logic.less(x, edge_at(guess)), dtypes.uint32)
    return apply_select(is_clear, guess, arithmetic.subtract(arithmetic.add(guess, up), down))


def count_in_bins(coordinates: Sequence, edges: Sequence, are_equal: Sequence[bool], weights) -> Array:
    """Weights summed by bin; points outside the edges are left out. are_equal: whether the edges of a
    coordinate are equally spaced."""
    index, valid = None, None
    for x, e, is_equal in zip(coordinates, edges, are_equal):
        count = e.shape[0] - 1
        if is_equal:
            position = _find_in_equal_bins(e, x)
        else:
            position = arithmetic.subtract(searching.searchsorted(e, x, "right"), 1)
            position = apply_select(logic.equal(x, get_item(e, -1)), position.dtype.type(count - 1), position)
        inside = logic.logical_and(logic.greater_equal(x, get_item(e, 0)),
                                   logic.less_equal(x, get_item(e, -1)))
        index = position if index is None else arithmetic.add(arithmetic.multiply(index, count), position)
        valid = inside if valid is None else logic.logical_and(valid, inside)
    shape = tuple(e.shape[0] - 1 for e in edges)
    size = int(np.prod(shape))
    index = apply_select(valid, index, index.dtype.type(size))  # beyond the end: dropped
    counts = update_item(lax.full((size,), 0, weights.dtype), index, weights, "add", mode="drop")
    return lax.reshape(counts, shape)


def histogramdd(sample, bins=10, range=None, weights=None, density=None):
    """(counts per bin of several coordinates, list of edges). Same as: `numpy.histogramdd`. sample:
    [points, axes]."""
    if isinstance(sample, (list, tuple)):
        coordinates = promote_arrays("histogramdd", *map(asarray, sample), to=dtypes.inexact_dtype)
    else:
        (sample,) = promote_arrays("histogramdd", sample, to=dtypes.inexact_dtype)
        coordinates = [get_item(sample, (slice(None), i)) for i in _range(sample.shape[1])]
    count = len(coordinates)
    bins = [bins] * count if isinstance(bins, int) else list(bins)
    if len(bins) != count:
        raise ValueError("should be a bin for each dimension.")
    ranges = [None] * count if range is None else range
    edges = [histogram_bin_edges(x, b, r) for x, b, r in zip(coordinates, bins, ranges)]
    if weights is None:
        weights = lax.full(coordinates[0].shape, 1, dtypes.default_dtype("i"))
    else:
        weights = asarray(weights, coordinates[0].dtype)
    counts = count_in_bins(coordinates, edges, [isinstance(b, int) for b in bins], weights)
    if density:
        counts = convert_dtype(counts, coordinates[0].dtype)
        counts = arithmetic.divide(counts, reductions.sum(counts))
        for i, e in enumerate(edges):
            shape = [1] * count
            shape[i] = e.shape[0] - 1
            counts = arithmetic.divide(counts, lax.reshape(cumulative.diff(e), tuple(shape)))
    return counts, edges


_range = range


def histogram2d(x, y, bins=10, range=None, weights=None, density=None):
    """(counts, edges of x, edges of y). Same as: `numpy.histogram2d`."""
    if isinstance(bins, (Array, np.ndarray)) and bins.ndim == 1:
        bins = [bins, bins]
    counts, (x_edges, y_edges) = histogramdd([x, y], bins, range, weights, density)
    return counts, x_edges, y_edges


# -- order statistics ---------------------------------------------------------------------------------------
_METHODS = ("linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf")


def quantile(a, q, axis=None, out=None, overwrite_input: bool = False, method: str = "linear",
             keepdims: bool = False, *, weights=None):
    """The values below which shares q in [0, 1] of the elements lie. Same as: `numpy.quantile`; NaN gives
    NaN.

    Args:
        method: between two elements "linear", "lower", "higher", "nearest" or "midpoint"; "inverted_cdf"
            takes the first element up to which there is a share q.
        weights: what each element counts for, of a's shape, or 1-D along axis; for "inverted_cdf" alone."""
    return _quantile("quantile", a, q, axis, out, overwrite_input, method, keepdims, False, weights)


def nanquantile(a, q, axis=None, out=None, overwrite_input: bool = False, method: str = "linear",
                keepdims: bool = False, *, weights=None):
    """`quantile` of the elements that are not NaN. Same as: `numpy.nanquantile`."""
    return _quantile("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, True, weights)


def percentile(a, q, axis=None, out=None, overwrite_input: bool = False, method: str = "linear",
               keepdims: bool = False, *, weights=None):
    """`quantile` with q in [0, 100]. Same as: `numpy.percentile`."""
    q = _to_share("percentile", a, q)
    return quantile(a, q, axis, out, overwrite_input, method, keepdims, weights=weights)


def nanpercentile(a, q, axis=None, out=None, overwrite_input: bool = False, method: str = "linear",
                  keepdims: bool = False, *, weights=None):
    """`percentile` of the elements that are not NaN. Same as: `numpy.nanpercentile`."""
    q = _to_share("nanpercentile", a, q)
    return nanquantile(a, q, axis, out, overwrite_input, method, keepdims, weights=weights)


def median(a, axis=None, out=None, overwrite_input: bool = False, keepdims: bool = False):
    """The middle element, or the mean of the two. Same as: `numpy.median`."""
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def nanmedian(a, axis=None, out=None, overwrite_input: bool = False, keepdims: bool = False):
    """`median` of the elements that are not NaN. Same as: `numpy.nanmedian`."""
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def _to_share(name: str, a, q) -> Array:
    """A percentage as a share, in a dtype that is no narrower than that of the samples."""
    (a,) = promote_arrays(name, a, to=dtypes.inexact_dtype)
    q = ensure_array(name, _to_operand(q))
    return arithmetic.divide(convert_dtype(q, dtypes.result_type(a, q)), 100)


def _to_operand(q):
    """A list of shares as an array; a number stays one, so that it takes the dtype of the samples."""
    return asarray(q) if isinstance(q, (list, tuple)) else q


def _quantile(name: str, a, q, axis, out, overwrite_input, method, keepdims, skips_nan: bool,
              weights) -> Array:
    reject_out(name, out)
    if overwrite_input:
        raise ValueError("jnp.quantile does not support overwrite_input=True: arrays are immutable.")
    if method not in _METHODS:
        raise ValueError(f"method can only be one of {_METHODS}, got {method!r}")
    (a,) = promote_arrays(name, a, to=dtypes.inexact_dtype)
    q = ensure_array(name, _to_operand(q))
    # A share of a wider dtype says more exactly where, not in which dtype.
    target, wide = a.dtype, dtypes.result_type(a, q)
    a, q = convert_dtype(a, wide), convert_dtype(q, wide)
    if dtypes.is_complex(a.dtype):
        raise ValueError(f"{name} does not support complex input, as the operation is poorly defined.")
    if q.ndim > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {q.shape}")
    if weights is not None:
        if method != "inverted_cdf":
            raise NotImplementedError(f"{name} takes weights with method='inverted_cdf', not with {method!r}")
        found = _pick_weighted(name, a, q, axis, keepdims, skips_nan, weights)
    else:
        found = pick_quantiles(a, q, axis, keepdims, method, skips_nan)
    return convert_dtype(found, target)


def _pick_weighted(name: str, a, q, axis, keepdims: bool, skips_nan: bool, weights) -> Array:
    """For each share q the first element, in their order, up to which that share of the weights lies."""
    axes = canonicalize_axes(axis, a.ndim)
    weights = convert_dtype(ensure_array(name, weights), a.dtype)
    if weights.shape != a.shape:
        if axis is None or weights.shape != tuple(a.shape[i] for i in axes):
            raise ValueError("weights must have the shape of a, or be 1-D of its length along axis")
        weights = lax.expand_dims(weights, [i for i in _range(a.ndim) if i not in axes])
    is_nan = logic.isnan(a)
    weights = broadcast_array(weights, a.shape)
    if skips_nan:
        weights = apply_select(is_nan, weights.dtype.type(0), weights)
    kept = [extent for i, extent in enumerate(a.shape) if i not in axes]
    rows = [lax.reshape(moveaxis(x, axes, tuple(_range(a.ndim - len(axes), a.ndim))),
                        (*kept, a.size // max(math.prod(kept), 1))) for x in (a, weights)]
    ordered, weights = lax.sort(rows, len(kept), True, 1)
    reached = lax.cumsum(weights, len(kept))
    reached = arithmetic.divide(reached, get_item(reached, (Ellipsis, slice(-1, None))))
    shares = lax.reshape(q, (*q.shape, *[1] * (len(kept) + 1)))
    behind = logic.less(lax.expand_dims(reached, range(q.ndim)), shares)
    index = arithmetic.minimum(reductions.sum(behind, -1), ordered.shape[-1] - 1)
    result = _take_last(ordered, index, index.shape)
    if not skips_nan:
        result = apply_select(reductions.any(is_nan, axis), result.dtype.type(np.nan), result)
    return lax.expand_dims(result, tuple(i + q.ndim for i in axes)) if keepdims else result


def pick_quantiles(a, q, axis, keepdims: bool, method, skips_nan: bool) -> Array:
    """Quantiles of samples and shares of any float dtypes. method: as for `_pick_between`."""
    axes = canonicalize_axes(axis, a.ndim)
    kept = [i for i in _range(a.ndim) if i not in axes]
    a = moveaxis(a, axes, tuple(_range(a.ndim - len(axes), a.ndim)))
    shape = tuple(a.shape[: len(kept)])
    count = 1
    for extent in a.shape[len(kept) :]:
        count = count * extent
    ordered = lax.sort(lax.reshape(a, (*shape, count)), len(shape), True)
    if skips_nan:
        total = reductions.sum(logic.logical_not(logic.isnan(ordered)), -1)
        result = _pick_between(ordered, q, arithmetic.subtract(convert_dtype(total, q.dtype), 1), method)
    else:
        result = _pick_between(ordered, q, q.dtype.type(count - 1), method)
        has_nan = logic.isnan(get_item(ordered, (Ellipsis, -1)))
        result = apply_select(has_nan, result.dtype.type(np.nan), result)
    if keepdims:
        result = lax.expand_dims(result, tuple(i + q.ndim for i in axes))
    return result


def _pick_between(ordered, q, last, method) -> Array:
    """Elements of the sorted last axis at the positions q * last; q's axis comes first. method: a name, or
    what is made of (element at a place, the next one, share of the latter)."""
    rank = ordered.ndim - 1
    if q.ndim:
        q = lax.reshape(q, (q.shape[0], *[1] * rank))
    if method == "inverted_cdf":
        behind = lax.ceil(arithmetic.multiply(q, arithmetic.add(last, 1)))
        position = arithmetic.maximum(arithmetic.subtract(behind, 1), 0)
    else:
        position = arithmetic.multiply(q, last)
    low = lax.floor(position)
    high = arithmetic.add(low, 1) if callable(method) else lax.ceil(position)
    share = arithmetic.subtract(position, low)
    shape = position.shape if len(position.shape) >= rank else ordered.shape[:-1]
    elements = []
    for bound in (low, high):
        index = convert_dtype(arithmetic.maximum(arithmetic.minimum(bound, last), 0), dtypes.int32)
        elements.append(_take_last(ordered, index, shape))
    below, above = elements
    if callable(method):
        return method(below, above, share)
    if method == "linear":
        rest = arithmetic.subtract(1, share)
        result = arithmetic.add(arithmetic.multiply(below, rest), arithmetic.multiply(above, share))
        return apply_select(logic.equal(share, 0), below, result)
    if method == "midpoint":
        return arithmetic.multiply(arithmetic.add(below, above), 0.5)
    if method == "nearest":
        return apply_select(logic.less_equal(share, 0.5), below, above)
    return above if method == "higher" else below


def _take_last(ordered, index, shape: tuple) -> Array:
    """`ordered[..., index]` where the leading axes of both broadcast; they all match when index is a
    scalar."""
    batch = ordered.shape[:-1]
    if index.ndim == 0:
        return get_item(ordered, (Ellipsis, index))
    target = (*index.shape[: index.ndim - len(batch)], *batch)
    index = broadcast_array(index, target)
    grids = [np.arange(n, dtype=np.int32).reshape([-1] + [1] * (len(batch) - i - 1))
             for i, n in enumerate(batch)]
    return get_item(ordered, (*grids, index))


# -- covariance ---------------------------------------------------------------------------------------------
def cov(m, y=None, rowvar: bool = True, bias: bool = False, ddof=None, fweights=None, aweights=None,
        dtype=None):
    """Covariance matrix of the rows of m (and y). Same as: `numpy.cov`.

    Args:
        rowvar: rows are variables, columns observations; else the other way round.
        bias, ddof: the divisor is n - ddof; ddof is 1 by default, 0 with bias.
        fweights, aweights: how often, and with which weight, each observation counts.
        dtype: in which it is computed.
    Raises: ValueError for more than two axes, or a dtype that is not inexact."""
    m = ensure_array("cov", m)
    if m.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    (m,) = promote_arrays("cov", m, to=dtypes.inexact_dtype)
    samples = _as_rows(m, rowvar or m.ndim == 1)
    if y is not None:
        y = _as_rows(ensure_array("cov", y), rowvar or len(y) == 1)
        samples, other = promote_arrays("cov", samples, y)
        samples = concatenate([samples, other], 0)
    if dtype is not None:
        if not dtypes.is_inexact(dtypes.canonicalize(dtype)):
            raise ValueError(f"cov: dtype must be a subclass of float or complex; got {dtype=}")
        samples = convert_dtype(samples, dtypes.canonicalize(dtype))
    if not samples.shape[0]:
        return lax.full((0, 0), 0, samples.dtype)
    if not samples.shape[1]:
        count = samples.shape[0]
        return lax.full(() if count == 1 else (count, count), np.nan, samples.dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = None
    if fweights is not None and not dtypes.is_integer(ensure_array("cov", fweights).dtype):
        raise TypeError("fweights must be integers: how often each observation counts")
    for given in (fweights, aweights):
        if given is not None:
            given = convert_dtype(ensure_array("cov", given), samples.dtype)
            weights = given if weights is None else arithmetic.multiply(weights, given)
    if weights is None:
        total, divisor = samples.shape[1], samples.shape[1] - ddof
        average = reductions.mean(samples, 1, keepdims=True)
    else:
        total = reductions.sum(weights)
        weighted = arithmetic.multiply(samples, weights)
        average = arithmetic.divide(reductions.sum(weighted, 1, keepdims=True), total)
        divisor = _effective_count(total, weights, aweights, ddof)
    centered = arithmetic.subtract(samples, average)
    scaled = centered if weights is None else arithmetic.multiply(centered, weights)
    divisor = samples.dtype.type(max(divisor, 0)) if isinstance(divisor, (int, float)) else divisor
    adjoint = arithmetic.conjugate(lax.transpose(scaled, (1, 0)))
    out = arithmetic.divide(products.matmul(centered, adjoint), divisor)
    return lax.squeeze(out, tuple(i for i in (0, 1) if out.shape[i] == 1)) if out.shape == (1, 1) else out


def _as_rows(x, rowvar: bool) -> Array:
    x = atleast_2d(x)
    return x if rowvar else lax.transpose(x, (1, 0))


def _effective_count(total, weights, aweights, ddof):
    if ddof == 0:
        return total
    if aweights is None:
        return arithmetic.subtract(total, ddof)
    aweights = convert_dtype(ensure_array("cov", aweights), weights.dtype)
    share = arithmetic.divide(reductions.sum(arithmetic.multiply(weights, aweights)), total)
    return arithmetic.subtract(total, arithmetic.multiply(ddof, share))


def corrcoef(x, y=None, rowvar: bool = True, dtype=None):
    """Correlation coefficients of the rows of x (and y), computed in dtype. Same as: `numpy.corrcoef`."""
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return arithmetic.divide(c, c)
    n = np.arange(c.shape[0], dtype=np.int32)
    deviation = arithmetic.sqrt(arithmetic.real(get_item(c, (n, n))))
    for axis in (1, 0):
        c = arithmetic.divide(c, lax.expand_dims(deviation, (axis,)))
    if dtypes.is_complex(c.dtype):
        parts = [arithmetic.minimum(arithmetic.maximum(part(c), -1), 1)
                 for part in (arithmetic.real, arithmetic.imag)]
        return lax.complex(*parts)
    return arithmetic.minimum(arithmetic.maximum(c, -1), 1)


__all__ = ["bincount", "corrcoef", "cov", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd",
           "median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]
