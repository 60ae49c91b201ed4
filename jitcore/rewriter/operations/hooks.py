"""Hooks: what rewritten code does in place of operations in which a traced value means something else.

In: operands from the stack, by `helper @ operand` or `value in guard` (`resumable.py` says why). Out: the
result that plain Python would give, or a traced one.

Special methods of the user's classes are called by their rewritten form where Python's operators call them.
Classes of libraries keep their own way: so do ints, arrays and handles.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore.process.effort import spend
from jitcore.rewriter.bytecode.versions import REMAINDER, REMAINDER_IN_PLACE
from jitcore.rewriter.control_flow.iterators import TracedIterator, as_traced_iterator
from jitcore.rewriter.control_flow.raising import (choose_caught, choose_suppressed, enter_handler,
                                                   is_doubtful, is_refusal, negate, pass_refusal,
                                                   read_variable)
from jitcore.rewriter.control_flow.while_loops import ROLL_GUARD
from jitcore.rewriter.handles import Handle, current
from jitcore.rewriter.journal import (ArrayLocation, AttributeLocation, CellLocation, GlobalLocation,
                                      ItemLocation, Location, change, logs, record)
from jitcore.rewriter.objects import LIBRARY_CLASSES, find_in_class, find_special, is_user_class
from jitcore.rewriter.operations.matching import Matching
from jitcore.rewriter.operations.sequences import compare_sequences, holds_traced
from jitcore.rewriter.operations.texts import find_converter, find_formatter, join_parts, remainder
from jitcore.rewriter.values import (Poison, as_predicate, find_recording, is_traced, is_undecided,
                                     wrap_predicate)

# -- special methods -----------------------------------------------------------------------------------------
#: BINARY_OP's arguments are the places of these, in-place forms behind them all.
_BINARY = "add and floordiv lshift matmul mul mod or pow rshift sub truediv xor".split()
_KEYWORDS = ("and", "or")
#: Names of comparisons, and of those with the operands swapped.
_COMPARISONS = {"<": ("lt", "gt"), "<=": ("le", "ge"), "==": ("eq", "eq"), "!=": ("ne", "ne"),
                ">": ("gt", "lt"), ">=": ("ge", "le")}
_SEQUENCES = (tuple, list)
_TEXTS = {name: text for text, (name, _) in _COMPARISONS.items()}


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
            if name == "mul" and list in (type(one), type(other)) and current.mode is not None:
                found = current.mode.repeat(*(pair if type(one) is list else (other, one)))
                if found is not None:
                    return found
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
            if type(one) in _SEQUENCES and type(one) is type(other) and holds_traced((one, other)):
                return compare_sequences(name, one, other, self._compare)
            if type(one) in LIBRARY_CLASSES and type(other) in LIBRARY_CLASSES or not _has_users(pair):
                return plain(one, other)
            if name == "ne" and not find_special(one, "__ne__") and find_special(one, "__eq__"):
                found = self.call(one, "eq", other)
                return one is not other if found is NotImplemented else not found
            return self._ask_both(one, other, name, swapped, plain)

        return compare

    def _compare(self, name: str, one: Any, other: Any) -> Any:
        return self.define_comparison(_TEXTS[name])((one, other))

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

    # -- containers ------------------------------------------------------------------------------------------
    def make_iterator(self, value: Any) -> Any:
        """`iter(value)`."""
        if find_special(value, "__iter__") is None:
            return _make_iterator(value)
        found = self.call(value, "iter")
        if not hasattr(type(found), "__next__"):
            raise TypeError(f"iter() returned non-iterator of type '{type(found).__name__}'")
        return found

    def contains(self, pair: tuple) -> Any:
        """`value in container`."""
        value, container = pair
        if current.mode is not None and isinstance(container, Handle):
            kind = self.resolve(type)(container)
            if not hasattr(kind, "__contains__"):
                raise TypeError(f"argument of type '{kind.__name__}' is not iterable")
        if not find_special(container, "__contains__"):
            return _contains(pair)
        found = self.call(container, "contains", value)
        return wrap_predicate(as_predicate(found)) if is_traced(found) else bool(found)

    def read_item(self, pair):
        """An ndarray cannot be indexed by handles itself."""
        owner, index = pair
        if type(owner) is np.ndarray:
            if current.mode is not None and _has_handle(index):
                owner = current.mode.adopt(owner)
        elif type(owner) in (list, tuple, str):
            if current.mode is not None and isinstance(index, Handle):
                return current.mode.pick(owner, index)
        elif type(owner) not in LIBRARY_CLASSES and find_special(owner, "__getitem__"):
            return self.call(owner, "getitem", index)
        return owner[index]

    def store_item(self, triple):
        value, owner, index = triple
        kind = type(owner)
        if kind is np.ndarray:
            if current.mode is not None and (_has_handle(index) or _has_handle(value)):
                owner = current.mode.adopt(owner)
            elif logs.stack:
                record(ArrayLocation(owner))
        elif kind not in LIBRARY_CLASSES and find_special(owner, "__setitem__"):
            self.call(owner, "setitem", index, value)
            return
        elif logs.stack and kind in (list, dict) and type(index) is not slice and not is_traced(index):
            record(ItemLocation(owner, index))
        owner[index] = value

    def store_slice(self, quadruple):
        value, owner, start, stop = quadruple
        self.store_item((value, owner, slice(start, stop)))

    def delete_item(self, pair):
        owner, index = pair
        if find_special(owner, "__delitem__"):
            self.call(owner, "delitem", index)
        else:
            del owner[index]

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


# -- operations ---------------------------------------------------------------------------------------------
#: Steps of asking a hook.
_HOOK = 0.5


class _Apply:
    """A function that is called by `self @ operand`."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[Any], Any]):
        self.function = function

    def __matmul__(self, operand):
        spend(_HOOK)
        return self.function(operand)


