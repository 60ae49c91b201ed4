"""Specs of lists of objects of one class: a spec for each attribute, of what all of the objects hold there.

In: lists of the caller's whose objects are of one class and have the same attributes. Out: as of `specs`. The
values of an attribute are a list of their own in a call, made by `process.objects`, whose spec is that of a
list of numbers, a list of objects, or one of those here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitcore.autojitted.inputs.specs import ArraySpec, PackedSpec, Spec, UnreadSpec
from jitcore.dispatch.call_facts import FLAGS
from jitcore.numpy_semantics.values.object_lists import Arrays, Constant, ObjectList, Tuples
from jitcore.process import objects

__all__ = ["ArraysSpec", "ConstantSpec", "ObjectsSpec", "TuplesSpec"]


@dataclass(frozen=True, slots=True)
class ObjectsSpec(Spec):
    """A list of so many different objects of a class. children: by attribute."""

    kind: type
    count: int
    names: tuple[str, ...]
    children: tuple[Spec, ...]

    def write(self, matcher, value):
        x, add = matcher.name(value, self), matcher.constants.add
        parts = add(functools.partial(objects.take_apart, self.kind, frozenset(self.names), self.count))
        variables = matcher.temporary(f"{parts}({x})")
        matcher.check(f"{variables} is not None")
        matcher.groups += [(x, self.count), (variables, self.count)]
        for name, child in zip(self.names, self.children):
            if type(child) is not UnreadSpec:
                child.write(matcher, f"{add(functools.partial(objects.read_column, name))}({variables})")

    def build(self, builder):
        place = builder.reserve(self)
        builder.note_instance(object.__new__(self.kind))
        columns = {name: child.build(builder) for name, child in zip(self.names, self.children)}
        return builder.fill(place, ObjectList(self.kind, self.count, columns))


@dataclass(frozen=True, slots=True)
class ConstantSpec(Spec):
    """What all have in common. child: it."""

    child: Spec

    def write(self, matcher, value):
        values = matcher.temporary(value)
        matcher.check(f"{matcher.constants.add(objects.are_one)}({values})")
        self.child.write(matcher, f"{values}[0]")

    def build(self, builder):
        return Constant(self.child.build(builder))


@dataclass(frozen=True, slots=True)
class TuplesSpec(Spec):
    """Tuples of as many items. children: of the lists of these."""

    children: tuple[Spec, ...]

    def write(self, matcher, value):
        split = matcher.constants.add(functools.partial(objects.split_tuples, len(self.children)))
        columns = matcher.temporary(f"{split}({value})")
        matcher.check(f"{columns} is not None")
        for number, child in enumerate(self.children):
            child.write(matcher, f"{columns}[{number}]")

    def build(self, builder):
        return Tuples([child.build(builder) for child in self.children])


@dataclass(frozen=True, slots=True)
class ArraysSpec(PackedSpec):
    """Arrays of one dtype and shape, each with memory of its own."""

    count: int
    dtype: np.dtype
    shape: tuple[int, ...]

    def write(self, matcher, value):
        matcher.stacks.append(f"x{len(matcher.places)}")
        PackedSpec.write(self, matcher, value)

    @property
    def array(self) -> ArraySpec:
        return ArraySpec(self.dtype, (self.count, *self.shape), FLAGS)

    @property
    def pack(self) -> Callable:
        return functools.partial(objects.stack, self.dtype, self.shape)

    def wrap(self, array: Any) -> Arrays:
        return Arrays(array)
