"""Rotation: variables of a traced loop that exchange their memory in each iteration, as `u, v = v, u` does.

In: what a loop carries, and the arm that its body was traced to. Out: cycles of carries, and behind the loop
which memory each of them has and what each memory holds.

The loop carries what the variables hold, so that exchanging them costs nothing. Only the number of
iterations, modulo the length of a cycle, says which memory a variable has behind the loop. Where other names
see that memory too, it is lent to the loop meanwhile: what they would read there is not what it holds.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jitcore import dtypes
from jitcore.array import Array
from jitcore.lax import elementwise
from jitcore.rewriter.control_flow.carries import Carry, Key, count_of
from jitcore.rewriter.handles import Alias, Handle
from jitcore.rewriter.journal import record
from jitcore.rewriter.values import Poison, memory_of


class Cycle(NamedTuple):
    """Attributes:
    keys: behind an iteration, each has the memory that the following one had before it.
    leaves: what they are before the loop.
    is_seen: of each, whether another name sees its memory.
    """

    keys: tuple[Key, ...]
    leaves: tuple[Handle, ...]
    is_seen: tuple[bool, ...]

    @property
    def length(self) -> int:
        return len(self.keys)


def find_cycles(carries: Mapping[Key, Carry], values: Mapping[Key, Any], following: Mapping[Key, Sequence],
                behind: Counter[int], has_names: Callable[[Handle], bool]) -> list[Cycle]:
    """The cycles among carries.

    Args: values at the beginning of an iteration; following: leaves behind it; behind: how often each memory
        is seen there; has_names: whether memory before the loop is seen under more than one name."""
    users = Counter(id(memory_of(leaf)) for carry in carries.values() for leaf in carry.flat.leaves
                    if memory_of(leaf) is not None)
    owners: dict[int, Key] = {}
    for key, leaves in following.items():
        value, carry = values[key], carries[key]
        if isinstance(value, Handle) and carry.flat.leaves == [carry.flat.value] and not carry.shared:
            old, is_single = carry.flat.value, len(leaves) == 1 and count_of(behind, value) == 1
            if is_single and value.is_whole and old.is_whole and users[id(old.memory)] == 1:
                owners[id(value.memory)] = key
    next_of = {key: owners.get(id(memory_of(following[key][0]))) for key in owners.values()
               if getattr(following[key][0], "is_whole", False)}
    found, seen = [], set()
    for first in next_of:
        keys, key = [], first
        while key in next_of and key not in seen:
            seen.add(key)
            keys.append(key)
            key = next_of[key]
        if len(keys) > 1 and key == first:
            leaves = tuple([carries[key].flat.value for key in keys])
            found.append(Cycle(tuple(keys), leaves, tuple(map(has_names, leaves))))
    return found


@contextlib.contextmanager
def lend(leaves: Sequence[Handle], make_error: Callable[[], Exception]) -> Iterator[None]:
    """Within, it is an error to read or write the memory of these."""
    places = [leaf.memory.location for leaf in leaves]
    held, poison = [place.read() for place in places], Poison(make_error)
    try:
        for place in places:
            place.write(poison)
        yield
        if any(place.read() is not poison for place in places):
            poison.raise_reason()
    finally:
        for place, value in zip(places, held):
            place.write(value)


def advance(turn: Array, length: int) -> Array:
    """The number of iterations modulo the length of a cycle, one iteration later."""
    one, last = dtypes.int32.type(1), dtypes.int32.type(length - 1)
    return elementwise.select_n(elementwise.eq(turn, last), elementwise.add(turn, one), dtypes.int32.type(0))


def assign_memory(cycle: Cycle, raws: Sequence[Array], count: int) -> list[Handle]:
    """What the carries of a cycle are behind a known number of iterations. raws: what they hold."""
    found = [cycle.leaves[(place + count) % cycle.length] for place in range(cycle.length)]
    for leaf, raw in zip(found, raws):
        _fill(leaf, raw)
    return found


def choose_memory(cycle: Cycle, raws: Sequence[Array], values: Sequence[Handle], turn: Array) -> None:
    """As `assign_memory`, of a number of iterations that is not known: each value may be each of the arrays
    before the loop. values: what the carries are; turn: the number modulo the length."""
    length = cycle.length
    is_turn = [elementwise.eq(turn, dtypes.int32.type(number)) for number in range(length)]
    for place, value in enumerate(values):
        for number, predicate in enumerate(is_turn):
            other = (place + number) % length
            if cycle.is_seen[other]:
                value.mark_shared(Alias(predicate, cycle.leaves[other]))
    for place, leaf in enumerate(cycle.leaves):
        if cycle.is_seen[place]:
            held = raws[place]  # behind no iteration
            for number in range(1, length):
                held = elementwise.select_n(is_turn[number], held, raws[(place - number) % length])
            _fill(leaf, held)
            for predicate in is_turn:
                leaf.mark_shared(Alias(predicate, None))


def _fill(leaf: Handle, raw: Array) -> None:
    location = leaf.memory.location
    record(location)
    location.write(raw)