class _Guard:
    """`value in self` for a value on top of the stack."""

    __slots__ = ("test",)

    def __init__(self, test: Callable[[Any], bool]):
        self.test = test

    def __contains__(self, value) -> bool:
        spend(_HOOK)
        return self.test(value)


def _logical_not(value):
    return wrap_predicate(negate(as_predicate(value))) if is_traced(value) else not value


#: A loop over a longer range is compiled as a loop; over a shorter one, Python goes through it.
MAX_UNROLLED = 16


def _make_iterator(value):
    if is_traced(value):
        found = as_traced_iterator(value)
        return iter(value) if found is None else found
    if type(value) is range and find_recording() is not None:
        limit = MAX_UNROLLED if current.mode is None else current.mode.unrolled
        return as_traced_iterator(value) if len(value) > limit else iter(value)
    return iter(value)


def _contains(pair):
    """`value in container`; one traced comparison for each element where something is traced."""
    value, container = pair
    if hasattr(container, "holds"):  # a text
        return wrap_predicate(container.holds(value))
    if type(container) is str and is_traced(value) and len(value) == 1:
        container = tuple(container)
    if is_traced(container):
        return wrap_predicate(as_predicate((container == value).any()))
    if not isinstance(container, (list, tuple)) or not any(map(is_traced, (value, *container))):
        return value in container
    found: Any = False
    for element in container:
        if value is element:
            return True
        is_equal = value == element
        found = (as_predicate(is_equal) if is_traced(is_equal) else is_equal) | found
    return wrap_predicate(found) if is_traced(found) else found


def _is_same(pair):
    for value in pair:
        if type(value) is Poison:
            value.raise_reason()
    one, other = pair
    # their types, as `__class__` may be the user's code
    if issubclass(type(one), Handle):
        return wrap_predicate(one.is_object(other))
    if issubclass(type(other), Handle):
        return wrap_predicate(other.is_object(one))
    if current.mode is not None and one is not other and _may_be_one(one, other):
        raise current.mode.refuse_identity(type(one))
    return one is other


def _refuse_unknown(value: Any) -> bool:
    """Where Python looks whether a value is None. Raises: where that is not known."""
    if type(value) is Poison:
        value.raise_reason()
    if issubclass(type(value), Handle) and value.is_object(None) is not False:
        raise current.mode.refuse("a value that may be None decides in a function that is not compiled")
    return False


def _may_be_one(one, other) -> bool:
    """Whether two values that cannot change stand for what may be one object of the caller's."""
    if one is other or type(one) is not type(other):
        return one is other
    if issubclass(type(one), tuple):
        return len(one) == len(other) and all(map(_may_be_one, one, other))
    if issubclass(type(one), Handle):
        return one.leaf_type == other.leaf_type
    return type(one) in (int, float, complex, str, bytes) and repr(one) == repr(other)


def _has_handle(index) -> bool:
    if type(index) is tuple:
        return any(map(_has_handle, index))
    if type(index) is slice:
        return _has_handle((index.start, index.stop, index.step))
    return isinstance(index, Handle)


