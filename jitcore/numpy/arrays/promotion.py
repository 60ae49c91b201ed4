"""Operands of NumPy-style functions: what is accepted, which dtype they meet in, how shapes broadcast.

In: arrays, tracers, ndarrays and Python scalars as the user passes them. Out: operands of one dtype for
`lax`, in which scalars stay scalars (an elementwise primitive takes them as they are) and arrays have one
shape. Everything in `jitcore.numpy` goes through here before it reaches a primitive.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array, ConcreteArray
from jitcore.config import config
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.primitive import Primitive
from jitcore.core.source import is_called_by_user, warn_user
from jitcore.core.symbolic import DimExpr
from jitcore.core.trace import (NOT_HERE, Tracer, check_values, context, eval_trace, origin_of, own_ndarray,
                                to_numpy, user_snippet)
from jitcore.errors import arguments
from jitcore.lax.define import canonicalize_axis, cast
from jitcore.lax.elementwise import convert_dtype as convert_ndarray

_SCALAR_TYPES = {bool: "b", int: "i", float: "f", complex: "c"}


# -- what is accepted ---------------------------------------------------------------------------------------
def operand_type(name: str, position: int, x) -> tuple[np.dtype, bool]:
    """(dtype, weak) of an operand. Raises: TypeError for what is neither an array nor a number."""
    if x.__class__ in _SCALAR_TYPES:
        return dtypes.of_python_scalar(x), x.__class__ is not bool
    if isinstance(x, Array):
        return x.dtype, x.weak_type
    if isinstance(x, (np.ndarray, np.generic)):
        dtypes.reject_mask(x)
        return dtypes.canonicalize(x.dtype), False
    if isinstance(x, dtypes.PYTHON_SCALARS):
        return dtypes.of_python_scalar(x), not isinstance(x, bool)
    if isinstance(x, DimExpr):
        return dtypes.default_dtype("i"), True
    raise TypeError(f"{name} requires ndarray or scalar arguments, got {type(x)} at position {position}.")


def _as_array(x):
    """What an object of the user's says by `__jax_array__` that it is; others as they are."""
    is_known = isinstance(x, (np.ndarray, np.generic, *dtypes.PYTHON_SCALARS))
    return x if is_known or not hasattr(x, "__jax_array__") else x.__jax_array__()


def is_operand(x) -> bool:
    """Whether arithmetic with an Array takes x: an array or a number, no list."""
    return isinstance(x, (Array, np.ndarray, np.generic, bool, int, float, complex)) or isinstance(x, DimExpr)


def ensure_array(name: str, x, position: int = 0) -> Array:
    """x as an Array: ndarrays are copied, as their owner may write to them; scalars keep their weak type.

    Raises: TypeError for lists and other objects (`jnp.array` takes those)."""
    if isinstance(x, Array):
        return x
    x = _as_array(x)
    if isinstance(x, Array):
        return x
    dtype, weak = operand_type(name, position, x)
    if isinstance(x, DimExpr):
        return lax.dimension_size(x)
    if not isinstance(x, (np.ndarray, np.generic)):
        return ConcreteArray(dtypes.scalar_to_numpy(x), weak)
    return own_ndarray(np.asarray(x))


def borrow_array(name: str, x, position: int = 0) -> Array:
    """`ensure_array` without a copy, where nothing is recorded: for functions whose result is made anew."""
    if x.__class__ is np.ndarray and context.trace is eval_trace:
        dtype, _ = operand_type(name, position, x)
        return ConcreteArray(np.require(x, dtype, ["C_CONTIGUOUS", "ALIGNED"]).reshape(x.shape))
    return ensure_array(name, x, position)


def ensure_arrays(name: str, *xs) -> list[Array]:
    """`ensure_array` of each, for the error text in order of position."""
    return [ensure_array(name, x, position) for position, x in enumerate(xs)]


# -- dtypes -------------------------------------------------------------------------------------------------
def to_numeric(dtype) -> np.dtype:
    """bool becomes int32; others stay."""
    return dtypes.int32 if dtype == dtypes.bool_ else dtype


def promote(name: str, *args, to: Callable | None = None) -> list:
    """The operands in the dtype where they meet.

    Args:
        to: maps that dtype to the one wanted (`dtypes.inexact_dtype`, `to_numeric`).
    Returns:
        arrays of one dtype; Python scalars as such (all weak) or as NumPy scalars of that dtype."""
    return promote_typed(name, args, to)[0]


