"""Cumulative reductions along one axis: sum, product, extrema, logsumexp.

In: one operand, a static axis, a direction. Out: the operand's shape and dtype. float16 and bfloat16
accumulate in float32; NaN, once met, stays.
"""

from __future__ import annotations

import functools
import operator

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.aval import ShapedArray
from jitcore.lax.define import define
from jitcore.lax.reduce import is_half
from jitcore.transforms.batch_rules import rebind


def _cumulative_aval(name: str, accepts: str, x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
    if dtypes.kind_of(x.dtype) not in accepts:
        kind = "inexact" if accepts == "f" else "number"
        raise TypeError(
            f"{name} does not accept dtype {x.dtype.name}. Accepted dtypes are subtypes of {kind}."
        )
    if axis < 0:
        raise ValueError(f"{name} does not allow negative axes, got axis={axis}")
    if axis >= x.ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of shape {x.shape}")
    return x


def _accumulate(ufunc: np.ufunc, x, *, axis: int, reverse: bool):
    work = x.astype(np.float32) if is_half(x.dtype) else x
    work = np.flip(work, axis) if reverse else work
    result = ufunc.accumulate(work, axis, dtype=work.dtype)
    result = np.flip(result, axis) if reverse else result
    return result.astype(x.dtype, copy=False)


# Scalar operations of the loop program.
_RUNNING_OPS = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min",
                "cumlogsumexp": "logaddexp"}  # fmt: skip


def _lower_running(op: str, builder, x, *, axis: int, reverse: bool):
    if not is_half(x.dtype):
        return builder.running(op, x, axis, reverse)
    wide = builder.running(op, builder.convert(x, dtypes.float32), axis, reverse)
    return builder.convert(builder.store(wide), x.dtype)


def _cumulative(name: str, ufunc: np.ufunc, accepts: str):
    """The family: `ufunc` folded along an axis, every prefix kept. accepts: dtype kinds."""

    def attach(function):
        op = _RUNNING_OPS[name]
        define(name, impl=functools.partial(_accumulate, ufunc), family="cumulative", accepts=accepts,
               lower=functools.partial(_lower_running, op),
               aval=functools.partial(_cumulative_aval, name, accepts),
               batch=rebind(lambda size, *, axis, **_: {"axis": axis + 1}))(function)  # fmt: skip

        @functools.wraps(function)
        def public(operand, axis=0, reverse=False):
            return function.primitive.bind(operand, axis=operator.index(axis), reverse=bool(reverse))

        return public

    return attach


@_cumulative("cumsum", np.add, "iufc")
def cumsum(operand, axis: int = 0, reverse: bool = False) -> Array:
    """Sums of the first 1, 2, ... elements along an axis; reverse: of the last ones.

    Raises: TypeError for bools; ValueError for an axis that operand lacks (it counts from the front)."""


@_cumulative("cumprod", np.multiply, "iufc")
def cumprod(operand, axis: int = 0, reverse: bool = False) -> Array:
    """Products of the first 1, 2, ... elements along an axis."""


@_cumulative("cummax", np.maximum, "iufc")
def cummax(operand, axis: int = 0, reverse: bool = False) -> Array:
    """Largest of the first 1, 2, ... elements along an axis."""


@_cumulative("cummin", np.minimum, "iufc")
def cummin(operand, axis: int = 0, reverse: bool = False) -> Array:
    """Smallest of the first 1, 2, ... elements along an axis."""


@_cumulative("cumlogsumexp", np.logaddexp, "f")
def cumlogsumexp(operand, axis: int = 0, reverse: bool = False) -> Array:
    """log(sum(exp)) of the first 1, 2, ... elements along an axis, without overflow. operand: real floats."""
