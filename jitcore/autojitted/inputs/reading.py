"""From values to specs, and from specs to checks and stand-ins.

In: arguments and captured variables, one after the other. Out: the `Spec` of each, and what stands at the
places; `Unreadable` for what cannot be traced. Specs are then asked one after the other: `Matcher` takes the
lines of a call that check its values and name their places; `Builder` the stand-ins that are traced in their
places.
"""

from __future__ import annotations

import enum
import functools
import re
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore import dtypes
from jitcore.autojitted.inputs.guards import is_changeable
from jitcore.autojitted.inputs.specs import (
    ABSENT,
    FLAGS,
    TRACED_INTS,
    ArraySpec,
    BuiltinMethodSpec,
    DictSpec,
    IdentitySpec,
    InstanceSpec,
    MethodSpec,
    PartialSpec,
    RepeatSpec,
    ScalarSpec,
    SequenceSpec,
    Spec,
    StaticSpec,
    is_constant_key,
    list_key_types,
)
from jitcore.dispatch.fast_call import Constants
from jitcore.numpy_semantics.values.numbers import NUMBER_DTYPES
from jitcore.rewriter.journal import BOUND_METHODS, OWNERLESS
from jitcore.rewriter.user_code import find_in_class, is_user_class, is_user_code


# -- from specs to code ------------------------------------------------------------------------------------
class Matcher:
    """Writes the part of a call that checks values. In the code, `x3` is the value at place 3.

    Attributes:
        places: the spec at each place.
        variables: names of dicts, those of attributes among them.
    """

    def __init__(self, constants: Constants):
        self.constants = constants
        self.lines: list[str] = []
        self.places: list[Spec] = []
        self.variables: list[str] = []
        self._temporaries = 0

    def name(self, value: str, spec: Spec) -> str:
        x = f"x{len(self.places)}"
        self.places.append(spec)
        self.lines.append(f"{x} = {value}")
        return x

    def temporary(self, value: str) -> str:
        self._temporaries += 1
        self.lines.append(f"t{self._temporaries} = {value}")
        return f"t{self._temporaries}"

    def check(self, condition: str) -> None:
        self.lines.append(f"if not ({condition}): return MISS")

    def check_distinct(self) -> None:
        """No object stands at two places, and no dict of attributes is that of two objects."""
        self._check_names(self.variables)
        self._check_names([f"x{i}" for i, spec in enumerate(self.places)
                           if not (isinstance(spec, (ScalarSpec, DictSpec))
                                   or isinstance(spec, SequenceSpec) and spec.kind is not list)])

    def _check_names(self, names: list[str]) -> None:
        if len(names) > 4:
            self.check(f"len({{{', '.join(f'id({x})' for x in names)}}}) == {len(names)}")
            return
        for i, x in enumerate(names):
            for y in names[:i]:
                self.lines.append(f"if {x} is {y}: return MISS")


# -- from specs to what is traced --------------------------------------------------------------------------
class Builder:
    """Makes the stand-ins.

    Args:
        make_leaf: of an array or scalar; make_object: of what is taken as it is.
        note_instance: is told of the stand-in of an object of a user's class.

    Attributes:
        places, stand_ins: spec and stand-in of each place.
    """

    def __init__(self, make_leaf: Callable[[Spec], Any], make_object: Callable[[Any], Any],
                 note_instance: Callable[[Any], None]):
        self.make_leaf, self.make_object, self.note_instance = make_leaf, make_object, note_instance
        self.places: list[Spec] = []
        self.stand_ins: list[Any] = []
        self._ids: set[int] = set()

    def add(self, spec: Spec, stand_in: Any) -> Any:
        self.places.append(spec)
        self.stand_ins.append(stand_in)
        self._ids.add(id(stand_in))
        return stand_in

    def has_made(self, value: Any) -> bool:
        """Whether a value is a stand-in."""
        return id(value) in self._ids

    def reserve(self, spec: Spec) -> int:
        """The place of what is made of others, whose places follow."""
        self.add(spec, None)
        return len(self.places) - 1

    def fill(self, place: int, stand_in: Any) -> Any:
        self.stand_ins[place] = stand_in
        return stand_in


#: Values that are passed, those in containers among them: more make a call's overhead larger than its work.
MAX_VALUES = 1000


class Unreadable(Exception):
    """A value that cannot be traced. The text is the middle of a sentence."""


_IDENTITIES = (
    types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, np.ufunc, np.vectorize,
    types.MethodType, types.GenericAlias, types.MethodDescriptorType, types.WrapperDescriptorType,
    type(np.sum),
)
_STATICS = (type(None), bool, str, bytes, type(Ellipsis), np.dtype, slice, range)