def promote_typed(name: str, args: Sequence, to: Callable | None = None) -> tuple[list, np.dtype, bool]:
    """`promote`, with the common dtype and whether it is weak."""
    try:
        types = [operand_type(name, position, arg) for position, arg in enumerate(args)]
    except TypeError:
        if not any(hasattr(arg, "__jax_array__") for arg in args):
            raise
        return promote_typed(name, [_as_array(arg) for arg in args], to)
    if any(dtypes.is_key(dtype) for dtype, _ in types):
        return _accept_keys(name, args, types)
    if config.numpy_dtype_promotion == "strict" and len(types) > 1 and is_called_by_user():
        dtypes.check_strictly(types)
    dtype, weak = dtypes.join_types(*types)
    if to is not None:
        target = to(dtype)
        weak, dtype = weak and target != dtypes.bool_, target
    return [convert_operand(arg, own, dtype, weak) for arg, own in zip(args, types)], dtype, weak


def _accept_keys(name: str, args: Sequence, types: Sequence) -> tuple[list, dtypes.KeyDtype, bool]:
    """Keys of one implementation as they are. Raises: TypeError for them among others."""
    if len(set(types)) > 1:
        found = ", ".join(dtypes.name_of(dtype) for dtype, _ in types)
        raise TypeError(f"{name} does not accept dtypes {found}.")
    return list(args), *types[0]


def convert_operand(arg, own: tuple[np.dtype, bool], dtype, weak: bool):
    """arg in this dtype. Equal dtypes need no conversion, whatever their weak types: the result's is
    joint."""
    if isinstance(arg, DimExpr):
        arg = lax.dimension_size(arg)
    if own[0] == dtype and (own[1] == weak or isinstance(arg, Array)):
        return arg
    return cast(arg, aval_of(arg), dtype, weak)


def convert_dtype(x, dtype, weak: bool = False):
    """x as an Array of this dtype; the same object where nothing changes."""
    if x.dtype == dtype and x.weak_type == weak:
        return x
    if x.__class__ is ConcreteArray and context.trace is eval_trace:
        data = x.data if x.dtype == dtype else convert_ndarray(x.data, dtype)
        return ConcreteArray(np.asarray(data), weak)
    return lax.convert_element_type.primitive.bind(x, new_dtype=dtypes.canonicalize(dtype), weak_type=weak)


def promote_arrays(name: str, *args, to: Callable | None = None, borrow: bool = False) -> list[Array]:
    """Like `promote`, but every operand is an Array of the common dtype (for structured primitives).

    Args:
        borrow: as `borrow_array`."""
    take = borrow_array if borrow else ensure_array
    operands, dtype, weak = promote_typed(name, args, to)
    return [convert_dtype(take(name, x), dtype, weak) for x in operands]


# -- shapes -------------------------------------------------------------------------------------------------
def shape_of(x) -> tuple:
    return x.shape if isinstance(x, (Array, np.ndarray, np.generic)) else ()


def broadcast_shapes(*shapes: tuple) -> tuple:
    """The shape these broadcast to. Raises: ValueError where two extents differ and neither is 1."""
    first = max(shapes, key=len, default=())
    if all(shape == first or not shape for shape in shapes):
        return first
    rank = len(first)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(_join_extents(extents, shapes) for extents in zip(*padded))


def _join_extents(extents: tuple, shapes):
    joint = 1
    for extent in extents:
        if isinstance(extent, int) and extent == 1:
            continue
        if isinstance(joint, int) and joint == 1:
            joint = extent
        elif joint != extent:
            raise arguments.broadcast_error(shapes, user_snippet())
    return joint


def join_shapes(*shapes: tuple) -> tuple:
    """The shape that operands broadcast to; `config.numpy_rank_promotion` says whether ranks may differ."""
    is_mixed = config.numpy_rank_promotion != "allow" and len({len(shape) for shape in shapes if shape}) > 1
    if is_mixed and is_called_by_user():
        found = " ".join(map(str, filter(None, shapes)))
        if config.numpy_rank_promotion == "raise":
            raise ValueError(f"Operands could not be broadcast together on shapes {found} and with the "
                             "config option numpy_rank_promotion='raise'.")
        warn_user(f"Following NumPy automatic rank promotion on shapes {found}.")
    return broadcast_shapes(*shapes)


def broadcast_operands(*operands) -> list:
    """Operands whose arrays have one shape; scalars stay scalars."""
    shapes = [shape_of(x) for x in operands]
    shape = join_shapes(*shapes)
    return [x if own in (shape, ()) else broadcast_array(x, shape) for x, own in zip(operands, shapes)]


def broadcast_array(x, shape: tuple):
    """x broadcast to a shape of at least its rank, by one equation."""
    own = shape_of(x)
    if own == shape:
        return x
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - len(own), len(shape))))