def _note_in_place(pair):
    """Before `value += operand`."""
    if logs.stack and type(pair[0]) is np.ndarray:
        record(ArrayLocation(pair[0]))


# -- stores -------------------------------------------------------------------------------------------------
def _store_cell(pair):
    value, cell = pair
    change(CellLocation(cell), value)


def _note_deleted(cell):
    """Before a variable in a cell is deleted."""
    location = CellLocation(cell)
    check_there(location)
    record(location)


def _store_global(pair):
    value, name = pair
    change(GlobalLocation(sys._getframe(2).f_globals, name), value)


def _read_attribute(pair):
    mode = current.mode
    return getattr(*pair) if mode is None else mode.read_attribute(*pair)


def _store_attribute(triple):
    value, owner, name = triple
    if current.mode is not None:
        current.mode.store_attribute(owner, name, value)
        return
    record(AttributeLocation(owner, name))
    setattr(owner, name, value)


def _delete_attribute(pair):
    if current.mode is not None:
        current.mode.delete_attribute(*pair)
    else:
        check_there(AttributeLocation(*pair))
        delattr(*pair)


def _append_item(pair):
    """What a comprehension does with an element."""
    value, target = pair
    target.append(value)


def _delete_global(name):
    namespace = sys._getframe(2).f_globals
    location = GlobalLocation(namespace, name)
    check_there(location)
    if name not in namespace:
        raise NameError(f"name {name!r} is not defined", name=name)
    record(location)
    del namespace[name]


def check_there(location: Location) -> None:
    """Before something is deleted. Raises: ControlFlowError where it is there on one way only."""
    found = location.read()
    if isinstance(found, Poison):
        found.raise_reason()


# -- the hooks ----------------------------------------------------------------------------------------------
class Hooks:
    """What `HookedWriter` puts into code, by name; `compare` and its like give that of one operator.

    resolve: chooses what is called instead of a callable."""

    guard = _Guard(is_undecided)
    roll_guard = ROLL_GUARD
    iterator_guard = _Guard(lambda value: isinstance(value, TracedIterator))
    poison_guard = _Guard(lambda value: _refuse_unknown(value))

    def __init__(self, resolve: Callable[[Any], Any]):
        special, matching = SpecialMethods(resolve), Matching(resolve, _read_attribute)
        binary = functools.cache(special.define_binary)
        applied = {
            "resolve": resolve, "logical_not": _logical_not, "make_iterator": special.make_iterator,
            "contains": special.contains, "not_contains": lambda pair: _logical_not(special.contains(pair)),
            "is_none": lambda value: _is_same((value, None)),
            "is_same": _is_same, "is_not": lambda pair: _logical_not(_is_same(pair)),
            "store_cell": _store_cell, "note_deleted": _note_deleted,
            "store_global": _store_global, "delete_global": _delete_global,
            "read_attribute": _read_attribute, "store_attribute": _store_attribute,
            "delete_attribute": _delete_attribute, "read_item": special.read_item,
            "store_item": special.store_item, "store_slice": special.store_slice,
            "delete_item": special.delete_item, "append_item": _append_item, "note_in_place": _note_in_place,
            "read_truth": special.read_truth, "enter_context": special.enter_context,
            "is_sequence": matching.is_sequence, "is_mapping": matching.is_mapping,
            "match_keys": matching.match_keys, "find_length": matching.find_length,
            "remainder": _define_remainder(binary(REMAINDER)),
            "remainder_in_place": _define_remainder(binary(REMAINDER_IN_PLACE)), "join_parts": join_parts,
            "choose_caught": choose_caught, "choose_suppressed": choose_suppressed,
            "enter_handler": enter_handler, "pass_refusal": pass_refusal}
        families = {
            "operate": binary, "compare": special.define_comparison, "apply_unary": special.define_unary,
            "match_class": matching.define_class,
            "format_value": find_formatter, "convert_value": find_converter,
            "read_variable": lambda name: lambda value: read_variable(value, name)}
        self.__dict__ |= {name: _Apply(function) for name, function in applied.items()}
        self.__dict__ |= {name: _define_family(define) for name, define in families.items()}


def _define_family(define: Callable[[Any], Callable]) -> Callable[[Any], _Apply]:
    return functools.cache(lambda key: _Apply(define(key)))


def _define_remainder(operate: Callable[[tuple], Any]) -> Callable[[tuple], Any]:
    return lambda pair: remainder(pair, lambda one, other: operate((one, other)))
