"""Attributes as traced code sees them: what an object finds in its class is captured, what runs code of the
user's is entered.

In: an object and a name, where traced code reads or sets an attribute. Out: the value, or its stand-in. The
objects that hold data are stand-ins themselves, so that only what hangs on classes, functions and modules,
which are taken as they are, has to be looked after.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
from collections import deque
from collections.abc import Callable, MutableMapping
from typing import Any

import numpy as np

from jitcore.autojitted.inputs.captures import Captures, Namespace
from jitcore.autojitted.inputs.specs import Unread
from jitcore.dispatch.call_facts import ABSENT
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.conversions import type_of
from jitcore.numpy_semantics.values.object_lists import Element
from jitcore.rewriter.control_flow.iterators import TracedIterable
from jitcore.rewriter.handles import Handle
from jitcore.rewriter.journal import AttributeLocation, record
from jitcore.rewriter.objects import find_in_class, is_user_class, is_user_code
from jitcore.rewriter.operations.hooks import check_there

#: What of a function is the same for as long as it is that function.
_OF_FUNCTIONS = frozenset("__name__ __qualname__ __doc__ __module__ __class__ __call__ __get__".split())
#: Methods of all objects that say at which place in memory one is.
_OF_PLACES = frozenset("__hash__ __repr__ __str__ __format__".split())
#: What a variable of a class is when it is code, or a rule, and not data.
_RULES = (
    types.FunctionType, staticmethod, classmethod, property, type,
    types.MemberDescriptorType, types.GetSetDescriptorType, types.MethodDescriptorType,
    types.WrapperDescriptorType, types.MethodWrapperType)
_CHANGING = (list, dict, set, deque, bytearray, MutableMapping)


@dataclasses.dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes: captures: of the trace; resolve: gives the traced form of a callable."""

    captures: Captures
    resolve: Callable[[Any], Any]

    def read(self, owner: Any, name: str) -> Any:
        """`owner.name`. Raises: AttributeError; NotTraceable for what can be neither an input nor a guard."""
        kind = type(owner)
        if name == "__class__" and issubclass(kind, (Handle, TracedIterable)):
            return type_of(owner)
        if issubclass(kind, Element):
            return self._read_element(owner, kind.stands_for, name)
        if issubclass(kind, (Handle, np.ndarray)):
            return getattr(owner, name)
        if kind is types.FunctionType:
            return self._read_function(owner, name)
        if issubclass(kind, type):
            return self._read_class(owner, name) if is_user_class(owner) else getattr(owner, name)
        if kind is types.ModuleType:  # that the code has imported itself
            return getattr(self.captures.view(owner), name)
        if issubclass(kind, enum.Enum):
            value = _check_constant(getattr(owner, name), owner, name)
            if name not in ("value", "name"):  # which belong to the member
                own = vars(owner)
                self.captures.guard(own, f"{{owner}}.get({name!r}, ABSENT)", own.get(name, ABSENT))
            return value
        if not is_user_class(kind):
            return getattr(owner, name)
        value = self._read_object(owner, kind, name)
        for one in value.values() if name == "__dict__" else (value,):
            if type(one) is Unread:
                one.refuse()
        return value

    def get(self, owner: Any, name: str, *default: Any) -> Any:
        """`getattr(owner, name, default)`."""
        try:
            return self.read(owner, name)
        except AttributeError:
            if not default:
                raise
            return default[0]

    def list_variables(self, *owner: Any) -> Any:
        """`vars(owner)`."""
        return self.read(*owner, "__dict__") if len(owner) == 1 else vars(*owner)

    def has(self, owner: Any, name: str) -> bool:
        """`hasattr(owner, name)`."""
        if isinstance(owner, Handle) and not isinstance(owner, Element):
            return hasattr(type_of(owner), name)
        try:
            self.read(owner, name)
        except AttributeError:
            return False
        return True

    def store(self, owner: Any, name: str, value: Any) -> None:
        """`owner.name = value`. Raises: AttributeError; NotTraceable as `check_store` does."""
        self._check_store(owner, name)
        kind = type_of(owner)
        if is_user_class(kind):
            own = find_in_class(kind, "__setattr__")[1]
            if isinstance(own, types.FunctionType):
                if own.__code__.co_filename != "<string>":  # made for a frozen dataclass, which refuses
                    self.resolve(own)(owner, name, value)
                    return
            base, found = find_in_class(kind, name)
            setter = found.fset if isinstance(found, property) else find_in_class(type(found), "__set__")[1]
            if isinstance(setter, types.FunctionType):
                if isinstance(found, property):
                    self.resolve(setter)(owner, value)
                else:
                    self.resolve(setter)(self.captures.capture_variable(base, name, found), owner, value)
                return
        if isinstance(owner, Element):
            self._store_in_element(owner, name, value)
            return
        record(AttributeLocation(owner, name))
        setattr(owner, name, value)

    def delete(self, owner: Any, name: str) -> None:
        """`del owner.name`."""
        self._check_store(owner, name)
        if isinstance(owner, Element):
            raise not_traceable(f"the attribute {name} of an object of a list is deleted")
        if is_user_class(type(owner)):
            found, own = (find_in_class(type(owner), which)[1] for which in (name, "__delattr__"))
            is_slot = isinstance(found, types.MemberDescriptorType)
            has_rule = not is_slot and find_in_class(type(found), "__delete__")[0]
            if has_rule or isinstance(own, types.FunctionType):
                raise not_traceable(f"the attribute {type(owner).__qualname__}.{name} is changed")
        check_there(AttributeLocation(owner, name))
        delattr(owner, name)

    def _check_store(self, owner: Any, name: str) -> None:
        """Raises: NotTraceable where an attribute is set on what the trace does not own."""
        kind = type(owner)
        if kind is types.FunctionType and not isinstance(owner.__globals__, Namespace):
            raise not_traceable(f"the attribute {owner.__qualname__}.{name} is changed")
        if name in ("__class__", "__dict__"):
            raise not_traceable(f"{name} of an object of type {kind.__qualname__} is changed")
        if issubclass(kind, (type, types.ModuleType, enum.Enum)):
            shown = getattr(owner, "__qualname__", owner)
            raise not_traceable(f"the attribute {shown}.{name} is changed")

    def _read_function(self, function: types.FunctionType, name: str) -> Any:
        if isinstance(function.__globals__, Namespace) or name in _OF_FUNCTIONS:
            return getattr(function, name)
        if not is_user_code(function.__code__):
            return _check_constant(getattr(function, name), function, name)
        if name[:2] == "__":
            raise not_traceable(f"{function.__qualname__}.{name} is read")
        value = function.__dict__.get(name, ABSENT)
        found = self.captures.capture_variable(function, name, value)
        if found is ABSENT:
            return getattr(function, name)  # raises
        return found

    def _read_class(self, owner: type, name: str) -> Any:
        if name in ("__dict__", "__subclasses__", "__bases__", "__mro__") or is_user_class(type(owner)):
            raise not_traceable(f"{owner.__qualname__}.{name} is read")
        base, found = find_in_class(owner, name)
        if base is None or not is_user_class(base) or name[:2] == "__" or isinstance(found, _RULES):
            return getattr(owner, name)
        if isinstance(owner, enum.EnumType) or issubclass(owner, enum.Enum):
            return _check_constant(getattr(owner, name), owner, name)
        getter = find_in_class(type(found), "__get__")[1]
        if getter is not None and not isinstance(getter, types.FunctionType):
            return getattr(owner, name)
        value = self.captures.capture_variable(base, name, found)
        return value if getter is None else self.resolve(getter)(value, None, owner)

    def _read_object(self, owner: Any, kind: type, name: str) -> Any:
        if name == "__dict__":
            return self.captures.read_variables(owner)
        if name == "__class__":
            return kind
        if isinstance(find_in_class(kind, "__getattribute__")[1], types.FunctionType):
            raise not_traceable(f"{kind.__qualname__}.__getattribute__() is called")
        base, found = find_in_class(kind, name)
        if base is object and name in _OF_PLACES:
            raise not_traceable(f"{name} of an object of type {kind.__qualname__} is read")
        own = getattr(owner, "__dict__", {})
        if isinstance(found, property):
            if found.fget is None or not isinstance(found.fget, types.FunctionType):
                return getattr(owner, name)
            return self.resolve(found.fget)(owner)
        is_rule = base is None or isinstance(found, _RULES)
        getter = None if is_rule else find_in_class(type(found), "__get__")[1]
        if getter is None and name in own or name[:2] == "__":
            return getattr(owner, name)
        if base is None:
            return self._read_missing(owner, kind, name)
        if is_rule or not is_user_class(base):
            return getattr(owner, name)
        if getter is None:
            return self.captures.capture_variable(base, name, found)
        if not isinstance(getter, types.FunctionType):
            return getattr(owner, name)  # one of C code, which reads what the object holds
        is_data = find_in_class(type(found), "__set__")[0] or find_in_class(type(found), "__delete__")[0]
        if name in own and is_data is None:
            return own[name]
        if type(found) is functools.cached_property:
            value = self.resolve(found.func)(owner)
            record(AttributeLocation(owner, name))
            own[name] = value
            return value
        return self.resolve(getter)(self.captures.capture_variable(base, name, found), owner, kind)

    def _read_element(self, element: Element, kind: type, name: str) -> Any:
        """An attribute of an object of a list."""
        base, found = find_in_class(kind, name)
        if name[:2] == "__" and name[-2:] == "__" and not isinstance(found, types.FunctionType):
            raise not_traceable(f"{name} of an object of a list is read")
        if isinstance(found, property) and isinstance(found.fget, types.FunctionType):
            return self.resolve(found.fget)(element)
        if _is_rule(found):
            raise not_traceable(f"the attribute {kind.__qualname__}.{name} of an object of a list is read")
        if name in vars(element)["owner"].columns:
            column, place = element.locate(name)
            if type(column) is Unread:
                column.refuse()
            value = column[place]
            return value.refuse() if type(value) is Unread else value
        if base is None:
            raise AttributeError(f"'{kind.__name__}' object has no attribute '{name}'")
        if isinstance(found, types.FunctionType):
            return types.MethodType(found, element)
        if isinstance(found, (staticmethod, classmethod)):
            return found.__get__(None, kind)
        return self.read(kind, name)

    def _store_in_element(self, element: Element, name: str, value: Any) -> None:
        kind = type_of(element)
        is_new = name not in vars(element)["owner"].columns
        own = find_in_class(kind, "__setattr__")[1]
        if is_new or isinstance(own, types.FunctionType) or _is_rule(find_in_class(kind, name)[1]):
            raise not_traceable(f"the attribute {kind.__qualname__}.{name} of an object of a list is set")
        column, place = element.locate(name)
        if type(column) is Unread:
            column.refuse()
        column[place] = value

    def _read_missing(self, owner: Any, kind: type, name: str) -> Any:
        found = find_in_class(kind, "__getattr__")[1]
        if not isinstance(found, types.FunctionType):
            return getattr(owner, name)  # raises
        return self.resolve(found)(owner, name)


def _is_rule(found: Any) -> bool:
    """Whether what a class has under a name decides what its objects have there, but methods."""
    is_method = isinstance(found, (types.FunctionType, staticmethod, classmethod))
    return not is_method and find_in_class(type(found), "__get__")[0] is not None


def _check_constant(value: Any, owner: Any, name: str) -> Any:
    """Raises: NotTraceable for what may change, where it can be no input."""
    if isinstance(value, _CHANGING):
        raise not_traceable(f"{getattr(owner, '__name__', owner)}.{name} is read, which may change")
    return value
