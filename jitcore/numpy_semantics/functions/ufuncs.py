"""NumPy's ufuncs on handles.

In: a ufunc, one of its methods, operands among which are handles. Out: what NumPy gives: dtypes by
`ufunc.resolve_dtypes`, scalars for results without axes, `out=` and `where=`. NumPy itself raises the errors
about dtypes, on empty arrays. `KERNELS` says what each computes: of operands that NumPy's rules have
converted, scalars that are known as NumPy scalars, one Array or a tuple, which is converted to the loop's
result dtype.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import apply_elementwise, apply_select, broadcast_operands
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions import tables
from jitcore.numpy_semantics.functions.scipy_table import find_kernel
from jitcore.numpy_semantics.functions.ufunc_methods import METHODS
from jitcore.numpy_semantics.values.arithmetic import fail, float_divmod
from jitcore.numpy_semantics.values.mixed import Mixed, distribute, find_mixed, narrow, see_through_ufunc
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array, unwrap_array, wrap_result
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.operators import OPERATORS, multiply_parts
from jitcore.numpy_semantics.values.promotion import (SUPPORTED, as_operand, cast_raw, check_aval,
                                                      is_python_number, is_weak_type, promotion_type,
                                                      shape_of, to_raw, to_scalar_operand)
from jitcore.numpy_semantics.values.storage import find_joint_order, leaves_order_open
from jitcore.numpy_semantics.values.views import broadcast_raw
from jitcore.rewriter.handles import Handle


def _kind(*operands: Any) -> str:
    return operands[0].dtype.kind


def _zero(x: Any) -> Any:
    return x.dtype.type(0)


def _bind(function: Any, *operands: Any) -> Array:
    return apply_elementwise(function.primitive, operands)


# -- what they compute: division ----------------------------------------------------------------------------
def _as_arrays(x: Any, y: Any) -> list[Array]:
    """Two operands as Arrays of one shape."""
    x, y = broadcast_operands(x, y)
    like = x if isinstance(x, Array) and (not isinstance(y, Array) or x.shape) else y
    return [v if isinstance(v, Array) and v.shape == like.shape else lax.full(like.shape, v, like.dtype)
            for v in (x, y)]


def _divide_integers(function: Callable) -> Callable:
    """Division of integers, which gives 0 where the divisor is 0."""

    def compute(x, y):
        if not isinstance(y, Array) and y != 0:
            return function(x, y)
        is_zero = _bind(lax.eq, y, _zero(y))
        safe = apply_select(is_zero, y.dtype.type(1), y)
        found = function(x, safe)
        return apply_select(is_zero, _zero(found), found)

    return compute


def _divide_floats(x: Any, y: Any) -> tuple[Array, Array]:
    """NumPy's divmod of floats: by zero the float quotient and NaN."""
    x, y = _as_arrays(x, y)
    quotient, remainder = float_divmod(x, y)
    is_zero = lax.eq(y, _zero(y))
    return lax.select(is_zero, lax.div(x, y), quotient), lax.select(is_zero, lax.rem(x, y), remainder)


def _by_kind(divide: Callable, divide_integers: Callable) -> Callable:
    whole = _divide_integers(divide_integers)
    return lambda x, y: (divide if _kind(x) == "f" else whole)(x, y)


floor_divide = _by_kind(lambda x, y: _divide_floats(x, y)[0], jnp.floor_divide)
remainder = _by_kind(lambda x, y: _divide_floats(x, y)[1], jnp.remainder)
fmod = _by_kind(lambda x, y: _bind(lax.rem, x, y), jnp.fmod)


def divmod_(x, y):
    return _divide_floats(x, y) if _kind(x) == "f" else (floor_divide(x, y), remainder(x, y))


def reciprocal(x):
    if _kind(x) == "f":
        return _bind(lax.div, x.dtype.type(1), x)
    if _kind(x) == "c":
        return _complex_reciprocal(x)
    found = _divide_integers(lambda one, x: _bind(lax.div, one, x))(x.dtype.type(1), x)
    with np.errstate(all="ignore"):
        of_zero = np.reciprocal(x.dtype.type(0))
    return apply_select(_bind(lax.eq, x, _zero(x)), of_zero, found) if of_zero else found


