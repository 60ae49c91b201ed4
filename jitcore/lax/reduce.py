"""Reductions over axes: sums, products, extrema, logical operations, argmax and argmin, and generic `reduce`.

In: one operand and static axes. Out: the operand's dtype (or the index dtype) without those axes.
float16 and bfloat16 accumulate in float32; integers keep their dtype and wrap; NaN wins every extremum.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.jaxpr import Jaxpr, ShapedArray, aval_of
from jitcore.core.primitive import registry
from jitcore.core.trace import to_array, trace_to_jaxpr
from jitcore.lax import bits, elementwise
from jitcore.lax.control_flow.scan import scan
from jitcore.lax.define import cast, define, product
from jitcore.lax.shape import broadcast_in_dim, reshape, transpose
from jitcore.transforms.batch_rules import rebind, shift
from jitcore.transforms.derivative_rules import jvp_linear, jvp_zero, transpose_unary
from jitcore.transforms.tangents import fill
from jitcore.transforms.vmap import vmap
from jitcore.tree_util import tree_flatten, tree_leaves, treedef_is_leaf

__all__ = ["argmax", "argmin", "reduce", "reduce_and", "reduce_max", "reduce_min", "reduce_or",
           "reduce_precision", "reduce_prod", "reduce_sum", "reduce_xor"]


# -- monoids --------------------------------------------------------------------------------------------
def lowest_value(dtype):
    """The identity of max: -inf, the smallest integer, False."""
    dtypes.reject_narrow("max", np.dtype(dtype))
    if dtypes.is_inexact(dtype):
        return np.array(-np.inf, dtype)
    return np.array(False) if dtype == dtypes.bool_ else np.array(np.iinfo(dtype).min, dtype)


def highest_value(dtype):
    """The identity of min: inf, the largest integer, True."""
    dtypes.reject_narrow("min", np.dtype(dtype))
    if dtypes.is_inexact(dtype):
        return np.array(np.inf, dtype)
    return np.array(True) if dtype == dtypes.bool_ else np.array(np.iinfo(dtype).max, dtype)


def _all_bits(dtype):
    return np.invert(np.zeros((), dtype))


class Monoid(NamedTuple):
    """An associative operation with identity. `accumulates`: rounding errors add up, halves are widened."""

    ufunc: np.ufunc
    identity: Callable[[np.dtype], np.ndarray]
    combine: Callable
    accumulates: bool = False


# By the name of the combining primitive: `reduce_<key>` and `reduce_window_<key>` are made of these.
MONOIDS = {
    "add": Monoid(np.add, lambda dtype: np.zeros((), dtype), elementwise.add, accumulates=True),
    "mul": Monoid(np.multiply, lambda dtype: np.ones((), dtype), elementwise.mul, accumulates=True),
    "max": Monoid(np.maximum, lowest_value, elementwise.max_),
    "min": Monoid(np.minimum, highest_value, elementwise.min_),
    "and": Monoid(np.bitwise_and, _all_bits, bits.and_),
    "or": Monoid(np.bitwise_or, lambda dtype: np.zeros((), dtype), bits.or_),
    "xor": Monoid(np.bitwise_xor, lambda dtype: np.zeros((), dtype), bits.xor),
}


def reduce_ndarray(monoid: Monoid, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The reduction of an ndarray in its own dtype; an empty one gives the identity."""
    if monoid.accumulates and dtypes.is_half(x.dtype):
        return monoid.ufunc.reduce(x.astype(np.float32), axes).astype(x.dtype)
    return monoid.ufunc.reduce(x, axes, dtype=x.dtype, initial=monoid.identity(x.dtype)[()])


# -- shape rule -----------------------------------------------------------------------------------------
def check_axes(x: ShapedArray, axes) -> None:
    """Raises: ValueError for an axis that is repeated, negative or too large."""
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of reduction: {axes}")
    if not all(0 <= axis < x.ndim for axis in axes):
        raise ValueError(f"reduction axes {axes} contains out-of-bounds indices for {x.long()}.")


