"""Specs: what the program of a call depends on, value by value.

In: arguments and captured variables. Out: for each a `Spec`, hashable. `reading` makes it from a value; its
rule `write` writes code that checks whether another value has it and takes that value apart (`Matcher`),
`build` makes the stand-in that is traced in its place (`Builder`).

Places: arrays, scalars, traced numbers and mutable containers are numbered in the order in which they are
met, arguments first. An object that is met again is a `RepeatSpec` of its place, so that aliases stay
aliases.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jitcore import dtypes
from jitcore.dispatch.call_facts import FLAGS
from jitcore.numpy_semantics.functions.streams import make_stream
from jitcore.numpy_semantics.values.letters import Letters
from jitcore.numpy_semantics.values.number_lists import NumberList
from jitcore.numpy_semantics.values.numbers import NUMBER_DTYPES
from jitcore.numpy_semantics.values.storage import C_ORDER, Order
from jitcore.process import lists
from jitcore.process.streams import count_words, find_words

if TYPE_CHECKING:
    from jitcore.autojitted.inputs.builder import Builder
    from jitcore.autojitted.inputs.matching import Matcher

#: Of `FLAGS`: C-contiguous (1), Fortran-contiguous (2), aligned (256), writeable (1024).
CONTIGUOUS, FORTRAN, WRITEABLE = 0x101, 0x102, 0x400
_C_ORDER, _ORDERS = 0x001, 0x003
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
    """An ndarray. flags: those of `FLAGS` that it has. is_own: whether nobody but the caller's variable has
    it, so that its memory is the program's, as if made there: who calls sees to that. order: of its axes in
    memory (`values.storage`), None where strides are equal or 0. is_dense: whether there are no gaps."""

    dtype: np.dtype
    shape: tuple
    flags: int
    is_own: bool = False
    order: Order | None = C_ORDER
    is_dense: bool = True

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    @property
    def is_contiguous(self) -> bool:
        return self.flags & CONTIGUOUS == CONTIGUOUS

    @property
    def turn(self) -> str:
        """Code that follows its name, and gives the view whose axes lie in memory in C order."""
        return f".transpose({self.order})" if self.order else ""

    @property
    def is_writeable(self) -> bool:
        return self.flags & WRITEABLE != 0

    def write(self, matcher, value):
        x = matcher.name(value, self)
        matcher.arrays[x] = self
        if not self._is_told_by_flags:
            self._check_order(matcher, x)

    @property
    def _is_told_by_flags(self) -> bool:
        return self.flags & CONTIGUOUS == CONTIGUOUS or self.flags & FORTRAN == FORTRAN

    def _check_order(self, matcher: Matcher, x: str) -> None:
        """What flags do not tell: the order of the axes, and whether there are gaps."""
        axes = [axis for axis in self.order or range(len(self.shape)) if self.shape[axis] > 1]
        if len(axes) < 2:
            return
        matcher.check(f"{x}.__class__ is ndarray and {x}.ndim == {len(self.shape)}")
        if self.is_dense:
            matcher.check(f"{x}{self.turn}.flags.c_contiguous")
            return
        strides = matcher.temporary(f"{x}.strides")
        terms = [*(f"abs({strides}[{axis}])" for axis in axes), "0"]
        is_ordered = " > ".join(terms)
        matcher.check(is_ordered if self.order is not None else f"len({{{', '.join(terms)}}}) < {len(terms)}")

    def check(self, matcher: Matcher, x: str, is_written: bool) -> None:
        """What has gaps, and is only read, may have none as well: the same results are."""
        add, flags = matcher.constants.add, FLAGS
        if not (is_written or self._is_told_by_flags):
            flags &= ~(_ORDERS if len(self.shape) == 1 else _C_ORDER)
        matcher.check(f"{x}.__class__ is ndarray and {x}.shape == {add(self.shape)}")
        dtype = add(self.dtype)  # which compares more slowly than objects do
        matcher.check(f"{x}.dtype is {dtype} or {x}.dtype == {dtype}")
        matcher.check(f"{x}.flags.num & {flags} == {self.flags & flags}")

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
class GeneratorSpec(Spec):
    """A generator of random numbers; its words have the next place. form: see `process.streams`."""

    form: str

    @property
    def words(self) -> ArraySpec:
        return ArraySpec(np.dtype(np.uint64), (count_words(self.form),), FLAGS)

    def write(self, matcher, value):
        x = matcher.name(value, self)
        find = matcher.constants.add(functools.partial(find_words, self.form))
        words = matcher.name(f"{find}({x})", self.words)
        matcher.check(f"{words} is not None")

    def build(self, builder):
        place = builder.reserve(self)
        return builder.fill(place, make_stream(self.words.build(builder), self.form))


@dataclass(frozen=True, slots=True)
class PackedSpec(Spec):
    """What is copied into an array, which has the next place."""

    def write(self, matcher, value):
        x = matcher.name(value, self)
        packed = matcher.name(f"{matcher.constants.add(self.pack)}({x})", self.array)
        matcher.check(f"{packed} is not None")

    def build(self, builder):
        place = builder.reserve(self)
        return builder.fill(place, self.wrap(self.array.build(builder)))


@dataclass(frozen=True, slots=True)
class NumbersSpec(PackedSpec):
    """A list of numbers, or of rows of them. kind: see `lists`."""

    kind: Any
    shape: tuple[int, ...]

    @property
    def array(self) -> ArraySpec:
        dtype = dtypes.int64 if self.kind == lists.MIXED else NUMBER_DTYPES[self.kind]
        return ArraySpec(dtype, self.shape, FLAGS)

    @property
    def pack(self) -> Callable:
        return functools.partial(lists.pack, self.kind, self.shape)

    def wrap(self, array: Any) -> NumberList:
        return NumberList(array, self.kind == lists.MIXED)


@dataclass(frozen=True, slots=True)
class TextSpec(PackedSpec):
    """A str of so many letters, as their code points."""

    length: int

    @property
    def array(self) -> ArraySpec:
        return ArraySpec(dtypes.int32, (self.length,), FLAGS)

    @property
    def pack(self) -> Callable:
        return functools.partial(lists.pack_text, self.length)

    def wrap(self, array: Any) -> Letters:
        return Letters(array.read())


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
        return type(other) is type(self) and self.value is other.value

    def __hash__(self):
        return id(self.value)

    def write(self, matcher, value):
        matcher.check(f"{value} is {matcher.constants.add(self.value)}")

    def build(self, builder):
        return builder.make_object(self.value)


@dataclass(frozen=True, slots=True)
class UnreadSpec(Spec):
    """What an attribute holds that can be no input: nothing is asked of it as long as it is not read. reason:
    why it cannot, as a sentence without its end."""

    reason: str

    def write(self, matcher, value):
        pass

    def build(self, builder):
        return Unread(self.reason)


class Unreadable(Exception):
    """A value that cannot be traced. The text is the middle of a sentence."""


class Unread:
    """Stands for it. Whatever comes to it otherwise than by the attribute cannot be traced either."""

    __slots__ = ("reason",)

    def __init__(self, reason: str):
        self.reason = reason

    def refuse(self, *_: Any) -> Any:
        """Raises: RuntimeError, as what leaves to Python the calls that come here."""
        raise RuntimeError(self.reason)

    __bool__ = __call__ = __eq__ = __getattr__ = __getitem__ = __hash__ = __iter__ = __len__ = refuse
    __str__ = __repr__ = __format__ = __lt__ = __gt__ = __contains__ = __index__ = __float__ = refuse


@dataclass(frozen=True, slots=True)
class RepeatSpec(Spec):
    """An object that was met before."""

    place: int

    def write(self, matcher, value):
        matcher.check(f"{value} is x{self.place}")

    def build(self, builder):
        return builder.stand_ins[self.place]


@dataclass(frozen=True, slots=True)
class ElementSpec(Spec):
    """An object that stands in a list which was met before. place: of the list; index: in it."""

    place: int
    index: int

    def write(self, matcher, value):
        matcher.check(f"{value} is x{self.place}[{self.index}]")

    def build(self, builder):
        return builder.stand_ins[self.place][self.index]


@dataclass(frozen=True, slots=True)
class SequenceSpec(Spec):
    """A list, tuple or named tuple. Tuples have places, but may be met again under another one."""

    kind: type
    children: tuple[Spec, ...]

    def write(self, matcher, value):
        x = matcher.name(value, self)
        kind = matcher.constants.add(self.kind)
        matcher.check(f"{x}.__class__ is {kind} and len({x}) == {len(self.children)}")
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


#: What an object that is put together of others has as its parts, and what makes it of these.
_PUT_TOGETHER = {
    types.MethodType: (("__func__", "__self__"), types.MethodType),
    functools.partial: (("func", "args", "keywords"), lambda function, arguments, keywords: functools.partial(
        function, *arguments, **keywords))}


@dataclass(frozen=True, slots=True)
class PartsSpec(Spec):
    """A Python function bound to an object, a `functools.partial`; with a name the method of this name, bound
    to an object of Python's or NumPy's: `values.append`, `x.sum`."""

    kind: type
    parts: tuple[Spec, ...]
    name: str = ""

    def write(self, matcher, value):
        x = matcher.name(value, self)
        is_named = f" and {x}.__name__ == {self.name!r}" if self.name else ""
        matcher.check(f"{x}.__class__ is {matcher.constants.add(self.kind)}{is_named}")
        names = ("__self__",) if self.name else _PUT_TOGETHER[self.kind][0]
        for name, part in zip(names, self.parts):
            part.write(matcher, f"{x}.{name}")

    def build(self, builder):
        place = builder.reserve(self)
        parts = [part.build(builder) for part in self.parts]
        made = getattr(parts[0], self.name) if self.name else _PUT_TOGETHER[self.kind][1](*parts)
        return builder.fill(place, made)


def list_key_types(keys: Any) -> tuple:
    """The types of keys, and of what is in those that are tuples; () where all are strings."""
    if all([type(key) is str for key in keys]):
        return ()
    return tuple([list_key_types(key) or tuple if type(key) is tuple else type(key) for key in keys])


def is_constant_key(key: Any) -> bool:
    """Whether a key is what its type and its text say."""
    kind = type(key)
    return kind in (str, int, bool, float, type(None)) or kind is tuple and all(map(is_constant_key, key))


def order_arguments(specs: Sequence[Spec]) -> list[int]:
    """The numbers of arguments in the order of their places: objects of the user's last, which may stand in
    lists that others are, or hold."""
    last = InstanceSpec, ElementSpec, RepeatSpec
    return sorted(range(len(specs)), key=lambda number: isinstance(specs[number], last))


def meets_place(spec: Spec, count: int) -> bool:
    """Whether a spec stands for one of the objects at the first places, or holds one."""
    if isinstance(spec, (RepeatSpec, ElementSpec)):
        return spec.place < count
    parts = [getattr(spec, name) for name in getattr(spec, "__dataclass_fields__", ())]
    children = [part for value in parts for part in (value if isinstance(value, tuple) else (value,))]
    return any(meets_place(child, count) for child in children if isinstance(child, Spec))