def _complex_reciprocal(x):
    """As NumPy's loop has it: divided by the larger part first; NaN for zero."""
    re, im = lax.real(x), lax.imag(x)
    is_flat = lax.le(lax.abs(im), lax.abs(re))
    small, large = lax.select(is_flat, im, re), lax.select(is_flat, re, im)
    one, ratio = large.dtype.type(1), lax.div(small, large)
    scale = lax.add(large, lax.mul(small, ratio))
    whole, part = lax.div(one, scale), lax.div(ratio, scale)
    return lax.complex(lax.select(is_flat, whole, part), lax.neg(lax.select(is_flat, part, whole)))


# -- powers -------------------------------------------------------------------------------------------------
#: Known integer exponents up to this size are products.
_MAX_PRODUCTS = 16


def power(x, y):
    if _kind(x) in "iu":
        error = ValueError("Integers to negative integer powers are not allowed.")
        if not isinstance(y, Array) and y < 0:
            raise error
        if isinstance(y, Array) and _kind(x) == "i":
            fail(jnp.any(_bind(lax.lt, y, _zero(y))), error)
        return jnp.power(x, y if isinstance(y, Array) else int(y))
    if not isinstance(y, Array) and y.imag == 0 and y.real == int(y.real if np.isfinite(y.real) else 0.5):
        exponent = int(y.real)
        if abs(exponent) <= _MAX_PRODUCTS and (_kind(x) == "f" or exponent >= 0):
            return jnp.power(x, exponent) if isinstance(x, Array) else np.power(x, y)
    found = _bind(lax.pow, *_as_arrays(x, y))
    if _kind(x) == "f" and isinstance(y, Array) and not y.shape and x.shape:  # NumPy's way for one exponent
        roots = _bind(lax.sqrt, x) if isinstance(x, Array) else np.sqrt(x)
        found = apply_select(_bind(lax.eq, y, y.dtype.type(0.5)), roots, found)
    return found


# -- comparisons --------------------------------------------------------------------------------------------
def _compare(name: str) -> Callable:
    """NumPy compares integers of different signedness by value."""
    compute, of_signs = getattr(jnp, name), getattr(np, name)

    def compare(x, y):
        if x.dtype == y.dtype:
            return compute(x, y)
        shape = np.broadcast_shapes(x.shape, y.shape)
        x, y = (jnp.broadcast_to(v, shape) if isinstance(v, Array) else lax.full(shape, v, v.dtype)
                for v in (x, y))
        is_first = x.dtype.kind == "i"
        signed, unsigned = (x, y) if is_first else (y, x)
        as_unsigned = lax.convert_element_type(signed, unsigned.dtype)
        inside = compute(*((as_unsigned, unsigned) if is_first else (unsigned, as_unsigned)))
        outside = bool(of_signs(-1, 0) if is_first else of_signs(0, -1))
        return lax.select(lax.lt(signed, _zero(signed)), lax.full_like(inside, outside), inside)

    return compare


# -- others -------------------------------------------------------------------------------------------------
def _for_floats(function: Callable) -> Callable:
    """A rounding, which leaves integers as they are."""
    return lambda x: function(x) if _kind(x) in "fc" else x


def sign(x):
    if _kind(x) != "c":
        return jnp.sign(x)
    size = jnp.absolute(x)
    is_zero = _bind(lax.eq, size, _zero(size))
    safe = apply_select(is_zero, size.dtype.type(1), size)
    parts = [_bind(lax.div, part, safe) for part in (lax.real(x), lax.imag(x))]
    return apply_select(is_zero, x.dtype.type(0), lax.complex(*parts))


def heaviside(x, y):
    x, y = _as_arrays(x, y)
    steps = lax.convert_element_type(lax.gt(x, _zero(x)), x.dtype)
    found = lax.select(lax.eq(x, _zero(x)), y, steps)
    return lax.select(lax.ne(x, x), x, found)


def _logical(function: Any) -> Callable:
    def compute(*operands):
        bools = [x if x.dtype == dtypes.bool_ else _bind(lax.ne, x, _zero(x)) for x in operands]
        return _bind(function, *bools)

    return compute


def _absolute(x):
    return x if _kind(x) in "bu" else _bind(lax.abs, x)