def _drop_axes(shape, axes) -> tuple:
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def _reduction_aval(name: str, accepts: str, x: ShapedArray, *, axes) -> ShapedArray:
    kind = dtypes.kind_of(x.dtype)
    if kind not in accepts:
        dtypes.reject_narrow(name, x.dtype)
        if accepts == "biu":
            raise TypeError(f"logical reduction requires operand dtype bool or int, got {x.dtype.name}.")
        raise TypeError(
            f"{name} does not accept dtype {x.dtype.name}. Accepted dtypes are subtypes of number.")
    check_axes(x, axes)
    return x.update(shape=_drop_axes(x.shape, axes))


_batch_axes = rebind(lambda size, *, axes, **_: {"axes": shift(axes)})


def _reduction(name: str, combine: str, accepts: str, jvp=None, transpose=None):
    """The family: `name` folds with the monoid `combine`; accepts: dtype kinds; jvp, transpose: rules."""
    monoid = MONOIDS[combine]

    def lower(builder, x, *, axes):
        return builder.reduce(combine, x, axes)

    def attach(function):
        define(name, impl=lambda x, *, axes: reduce_ndarray(monoid, x, axes), monoid=combine,
               lower=lower, hlo=lower,
               aval=functools.partial(_reduction_aval, name, accepts), jvp=jvp, transpose=transpose,
               batch=_batch_axes, family="reduction", accepts=accepts, stores_result=True,
               zeros="kept" if transpose else None, same_elements=combine in ("max", "min"))(function)

        @functools.wraps(function)
        def public(operand, axes):
            return function.primitive.bind(operand, axes=tuple(map(operator.index, axes)))

        return public

    return attach


def _put_back(x, like: ShapedArray, axes):
    """What a reduction of `like` gave, at each of the positions that it was made of."""
    kept = tuple(axis for axis in range(like.ndim) if axis not in axes)
    return broadcast_in_dim(x, like.shape, kept)


def _jvp_product(primitive, primals, tangents, *, axes):
    """Each tangent times the product of all other factors, which is no quotient: factors may be zero."""
    (x,), (t,) = primals, tangents
    others = _multiply_others(x, axes)
    return primitive.bind(x, axes=axes), reduce_sum(elementwise.mul(t, others), axes)


def _multiply_others(x, axes):
    """At each position the product over the axes of all elements but the one there."""
    if len(axes) == 1:
        return elementwise.mul(_multiply_before(x, *axes, False), _multiply_before(x, *axes, True))
    shape = aval_of(x).shape
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    order = (*axes, *kept)
    folded = (math.prod(shape[axis] for axis in axes), *(shape[axis] for axis in kept))
    others = _multiply_others(reshape(transpose(x, order), folded), (0,))
    unfolded = reshape(others, tuple(shape[axis] for axis in order))
    return transpose(unfolded, tuple(map(order.index, range(len(shape)))))


