"""Arrays that are made with traced extents: `np.zeros(n)`, `np.arange(n)`.

In: a shape with Numbers. Out: arrays in a frame of the largest extents that are possible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore import lax
from jitcore.numpy_semantics.dynamic_extents import extents
from jitcore.numpy_semantics.dynamic_extents.align import find_frame
from jitcore.numpy_semantics.dynamic_extents.array import PaddedArray, accepts_padded, wrap
from jitcore.numpy_semantics.dynamic_extents.spans import Item, Span, Whole
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions import creation  # noqa: F401  it fills the table that is extended here
from jitcore.numpy_semantics.functions.tables import CREATION, creates
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import Number


def is_traced_shape(shape: Any) -> bool:
    """Whether a shape has traced extents, so that an array of it is padded."""
    return any(isinstance(n, Number) for n in (shape if isinstance(shape, (tuple, list)) else (shape,)))


def make_items(shape: Any) -> list[Item]:
    """Items of a new array of a shape with traced extents.

    Raises: NotTraceable for an extent without upper bound; ValueError for one that is negative."""
    items: list[Item] = []
    for extent in shape if isinstance(shape, (tuple, list)) else (shape,):
        if not isinstance(extent, Number):
            items.append(Whole(int(extent)))
            continue
        extent = extents.unify(extent)
        bound = extents.find_upper_bound(extent)
        if bound is None:
            raise not_traceable("an array is made whose extent is traced and has no bound that is known")
        if extents.find_lower_bound(extent) < 0:
            error = ValueError("negative dimensions are not allowed")
            extents.fail(lax.lt(extents.to_array(extent), np.int64(0)), error)
        items.append(Span(bound, 0, extents.clamp(extent, 0, None)))
    return items


def make_range(start: Any, stop: Any, step: int, dtype: Any) -> NDArray:
    """np.arange of ints of which at least one is traced."""
    distance = stop - start if step > 0 else start - stop
    count = extents.clamp((distance + (abs(step) - 1)) // abs(step), 0, None)
    bound = extents.find_upper_bound(count)
    if bound is None:
        raise not_traceable("np.arange of a traced number of elements that has no bound that is known")
    places = lax.mul(lax.iota(np.int64, bound), np.int64(step))
    raw = lax.convert_element_type(lax.add(places, lax.full((bound,), extents.to_array(start))), dtype)
    item = Span(bound, 0, count) if isinstance(count, Number) else Whole(count)
    return wrap(new_array(raw), [item])


def _extend(function: Callable) -> None:
    """The function that makes arrays of a shape, for shapes with traced extents too."""
    make_plain = CREATION[function]

    def make(shape, *args, **kwargs):
        if not is_traced_shape(shape):
            return make_plain(shape, *args, **kwargs)
        items = make_items(shape)
        return wrap(make_plain(tuple(item.capacity for item in items), *args, **kwargs), items)

    creates(function)(make)


for _function in (np.zeros, np.ones, np.empty, np.full, np.ndarray):
    _extend(_function)


def _extend_like(function: Callable) -> None:
    """The function that makes arrays like another one, for padded arrays too."""
    make_plain = CREATION[function]

    def make(prototype, *args, **kwargs):
        prototype = prototype.to_array() if hasattr(type(prototype), "to_array") else prototype
        found = make_plain(find_frame(prototype), *args, **kwargs)
        if not isinstance(prototype, PaddedArray) or kwargs.get("shape") is not None:
            return found
        if found.shape != prototype.frame.shape:
            raise not_traceable("np.array with ndmin= of an array whose extent is traced")
        return PaddedArray(found, prototype.items)

    accepts_padded(function)(creates(function)(make))


for _function in (np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.array, np.asarray,
                  np.asanyarray, np.copy, np.ascontiguousarray):
    _extend_like(_function)

_make_plain_range = CREATION[np.arange]


@creates(np.arange)
def arange(*bounds, dtype=None, **options):
    if not any(isinstance(bound, Number) for bound in bounds) or any(
            getattr(bound, "python_type", type(bound)) not in (int, bool) for bound in bounds):
        return _make_plain_range(*bounds, dtype=dtype, **options)
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if isinstance(step, Number) or not step:
        return _make_plain_range(*bounds, dtype=dtype, **options)
    return make_range(extents.unify(start), extents.unify(stop), step, np.int64 if dtype is None else dtype)
