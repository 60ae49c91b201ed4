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
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.primitive import registry
from jitcore.lax.bits import and_
from jitcore.lax.control_flow.scan import scan
from jitcore.lax.define import define
from jitcore.lax.elementary import exp
from jitcore.lax.elementwise import add, convert_element_type, eq, mul, ne, select_n, sub
from jitcore.lax.reduce import MONOIDS
from jitcore.lax.shape import transpose
from jitcore.transforms.batch_rules import rebind
from jitcore.transforms.derivative_rules import jvp_linear, transpose_unary
from jitcore.transforms.tangents import fill


def _cumulative_aval(name: str, accepts: str, x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
    if dtypes.kind_of(x.dtype) not in accepts:
        dtypes.reject_narrow(name, x.dtype)
        kind = "inexact" if accepts == "f" else "number"
        raise TypeError(
            f"{name} does not accept dtype {x.dtype.name}. Accepted dtypes are subtypes of {kind}.")
    if axis < 0:
        raise ValueError(f"{name} does not allow negative axes, got axis={axis}")
    if axis >= x.ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of shape {x.shape}")
    return x


def _accumulate(ufunc: np.ufunc, x, *, axis: int, reverse: bool):
    work = x.astype(np.float32) if dtypes.is_half(x.dtype) else x
    work = np.flip(work, axis) if reverse else work
    result = ufunc.accumulate(work, axis, dtype=work.dtype)
    result = np.flip(result, axis) if reverse else result
    return result.astype(x.dtype, copy=False)


# Scalar operations of the loop program.
_RUNNING_OPS = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min",
                "cumlogsumexp": "logaddexp"}


def _lower_running(op: str, builder, x, *, axis: int, reverse: bool):
    if not dtypes.is_half(x.dtype):
        return builder.running(op, x, axis, reverse)
    wide = builder.running(op, builder.convert(x, dtypes.float32), axis, reverse)
    return builder.convert(builder.store(wide), x.dtype)