def _multiply_before(x, axis: int, reverse: bool):
    """The products of the elements before each along an axis; of those behind it for reverse."""
    aval = aval_of(x)
    edges = [(0, 0, 0)] * aval.ndim
    edges[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    shifted = registry["pad"].bind(x, np.ones((), aval.dtype)[()], padding_config=tuple(edges))
    return registry["cumprod"].bind(shifted, axis=axis, reverse=reverse)


def _jvp_extremum(primitive, primals, tangents, *, axes):
    """The mean of the tangents of the elements that are equal to the extremum; NaN of all where it is NaN."""
    (x,), (t,) = primals, tangents
    ans = primitive.bind(x, axes=axes)
    extreme = _put_back(ans, aval_of(x), axes)
    found = bits.or_(elementwise.eq(x, extreme), elementwise.ne(extreme, extreme))
    count = reduce_sum(elementwise.convert_element_type(found, aval_of(x).dtype), axes)
    count = elementwise.select_n(elementwise.ne(ans, ans), count, ans)
    return ans, elementwise.div(reduce_sum(elementwise.select_n(found, fill(aval_of(x), 0), t), axes), count)


@_reduction("reduce_sum", "add", "iufc", jvp=jvp_linear(),
            transpose=transpose_unary(lambda ct, x, *, axes: _put_back(ct, x.aval, axes)))
def reduce_sum(operand, axes: Sequence[int]) -> Array:
    """Sum over these axes. Raises: TypeError for bools; ValueError for axes that operand lacks."""


@_reduction("reduce_prod", "mul", "iufc", jvp=_jvp_product)
def reduce_prod(operand, axes: Sequence[int]) -> Array:
    """Product over these axes."""


@_reduction("reduce_max", "max", "biufc", jvp=_jvp_extremum)
def reduce_max(operand, axes: Sequence[int]) -> Array:
    """Largest element over these axes; -inf, the smallest integer or False where there is none."""


@_reduction("reduce_min", "min", "biufc", jvp=_jvp_extremum)
def reduce_min(operand, axes: Sequence[int]) -> Array:
    """Smallest element over these axes; inf, the largest integer or True where there is none."""


@_reduction("reduce_and", "and", "biu")
def reduce_and(operand, axes: Sequence[int]) -> Array:
    """Bitwise (logical for bools) and over these axes."""


@_reduction("reduce_or", "or", "biu")
def reduce_or(operand, axes: Sequence[int]) -> Array:
    """Bitwise (logical for bools) or over these axes."""


@_reduction("reduce_xor", "xor", "biu")
def reduce_xor(operand, axes: Sequence[int]) -> Array:
    """Bitwise exclusive or over these axes."""


# -- the generic form -----------------------------------------------------------------------------------
REDUCTIONS = {"add": reduce_sum, "mul": reduce_prod, "max": reduce_max, "min": reduce_min, "and": reduce_and,
              "or": reduce_or, "xor": reduce_xor}


def find_monoid(computation: Callable, dtype) -> tuple[str | None, Jaxpr]:
    """The key in MONOIDS of a two-argument function on scalars, found by tracing it, and what was traced;
    None for a function that is more than one such operation."""
    scalar = ShapedArray((), np.dtype(dtype))
    jaxpr, _ = trace_to_jaxpr(lambda x, y: [computation(x, y)], [scalar, scalar])
    if len(jaxpr.eqns) == 1:
        (eqn,) = jaxpr.eqns
        takes_all = set(eqn.invars) == set(jaxpr.invars) and jaxpr.outvars == eqn.outvars
        if takes_all and eqn.primitive.name in MONOIDS:
            return eqn.primitive.name, jaxpr
    return None, jaxpr


def combine_with_initial(key: str, result, init_value, dtype) -> Array:
    """result combined with init_value, without an equation where that is the known identity."""
    aval = aval_of(init_value)
    if not isinstance(init_value, Array) and np.asarray(init_value) == MONOIDS[key].identity(dtype):
        return result
    return MONOIDS[key].combine(result, cast(init_value, aval, dtype, weak=False))


def reduce(operands, init_values, computation: Callable, dimensions: Sequence[int]):
    """Folds arrays over `dimensions` with a function of two scalars (or of two pytrees of them), beginning
    with init_values.

    Args:
        operands: an array, or a pytree of arrays of one shape.
        init_values: a scalar of its dtype for each.
        computation: (value so far, element) -> value; associative.
    Cost: one pass for add, mul, max, min, and, or, xor in any spelling; else a loop over the dimensions."""
    leaves, tree = tree_flatten(operands)
    if treedef_is_leaf(tree):
        dtype = aval_of(operands).dtype
        key, _ = find_monoid(computation, dtype)
        if key is not None:
            return combine_with_initial(key, REDUCTIONS[key](operands, dimensions), init_values, dtype)
    initial, initial_tree = tree_flatten(init_values)
    if initial_tree != tree:
        raise TypeError(f"lax.reduce got operands {tree} and init_values {initial_tree} of other structure.")
    if any(aval_of(leaf).shape != aval_of(leaves[0]).shape for leaf in leaves):
        raise TypeError("lax.reduce got operands of several shapes: "
                        f"{', '.join(aval_of(leaf).long() for leaf in leaves)}.")
    if not dimensions:
        return tree.unflatten(map(to_array, leaves))
    return tree.unflatten(_fold(tree, leaves, initial, computation, tuple(map(operator.index, dimensions))))


def _fold(tree, leaves: list, initial: list, computation: Callable, axes: tuple[int, ...]) -> list:
    """The fold as a loop over the elements along the axes, for all others at once."""
    check_axes(aval_of(leaves[0]), axes)
    shape = aval_of(leaves[0]).shape
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    sides = [[shape[axis] for axis in part] for part in (axes, kept)]
    flat = (product(sides[0]), product(sides[1]))
    rows = [reshape(transpose(leaf, (*axes, *kept)), flat) for leaf in leaves]
    start = [_spread(value, aval_of(leaf).dtype, flat[1]) for value, leaf in zip(initial, leaves)]

    @vmap
    def combine(so_far, elements):
        return tree_leaves(computation(tree.unflatten(so_far), tree.unflatten(elements)))

    def step(so_far, elements):
        return combine(so_far, elements), None

    return [reshape(out, tuple(sides[1])) for out in scan(step, start, rows)[0]]


def _spread(value, dtype, count):
    """A scalar in this dtype, so many times."""
    return broadcast_in_dim(cast(value, aval_of(value), dtype, weak=False), (count,), ())


# -- positions of extrema -------------------------------------------------------------------------------
def _arg_extremum_aval(x: ShapedArray, *, axes, index_dtype) -> ShapedArray:
    (axis,) = axes
    if not 0 <= axis < x.ndim:
        raise ValueError(f"Invalid axis {axis} for operand shape {x.shape}")
    if not dtypes.is_integer(index_dtype):
        raise TypeError(f"index_dtype must be an integer type, but got {np.dtype(index_dtype).name}")
    dtypes.reject_narrow("argmax or argmin", x.dtype)
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"argmax and argmin do not accept dtype {x.dtype.name}. "
                        "Accepted dtypes are subtypes of integer, floating, bool.")
    if x.shape[axis] == 0:
        raise ValueError("argmin and argmax require non-empty reduced dimension. "
                         f"operand.shape={x.shape} axis={axis}")
    return ShapedArray(_drop_axes(x.shape, axes), index_dtype)


