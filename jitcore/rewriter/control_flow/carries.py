"""Carries: what the body of a traced loop changes, one value for each variable or place.

In: values before the loop and behind an iteration. Out: the types with which they are carried, and values
made from what the loop gives.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from jitcore.array import Array
from jitcore.rewriter.control_flow.raising import MaybeUnbound, negate
from jitcore.rewriter.handles import Alias, Handle, current
from jitcore.rewriter.journal import Location
from jitcore.rewriter.values import (
    Flat,
    as_flag,
    count_memory,
    list_containers,
    make_zeros,
    memory_of,
    type_of,
    wrap,
)

#: What is carried: a variable by name, or a location by key.
Key = tuple[str, Any]
#: By the place of a leaf: whose memory it may have.
Aliases = Mapping[int, Sequence[Alias]]
NO_ALIASES: Aliases = MappingProxyType({})
_UNKNOWN = (None,)


class Carry:
    """One value that the body changes.

    Attributes:
        flat: the value before the loop, put together as it is carried; initial: that value itself.
        types: of its leaves, None for those that are no numbers.
        shared: places of leaves whose memory may be seen under another name too.
        is_poisoned: whether a Python object of it changes, and cannot be known; changed: from what to what.
    """

    def __init__(self, flat: Flat, location: Location | None = None):
        self.flat, self.initial, self.location = flat, flat.value, location
        self.types = [type_of(leaf) for leaf in flat.leaves]
        self.shared: set[int] = set()
        self.is_poisoned = False
        self.changed: tuple[Any, Any] = (None, None)

    def wrap(self, place: int, raw: Array, aliases: Aliases) -> Any:
        """The value of a leaf that an Array holds."""
        value = wrap(raw, self.types[place])
        if place in self.shared:
            for alias in aliases.get(place, _UNKNOWN):
                value.mark_shared(alias)
        return value

    def mark_memory(self, aliases: Aliases, next_leaves: Sequence) -> None:
        """Marks the memory that the value behind the loop may have: that before the loop, or what the body
        leaves."""
        for place in self.shared:
            if place not in aliases:
                next_leaves[place].mark_shared()
            for alias in aliases.get(place, _UNKNOWN):
                self.flat.leaves[place].mark_shared(alias and alias._replace(handle=None))

    def rebuild(self, raws: Iterable, aliases: Aliases = NO_ALIASES) -> Any:
        """The value, given an Array for each leaf that has a type. aliases: of shared memory."""
        rest, pairs = iter(raws), enumerate(zip(self.flat.leaves, self.types))
        return self.flat.rebuild([leaf if leaf_type is None else self.wrap(place, next(rest), aliases)
                                  for place, (leaf, leaf_type) in pairs])


def count_entries(values: list) -> Counter[int]:
    """From how many values each memory can be reached."""
    found: Counter[int] = Counter()
    for value in values:
        found.update(count_memory([value]).keys())
    return found


def has_other_names(counts: Counter[int], leaf: Any) -> bool:
    """Whether the memory of a leaf is, or may be, seen under more than one name."""
    return count_of(counts, leaf) > 1 or isinstance(leaf, Handle) and (leaf.is_shared or leaf.is_given)


def count_of(counts: Counter[int], leaf: Any) -> int:
    """How often the memory of a leaf was counted; 0 for a leaf without memory."""
    memory = memory_of(leaf)
    return 0 if memory is None else counts[id(memory)]


def bind_if(begins: Array | bool, value: Any) -> Any:
    """A variable that the body binds, behind a loop that may have no iteration."""
    if begins is True:
        return value
    if type(value) is MaybeUnbound:
        return MaybeUnbound(value.value, as_flag(value.is_unbound) | as_flag(negate(begins)))
    return MaybeUnbound(value, begins, False)


def is_same(one: Flat, other: Flat) -> bool:
    """Whether two values are one, or are put together of the same leaves."""
    if one.value is other.value:
        return True
    if type(one.value) is MaybeUnbound and one.value.value is other.value:
        return True  # bound before, so bound
    if current.mode is not None and not has_same_containers(one.value, other.value):
        return False
    return one.structure == other.structure and all(map(operator.is_, one.leaves, other.leaves))


def has_same_containers(one: Any, other: Any) -> bool:
    """Whether two values put together alike are so from the same lists and dicts."""
    return all(map(operator.is_, list_containers(one), list_containers(other)))


def make_unbound(name: str, value: Any) -> Any:
    """What a variable is before the iteration that binds it to something of this type."""
    flat = Flat(value.value if type(value) is MaybeUnbound else value)
    blank = flat.rebuild(list(map(make_blank, flat.leaves)))
    return blank if name[0] == "$" else MaybeUnbound(blank, True)


def make_blank(leaf):
    """Stands for a variable of this type that is not bound yet."""
    leaf_type = type_of(leaf)
    return leaf if leaf_type is None else wrap(make_zeros(leaf_type.aval), leaf_type)
