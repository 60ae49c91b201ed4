"""Specs: what the program of a call depends on, value by value.

In: arguments and captured variables. Out: for each a `Spec`, hashable, with three rules: `read` makes it from
a value (`Reader`), `write` writes code that checks whether another value has it and takes that value apart
(`matching.Matcher`), `build` makes the stand-in that is traced in its place (`matching.Builder`).

Places: arrays, scalars, traced numbers and mutable containers are numbered in the order in which they are
met, arguments first. An object that is met again is a `RepeatSpec` of its place, so that aliases stay
aliases.
"""

from __future__ import annotations

import enum
import functools
import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jitcore import dtypes
from jitcore.rewriter.journal import BOUND_METHODS, OWNERLESS
from jitcore.rewriter.user_code import find_in_class, is_user_class, is_user_code

if TYPE_CHECKING:
    from jitcore.autojitted.matching import Builder, Matcher

#: Flags of an ndarray that decide how it is used: C-contiguous (1), Fortran-contiguous (2), aligned (256),
#: writeable (1024).
FLAGS = 0x503
CONTIGUOUS, FORTRAN, WRITEABLE = 0x101, 0x102, 0x400

#: Values that are passed, those in containers among them: more make a call's overhead larger than its work.
MAX_VALUES = 1000
#: Sums with small numbers are not checked: what is traced begins far from the ends of 64 bits.
_TRACED_INTS = range(-(1 << 62), 1 << 62)


class Unreadable(Exception):
    """A value that cannot be traced. The text is the middle of a sentence."""


@dataclass(frozen=True, slots=True)
class Spec:
    """Base of the specs."""

    def write(self, matcher: Matcher, value: str) -> None:
        """Lines that check the value of a Python expression and name its places."""
        raise NotImplementedError

    def build(self, builder: Builder) -> Any:
        """The stand-in."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ArraySpec(Spec):
    """An ndarray. flags: those of `FLAGS` that it has."""

    dtype: np.dtype
    shape: tuple
    flags: int

    @property
    def is_contiguous(self) -> bool:
        return self.flags & CONTIGUOUS == CONTIGUOUS

    @property
    def is_fortran(self) -> bool:
        """Whether its transpose is C-contiguous, and it is not itself."""
        return self.flags & FORTRAN == FORTRAN and not self.is_contiguous

    @property
    def is_writeable(self) -> bool:
        return self.flags & WRITEABLE != 0

    def write(self, matcher, value):
        x = matcher.name(value, self)
        add = matcher.constants.add
        matcher.check(f"{x}.__class__ is ndarray and {x}.shape == {add(self.shape)}")
        dtype = add(self.dtype)  # which compares more slowly than objects do
        matcher.check(f"{x}.dtype is {dtype} or {x}.dtype == {dtype}")
        matcher.check(f"{x}.flags.num & {FLAGS} == {self.flags}")

    def build(self, builder):
        return builder.add(self, builder.make_leaf(self))


@dataclass(frozen=True, slots=True)
class ScalarSpec(Spec):
    """A NumPy scalar, or a Python number that is traced."""

    kind: type

    @property
    def is_number(self) -> bool:
        return self.kind in _NUMBER_DTYPES

    @property
    def dtype(self) -> np.dtype:
        return _NUMBER_DTYPES[self.kind] if self.is_number else np.dtype(self.kind)

    def write(self, matcher, value):
        x = matcher.name(value, self)
        bounds = f" and {_TRACED_INTS.start} <= {x} < {_TRACED_INTS.stop}" if self.kind is int else ""
        matcher.check(f"{x}.__class__ is {matcher.constants.add(self.kind)}{bounds}")

    def build(self, builder):
        return builder.add(self, builder.make_leaf(self))


_NUMBER_DTYPES = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


@dataclass(frozen=True, slots=True)
class StaticSpec(Spec):
    """A value that the program was made for. text: tells apart what compares equal (0.0 and -0.0)."""

    kind: type
    value: Any
    text: str = ""

    def __hash__(self):
        return hash((self.kind, self.text or self.value))  # a slice has no hash in every Python

    def write(self, matcher, value):
        constant = matcher.constants.add(self.value)
        if self.value is None or self.kind is bool or self.value is Ellipsis:
            matcher.check(f"{value} is {constant}")
            return
        name = matcher.temporary(value)
        matcher.check(f"{name}.__class__ is {matcher.constants.add(self.kind)}")
        if self.text:
            matcher.check(f"repr({name}) == {self.text!r}")
        else:
            matcher.check(f"{name} == {constant}")

    def build(self, builder):
        return self.value


class IdentitySpec(Spec):
    """One object: a function, a class, a module."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        object.__setattr__(self, "value", value)

    def __eq__(self, other):
        return isinstance(other, IdentitySpec) and self.value is other.value

    def __hash__(self):
        return id(self.value)

    def write(self, matcher, value):
        matcher.check(f"{value} is {matcher.constants.add(self.value)}")

    def build(self, builder):
        return builder.make_object(self.value)


