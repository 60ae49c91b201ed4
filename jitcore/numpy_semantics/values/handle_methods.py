"""Operators, items and conversions of handles, installed on their classes, which themselves only hold data.

In: the classes of arrays, NumPy scalars, and numbers. Out: `x + y`, `x[i]`, `round(x)` and `x.item()` of
them, and the hooks by which NumPy's functions reach them. One table says how each class does its operators.
"""

from __future__ import annotations

import operator as python_operators
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from jitcore import lax
from jitcore.core.algebra import COMPARISONS
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.dispatch import apply_function
from jitcore.numpy_semantics.functions.memory import Flags
from jitcore.numpy_semantics.functions.ufuncs import apply_in_place, apply_operator, apply_ufunc
from jitcore.numpy_semantics.values import arithmetic
from jitcore.numpy_semantics.values.conversions import round_handle, to_python
from jitcore.numpy_semantics.values.items import get_item, set_item
from jitcore.numpy_semantics.values.mixed import Mixed, apply_arithmetic, distribute, type_of
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array, unwrap_array
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.operators import ACCEPTED, OPERATORS, UNARY
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.rewriter.handles import Handle


# -- operators ----------------------------------------------------------------------------------------------
def _operate_on_arrays(name: str, x: Any, y: Any) -> Any:
    if isinstance(x, ACCEPTED) and isinstance(y, ACCEPTED):
        return apply_operator(name, x, y)
    other = y if isinstance(x, ACCEPTED) else x
    if name in ("eq", "ne") and (other is None or isinstance(other, str)):
        raise not_traceable(f"a comparison of a traced array with {other!r}")
    return NotImplemented


def _operate_on_scalars(name: str, x: Any, y: Any) -> Any:
    """A Python complex number takes an `np.float64` for the float that it is too, so that the result is
    Python's."""
    kind = x.python_type if isinstance(x, Number) else type(x)
    if kind is complex and name in ("add", "sub", "mul", "truediv", "pow") and y.dtype == np.float64:
        return getattr(python_operators, name)(x, y.item())
    return _operate_on_arrays(name, x, y)


def _operate_on_numbers(name: str, x: Any, y: Any) -> Any:
    if isinstance(x, (np.generic, np.ndarray)) or isinstance(y, (np.generic, np.ndarray)):
        return apply_ufunc(OPERATORS[name], "__call__", (x, y), {})
    is_plain = all(isinstance(v, (Number, bool, int, float, complex)) for v in (x, y))
    return arithmetic.BINARY[name](x, y) if is_plain else NotImplemented


def _operate_on_mixed(name: str, x: Any, y: Any) -> Any:
    if all(isinstance(v, (Mixed, Number, bool, int, float, complex)) and not isinstance(v, np.generic)
           for v in (x, y)):
        return apply_arithmetic(name, x, y)
    others = (Handle, np.generic, np.ndarray, list, tuple)
    is_known = all(isinstance(v, others) or type_of(v) for v in (x, y))
    return apply_operator(name, x, y) if is_known else NotImplemented


class Family(NamedTuple):
    """How a class does its operators. what: it, in errors; binary: which operators of two operands it has;
    operate: (name, x, y) -> their results; unary: which of one operand; apply: (name, x) -> their results."""

    what: str
    binary: Iterable[str]
    operate: Callable
    unary: Iterable[str]
    apply: Callable
    round: Callable


def _apply_unary(name: str, x: Any) -> Any:
    return apply_ufunc(UNARY[name], "__call__", (x,), {})


def _round_mixed(self, digits=None):
    return distribute(lambda x: round(x) if digits is None else round(x, digits), self)


FAMILIES = {
    NDArray: Family("an array", OPERATORS, _operate_on_arrays, UNARY, _apply_unary, round_handle),
    Scalar: Family("an array", OPERATORS, _operate_on_scalars, UNARY, _apply_unary, round_handle),
    Number: Family("a traced number", arithmetic.BINARY, _operate_on_numbers, arithmetic.UNARY,
                   lambda name, x: arithmetic.UNARY[name](x), arithmetic.round_number),
    Mixed: Family("a traced number", OPERATORS, _operate_on_mixed, arithmetic.UNARY,
                  lambda name, x: distribute(lambda own: getattr(own, f"__{name}__")(), x), _round_mixed),
}


def _install_operators(cls: type, family: Family) -> None:
    for name in family.binary:
        _set(cls, f"__{name}__", lambda self, other, name=name: family.operate(name, self, other))
        if name not in COMPARISONS:
            _set(cls, f"__r{name}__", lambda self, other, name=name: family.operate(name, other, self))
    for name in family.unary:
        _set(cls, f"__{name}__", lambda self, name=name: family.apply(name, self))

    def power(self, other, modulus=None):
        if modulus is not None:
            raise not_traceable(f"pow() of {family.what} with a modulus")
        return family.operate("pow", self, other)

    _set(cls, "__pow__", power)
    _set(cls, "__round__", lambda self, digits=None: family.round(self, digits))


def _set(cls: type, name: str, function: Callable) -> None:
    function.__name__ = name
    setattr(cls, name, function)


def _apply_hooked_ufunc(self, ufunc, method, *inputs, **kwargs):
    return apply_ufunc(ufunc, method, inputs, kwargs)


def _apply_hooked_function(self, function, types, args, kwargs):
    return apply_function(function, args, kwargs)


def _install_in_place(name: str) -> None:
    def operate(self, other):
        return apply_in_place(name, self, other) if isinstance(other, ACCEPTED) else NotImplemented

    _set(NDArray, f"__i{name}__", operate)


# -- arrays and scalars -------------------------------------------------------------------------------------
def _item_of_array(self, *args):
    """One element as a Python number."""
    if not args:
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return to_python(Scalar(lax.reshape(self.read(), ())))
    place = args[0] if len(args) == 1 else args
    return to_python((self if isinstance(place, tuple) else self.flat)[place])


def _item_of_scalar(self, *args):
    """The Python number of this value."""
    if args not in ((), (0,), ((),)):
        raise IndexError("index out of bounds")
    return to_python(self)


def _is_integer(self):
    """Whether a float has no fraction."""
    return to_python(self).is_integer()


def _as_array(self):
    """An array without axes that holds it."""
    return new_array(self.read())


def _find_attribute(self, name: str):
    """An attribute of a NumPy scalar: that of an array without axes."""
    if name.startswith("__") or not hasattr(np.dtype(self.dtype).type, name):
        raise AttributeError(f"'numpy.{self.dtype}' object has no attribute '{name}'")
    method = getattr(self.as_array(), name)
    if not callable(method):
        return method
    return lambda *args, **kwargs: unwrap_array(method(*args, **kwargs))


METHODS: dict[type, dict[str, Any]] = {
    NDArray: {"__getitem__": get_item, "__setitem__": set_item, "item": _item_of_array,
              "flags": property(Flags, doc="Its layout, as far as that is known.")},
    Scalar: {"__getattr__": _find_attribute, "as_array": _as_array, "is_integer": _is_integer,
             "item": _item_of_scalar, "tolist": _item_of_scalar},
}


def install() -> None:
    """Puts operators, methods and NumPy's hooks on the classes of handles."""
    for cls, family in FAMILIES.items():
        _install_operators(cls, family)
        cls.__array_ufunc__, cls.__array_function__ = _apply_hooked_ufunc, _apply_hooked_function
        for name, method in METHODS.get(cls, {}).items():
            setattr(cls, name, method)
    for name in OPERATORS:
        if name not in COMPARISONS and name != "divmod":
            _install_in_place(name)
