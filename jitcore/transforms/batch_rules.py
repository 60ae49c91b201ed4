"""What batching rules are made of: the elementwise one, and rules that apply a primitive with other params.

In: operands with the batch axis first, or without one. Out: functions to put on `Primitive.batch`; the form
of a rule is explained in `batching.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from jitcore.core.jaxpr import aval_of
from jitcore.core.primitive import registry
from jitcore.transforms.batching import batch_values


def shift(dims: Iterable[int]) -> tuple[int, ...]:
    """Positions of axes behind a batch axis."""
    return tuple(dim + 1 for dim in dims)


def rebind(change: Callable[..., dict] | None = None) -> Callable:
    """The rule of a primitive that takes one more leading axis: all operands get it, some params change.

    Args:
        change: `change(size, **params)` gives the parameters that differ; None for none."""

    def rule(primitive, axis, values, batched, /, **params):
        if change is not None:
            params |= change(axis.size, **params)
        return primitive.bind(*batch_values(axis, values, batched), **params)

    return rule


def batch_elementwise(primitive, axis, values, batched, /, **params):
    """The rule of elementwise primitives, whose operands are scalars or have one shape."""
    shapes = [aval_of(value).shape[flag:] for value, flag in zip(values, batched)]
    element = max(shapes, key=len)
    shape = (axis.size, *element)
    aligned = [_align(value, flag, own, shape) for value, flag, own in zip(values, batched, shapes)]
    return primitive.bind(*aligned, **params)


def _align(value, has_axis: bool, own: tuple, shape: tuple):
    """An operand in the shape of the batch; a scalar without batch axis stays one."""
    if not own and not has_axis:
        return value
    if has_axis and len(own) == len(shape) - 1:
        return value
    dims = tuple(range(1 - has_axis, len(own) + 1))
    return registry["broadcast_in_dim"].bind(value, shape=shape, broadcast_dimensions=dims)


def make_empty_batch(primitive, values, batched, /, **params):
    """The result of a primitive with one output for a batch of no elements."""
    avals = [aval_of(value) for value in values]
    elements = [aval.update(shape=aval.shape[1:]) if flag else aval for aval, flag in zip(avals, batched)]
    out = primitive.aval(*elements, **params)
    zero = np.zeros((), out.dtype)[()]
    return registry["broadcast_in_dim"].bind(zero, shape=(0, *out.shape), broadcast_dimensions=())