def _hlo_running(op: str, b, x, *, axis: int, reverse: bool):
    """The fold of a window of all that is before, which XLA makes of a few levels of blocks. Of other
    operations pairs are combined, their prefixes found in the same way, and the elements between them made
    of these.
    Source: G. Blelloch, "Prefix sums and their applications" (1990)."""
    if dtypes.is_half(x.dtype):
        return b.convert(_hlo_running(op, b, b.convert(x, np.float32), axis=axis, reverse=reverse), x.dtype)
    if op in MONOIDS and not dtypes.is_complex(x.dtype):
        return _hlo_full_windows(op, b, x, axis=axis, reverse=reverse)

    def take(value, start, stride=1, stop=None):
        starts, limits, strides = [0] * x.ndim, list(value.shape), [1] * x.ndim
        starts[axis], limits[axis], strides[axis] = start, limits[axis] if stop is None else stop, stride
        return b.slice(value, starts, limits, strides)

    def join(first, second):
        """The elements of two arrays in turn."""
        extents = [part.shape[axis] for part in (first, second)]
        zero = b.constant(0, x.dtype)
        padded = []
        for offset, (part, extent) in enumerate(zip((first, second), extents)):
            config = [(0, 0, 0)] * x.ndim
            config[axis] = (offset, sum(extents) - offset - (2 * extent - 1), 1)
            padded.append(registry["pad"].hlo(b, part, zero, padding_config=config))
        return b.map("or" if x.dtype == np.bool_ else "add", *padded)

    def run(value):
        extent = value.shape[axis]
        if extent < 2:
            return value
        pairs = run(b.map(op, take(value, 0, 2, extent - extent % 2), take(value, 1, 2)))
        behind = take(pairs, 0, 1, (extent - 1) // 2)
        between = b.map(op, behind, take(value, 2, 2)) if extent > 2 else None
        first = take(value, 0, 1, 1)
        if between is None:
            return join(first, pairs)
        shape = list(x.shape)
        shape[axis] = between.shape[axis] + 1
        return join(b.op("concatenate", first, between, shape=shape, dimension=axis), pairs)

    turned = b.op("reverse", x, dimensions=(axis,)) if reverse else x
    found = run(turned)
    return b.op("reverse", found, dimensions=(axis,)) if reverse else found


def _hlo_full_windows(op: str, b, x, *, axis: int, reverse: bool):
    size, padding, rest = [1] * x.ndim, [(0, 0)] * x.ndim, max(x.shape[axis] - 1, 0)
    size[axis], padding[axis] = rest + 1, (0, rest) if reverse else (rest, 0)
    body = b.region([((), x.dtype)] * 2, lambda *pair: [b.map(op, *pair)], is_closed=True)
    start = b.constant(MONOIDS[op].identity(x.dtype))
    return b.ops("reduce_window", [x, start], [(x.shape, x.dtype)], [body], window_dimensions=tuple(size),
                 padding=b.join_pairs(padding))[0]


# -- derivatives ----------------------------------------------------------------------------------------
def _jvp_by_recurrence(weigh, times=mul):
    """The rule of a fold y[k] = combine(y[k - 1], x[k]), whose tangent is u[k] * dy[k - 1] + v[k] * dx[k].

    weigh: (y[k - 1], x[k], y[k]) -> u[k], v[k]; y[-1] is NaN. times: the product of tangents and weights."""

    def rule(primitive, primals, tangents, *, axis: int, reverse: bool):
        (x,), (t,) = primals, tangents
        ans = primitive.bind(x, axis=axis, reverse=reverse)
        edges = [(0, 0, 0)] * aval_of(x).ndim
        edges[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
        nan = np.full((), np.nan, aval_of(x).dtype)[()]
        before = registry["pad"].bind(ans, nan, padding_config=tuple(edges))
        keep, add_in = weigh(before, x, ans)
        return ans, _solve_recurrence(keep, times(t, add_in), axis, reverse, times)

    return rule


def _solve_recurrence(factors, terms, axis: int, reverse: bool, times):
    """h[k] = factors[k] * h[k - 1] + terms[k] along an axis, beginning with terms[0]."""
    aval = aval_of(terms)
    if dtypes.is_half(aval.dtype):
        wide = [convert_element_type(values, np.float32) for values in (factors, terms)]
        return convert_element_type(_solve_recurrence(*wide, axis, reverse, times), aval.dtype)
    others = [other for other in range(aval.ndim) if other != axis]
    order = (axis, *others)
    moved = [transpose(values, order) for values in (factors, terms)]
    zero = fill(ShapedArray(tuple(aval.shape[other] for other in others), aval.dtype), 0)

    def step(h, values):
        factor, term = values
        h = add(times(h, factor), term)
        return h, h

    _, result = scan(step, zero, moved, reverse=reverse)
    return transpose(result, tuple(map(order.index, range(aval.ndim))))


def _take(t, weight):
    """weight * t, and 0 of a t that is not taken, also where it is infinite."""
    return select_n(eq(weight, 0.0), mul(t, weight), 0.0)


def _weigh_product(before, x, ans):
    start = and_(ne(before, before), eq(x, ans))
    return select_n(start, x, 0.0), select_n(start, before, 1.0)


def _weigh_extremum(before, x, ans):
    """The tangent of the one that is the extremum; a half of each where both are."""
    earlier, own = eq(before, ans), eq(x, ans)
    zero, half, one = (np.asarray(value, aval_of(x).dtype)[()] for value in (0, 0.5, 1))
    return (select_n(earlier, zero, select_n(own, one, half)),
            select_n(own, zero, select_n(earlier, one, half)))


def _weigh_logsumexp(before, x, ans):
    """The parts of both in the sum; all of it where it is infinite."""
    start = and_(ne(before, before), eq(x, ans))
    earlier, own = (exp(select_n(eq(part, ans), sub(part, ans), 0.0)) for part in (before, x))
    return select_n(start, earlier, 0.0), own


def _cumulative(name: str, ufunc: np.ufunc, accepts: str, jvp, transpose=None):
    """The family: `ufunc` folded along an axis, every prefix kept.

    accepts: dtype kinds; jvp, transpose: rules."""

    def attach(function):
        op = _RUNNING_OPS[name]
        define(name, impl=functools.partial(_accumulate, ufunc), family="cumulative", accepts=accepts,
               jvp=jvp, lower=functools.partial(_lower_running, op), hlo=functools.partial(_hlo_running, op),
               aval=functools.partial(_cumulative_aval, name, accepts), transpose=transpose,
               batch=rebind(lambda size, *, axis, **_: {"axis": axis + 1}), stores_result=True,
               same_elements=ufunc in (np.maximum, np.minimum))(function)

        @functools.wraps(function)
        def public(operand, axis=0, reverse=False):
            return function.primitive.bind(operand, axis=operator.index(axis), reverse=bool(reverse))

        return public

    return attach


@_cumulative("cumsum", np.add, "iufc", jvp_linear(), transpose_unary(
    lambda ct, x, *, axis, reverse: cumsum(ct, axis, not reverse)))
def cumsum(operand, axis: int = 0, reverse: bool = False) -> Array:
    """Sums of the first 1, 2, ... elements along an axis; reverse: of the last ones.

    Raises: TypeError for bools; ValueError for an axis that operand lacks (it counts from the front)."""


@_cumulative("cumprod", np.multiply, "iufc", _jvp_by_recurrence(_weigh_product))
def cumprod(operand, axis: int = 0, reverse: bool = False) -> Array:
    """Products of the first 1, 2, ... elements along an axis."""


@_cumulative("cummax", np.maximum, "iufc", _jvp_by_recurrence(_weigh_extremum, _take))
def cummax(operand, axis: int = 0, reverse: bool = False) -> Array:
    """Largest of the first 1, 2, ... elements along an axis."""


@_cumulative("cummin", np.minimum, "iufc", _jvp_by_recurrence(_weigh_extremum, _take))
def cummin(operand, axis: int = 0, reverse: bool = False) -> Array:
    """Smallest of the first 1, 2, ... elements along an axis."""


@_cumulative("cumlogsumexp", np.logaddexp, "f", _jvp_by_recurrence(_weigh_logsumexp))
def cumlogsumexp(operand, axis: int = 0, reverse: bool = False) -> Array:
    """log(sum(exp)) of the first 1, 2, ... elements along an axis, without overflow. operand: real floats."""
