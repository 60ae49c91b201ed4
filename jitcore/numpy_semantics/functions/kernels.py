"""What each of NumPy's ufuncs computes, on Arrays of its loop's dtypes.

In: operands that NumPy's rules have converted, scalars that are known as NumPy scalars. Out: one Array, or a
tuple of them; the caller converts to the loop's result dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import apply_elementwise, apply_select, broadcast_operands
from jitcore.numpy_semantics.values.arithmetic import fail, float_divmod


def _kind(*operands: Any) -> str:
    return operands[0].dtype.kind


def _zero(x: Any) -> Any:
    return x.dtype.type(0)


def _bind(function: Any, *operands: Any) -> Array:
    return apply_elementwise(function.primitive, operands)


# -- division -----------------------------------------------------------------------------------------------
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
    np.logical_not: _logical(lax.bitwise_not),
}
