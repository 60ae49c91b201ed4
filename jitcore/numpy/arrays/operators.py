"""Python operators of arrays: `x + y`, `-x`, `x[i]` ..., installed on `Array` for concrete arrays and
tracers.

In: an Array and an operand. Out: what the function of `jitcore.numpy` of that name gives. Two arrays of one
dtype
outside a trace take a short way, straight to the NumPy ufunc: small eager programs consist of such calls.
"""

from __future__ import annotations

import contextvars
import threading

import numpy as np

from jitcore import dtypes
from jitcore.array import Array, ConcreteArray
from jitcore.config import config
from jitcore.core.source import api_boundary
from jitcore.core.trace import context, eval_trace, user_snippet
from jitcore.errors import arguments as argument_errors
from jitcore.numpy import products
from jitcore.numpy.arrays.promotion import convert_dtype, is_operand
from jitcore.numpy.indexing import reading
from jitcore.numpy.ufuncs import arithmetic, logic, rounding

# Dtypes whose NumPy loops for these kinds of operators give what the primitives give, Python scalars
# included.
_DIRECT = {
    "arithmetic": {dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.complex64,
                   dtypes.complex128},
    "division": {dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128},
    "comparison": {dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64},
}
# A Python int of this size fits every dtype above, and float32 holds it exactly.
_EXACT_INT = 1 << 24


class _QuietContext(threading.local):
    """A context of this thread in which NumPy does not warn. Entering it takes a fifth of `np.errstate`."""

    def __init__(self):
        quiet = contextvars.Context()
        quiet.run(np.seterr, all="ignore")
        self.run = quiet.run


_quiet = _QuietContext()


def run_quietly(function, x, y) -> np.ndarray:
    """A NumPy function without its warnings of divisions by zero, overflows and invalid values."""
    try:
        return _quiet.run(function, x, y)
    except RuntimeError:  # the context is in use: a finalizer computes amid another operator of this thread
        with np.errstate(all="ignore"):
            return function(x, y)


def compute_directly(numpy_ufunc, allowed: set, x: ConcreteArray, other):
    """The result of an operator on concrete operands of one dtype by one NumPy call; None where rules are
    needed."""
    data = x.data
    if data.dtype not in allowed or config.debug_nans or config.debug_infs:
        return None
    kind = other.__class__
    if kind is ConcreteArray:
        value = other.data
        if value.dtype is not data.dtype or (value.shape != data.shape and value.shape and data.shape):
            return None
        weak = x.weak_type and other.weak_type
    elif kind is float:
        if data.dtype.kind == "i":
            return None
        value, weak = other, x.weak_type
    elif kind is int and -_EXACT_INT <= other <= _EXACT_INT:
        value, weak = other, x.weak_type
    else:
        return None
    out = run_quietly(numpy_ufunc, data, value)
    return ConcreteArray(out if out.__class__ is np.ndarray else np.asarray(out),
                         weak and out.dtype != np.bool_)


def _apply(function, x, other, is_reflected: bool):
    """The function of an Array and another operand, which may say by `__jax_array__` what Array it is."""
    if not is_operand(other):
        if not hasattr(other, "__jax_array__"):
            return NotImplemented
        other = other.__jax_array__()
    return function(other, x) if is_reflected else function(x, other)


def _define_direct(function, numpy_ufunc, allowed: str):
    """(operator, reflected operator) with the short way."""
    dtypes_allowed = _DIRECT[allowed]

    def operate(self, other):
        if self.__class__ is ConcreteArray and context.trace is eval_trace:
            out = compute_directly(numpy_ufunc, dtypes_allowed, self, other)
            if out is not None:
                return out
        return _apply(function, self, other, False)

    def swapped(x, y):
        return numpy_ufunc(y, x)

    def operate_reflected(self, other):
        if self.__class__ is ConcreteArray and context.trace is eval_trace:
            out = compute_directly(swapped, dtypes_allowed, self, other)
            if out is not None:
                return out
        return _apply(function, self, other, True)

    return operate, operate_reflected


def _define_plain(function):
    """(operator, reflected operator) through the function."""

    def operate(self, other):
        return _apply(function, self, other, False)

    def operate_reflected(self, other):
        return _apply(function, self, other, True)

    return operate, operate_reflected


