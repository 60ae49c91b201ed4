"""Specs: what the program of a call depends on, value by value.

In: arguments and captured variables. Out: for each a `Spec`, hashable. `reading` makes it from a value; its
rule `write` writes code that checks whether another value has it and takes that value apart
(`reading.Matcher`), `build` makes the stand-in that is traced in its place (`reading.Builder`).

Places: arrays, scalars, traced numbers and mutable containers are numbered in the order in which they are
met, arguments first. An object that is met again is a `RepeatSpec` of its place, so that aliases stay
aliases.

Python numbers are static (part of the program) or traced (inputs), as `Policy` says for each path: an int is
static until it has had a few values; a float is traced. A number whose value Python needed while tracing is
static for good.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jitcore.config import drop_oldest
from jitcore.numpy_semantics.values.numbers import NUMBER_DTYPES

if TYPE_CHECKING:
    from jitcore.autojitted.inputs.reading import Builder, Matcher


#: Values of an int after which it is traced, if that works.
VALUES_BEFORE_TRACING = 3
#: Values of a number that has to be static for which programs are made.
MAX_STATIC_VALUES = 16
#: Programs that are made for arguments of the same kinds, because code or variables are not what they were;
#: when there were more, the calls for each other one.
MAX_VERSIONS, CALLS_PER_VERSION = 32, 64
#: Programs that are made of one loop.
MAX_PROGRAMS = 32

Path = tuple


class NumberPolicy:
    """Args: names of parameters that are always static; of those whose ints have another value each time."""

    def __init__(self, static_names: Iterable[str], varying_names: Iterable[str] = ()):
        self._names = frozenset(static_names)
        self._varying = frozenset(varying_names)
        self._pinned: set[Path] = set()
        self._traced: set[Path] = set()
        self._values: dict[Path, set] = {}
        self._versions: dict[Hashable, int] = {}

    def is_static(self, path: Path, value: Any) -> bool:
        if path[0] in self._names:
            return True
        if path in self._pinned:
            self._note(path, value)
            return True
        if value.__class__ is not int or path[0] in self._varying:
            return False
        if path not in self._traced and self._note(path, value) >= VALUES_BEFORE_TRACING:
            self._traced.add(path)
        return path not in self._traced

    def _note(self, path: Path, value: Any) -> int:
        values = self._values.setdefault(path, set())
        if len(values) <= MAX_STATIC_VALUES:
            values.add(value)
        return len(values)

    def may_make_version(self, specs: Hashable) -> bool:
        """Whether one more program is made for arguments of the same kinds; of many, one in some calls."""
        self._versions[specs] = count = self._versions.get(specs, 0) + 1
        drop_oldest(self._versions)
        return count <= MAX_VERSIONS or count % CALLS_PER_VERSION == 0

    def pin(self, paths: Iterable[Path]) -> None:
        """Numbers whose value is needed while tracing."""
        self._pinned.update(paths)

    def unpin(self, paths: Iterable[Path]) -> None:
        self._pinned.difference_update(paths)

    def find_exhausted(self, paths: Iterable[Path]) -> Path | None:
        """A number that has to be static and has had too many values."""
        for path in paths:
            if path in self._pinned and len(self._values.get(path, ())) > MAX_STATIC_VALUES:
                return path
        return None

    @property
    def pinned(self) -> frozenset[Path]:
        return frozenset(self._pinned)


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
