"""Arrays that are made with traced extents: `np.zeros(n)`, `np.arange(n)`.

In: a shape with Numbers. Out: arrays in a frame of the largest extents that are possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore import lax
from jitcore.numpy_semantics.dynamic_extents import extents
from jitcore.numpy_semantics.dynamic_extents.elementwise import wrap
from jitcore.numpy_semantics.dynamic_extents.spans import Item, Span, Whole
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions import creation  # noqa: F401  it fills the table that is extended here
from jitcore.numpy_semantics.functions.tables import CREATION, creates
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import Number


def is_traced_shape(shape: Any) -> bool:
    """Whether a shape has traced extents, so that an array of it is partial."""
    return (
        isinstance(shape, Number)
        or isinstance(shape, (tuple, list))
        and any(isinstance(n, Number) for n in shape)
    )


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


def make_full(shape: Any, make_frame: Callable[[Sequence[int]], NDArray]) -> NDArray:
    """A new array of a shape with traced extents. make_frame: a plain array of a static shape."""
    items = make_items(shape)
    return wrap(make_frame(tuple(extent for item in items for extent in item.shape)), items)


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
        if is_traced_shape(shape):
            return make_full(shape, lambda largest: make_plain(largest, *args, **kwargs))
        return make_plain(shape, *args, **kwargs)

    creates(function)(make)


for _function in (np.zeros, np.ones, np.empty, np.full, np.ndarray):
    _extend(_function)


def _extend_like(function: Callable) -> None:
    """The function that makes arrays like another one, for partial arrays too."""
    make_plain = CREATION[function]

    def make(prototype, *args, **kwargs):
        prototype = prototype.to_array() if hasattr(type(prototype), "to_array") else prototype
        if getattr(prototype, "is_partial", False):
            return wrap(make_plain(prototype.frame, *args, **kwargs), prototype.items)
        return make_plain(prototype, *args, **kwargs)

    creates(function)(make)


for _function in (np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.array, np.asarray, np.copy,
                  np.ascontiguousarray):
    if _function in CREATION:
        _extend_like(_function)

_make_plain_range = CREATION.get(np.arange)


@creates(np.arange)
def arange(*bounds, dtype=None, **options):
    if not any(isinstance(bound, Number) for bound in bounds) or any(
            getattr(bound, "python_type", type(bound)) not in (int, bool) for bound in bounds):
        return _make_plain_range(*bounds, dtype=dtype, **options)
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if isinstance(step, Number) or not step:
        return _make_plain_range(*bounds, dtype=dtype, **options)
    return make_range(extents.unify(start), extents.unify(stop), step, np.int64 if dtype is None else dtype)


@creates(len)
def length(x):
    if getattr(x, "is_partial", False) or hasattr(type(x), "to_array"):
        return x.shape[0]
    return len(x)
