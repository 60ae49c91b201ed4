"""Comparison, logical functions, predicates on values and types, and selection by them.

In: arrays and scalars that broadcast. Out: arrays of bools; Python bools where NumPy gives those.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core.jaxpr import aval_of
from jitcore.numpy.arrays.promotion import (apply_elementwise, apply_select, ensure_array, promote,
                                            promote_typed)
from jitcore.numpy.ufuncs.arithmetic import Ufunc, absolute, compare_complex, imag, real


def zeros_of(x):
    """False of the shape of x."""
    return lax.full(x.shape, False, dtypes.bool_)


# -- comparison ---------------------------------------------------------------------------------------------
def _define_comparison(name: str, function, symbol: str) -> Ufunc:
    primitive = function.primitive
    is_ordering = symbol not in ("==", "!=")

    def comparison(x, y, /):
        (x, y), dtype, _ = promote_typed(name, (x, y))
        if is_ordering and dtypes.is_complex(dtype):
            return compare_complex(primitive, x, y)
        return apply_elementwise(primitive, (x, y))

    comparison.__name__ = comparison.__qualname__ = name
    order = "; complex numbers are ordered by their real, then imaginary parts" if is_ordering else ""
    comparison.__doc__ = f"x {symbol} y of each element, as bools{order}. Same as: `numpy.{name}`."
    return Ufunc(comparison)


equal = _define_comparison("equal", lax.eq, "==")
not_equal = _define_comparison("not_equal", lax.ne, "!=")
less = _define_comparison("less", lax.lt, "<")
less_equal = _define_comparison("less_equal", lax.le, "<=")
greater = _define_comparison("greater", lax.gt, ">")
greater_equal = _define_comparison("greater_equal", lax.ge, ">=")


# -- logic --------------------------------------------------------------------------------------------------
def to_bool(name: str, x, position: int = 0):
    """Whether each element differs from 0, as an Array of bools."""
    x = ensure_array(name, x, position)
    return x if x.dtype == dtypes.bool_ else apply_elementwise(lax.ne.primitive, promote(name, x, 0))


def _define_logical(name: str, function, doc: str, identity) -> Ufunc:
    def logical(x, y, /):
        return apply_elementwise(function.primitive, (to_bool(name, x), to_bool(name, y, 1)))

    logical.__name__ = logical.__qualname__ = name
    logical.__doc__ = f"{doc} Same as: `numpy.{name}`."
    return Ufunc(logical, identity)


logical_and = _define_logical("logical_and", lax.bitwise_and, "Whether x and y both are not 0.", True)
logical_or = _define_logical("logical_or", lax.bitwise_or, "Whether x or y is not 0.", False)
logical_xor = _define_logical("logical_xor", lax.bitwise_xor, "Whether exactly one of x and y is not 0.",
                              False)


def logical_not(x, /):
    """Whether x is 0. Same as: `numpy.logical_not`."""
    return apply_elementwise(lax.bitwise_not.primitive, (to_bool("logical_not", x),))


# -- predicates ---------------------------------------------------------------------------------------------
def _of_parts(name: str, x, predicate, combine, otherwise: bool):
    """A predicate of floats, on both parts of complex numbers; integers give `otherwise`."""
    x = ensure_array(name, x)
    if dtypes.is_complex(x.dtype):
        return combine(predicate(real(x)), predicate(imag(x)))
    if dtypes.is_floating(x.dtype):
        return predicate(x)
    return lax.full(x.shape, otherwise, dtypes.bool_)


def isnan(x, /):
    """Whether x is NaN. Same as: `numpy.isnan`."""
    x = ensure_array("isnan", x)
    return apply_elementwise(lax.ne.primitive, (x, x))


def isfinite(x, /):
    """Whether x is neither infinite nor NaN. Same as: `numpy.isfinite`."""
    return _of_parts("isfinite", x, lambda p: apply_elementwise(lax.is_finite.primitive, (p,)), logical_and,
                     True)


def isinf(x, /):
    """Whether x is infinite. Same as: `numpy.isinf`."""
    return _of_parts("isinf", x, lambda p: equal(absolute(p), np.inf), logical_or, False)


def _reject_complex(name: str, x) -> None:
    if dtypes.is_complex(aval_of(x).dtype):
        raise ValueError(f"{name} is not well defined for complex values.")


def isposinf(x, /, out=None):
    """Whether x is +inf. Same as: `numpy.isposinf`."""
    _reject_complex("isposinf", x)
    return _of_parts("isposinf", x, lambda p: equal(p, np.inf), logical_or, False)


def isneginf(x, /, out=None):
    """Whether x is -inf. Same as: `numpy.isneginf`."""
    _reject_complex("isneginf", x)
    return _of_parts("isneginf", x, lambda p: equal(p, -np.inf), logical_or, False)


def isreal(x):
    """Whether the imaginary part is 0. Same as: `numpy.isreal`."""
    return equal(imag(x), 0)


def iscomplex(x):
    """Whether the imaginary part is not 0. Same as: `numpy.iscomplex`."""
    return not_equal(imag(x), 0)


def iscomplexobj(x) -> bool:
    """Whether the dtype is complex, whatever the values. Same as: `numpy.iscomplexobj`."""
    try:
        return dtypes.is_complex(aval_of(x).dtype)
    except TypeError:
        pass
    try:
        return np.iscomplexobj(x)
    except TypeError:  # traced values stand in a list
        return any(map(iscomplexobj, x))


def isrealobj(x) -> bool:
    """Whether the dtype is not complex. Same as: `numpy.isrealobj`."""
    return not iscomplexobj(x)


def isscalar(element) -> bool:
    """Whether element is a Python or NumPy scalar, or a 0-d array. Same as: `jax.numpy.isscalar`."""
    if isinstance(element, (np.ndarray, Array)):
        return element.ndim == 0
    return np.isscalar(element)


def iterable(y) -> bool:
    """Whether one can iterate over y. Same as: `numpy.iterable`."""
    return isinstance(y, Iterable) and not (isinstance(y, (np.ndarray, Array)) and y.ndim == 0)


# -- selection ----------------------------------------------------------------------------------------------
def where(condition, x=None, y=None, /, *, size=None, fill_value=None):
    """x where the condition holds, else y; with the condition alone, its `nonzero`. Same as: `numpy.where`.

    Args:
        size, fill_value: as for `nonzero`; only without x and y.
    Raises: ValueError for only one of x and y.

    Derivatives: what is not selected has no part in them. `where(x > 0, log(x), 0)` has the derivative 0
    at 0, and so has every chain of elementwise operations in a case. Where a case sums, contracts or
    broadcasts, infinity times zero is NaN as ever; select its operand as well:
    `where(x > 0, f(where(x > 0, x, 1)), 0)`."""
    if x is None and y is None:
        return ensure_array("nonzero", condition).nonzero(size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("Either both or neither of the x and y arguments should be provided to jnp.where, "
                         f"got {x} and {y}.")
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in three-term where function.")
    condition = to_bool("where", condition)
    x, y = promote("where", x, y)
    return apply_select(condition, x, y)


__all__ = ["equal", "greater", "greater_equal", "iscomplex", "iscomplexobj", "isfinite", "isinf", "isnan",
           "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "iterable", "less", "less_equal",
           "logical_and", "logical_not", "logical_or", "logical_xor", "not_equal", "where"]
