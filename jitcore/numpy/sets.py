"""Sets of values: unique elements and operations on them.

In: arrays, taken as sets of their elements. Out: sorted vectors. Their length depends on values: while
tracing, `size=` cuts or fills it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core.trace import Tracer, origin_of, user_snippet
from jitcore.errors import arguments as argument_errors
from jitcore.numpy import reductions
from jitcore.numpy.arrays.promotion import apply_select, convert_dtype, ensure_array, promote_arrays
from jitcore.numpy.creation import asarray
from jitcore.numpy.cumulative import cumsum
from jitcore.numpy.indexing import searching
from jitcore.numpy.indexing.reading import get_item
from jitcore.numpy.indexing.update import update_item
from jitcore.numpy.joining import concatenate
from jitcore.numpy.shaping import moveaxis, ravel, reshape
from jitcore.numpy.ufuncs import arithmetic, logic


class UniqueAll(NamedTuple):
    """Result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """Result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def unique(ar, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None, *, equal_nan: bool = True, size: int | None = None, fill_value=None,
           sorted: bool = True):
    """The distinct elements (slices along axis), sorted. Same as: `numpy.unique`.

    Args:
        size: length of the result: cut, or filled up with `fill_value` (the smallest element). Required
        while tracing.
    Returns: the elements, and on request their first positions, the positions that rebuild ar, their counts.
    Raises: ConcretizationTypeError for a traced array without `size`."""
    ar = ensure_array("unique", ar)
    if size is None and isinstance(ar, Tracer):
        raise argument_errors.size_required_error("jnp.unique", ar.aval.long(), origin_of(ar.owner, ar),
                                         user_snippet())
    shape = ar.shape
    rows = ravel(ar) if axis is None else moveaxis(ar, axis, 0)
    count = rows.shape[0]
    if count == 0:
        inverse = lax.full(shape if axis is None else (0,), 0, dtypes.default_dtype("i"))
        inverse = inverse if return_inverse else None
        return _unique_of_nothing(rows, return_index, inverse, return_counts, size, fill_value)
    flat = reshape(rows, (count, -1)) if rows.size else lax.full((count, 1), 0, rows.dtype)
    needs_order = return_index or return_inverse or rows.ndim > 1
    if equal_nan and dtypes.is_complex(flat.dtype):  # so that those of which one part is NaN are last, too
        flat = apply_select(logic.isnan(flat), flat.dtype.type(np.nan), flat)
    keys, order = _sort_rows(flat, needs_order)
    is_first = _find_first_of_equal(keys, equal_nan)
    # One more than asked for: where the last one that is kept ends.
    (bounds,) = searching.nonzero(is_first, size=None if size is None else size + 1, fill_value=count)
    starts = bounds if size is None else get_item(bounds, slice(0, size))
    index = dtypes.default_dtype("i")
    places = arithmetic.minimum(starts, count - 1)
    found = get_item(rows, get_item(order, places)) if needs_order else get_item(keys[0], places)
    total = reductions.sum(is_first)
    if size is not None:
        filler = get_item(found, 0) if fill_value is None else asarray(fill_value, rows.dtype)
        is_real = logic.less(np.arange(size, dtype=np.int32), total)
        found = apply_select(lax.reshape(is_real, (size,) + (1,) * (found.ndim - 1)), found, filler)
    out = [found if axis is None else moveaxis(found, 0, axis)]
    if return_index:
        out.append(_first_positions(order, starts, count, total, size))
    if return_inverse:
        group = convert_dtype(arithmetic.subtract(cumsum(is_first), 1), index)
        inverse = update_item(lax.full((count,), 0, index), order, group, is_unique=True)
        out.append(reshape(inverse, shape) if axis is None else inverse)
    if return_counts:
        ends = get_item(bounds, slice(1, None))
        if size is None:
            ends = concatenate([ends, asarray([count], starts.dtype)])
        out.append(convert_dtype(arithmetic.subtract(ends, starts), index))
    return out[0] if len(out) == 1 else tuple(out)


def _unique_of_nothing(rows, return_index: bool, inverse, return_counts: bool, size, fill_value):
    length = size or 0
    found = lax.full((length, *rows.shape[1:]), 0 if fill_value is None else fill_value, rows.dtype)
    empty = lax.full((length,), 0, dtypes.default_dtype("i"))
    extras = [*[empty] * return_index, *([] if inverse is None else [inverse]), *[empty] * return_counts]
    return (found, *extras) if extras else found


def _sort_rows(flat, needs_order: bool) -> tuple[list[Array], Array | None]:
    """(columns of the rows in rising order, positions that sort the rows if these are needed)."""
    keys = [get_item(flat, (slice(None), j)) for j in range(flat.shape[1])]
    if not needs_order:  # one column: values alone are sorted several times faster
        return [lax.sort(keys[0], 0)], None
    positions = lax.iota(dtypes.default_dtype("i"), flat.shape[0])
    *keys, order = lax.sort((*keys, positions), 0, True, len(keys))
    return keys, order


def _find_first_of_equal(keys: list[Array], equal_nan: bool) -> Array:
    """Whether a row differs from the one before, in any of the sorted columns."""
    differs = None
    for key in keys:
        ahead, behind = get_item(key, slice(1, None)), get_item(key, slice(0, -1))
        one = logic.not_equal(ahead, behind)
        if equal_nan and dtypes.is_inexact(key.dtype):
            one = logic.logical_and(
                one, logic.logical_not(logic.logical_and(logic.isnan(ahead), logic.isnan(behind))))
        differs = one if differs is None else logic.logical_or(differs, one)
    return concatenate([asarray([True]), differs])


def _first_positions(order, starts, count: int, total, size) -> Array:
    """The first position of each group: sorting is stable, so it is that of the group's first sorted row."""
    found = get_item(order, arithmetic.minimum(starts, count - 1))
    if size is None:
        return found
    return apply_select(logic.less(np.arange(size, dtype=np.int32), total), found, get_item(found, 0))


