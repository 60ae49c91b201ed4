"""Reductions of segments: rows of an array combined by the segment that a number beside each names.

In: data and segment numbers. Out: one row per segment. Names and rules are those of `jax.ops`.
"""

from __future__ import annotations

import operator
import sys

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core.trace import Tracer, origin_of, user_snippet
from jitcore.docstrings import document
from jitcore.errors import arguments as argument_errors
from jitcore.lax.reduce import highest_value, lowest_value
from jitcore.numpy.arrays.promotion import ensure_array

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _reduce_segments(name: str, scatter, start, data, segment_ids, num_segments, mode, promises) -> Array:
    """start: dtype -> what an empty segment holds."""
    data, ids = ensure_array(name, data), ensure_array(name, segment_ids)
    if dtypes.kind_of(ids.dtype) not in "iu":
        raise TypeError(f"{name} requires segment_ids of an integer dtype, got {ids.dtype.name}")
    if data.shape[: ids.ndim] != ids.shape:
        raise ValueError(f"{name}: data of shape {data.shape} does not begin with the shape of segment_ids, "
                         f"{ids.shape}")
    if num_segments is None:
        if isinstance(ids, Tracer):
            raise argument_errors.argument_value_error(f"ops.{name}", "segment_ids", ids.aval.long(),
                                              origin_of(ids.owner, ids), user_snippet())
        num_segments = int(ids.data.max()) + 1 if ids.size else 0
    num_segments = operator.index(num_segments)
    if num_segments < 0:
        raise ValueError("num_segments must be non-negative.")
    rows = data.shape[ids.ndim :]
    numbers = lax.ScatterDimensionNumbers(update_window_dims=tuple(range(ids.ndim, data.ndim)),
                                          inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    empty = lax.full((num_segments, *rows), start(data.dtype), data.dtype)
    ids = lax.reshape(ids, (*ids.shape, 1))
    return scatter(empty, ids, data, numbers, mode=mode, **promises)


def _make_public(name: str, scatter, start, combined: str):
    def public(data, segment_ids, num_segments: int | None = None, indices_are_sorted: bool = False,
               unique_indices: bool = False, bucket_size: int | None = None, mode=None) -> Array:
        promises = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
        return _reduce_segments(name, scatter, start, data, segment_ids, num_segments, mode, promises)

    public.__name__ = public.__qualname__ = name
    public.__doc__ = f"""{combined} of the rows of each segment. Same as: `jax.ops.{name}`.

    Args:
        data: array; its first axes are those of segment_ids.
        segment_ids: integers; those outside of [0, num_segments) are left out.
        num_segments: length of the result; the largest number plus one if not given, which cannot be traced.
        indices_are_sorted, unique_indices: promises about segment_ids that a backend may use.
        bucket_size: advice of JAX's; long sums are done in parts in any case.
        mode: what happens to numbers outside, as in `lax.scatter`.
    Returns: array of shape (num_segments, *rows) and data's dtype.
    Raises: ConcretizationTypeError for traced segment_ids without num_segments; ValueError for shapes that do
        not fit."""
    return public


def _zero(dtype):
    return dtype.type(0)


def _one(dtype):
    return dtype.type(1)


segment_sum = _make_public("segment_sum", lax.scatter_add, _zero, "Sum")
segment_prod = _make_public("segment_prod", lax.scatter_mul, _one, "Product")
segment_max = _make_public("segment_max", lax.scatter_max, lowest_value, "Largest")
segment_min = _make_public("segment_min", lax.scatter_min, highest_value, "Smallest")


document(sys.modules[__name__], __all__)