@dataclass(frozen=True, slots=True)
class RepeatSpec(Spec):
    """An object that was met before."""

    place: int

    def write(self, matcher, value):
        matcher.check(f"{value} is x{self.place}")

    def build(self, builder):
        return builder.stand_ins[self.place]


@dataclass(frozen=True, slots=True)
class SequenceSpec(Spec):
    """A list, tuple or named tuple. Tuples have places, but may be met again under another one."""

    kind: type
    children: tuple[Spec, ...]

    def write(self, matcher, value):
        x = matcher.name(value, self)
        matcher.check(
            f"{x}.__class__ is {matcher.constants.add(self.kind)} and len({x}) == {len(self.children)}"
        )
        for i, child in enumerate(self.children):
            child.write(matcher, f"{x}[{i}]")

    def build(self, builder):
        if self.kind is list:
            made = builder.add(self, [])
            made.extend(child.build(builder) for child in self.children)
            return made
        place = builder.reserve(self)
        items = [child.build(builder) for child in self.children]
        if self.kind is tuple:
            return builder.fill(place, tuple(items))
        return builder.fill(place, tuple.__new__(builder.make_object(self.kind), items))


@dataclass(frozen=True, slots=True)
class DictSpec(Spec):
    """A dict; its keys in order. key_types: what tells apart keys that are equal (1 and 1.0)."""

    keys: tuple
    children: tuple[Spec, ...]
    key_types: tuple = ()

    def write(self, matcher, value):
        x, add = matcher.name(value, self), matcher.constants.add
        matcher.variables.append(x)
        matcher.check(f"{x}.__class__ is dict and tuple({x}) == {add(self.keys)}")
        if self.key_types:
            matcher.check(f"{add(_list_key_types)}({x}) == {add(self.key_types)}")
        for key, child in zip(self.keys, self.children):
            child.write(matcher, f"{x}[{matcher.constants.add(key)}]")

    def build(self, builder):
        made = builder.add(self, {})
        made.update((key, child.build(builder)) for key, child in zip(self.keys, self.children))
        return made


@dataclass(frozen=True, slots=True)
class InstanceSpec(Spec):
    """An object of a plain class of the user, as its `__dict__`."""

    kind: type
    names: tuple[str, ...]
    children: tuple[Spec, ...]

    def write(self, matcher, value):
        x = matcher.name(value, self)
        matcher.check(f"{x}.__class__ is {matcher.constants.add(self.kind)}")
        d = matcher.temporary(f"{x}.__dict__")
        matcher.variables.append(d)
        matcher.check(f"tuple({d}) == {matcher.constants.add(self.names)}")
        for name, child in zip(self.names, self.children):
            child.write(matcher, f"{d}[{name!r}]")

    def build(self, builder):
        made = builder.add(self, object.__new__(self.kind))
        builder.note_instance(made)
        made.__dict__.update((name, child.build(builder)) for name, child in zip(self.names, self.children))
        return made


@dataclass(frozen=True, slots=True)
class MethodSpec(Spec):
    """A Python function, bound to an object."""

    function: Spec
    owner: Spec

    def write(self, matcher, value):
        x = matcher.name(value, self)
        matcher.check(f"{x}.__class__ is {matcher.constants.add(types.MethodType)}")
        self.function.write(matcher, f"{x}.__func__")
        self.owner.write(matcher, f"{x}.__self__")

    def build(self, builder):
        place = builder.reserve(self)
        made = types.MethodType(self.function.build(builder), self.owner.build(builder))
        return builder.fill(place, made)


@dataclass(frozen=True, slots=True)
class BuiltinMethodSpec(Spec):
    """A method of an object of Python's or NumPy's, bound to it: `values.append`, `x.sum`."""

    kind: type
    name: str
    owner: Spec

    def write(self, matcher, value):
        x = matcher.name(value, self)
        kind = matcher.constants.add(self.kind)
        matcher.check(f"{x}.__class__ is {kind} and {x}.__name__ == {self.name!r}")
        self.owner.write(matcher, f"{x}.__self__")

    def build(self, builder):
        place = builder.reserve(self)
        return builder.fill(place, getattr(self.owner.build(builder), self.name))


@dataclass(frozen=True, slots=True)
class PartialSpec(Spec):
    """A `functools.partial`."""

    function: Spec
    arguments: Spec
    keywords: Spec

    def write(self, matcher, value):
        x = matcher.name(value, self)
        matcher.check(f"{x}.__class__ is {matcher.constants.add(functools.partial)}")
        self.function.write(matcher, f"{x}.func")
        self.arguments.write(matcher, f"{x}.args")
        self.keywords.write(matcher, f"{x}.keywords")

    def build(self, builder):
        place = builder.reserve(self)
        function, arguments = self.function.build(builder), self.arguments.build(builder)
        return builder.fill(place, functools.partial(function, *arguments, **self.keywords.build(builder)))


class _Absent:
    """What there is where a variable is not defined."""

    def __repr__(self):
        return "<not defined>"


ABSENT = _Absent()