def unique_values(x, /, *, size: int | None = None, fill_value=None):
    """The distinct elements. Same as: `numpy.unique_values`."""
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def unique_counts(x, /, *, size: int | None = None, fill_value=None):
    """The distinct elements and how often each occurs. Same as: `numpy.unique_counts`."""
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_inverse(x, /, *, size: int | None = None, fill_value=None):
    """The distinct elements and the positions that rebuild x. Same as: `numpy.unique_inverse`."""
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_all(x, /, *, size: int | None = None, fill_value=None):
    """The distinct elements, first positions, rebuilding positions, counts. Same as: `numpy.unique_all`."""
    return UniqueAll(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


# -- operations ---------------------------------------------------------------------------------------------
#: Ways to search, of which one is taken in any case.
_METHODS = "auto", "compare_all", "binary_search", "sort"


def isin(element, test_elements, assume_unique: bool = False, invert: bool = False, *, method: str = "auto"):
    """Whether each element occurs in test_elements. Same as: `numpy.isin`."""
    if method not in _METHODS:
        raise ValueError(f"{method=} is not implemented; options are {', '.join(map(repr, _METHODS))}")
    element, tests = promote_arrays("isin", asarray(element), asarray(test_elements))
    tests = ravel(tests)
    if not tests.size or not element.size:
        found = lax.full(element.shape, False, dtypes.bool_)
    else:
        ordered = lax.sort(tests, 0, True)
        place = arithmetic.minimum(searching.searchsorted(ordered, element), tests.shape[0] - 1)
        found = logic.equal(get_item(ordered, place), element)
    return logic.logical_not(found) if invert else found


def _select_static(values, mask, size, fill_value) -> Array:
    """The values where the mask holds; `size` as in `nonzero`. Without a fill_value the first of them fills
    up, or 0."""
    count = values.shape[0]
    (found,) = searching.nonzero(mask, size=size, fill_value=count)
    if size is None:
        return get_item(values, found)
    if not count:
        return lax.full((size,), 0 if fill_value is None else fill_value, values.dtype)
    out = get_item(values, arithmetic.minimum(found, count - 1))
    is_found = logic.less(found, count)
    zero = values.dtype.type(0)
    filler = (apply_select(get_item(is_found, slice(0, 1)), get_item(out, slice(0, 1)), zero)
              if fill_value is None else asarray(fill_value, values.dtype))
    return apply_select(is_found, out, filler)


def _is_new(ordered) -> Array:
    """Whether an element of a sorted vector differs from the one before."""
    if not ordered.shape[0]:
        return lax.full((0,), False, dtypes.bool_)
    before, after = get_item(ordered, slice(None, -1)), get_item(ordered, slice(1, None))
    return concatenate([asarray([True]), logic.not_equal(before, after)])


def intersect1d(ar1, ar2, assume_unique: bool = False, return_indices: bool = False, *,
                size: int | None = None, fill_value=None):
    """The distinct elements that both have, on request with their first positions. Same as:
    `numpy.intersect1d`; positions are filled up with the number of elements."""
    ar1, ar2 = (ravel(x) for x in promote_arrays("intersect1d", asarray(ar1), asarray(ar2)))
    index = dtypes.default_dtype("i")
    (first, where1), (second, where2) = (
        lax.sort((ar, lax.iota(index, ar.shape[0])), 0, True, 1) for ar in (ar1, ar2))
    mask = logic.logical_and(_is_new(first), isin(first, second))
    common = _select_static(first, mask, size, fill_value)
    if not return_indices:
        return common
    if not ar1.size or not ar2.size or not common.shape[0]:
        return common, get_item(where1, slice(0, 0)), get_item(where2, slice(0, 0))
    found = _select_static(where1, mask, size, ar1.size)
    place = arithmetic.minimum(searching.searchsorted(second, common), ar2.size - 1)
    there = get_item(where2, place)
    if size is not None:
        there = apply_select(logic.less(found, ar1.size), there, asarray(ar2.size, index))
    return common, found, there


def union1d(ar1, ar2, *, size: int | None = None, fill_value=None):
    """The distinct elements of both. Same as: `numpy.union1d`."""
    return unique(concatenate([asarray(ar1), asarray(ar2)], None), size=size, fill_value=fill_value)


def setdiff1d(ar1, ar2, assume_unique: bool = False, *, size: int | None = None, fill_value=None):
    """The distinct elements of ar1 that ar2 lacks. Same as: `numpy.setdiff1d`."""
    ar1 = asarray(ar1)
    if size is None:
        first = ravel(ar1) if assume_unique else unique(ar1)
        return _select_static(first, isin(first, ar2, invert=True), None, None)
    first = lax.sort(ravel(ar1), 0, True)
    mask = logic.logical_and(_is_new(first), isin(first, ar2, invert=True))
    return _select_static(first, mask, size, 0 if fill_value is None else fill_value)


def setxor1d(ar1, ar2, assume_unique: bool = False, *, size: int | None = None, fill_value=None):
    """The distinct elements that exactly one of both has. Same as: `numpy.setxor1d`."""
    ar1, ar2 = asarray(ar1), asarray(ar2)
    joined = concatenate([ar1, ar2], None)
    first = lax.sort(joined, 0, True)
    is_chosen = logic.logical_and(_is_new(first), logic.not_equal(isin(first, ar1), isin(first, ar2)))
    if dtypes.is_inexact(first.dtype):  # NaN is in neither: there is one of each that has some
        is_nan = logic.isnan(first)
        have_some = [convert_dtype(reductions.any(logic.isnan(x)), dtypes.int32) for x in (ar1, ar2)]
        count = arithmetic.add(*have_some)
        is_chosen = apply_select(is_nan, logic.less_equal(cumsum(is_nan), count), is_chosen)
    return _select_static(first, is_chosen, size, fill_value)


__all__ = ["intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts",
           "unique_inverse", "unique_values"]