def _spacing(x):
    infinity = x.dtype.type(np.inf)
    size = _bind(lax.abs, x)
    distance = _bind(lax.sub, jnp.nextafter(size, infinity), size)
    if x.dtype == dtypes.float16:  # as NumPy's loops do
        return distance
    return apply_select(_bind(lax.eq, x, _zero(x)), distance, jnp.copysign(distance, x))


#: NumPy's ufunc -> function of Arrays: its namesake, where no other is named.
KERNELS: dict[Any, Callable] = {
    **{ufunc: getattr(jnp, ufunc.__name__) for ufunc in vars(np).values()
       if isinstance(ufunc, np.ufunc) and hasattr(jnp, ufunc.__name__)},
    **{getattr(np, name): _compare(name)
       for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")},
    np.add: lambda x, y: _bind(lax.add, x, y), np.subtract: lambda x, y: _bind(lax.sub, x, y),
    np.multiply: lambda x, y: _bind(lax.mul, x, y), np.true_divide: lambda x, y: _bind(lax.div, x, y),
    np.floor_divide: floor_divide, np.remainder: remainder, np.divmod: divmod_, np.fmod: fmod,
    np.reciprocal: reciprocal, np.power: power, np.square: lambda x: _bind(lax.mul, x, x),
    np.negative: lambda x: _bind(lax.neg, x), np.positive: lambda x: x, np.absolute: _absolute,
    np.fabs: _absolute, np.conjugate: lambda x: _bind(lax.conj, x) if _kind(x) == "c" else x,
    np.sign: sign, np.heaviside: heaviside, np.spacing: _spacing,
    np.floor: _for_floats(jnp.floor), np.ceil: _for_floats(jnp.ceil), np.trunc: _for_floats(jnp.trunc),
    np.invert: lambda x: _bind(lax.bitwise_not, x), np.logical_and: _logical(lax.bitwise_and),
    np.logical_or: _logical(lax.bitwise_or), np.logical_xor: _logical(lax.bitwise_xor),
    np.logical_not: _logical(lax.bitwise_not)}


# -- calls --------------------------------------------------------------------------------------------------
_MAY_BE_MIXED = frozenset((Mixed, list, tuple))
_COMPARISONS = frozenset([np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal])


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence, kwargs: dict) -> Any:
    """`getattr(ufunc, method)(*inputs, **kwargs)`.

    Raises: what NumPy raises; NotTraceable for ufuncs, options and dtypes that are not traced."""
    values = (*inputs, *_as_tuple(kwargs.get("out")), kwargs.get("where"))
    if any(getattr(x, "is_padded", False) for x in values):
        return tables.find_hook("apply_ufunc", "an operand")(ufunc, method, tuple(inputs), kwargs)
    if not _MAY_BE_MIXED.isdisjoint(map(type, inputs)):
        inputs = list(map(narrow, inputs))
        if find_mixed(inputs) is not None:
            return _apply_to_mixed(ufunc, method, inputs, kwargs)
    if method != "__call__":
        return leaves_order_open(METHODS[method])(ufunc, *inputs, **kwargs)
    return _call(ufunc, list(map(as_operand, inputs)), **kwargs)


def _apply_to_mixed(ufunc: np.ufunc, method: str, inputs: Sequence, kwargs: dict) -> Any:
    """As `apply_ufunc` for operands whose types depend on the way that was taken."""
    wide = None
    if method == "__call__" and not {"dtype", "signature"} & kwargs.keys():
        resolve = lambda given: _resolve(ufunc, tuple(map(promotion_type, given)), None, None, "same_kind")  # noqa: E731
        wide = see_through_ufunc(ufunc, list(map(as_operand, inputs)), resolve)
    if wide is not None:
        return apply_ufunc(ufunc, method, wide, kwargs)
    if any(isinstance(x, NDArray) for x in _as_tuple(kwargs.get("out"))) or method == "at":
        raise not_traceable("an array is changed by a number whose type depends on a traced value")
    return distribute(lambda *given: getattr(ufunc, method)(*given, **kwargs), *inputs)


def _as_tuple(out: Any) -> tuple:
    return out if isinstance(out, tuple) else (out,)