def _arg_extremum(find, x, *, axes, index_dtype):
    # ml_dtypes' own loops do not let NaN win
    x = x.astype(np.float32) if dtypes.is_half(x.dtype) else x
    return find(x, axes[0]).astype(index_dtype)


def _lower_arg_extremum(op: str, builder, x, *, axes, index_dtype):
    x = builder.convert(x, dtypes.float32) if dtypes.is_half(x.dtype) else x
    return builder.arg_reduce(op, x, axes[0], index_dtype)


def choose_extreme(b, extremum: str):
    """A fold of pairs (element, place) in StableHLO. NaN wins; of equal elements the first."""
    direction = "GT" if extremum == "max" else "LT"

    def combine(best, place, value, other):
        is_nan, was_nan = (b.compare("NE", v, v) for v in (value, best))
        ties = b.map("or", b.compare("EQ", value, best), b.map("and", is_nan, was_nan))
        wins = b.map("or", b.compare(direction, value, best), b.map("and", is_nan, b.map("not", was_nan)))
        wins = b.map("or", wins, b.map("and", ties, b.compare("LT", other, place)))
        return [b.choose(wins, value, best), b.choose(wins, other, place)]

    return combine


def _hlo_arg_extremum(extremum: str, b, x, *, axes, index_dtype):
    shape, kinds = _drop_axes(x.shape, axes), [((), x.dtype), ((), index_dtype)]
    starts = [b.constant(MONOIDS[extremum].identity(x.dtype)), b.constant(0, index_dtype)]
    operands = [x, b.iota(x.shape, index_dtype, axes[0]), *starts]
    body = b.region([*kinds, *kinds], choose_extreme(b, extremum), is_closed=True)
    return b.ops("reduce", operands, [(shape, kind) for _, kind in kinds], [body], dimensions=tuple(axes))[1]