# -- from a value to its spec ------------------------------------------------------------------------------
_IDENTITIES = (
    types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, np.ufunc, np.vectorize,
    types.MethodType, types.GenericAlias, types.MethodDescriptorType, types.WrapperDescriptorType,
    type(np.sum),
)  # fmt: skip
_STATICS = (type(None), bool, str, bytes, type(Ellipsis), np.dtype, slice, range)


def _is_wrapper(value: Any) -> bool:
    """Whether an object is one function and nothing else: jitted, cached, an operator with its operands."""
    module = type(value).__module__
    if module.startswith("numpy.lib._index_tricks"):  # np.mgrid
        return True
    return callable(value) and module.startswith(("numba.", "jitcore.", "functools", "operator"))


#: Objects that do not change: their methods are known by themselves.
_UNCHANGING_OWNERS = (*OWNERLESS, bytes, frozenset, range, re.Pattern, np.ufunc)


def _list_key_types(keys: Any) -> tuple:
    """The types of keys, and of what is in those that are tuples; () where all are strings."""
    if all([type(key) is str for key in keys]):
        return ()
    return tuple([_list_key_types(key) or tuple if type(key) is tuple else type(key) for key in keys])


def is_constant_key(key: Any) -> bool:
    """Whether a key is what its type and its text say."""
    kind = type(key)
    return kind in (str, int, bool, float, type(None)) or kind is tuple and all(map(is_constant_key, key))


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

    def read_whole(self, value: Any, path: tuple) -> Spec:
        """As `read`; what was met of a value that is unreadable is forgotten. Raises: Unreadable."""
        count = len(self.values)
        try:
            return self.read(value, path)
        except Unreadable:
            for lists in (self.values, self.paths):
                del lists[count:]
            self._seen, self._variables = ({key: place for key, place in known.items() if place < count}
                                           for known in (self._seen, self._variables))  # fmt: skip
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
        if kind in _NUMBER_DTYPES:
            return self._read_number(value, path)
        if isinstance(value, np.generic):
            if value.dtype not in dtypes.SHORT_NAMES or kind is not value.dtype.type:
                raise Unreadable(f"{describe_path(path)} is of type {kind.__name__}")
            if self.is_static(path, value):
                return StaticSpec(kind, value, repr(value))
            self._add(value, path)
            return ScalarSpec(kind)
        if kind is functools.partial:
            place = self._seen.get(id(value))
            if place is not None:
                return RepeatSpec(place)
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
            place = self._seen.get(id(value))
            if place is not None:
                return RepeatSpec(place)
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
        place = self._seen.get(id(value))
        if place is not None:
            return RepeatSpec(place)
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
        place = self._seen.get(id(value))
        if place is not None:
            return RepeatSpec(place)
        if value.dtype not in dtypes.SHORT_NAMES:
            raise Unreadable(f"{describe_path(path)} is an array of dtype {value.dtype}")
        self._add(value, path)
        return ArraySpec(value.dtype, value.shape, value.flags.num & FLAGS)

    def _read_number(self, value: Any, path: tuple) -> Spec:
        kind = type(value)
        self.number_paths.append(path)
        if kind is bool or self.is_static(path, value) or kind is int and value not in _TRACED_INTS:
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
            return DictSpec(tuple(value), children, _list_key_types(value))
        if self._is_instance(kind):
            names = tuple(value.__dict__)
            children = [self.read(value.__dict__[name], (*path, f".{name}")) for name in names]
            return InstanceSpec(kind, names, tuple(children))
        shown = f"{describe_path(path)} is of type {kind.__module__}.{kind.__qualname__}"
        raise Unreadable(shown + _describe_rule(kind))

    @staticmethod
    def _is_instance(kind: type) -> bool:
        """Whether objects of a class are what their `__dict__` says."""
        if kind.__flags__ & (1 << 9) == 0:  # not made by a class statement
            return False
        parameters = getattr(kind, "__dataclass_params__", None)
        may_set = kind.__setattr__ is object.__setattr__ or parameters is not None and parameters.frozen
        plain = kind.__getattribute__ is object.__getattribute__ and may_set
        bases = kind.__mro__[:-1]
        is_plain = not hasattr(kind, "__getattr__") and not hasattr(kind, "__del__")
        return (plain and kind.__new__ is object.__new__ and is_plain
                and all("__dict__" in vars(base) or base.__dictoffset__ for base in bases[:1])
                and all(not vars(base).get("__slots__") for base in bases))  # fmt: skip


def describe_path(path: tuple) -> str:
    """`x[0].name` for ("x", 0, ".name")."""
    text = str(path[0])
    for part in path[1:]:
        text += part if isinstance(part, str) and part.startswith(".") else f"[{part!r}]"
    return text


def meets_place(spec: Spec, count: int) -> bool:
    """Whether a spec stands for one of the objects at the first places, or holds one."""
    if isinstance(spec, RepeatSpec):
        return spec.place < count
    parts = [getattr(spec, name) for name in getattr(spec, "__dataclass_fields__", ())]
    children = [part for value in parts for part in (value if isinstance(value, tuple) else (value,))]
    return any(meets_place(child, count) for child in children if isinstance(child, Spec))