def _call(ufunc, inputs: list, out=None, where=True, casting="same_kind", dtype=None, signature=None,
          order="K", subok=True, axes=None, axis=None, keepdims=False):
    if axes is not None or axis is not None or keepdims:
        raise not_traceable(f"np.{ufunc.__name__} with axes")
    outs = tuple(_as_tuple(out)) + (None,) * (ufunc.nout - len(_as_tuple(out)))
    if not any(isinstance(x, Handle) for x in inputs) and isinstance(where, bool):
        inputs[0] = new_array(to_raw(inputs[0])) if shape_of(inputs[0]) else inputs[0]
    outside = _compare_outside(ufunc, inputs) if ufunc in _COMPARISONS else None
    if outside is not None:
        results: tuple = (outside,)
    else:
        types = tuple([promotion_type(x) for x in inputs])
        found = _resolve(ufunc, types, dtype and np.dtype(dtype), signature, casting)
        results = run_kernel(ufunc, inputs, found)
    results = tuple(
        [_finish(ufunc, raw, target, where, casting, inputs) for raw, target in zip(results, outs)])
    return results if ufunc.nout > 1 else results[0]


def run_kernel(ufunc, inputs: Sequence, found: Sequence[np.dtype]) -> tuple[Array, ...]:
    """The results for operands and the dtypes of a loop, of operands and results."""
    kernel = KERNELS.get(ufunc) or find_kernel(ufunc)
    if ufunc is np.multiply and found[0].kind == "c" and not any(isinstance(x, NDArray) for x in inputs):
        kernel = multiply_parts
    if kernel is None:
        raise not_traceable(f"np.{ufunc.__name__} is not traced")
    _check_shapes(ufunc, inputs)
    operands = [to_scalar_operand(x, dtype) for x, dtype in zip(inputs, found)]
    if not any(isinstance(x, Array) for x in operands):
        operands[0] = to_raw(operands[0])
    try:
        results = kernel(*operands)
    except (TypeError, ValueError):  # shapes of a product that do not fit: NumPy's own text
        if ufunc.signature is not None:
            ufunc(*[np.broadcast_to(np.zeros((), x.dtype), x.shape) for x in operands])
        raise
    results = results if isinstance(results, tuple) else (results,)
    return tuple([cast_raw(check_aval(raw), dtype) for raw, dtype in zip(results, found[ufunc.nin :])])


@functools.lru_cache(maxsize=4096)
def _resolve(ufunc, types: tuple, dtype, signature, casting: str) -> tuple:
    """Dtypes of the loop that NumPy chooses. Raises: TypeError as NumPy; NotTraceable for others."""
    if dtype is not None:
        signature = (None,) * ufunc.nin + (dtype,) * ufunc.nout
    arguments = [_make_example(kind) for kind in types]
    options = {} if signature is None else {"signature": signature}
    try:
        found = ufunc.resolve_dtypes((*types, *[None] * ufunc.nout), casting=casting, **options)
    except TypeError:
        with np.errstate(all="ignore"):
            ufunc(*arguments, casting=casting, **options)  # raises with NumPy's text
        raise
    if any(entry not in SUPPORTED for entry in found):
        raise not_traceable(f"np.{ufunc.__name__} computes in {next(e for e in found if e not in SUPPORTED)}")
    return found


def _make_example(kind: Any) -> Any:
    return kind(1) if is_weak_type(kind) else np.empty((0,), kind)


def _check_shapes(ufunc, inputs: Sequence) -> None:
    if ufunc.signature is not None:
        return
    shapes = [shape_of(x) for x in inputs]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        texts = " ".join(f"({','.join(map(str, shape))}{',' if len(shape) == 1 else ''})" for shape in shapes)
        raise ValueError(f"operands could not be broadcast together with shapes {texts} ") from None


def _compare_outside(ufunc, inputs: list) -> Array | None:
    """A comparison with a Python int that the other operand's integer dtype does not hold: it is known."""
    for place, value in enumerate(inputs):
        other = inputs[1 - place]
        if not isinstance(value, int) or isinstance(value, (bool, np.generic)) or is_python_number(other):
            continue
        dtype = other.dtype
        if dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            size = -1 if value < 0 else 1
            known = bool(ufunc(size, 0) if place == 0 else ufunc(0, size))
            return lax.full(other.shape, known, np.bool_)
    return None


