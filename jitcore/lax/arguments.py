"""Static arguments of the lax functions: shapes, axes, sizes, in canonical form.

In: what a caller wrote: ints, NumPy integers, symbolic dimensions, sequences of them. Out: tuples of ints and
symbolic dimensions, or an error that says what was wrong.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

import numpy as np

from jitcore import errors
from jitcore.core.symbolic import DimExpr
from jitcore.core.trace import Tracer, origin_of, user_snippet


def canonicalize_shape(shape) -> tuple:
    """A shape as a tuple of ints and symbolic dimensions.

    Raises: ConcretizationTypeError for a traced extent; TypeError for what is not an integer."""
    if isinstance(shape, (int, np.integer)) or isinstance(shape, DimExpr):
        shape = (shape,)
    try:
        return tuple(extent if isinstance(extent, DimExpr) else operator.index(extent) for extent in shape)
    except errors.TracerIntegerConversionError:
        tracer = next(extent for extent in shape if isinstance(extent, Tracer))
        raise errors.shape_value_error(f"({', '.join(map(str, shape))})", origin_of(tracer.trace, tracer),
                                       user_snippet()) from None
    except TypeError:
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {shape}."
        ) from None


def canonicalize_axis(axis, ndim: int) -> int:
    """An axis counted from the front. Raises: AxisError, a ValueError, when there is no such axis."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis + ndim if axis < 0 else axis


def to_ints(values) -> tuple[int, ...]:
    return tuple(map(operator.index, values))


def check_nonnegative(name: str, what: str, shape: Sequence) -> None:
    """Raises: TypeError when an entry is negative."""
    if any(extent < 0 for extent in shape):
        raise TypeError(f"{name} {what} must have every element be nonnegative, got {tuple(shape)}.")


def product(extents) -> int:
    """Number of elements of a shape; its extents may be symbolic."""
    return functools.reduce(operator.mul, extents, 1)


def to_extent(value):
    """An int or a symbolic dimension. Raises: TypeError for anything else."""
    return value if isinstance(value, DimExpr) else operator.index(value)