def _is_wrapper(value: Any) -> bool:
    """Whether an object is one function and nothing else: jitted, cached, an operator with its operands."""
    module = type(value).__module__
    if module.startswith("numpy.lib._index_tricks"):  # np.mgrid
        return True
    return callable(value) and module.startswith(("numba.", "jitcore.", "functools", "operator"))


#: Objects that do not change: their methods are known by themselves.
_UNCHANGING_OWNERS = (*OWNERLESS, bytes, frozenset, range, re.Pattern, np.ufunc)


#: What makes an object more than its `__dict__` says.
_RULES = ("__slots__", "__new__", "__getattr__", "__setattr__", "__del__")


def _describe_rule(kind: type) -> str:
    """Why an object of a class of the user's cannot be taken apart, as the end of a sentence."""
    own = [name for base in kind.__mro__ if is_user_class(base) for name in _RULES if vars(base).get(name)]
    return f", which has {own[0]}" if own else ""


def _is_of_user(function: Any) -> bool:
    return isinstance(function, types.FunctionType) and is_user_code(function.__code__)


class Reader:
    """Reads values. is_static: whether the Python number found by a path is part of the program.

    Attributes:
        values: the object at each place.
        paths: how each place is found, for messages: ("x", 0, ".name").
        number_paths: how each Python number is found.
    """

    def __init__(self, is_static: Callable[[tuple, Any], bool]):
        self.is_static = is_static
        self.values: list[Any] = []
        self.paths: list[tuple] = []
        self.number_paths: list[tuple] = []
        self._seen: dict[int, int] = {}
        self._variables: dict[int, int] = {}  # id of a dict of attributes -> place of its object
        self._count = 0

    def release(self) -> None:
        """Lets go of the values: nothing more is read."""
        self.values, self._seen, self._variables = [], {}, {}

    def _add(self, value: Any, path: tuple) -> None:
        self._seen[id(value)] = len(self.values)
        self.values.append(value)
        self.paths.append(path)

    def _find_repeat(self, value: Any) -> RepeatSpec | None:
        """The spec of an object that was met already."""
        place = self._seen.get(id(value))
        return None if place is None else RepeatSpec(place)

    def read_whole(self, value: Any, path: tuple) -> Spec:
        """As `read`; what was met of a value that is unreadable is forgotten. Raises: Unreadable."""
        count = len(self.values)
        try:
            return self.read(value, path)
        except Unreadable:
            for lists in (self.values, self.paths):
                del lists[count:]
            self._seen, self._variables = ({key: place for key, place in known.items() if place < count}
                                           for known in (self._seen, self._variables))
            raise

    def read(self, value: Any, path: tuple) -> Spec:
        """Raises: Unreadable."""
        self._count += 1
        if self._count > MAX_VALUES:
            raise Unreadable(f"more than {MAX_VALUES} values are passed")
        kind = type(value)
        if is_user_class(kind) and isinstance(find_in_class(kind, "__getattribute__")[1], types.FunctionType):
            raise Unreadable(f"{describe_path(path)} is of type {kind.__module__}.{kind.__qualname__}")
        if kind is np.ndarray:
            return self._read_array(value, path)
        if kind in NUMBER_DTYPES:
            return self._read_number(value, path)
        if isinstance(value, np.generic):
            if value.dtype not in dtypes.SHORT_NAMES or kind is not value.dtype.type:
                raise Unreadable(f"{describe_path(path)} is of type {kind.__name__}")
            if self.is_static(path, value):
                return StaticSpec(kind, value, repr(value))
            self._add(value, path)
            return ScalarSpec(kind)
        if kind is functools.partial:
            repeat = self._find_repeat(value)
            if repeat is not None:
                return repeat
            self._add(value, path)
            parts = (value.func, ".func"), (value.args, ".args"), (value.keywords, ".keywords")
            return PartialSpec(*[self.read(part, (*path, name)) for part, name in parts])
        of_user = kind is types.MethodType and _is_of_user(value.__func__)
        if of_user or kind in BOUND_METHODS and not isinstance(value.__self__, _UNCHANGING_OWNERS):
            return self._read_method(value, path)
        if (
            isinstance(value, _IDENTITIES)
            or value is ABSENT
            or isinstance(value, enum.Enum)
            or _is_wrapper(value)
        ):
            return IdentitySpec(value)
        if kind is slice and not is_constant_key((value.start, value.stop, value.step)):
            raise Unreadable(f"{describe_path(path)} is a slice of objects")
        if kind in _STATICS or isinstance(value, np.dtype):
            return StaticSpec(kind, value, repr(value) if kind in (slice, range) else "")
        if kind in (list, dict) or self._is_instance(kind):
            repeat = self._find_repeat(value)
            if repeat is not None:
                return repeat
            self._add_container(value, kind, path)
        return self._read_container(value, kind, path)

    def _add_container(self, value: Any, kind: type, path: tuple) -> None:
        """Raises: Unreadable for a dict of attributes that was met already in another way."""
        if kind is not list:
            key = id(value if kind is dict else value.__dict__)
            other = self._variables.get(key)
            if other is not None:
                shown = describe_path(self.paths[other])
                raise Unreadable(f"{describe_path(path)} has the same __dict__ as {shown}")
            self._variables[key] = len(self.values)
        self._add(value, path)

    def _read_method(self, value: Any, path: tuple) -> Spec:
        repeat = self._find_repeat(value)
        if repeat is not None:
            return repeat
        self._add(value, path)
        function = getattr(value, "__func__", None)
        known = None if function is None else self.read(function, (*path, ".__func__"))
        try:
            owner = self.read(value.__self__, (*path, ".__self__"))
        except Unreadable:
            if _is_of_user(function):
                raise
            kind, name = type(value.__self__), describe_path(path)
            text = f"{name} is a method of an object of type {kind.__module__}.{kind.__qualname__}"
            raise Unreadable(text) from None
        return MethodSpec(known, owner) if known else BuiltinMethodSpec(type(value), value.__name__, owner)

    def _read_array(self, value: np.ndarray, path: tuple) -> Spec:
        repeat = self._find_repeat(value)
        if repeat is not None:
            return repeat
        if value.dtype not in dtypes.SHORT_NAMES:
            raise Unreadable(f"{describe_path(path)} is an array of dtype {value.dtype}")
        self._add(value, path)
        return ArraySpec(value.dtype, value.shape, value.flags.num & FLAGS)

    def _read_number(self, value: Any, path: tuple) -> Spec:
        kind = type(value)
        self.number_paths.append(path)
        if kind is bool or self.is_static(path, value) or kind is int and value not in TRACED_INTS:
            return StaticSpec(kind, value, repr(value) if kind in (float, complex) else "")
        self._add(value, path)
        return ScalarSpec(kind)

    def _read_container(self, value: Any, kind: type, path: tuple) -> Spec:
        if kind is list or isinstance(value, tuple):
            if kind not in (list, tuple) and not hasattr(kind, "_fields") or getattr(value, "__dict__", None):
                raise Unreadable(f"{describe_path(path)} is of type {kind.__name__}")
            if kind is not list:
                self.values.append(value)
                self.paths.append(path)
            return SequenceSpec(kind, tuple([self.read(item, (*path, i)) for i, item in enumerate(value)]))
        if kind is dict:
            if not all(key.__class__ in (str, int, tuple) and is_constant_key(key) for key in value):
                raise Unreadable(f"{describe_path(path)} is a dict with keys that are no strings")
            children = tuple([self.read(value[key], (*path, key)) for key in value])
            return DictSpec(tuple(value), children, list_key_types(value))
        if self._is_instance(kind):
            names = tuple(value.__dict__)
            children = tuple([self.read(value.__dict__[name], (*path, f".{name}")) for name in names])
            return InstanceSpec(kind, names, children)
        shown = f"{describe_path(path)} is of type {kind.__module__}.{kind.__qualname__}"
        raise Unreadable(shown + _describe_rule(kind))

    @staticmethod
    def _is_instance(kind: type) -> bool:
        """Whether objects of a class are what their `__dict__` says."""
        if not is_changeable(kind):
            return False
        parameters = getattr(kind, "__dataclass_params__", None)
        may_set = kind.__setattr__ is object.__setattr__ or parameters is not None and parameters.frozen
        plain = kind.__getattribute__ is object.__getattribute__ and may_set
        bases = kind.__mro__[:-1]
        is_plain = not hasattr(kind, "__getattr__") and not hasattr(kind, "__del__")
        return (plain and kind.__new__ is object.__new__ and is_plain
                and all("__dict__" in vars(base) or base.__dictoffset__ for base in bases[:1])
                and all(not vars(base).get("__slots__") for base in bases))


def describe_path(path: tuple) -> str:
    """`x[0].name` for ("x", 0, ".name")."""
    text = str(path[0])
    for part in path[1:]:
        text += part if isinstance(part, str) and part.startswith(".") else f"[{part!r}]"
    return text
