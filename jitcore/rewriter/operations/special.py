"""Special methods of the user's classes, called by their rewritten form where Python's operators call them.

In: an operator and its operands, of which one may be an object of a class of the user's. Out: what Python
gives. Classes of libraries keep their own way: so do ints, arrays and handles.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore.rewriter.control_flow.raising import is_doubtful, is_refusal
from jitcore.rewriter.handles import Handle, current
from jitcore.rewriter.user_code import LIBRARY_CLASSES, find_in_class, find_special, is_user_class

#: BINARY_OP's arguments are the places of these, in-place forms behind them all.
_BINARY = "add and floordiv lshift matmul mul mod or pow rshift sub truediv xor".split()
_KEYWORDS = ("and", "or")
#: Names of comparisons, and of those with the operands swapped.
_COMPARISONS = {"<": ("lt", "gt"), "<=": ("le", "ge"), "==": ("eq", "eq"), "!=": ("ne", "ne"),
                ">": ("gt", "lt"), ">=": ("ge", "le")}


class SpecialMethods:
    """Args: resolve: gives the rewritten form of a callable."""

    def __init__(self, resolve: Callable[[Any], Any]):
        self.resolve = resolve

    def call(self, value: Any, name: str, *args: Any) -> Any:
        """What a special method of the user's gives; NotImplemented where there is none."""
        method = find_special(value, f"__{name}__")
        return NotImplemented if method is None else self.resolve(method)(*args)

    # -- operators of two operands ---------------------------------------------------------------------------
    def define_binary(self, number: int) -> Callable[[tuple], Any]:
        """The operator with this argument of BINARY_OP."""
        is_in_place, name = number >= len(_BINARY), _BINARY[number % len(_BINARY)]
        plain = getattr(operator, f"i{name}" if is_in_place else f"{name}_" if name in _KEYWORDS else name)

        def operate(pair: tuple) -> Any:
            one, other = pair
            if type(one) in LIBRARY_CLASSES and type(other) in LIBRARY_CLASSES or not _has_users(pair):
                return plain(one, other)
            found = self.call(one, f"i{name}", other) if is_in_place else NotImplemented
            return self._ask_both(one, other, name, f"r{name}", plain) if found is NotImplemented else found

        return operate

    def define_comparison(self, text: str) -> Callable[[tuple], Any]:
        name, swapped = _COMPARISONS[text]
        plain = getattr(operator, name)

        def compare(pair: tuple) -> Any:
            one, other = pair
            if type(one) in LIBRARY_CLASSES and type(other) in LIBRARY_CLASSES or not _has_users(pair):
                return plain(one, other)
            if name == "ne" and not find_special(one, "__ne__") and find_special(one, "__eq__"):
                found = self.call(one, "eq", other)
                return one is not other if found is NotImplemented else not found
            return self._ask_both(one, other, name, swapped, plain)

        return compare

    def _ask_both(self, one: Any, other: Any, name: str, swapped: str, plain: Callable) -> Any:
        """As Python asks: the second operand first where its class is derived from the first one's, and has a
        method of its own."""
        kind, other_kind = type(one), type(other)
        own, others = find_special(one, f"__{name}__"), find_special(other, f"__{swapped}__")
        if own is None and others is None:
            return plain(one, other)
        found = NotImplemented
        is_derived = kind is not other_kind and issubclass(other_kind, kind)
        if is_derived and others and others.__func__ is not find_in_class(kind, f"__{swapped}__")[1]:
            found, others = self.resolve(others)(one), None
        if found is NotImplemented:
            found = _ask_library(one, name, other) if own is None else self.resolve(own)(other)
        if found is NotImplemented and others and (kind is not other_kind or plain in _COMPARING):
            found = self.resolve(others)(one)
        if found is not NotImplemented:
            return found
        if plain in (operator.eq, operator.ne):
            return (one is other) == (plain is operator.eq)
        kinds = f"'{kind.__name__}' and '{other_kind.__name__}'"
        raise TypeError(f"unsupported operand type(s) for {name}: {kinds}")

    def define_unary(self, name: str) -> Callable[[Any], Any]:
        plain = getattr(operator, name)

        def apply(value: Any) -> Any:
            if type(value) in LIBRARY_CLASSES or not find_special(value, f"__{name}__"):
                return plain(value)
            return self.call(value, name)

        return apply

    def make_iterator(self, value: Any) -> Any:
        """What the user's `__iter__` gives; None where there is none."""
        if find_special(value, "__iter__") is None:
            return None
        found = self.call(value, "iter")
        if not hasattr(type(found), "__next__"):
            raise TypeError(f"iter() returned non-iterator of type '{type(found).__name__}'")
        return found

    # -- truth -----------------------------------------------------------------------------------------------
    def read_truth(self, value: Any) -> Any:
        """The value that `if` and `while` read: an object's truth where the user's code decides it."""
        if type(value) in LIBRARY_CLASSES or not is_user_class(type(value)):
            return value
        found = self.call(value, "bool")
        if found is NotImplemented:
            found = self.call(value, "len")
            return value if found is NotImplemented else found > 0
        if not isinstance(found, (bool, Handle)):
            raise TypeError(f"__bool__ should return bool, returned {type(found).__name__}")
        return found

    # -- with ------------------------------------------------------------------------------------------------
    def enter_context(self, manager: Any) -> tuple[Any, Callable]:
        """What `with` binds, and what it calls at its end."""
        kind = type(manager)
        if not (hasattr(kind, "__enter__") and hasattr(kind, "__exit__")):
            raise TypeError(f"'{kind.__name__}' object does not support the context manager protocol")
        enter, leave = find_special(manager, "__enter__"), find_special(manager, "__exit__")
        leave = types.MethodType(kind.__exit__, manager) if leave is None else self.resolve(leave)
        result = kind.__enter__(manager) if enter is None else self.resolve(enter)()

        def leave_context(_: Any, kind: Any, error: Any, trace: Any) -> Any:
            if current.mode is not None and error is not None and (is_refusal(error) or is_doubtful(error)):
                return None  # whoever runs the call instead has no such error
            return leave(kind, error, trace)

        return result, types.MethodType(leave_context, manager)


#: They ask the second operand too where both are of one class.
_COMPARING = frozenset(getattr(operator, name) for name, _ in _COMPARISONS.values())


def _has_users(pair: tuple) -> bool:
    return is_user_class(type(pair[0])) or is_user_class(type(pair[1]))


def _ask_library(value: Any, name: str, other: Any) -> Any:
    """What a library's class says. Raises: where NumPy would make an array of an object of the user's."""
    is_numpy = isinstance(value, (np.ndarray, np.generic)) or isinstance(value, Handle) and not value.defers
    if is_numpy and current.mode is not None and getattr(type(other), "__array_ufunc__", value) is not None:
        raise current.mode.refuse(f"an object of type {type(other).__qualname__} is an operand of NumPy's")
    method = getattr(type(value), f"__{name}__", None)
    return NotImplemented if method is None else method(value, other)