def _bind_arg_extremum(primitive, operand, axis: int, index_dtype) -> Array:
    axis, index_dtype = operator.index(axis), dtypes.canonicalize(index_dtype)
    if not _holds_positions(aval_of(operand), axis, index_dtype):  # they are found before they are cut
        found = primitive.bind(operand, axes=(axis,), index_dtype=dtypes.int64)
        return elementwise.convert_element_type(found, index_dtype)
    return primitive.bind(operand, axes=(axis,), index_dtype=index_dtype)


def _holds_positions(x: ShapedArray, axis: int, index_dtype) -> bool:
    if not 0 <= axis < x.ndim or not dtypes.is_integer(index_dtype) or not isinstance(x.shape[axis], int):
        return True
    return x.shape[axis] - 1 <= np.iinfo(index_dtype).max


@define("argmax", impl=functools.partial(_arg_extremum, np.argmax), aval=_arg_extremum_aval, jvp=jvp_zero,
        lower=functools.partial(_lower_arg_extremum, "argmax"), batch=_batch_axes,
        hlo=functools.partial(_hlo_arg_extremum, "max"), stores_result=True)
def argmax(operand, axis: int, index_dtype) -> Array:
    """Index of the first largest element (or NaN) along an axis. index_dtype: integer dtype of it."""
    return _bind_arg_extremum(argmax.primitive, operand, axis, index_dtype)


@define("argmin", impl=functools.partial(_arg_extremum, np.argmin), aval=_arg_extremum_aval, jvp=jvp_zero,
        lower=functools.partial(_lower_arg_extremum, "argmin"), batch=_batch_axes,
        hlo=functools.partial(_hlo_arg_extremum, "min"), stores_result=True)
def argmin(operand, axis: int, index_dtype) -> Array:
    """Index of the first smallest element (or NaN) along an axis. index_dtype: integer dtype of it."""
    return _bind_arg_extremum(argmin.primitive, operand, axis, index_dtype)


# -- rounding to a smaller format -----------------------------------------------------------------------
def _reduce_precision(x, *, exponent_bits: int, mantissa_bits: int):
    wide = x.astype(np.float64)
    fraction, exponent = np.frexp(wide)
    scale = np.ldexp(1.0, mantissa_bits + 1)
    rounded = np.ldexp(np.rint(fraction * scale) / scale, exponent)
    bias = 2 ** (exponent_bits - 1) - 1
    largest = np.ldexp(2.0 - np.ldexp(1.0, -mantissa_bits), bias)
    rounded = np.where(np.abs(rounded) > largest, np.copysign(np.inf, wide), rounded)
    # what is below the smallest normal number becomes zero, as on hardware that flushes
    rounded = np.where(np.abs(rounded) < np.ldexp(1.0, 1 - bias), np.copysign(0.0, wide), rounded)
    return np.where(np.isfinite(wide), rounded, wide).astype(x.dtype)


def _hlo_reduce_precision(b, x, *, exponent_bits: int, mantissa_bits: int):
    return b.op("reduce_precision", x, exponent_bits=f"{exponent_bits} : i32",
                mantissa_bits=f"{mantissa_bits} : i32")


def _reduce_precision_aval(x: ShapedArray, *, exponent_bits: int, mantissa_bits: int) -> ShapedArray:
    if not dtypes.is_floating(x.dtype):
        raise TypeError(f"reduce_precision does not accept dtype {x.dtype.name}. "
                        "Accepted dtypes are subtypes of floating.")
    return x


@define("reduce_precision", impl=_reduce_precision, aval=_reduce_precision_aval, jvp=jvp_linear(),
        transpose=transpose_unary(lambda ct, x, **format: reduce_precision(ct, **format)),
        batch=rebind(), hlo=_hlo_reduce_precision)
def reduce_precision(operand, exponent_bits: int, mantissa_bits: int) -> Array:
    """operand rounded to a format with that many bits, in its own dtype; the format's subnormals become 0."""
    return reduce_precision.primitive.bind(operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)