def _define_multiply():
    """`*` and its reflection. Python would repeat a list as often as an integer scalar says: refused here."""
    operate, operate_reflected = _define_direct(arithmetic.multiply, np.multiply, "arithmetic")

    def refuse(left, right):
        names = f"{type(left).__name__!r} and {type(right).__name__!r}"
        return TypeError(f"unsupported operand type(s) for *: {names}")

    def multiply(self, other):
        if other.__class__ in (list, tuple):
            raise refuse(self, other)
        return operate(self, other)

    def multiply_reflected(self, other):
        if other.__class__ in (list, tuple):
            raise refuse(other, self)
        return operate_reflected(self, other)

    return multiply, multiply_reflected


def _define_matmul():
    """`@` and its reflection; two concrete matrices or vectors of one dtype go to BLAS at once."""
    operate_plain, operate_reflected = _define_plain(products.matmul)

    def operate(self, other):
        is_direct = self.__class__ is other.__class__ is ConcreteArray and context.trace is eval_trace
        if is_direct and not (config.debug_nans or config.debug_infs):
            x, y = self.data, other.data
            fits = 0 < x.ndim <= 2 and 0 < y.ndim <= 2 and x.shape[-1] == y.shape[0]
            if fits and x.dtype is y.dtype and x.dtype in _DIRECT["division"]:
                out = np.asarray(run_quietly(np.matmul, x, y))
                return ConcreteArray(out, self.weak_type and other.weak_type)
        return operate_plain(self, other)

    return operate, operate_reflected


BINARY_OPERATORS = {
    "add": _define_direct(arithmetic.add, np.add, "arithmetic"),
    "sub": _define_direct(arithmetic.subtract, np.subtract, "arithmetic"),
    "mul": _define_multiply(),
    "truediv": _define_direct(arithmetic.true_divide, np.true_divide, "division"),
    "floordiv": _define_plain(arithmetic.floor_divide),
    "mod": _define_plain(arithmetic.remainder),
    "divmod": _define_plain(arithmetic.divmod),
    "pow": _define_plain(arithmetic.power),
    "matmul": _define_matmul(),
    "and": _define_plain(arithmetic.bitwise_and),
    "or": _define_plain(arithmetic.bitwise_or),
    "xor": _define_plain(arithmetic.bitwise_xor),
    "lshift": _define_plain(arithmetic.left_shift),
    "rshift": _define_plain(arithmetic.right_shift),
}
COMPARISONS = {
    "eq": _define_direct(logic.equal, np.equal, "comparison"),
    "ne": _define_direct(logic.not_equal, np.not_equal, "comparison"),
    "lt": _define_direct(logic.less, np.less, "comparison"),
    "le": _define_direct(logic.less_equal, np.less_equal, "comparison"),
    "gt": _define_direct(logic.greater, np.greater, "comparison"),
    "ge": _define_direct(logic.greater_equal, np.greater_equal, "comparison"),
}
UNARY_OPERATORS = {"neg": arithmetic.negative, "pos": arithmetic.positive, "abs": arithmetic.absolute,
                   "invert": arithmetic.bitwise_not}


def _round(self, ndigits=None):
    """`round(x)` gives integers, `round(x, 2)` keeps the dtype."""
    if ndigits is not None:
        return rounding.round(self, ndigits)
    rounded = rounding.round(self)
    return rounded if dtypes.is_integer(self.dtype) else convert_dtype(rounded, dtypes.default_dtype("i"))


def _set_item(self, index, value):
    raise argument_errors.item_assignment_error(user_snippet())


def _delete_item(self, index):
    raise argument_errors.item_assignment_error(user_snippet(), verb="deletion")


def install_operators(cls: type[Array]) -> None:
    """Puts every Python operator on the array class."""
    methods = {"__round__": _round, "__getitem__": reading.get_item, "__setitem__": _set_item,
               "__delitem__": _delete_item}
    for name, (operate, reflected) in BINARY_OPERATORS.items():
        methods[f"__{name}__"], methods[f"__r{name}__"] = operate, reflected
    for name, (operate, _) in COMPARISONS.items():
        methods[f"__{name}__"] = operate
    for name, function in UNARY_OPERATORS.items():
        methods[f"__{name}__"] = _define_unary(function)
    for name, method in methods.items():
        method.__name__ = name
        setattr(cls, name, api_boundary(method))
    cls.__hash__ = None


def _define_unary(function):
    def operate(self):
        return function(self)

    return operate