# -- application --------------------------------------------------------------------------------------------
def apply_elementwise(primitive: Primitive, operands: Sequence):
    """An elementwise primitive on operands of one dtype whose shapes broadcast.

    Outside a trace NumPy broadcasts, without intermediate arrays; inside one the arrays get one shape
    first."""
    if context.trace is eval_trace and not any(isinstance(x, NOT_HERE) for x in operands):
        return _apply_now(primitive, operands)
    return primitive.bind(*broadcast_operands(*operands))


def _apply_now(primitive: Primitive, operands: Sequence) -> ConcreteArray:
    values = [to_numpy(x) for x in operands]
    weak = all(is_weak(x) for x in operands)
    dtype, weak = _elementwise_result(primitive, values[0].dtype, len(values), weak)
    if len(values) > 1:
        join_shapes(*[value.shape for value in values])
    with np.errstate(all="ignore"):
        out = np.asarray(primitive.impl(*values))
    if config.debug_nans or config.debug_infs:
        check_values(primitive.name, [out])
    if out.dtype != dtype:
        out = out.astype(dtype)
    if any(x.__class__ is np.ndarray and np.may_share_memory(out, x) for x in operands):
        out = out.copy()
    return ConcreteArray(out if out.flags.c_contiguous else np.ascontiguousarray(out), weak)


def is_weak(x) -> bool:
    if isinstance(x, Array):
        return x.weak_type
    return isinstance(x, (int, float, complex)) and not isinstance(x, (bool, np.generic))


@functools.lru_cache(maxsize=4096)
def _elementwise_result(primitive: Primitive, dtype, arity: int, weak: bool) -> tuple[np.dtype, bool]:
    aval = primitive.aval(*[ShapedArray((), dtype, weak)] * arity)
    return aval.dtype, aval.weak_type


def apply_select(condition, on_true, on_false):
    """`on_true` where the condition (of bools) holds, else `on_false`; all three broadcast, one
    `select_n`."""
    operands = condition, on_true, on_false
    if context.trace is eval_trace and not any(isinstance(x, NOT_HERE) for x in operands):
        which, yes, no = map(to_numpy, operands)
        if yes.dtype == no.dtype:  # else `select_n` tells what is wrong
            shape = broadcast_shapes(which.shape, yes.shape, no.shape)
            out = np.ascontiguousarray(np.where(which, yes, no)).reshape(shape)
            return ConcreteArray(out, is_weak(on_true) and is_weak(on_false))
    shapes = [shape_of(x) for x in operands]
    shape = broadcast_shapes(*shapes)  # of any ranks, whatever `numpy_rank_promotion` says
    condition, on_true, on_false = (x if own in (shape, ()) else broadcast_array(x, shape)
                                    for x, own in zip(operands, shapes))
    return lax.select_n.primitive.bind(condition, on_false, on_true)


# -- axes and other static arguments ------------------------------------------------------------------------
def canonicalize_axes(axis, rank: int) -> tuple[int, ...]:
    """Axes of a reduction: all for None, one, or several. Raises: ValueError for a repeated axis, AxisError
    for an absent one."""
    if axis is None:
        return tuple(range(rank))
    is_one = not isinstance(axis, Sequence) and not (isinstance(axis, np.ndarray) and axis.ndim)
    axes = (axis,) if is_one else axis
    axes = tuple(canonicalize_axis(a, rank) for a in axes)
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {axes}")
    return axes


def canonicalize_shape(shape) -> tuple:
    """A shape given as an extent or a sequence of extents (ints or symbolic dimensions).

    Raises: ConcretizationTypeError for traced extents; TypeError for other values."""
    if isinstance(shape, np.ndarray) or (
        isinstance(shape, Array) and shape.ndim == 1 and not isinstance(shape, Tracer)):
        shape = tuple(np.asarray(shape).tolist())
    extents = tuple(shape) if isinstance(shape, (tuple, list, range)) else (shape,)
    return tuple(_canonicalize_extent(extent, shape) for extent in extents)


def _canonicalize_extent(extent, shape):
    if isinstance(extent, Tracer):
        raise arguments.shape_value_error(str(shape), origin_of(extent.owner, extent), user_snippet())
    if isinstance(extent, (float, complex, str)) or extent is None:
        raise TypeError(f"Shapes must be 1D sequences of concrete values of integer type, got {shape}.")
    if isinstance(extent, DimExpr):
        return extent
    extent = operator.index(extent)
    if extent < 0:
        raise ValueError(f"negative dimensions are not allowed, got {shape}")
    return extent


def require_static(function: str, argument: str, value):
    """value, unless it is a tracer. Raises: ConcretizationTypeError naming the argument."""
    if isinstance(value, Tracer):
        raise arguments.argument_value_error(f"jnp.{function}", argument, value.aval.long(),
                                          origin_of(value.owner, value), user_snippet())
    return value


def reject_out(name: str, out) -> None:
    """Raises: NotImplementedError for `out=`: arrays are immutable."""
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")
