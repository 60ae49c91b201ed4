"""Specs: what the program of a call depends on, value by value.

In: arguments and captured variables. Out: for each a `Spec`, hashable. `reading` makes it from a value;
its rule `write` writes code that checks whether another value has it and takes that value apart
(`matching.Matcher`), `build` makes the stand-in that is traced in its place (`matching.Builder`).

Places: arrays, scalars, traced numbers and mutable containers are numbered in the order in which they are
met, arguments first. An object that is met again is a `RepeatSpec` of its place, so that aliases stay
aliases.
"""

from __future__ import annotations

import functools
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jitcore.functionalize.numbers import NUMBER_DTYPES

if TYPE_CHECKING:
    from jitcore.autojitted.matching import Builder, Matcher

#: Flags of an ndarray that decide how it is used: C-contiguous (1), Fortran-contiguous (2), aligned (256),
#: writeable (1024).
FLAGS = 0x503
CONTIGUOUS, FORTRAN, WRITEABLE = 0x101, 0x102, 0x400
#: Sums with small numbers are not checked: what is traced begins far from the ends of 64 bits.
TRACED_INTS = range(-(1 << 62), 1 << 62)


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
        return self.kind in NUMBER_DTYPES

    @property
    def dtype(self) -> np.dtype:
        return NUMBER_DTYPES[self.kind] if self.is_number else np.dtype(self.kind)

    def write(self, matcher, value):
        x = matcher.name(value, self)
        bounds = f" and {TRACED_INTS.start} <= {x} < {TRACED_INTS.stop}" if self.kind is int else ""
        matcher.check(f"{x}.__class__ is {matcher.constants.add(self.kind)}{bounds}")

    def build(self, builder):
        return builder.add(self, builder.make_leaf(self))


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
            matcher.check(f"{add(list_key_types)}({x}) == {add(self.key_types)}")
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


def list_key_types(keys: Any) -> tuple:
    """The types of keys, and of what is in those that are tuples; () where all are strings."""
    if all([type(key) is str for key in keys]):
        return ()
    return tuple([list_key_types(key) or tuple if type(key) is tuple else type(key) for key in keys])


def is_constant_key(key: Any) -> bool:
    """Whether a key is what its type and its text say."""
    kind = type(key)
    return kind in (str, int, bool, float, type(None)) or kind is tuple and all(map(is_constant_key, key))


def meets_place(spec: Spec, count: int) -> bool:
    """Whether a spec stands for one of the objects at the first places, or holds one."""
    if isinstance(spec, RepeatSpec):
        return spec.place < count
    parts = [getattr(spec, name) for name in getattr(spec, "__dataclass_fields__", ())]
    children = [part for value in parts for part in (value if isinstance(value, tuple) else (value,))]
    return any(meets_place(child, count) for child in children if isinstance(child, Spec))