def _finish(ufunc, raw: Array, out: Any, where: Any, casting: str, inputs: Sequence) -> Any:
    """A result as NumPy hands it out, or written to where it is asked for."""
    mask = None if where is True else to_raw(as_operand(where), np.bool_)
    if out is None:
        if mask is not None:
            raw, mask = _broadcast_both(raw, mask)
            raw = lax.select(mask, raw, lax.full_like(raw, 0))  # NumPy leaves the others undefined
        arrays = [x for x in (*inputs, where) if isinstance(x, NDArray)] if ufunc.signature is None else []
        return wrap_result(raw, order=find_joint_order(arrays))
    if not isinstance(out, NDArray):
        raise not_traceable(f"out= of type {type(out).__name__}")
    if not np.can_cast(raw.dtype, out.dtype, casting):
        raise_casting(ufunc, inputs, out.dtype, casting)
    shape = tuple(np.broadcast_shapes(raw.shape, () if mask is None else mask.shape))
    if shape != out.shape and np.broadcast_shapes(shape, out.shape) != out.shape:
        _refuse_output(inputs, shape, out.shape)
    value = broadcast_raw(cast_raw(raw, out.dtype), out.shape)
    if mask is not None:
        value = lax.select(broadcast_raw(mask, out.shape), value, out.read())
    out.write(value)
    return out


def _refuse_output(inputs: Sequence, shape: tuple, out_shape: tuple):
    texts = [f"({','.join(map(str, s))}{',' if len(s) == 1 else ''})" for s in (out_shape, shape)]
    raise ValueError(
        f"non-broadcastable output operand with shape {texts[0]} doesn't match the broadcast shape {texts[1]}"
    )


def _broadcast_both(one: Array, other: Array) -> tuple[Array, Array]:
    shape = np.broadcast_shapes(one.shape, other.shape)
    return broadcast_raw(one, shape), broadcast_raw(other, shape)


def raise_casting(ufunc, inputs: Sequence, dtype: np.dtype, casting: str) -> None:
    """Lets NumPy raise its error about the dtype of an output."""
    arguments = [_make_example(promotion_type(x)) for x in inputs]
    with np.errstate(all="ignore"):
        ufunc(*arguments, out=np.empty((0,), dtype), casting=casting)
    raise TypeError(f"Cannot cast ufunc '{ufunc.__name__}' output to {dtype!r}")


# -- operators ----------------------------------------------------------------------------------------------
#: What `a ** p` is for a known p, where a has floats: NumPy's short ways.
_SHORT_POWERS = {1: np.positive, 2: np.square, 0.5: np.sqrt, -1: np.reciprocal}


def apply_operator(name: str, x: Any, y: Any) -> Any:
    """What NumPy computes for `x op y` with an array or scalar among the operands."""
    return apply_power(x, y) if name == "pow" else apply_ufunc(OPERATORS[name], "__call__", (x, y), {})


def apply_power(x: Any, y: Any) -> Any:
    """`x ** y`, with the short ways that NumPy's operator takes for arrays."""
    ufunc = _find_short_power(x, y)
    return apply_ufunc(ufunc or np.power, "__call__", (x, y) if ufunc is None else (x,), {})


#: Whether NumPy's operator squares bools, whose squares are int8: before 2.4 it does not.
_SQUARES_BOOLS = (np.ones(1, np.bool_) ** 2).dtype == np.int8


def _find_short_power(x: Any, y: Any) -> Any:
    if isinstance(x, NDArray) and x.dtype.kind == "b":
        if not _SQUARES_BOOLS:
            return None
        if type(y) is Number and y.plain_type is int:
            y = operator.index(y)  # the dtype of squares is another one
    if not isinstance(x, NDArray) or type(y) not in (int, float):
        return None
    ufunc = _SHORT_POWERS.get(y)
    if x.dtype.kind in "fc":
        return ufunc
    return ufunc if isinstance(y, int) and y == 2 else None


def apply_in_place(name: str, x: NDArray, y: Any) -> NDArray:
    """`x op= y`."""
    ufunc = _find_short_power(x, y) if name == "pow" else None
    inputs = (x,) if ufunc is not None else (x, y)
    apply_ufunc(ufunc or OPERATORS[name], "__call__", inputs, {"out": (x,)})
    return x


__all__ = ["OPERATORS", "apply_in_place", "apply_power", "apply_ufunc", "run_kernel", "unwrap_array"]
