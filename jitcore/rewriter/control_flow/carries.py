"""Loop-carried values: what the body of a traced loop changes, one value for each variable or place.

In: values before the loop and behind an iteration. Out: the types with which they are carried, and values
made from what the loop gives.

Permuted memory: variables that exchange their memory in each iteration, as `u, v = v, u` does. In: what a
loop carries, and the arm that its body was traced to. Out: cycles of carries, and behind the loop which
memory each of them has and what each memory holds. The loop carries what the variables hold, so that
exchanging them costs nothing. Only the number of iterations, modulo the length of a cycle, says which memory
a variable has behind the loop. Where other names see that memory too, it is lent to the loop meanwhile: what
they would read there is not what it holds.

Prediction. In: a loop's instructions, and what it carried when it was traced before, in another tracing of
the body of the loop around it. Out: carries: variables that get other memory, memory that the body writes,
the flag of what failed; and types that carries settle to. What a loop carries is known only behind its body,
which is then traced again: a nest of loops would be traced twice as often for each level. A guess that is
right saves that. One that is wrong is found out behind the body, and given up.
"""

from __future__ import annotations

import contextlib
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.trace import Tracer, to_array
from jitcore.lax import elementwise
from jitcore.rewriter.bytecode.graph import stack_effect
from jitcore.rewriter.bytecode.instructions import Instruction
from jitcore.rewriter.bytecode.versions import IN_PLACE
from jitcore.rewriter.control_flow.arms import Arm
from jitcore.rewriter.control_flow.raising import MaybeUnbound, negate
from jitcore.rewriter.handles import Alias, Handle, current
from jitcore.rewriter.journal import Location, change
from jitcore.rewriter.values import (Flat, Poison, as_flag, count_memory, is_same_leaf, list_containers,
                                     make_zeros, memory_of, type_of, wrap)

if TYPE_CHECKING:
    from jitcore.rewriter.control_flow.fixpoint import CarriedState

#: What is carried: a variable by name, or a location by key.
Key = tuple[str, Any]
#: A leaf of a carry, by its place.
Slot = tuple[Key, int]
#: By the place of a leaf: whose memory it may have.
Aliases = Mapping[int, Sequence[Alias]]
NO_ALIASES: Aliases = MappingProxyType({})
_UNKNOWN = (None,)


class Carry:
    """One value that the body changes.

    Attributes:
        flat: the value before the loop, put together as it is carried; initial: that value itself.
        is_blank: whether it is not bound before the loop.
        types: of its leaves, None for those that are no numbers.
        fixed: places of leaves that are one handle behind each iteration, see `fix`.
        shared: places of leaves whose memory may be seen under another name too.
        is_poisoned: whether a Python object of it changes, and cannot be known; changed: from what to what.
    """

    def __init__(self, flat: Flat, location: Location | None = None, is_blank: bool = False):
        self.flat, self.initial, self.location = flat, flat.value, location
        self.types = [type_of(leaf) for leaf in flat.leaves]
        self.is_blank, self.fixed = is_blank, set[int]()
        self.shared: set[int] = set()
        self.is_poisoned = False
        self.changed: tuple[Any, Any] = (None, None)

    def fix(self, behind: Flat, made: Callable[[Any], bool]) -> None:
        """Does not carry handles on memory that is there before the loop, which are the same behind an
        iteration, or not bound before it. made: whether the iteration made a value."""
        parts = behind.structure, ("maybe", behind.structure)
        for place, leaf in enumerate(behind.leaves if self.flat.structure in parts else ()):
            is_same = self.is_blank or is_same_leaf(leaf, self.flat.leaves[place])
            if self.types[place] is not None and memory_of(leaf) is not None and is_same and not made(leaf):
                self.fixed.add(place)
                self.flat.leaves[place], self.types[place] = leaf, None

    def release(self, place: int) -> None:
        """Carries a leaf that is another handle behind another iteration."""
        self.fixed.remove(place)
        leaf = self.flat.leaves[place]
        self.types[place] = type_of(leaf)
        self.flat.leaves[place] = make_blank(leaf) if self.is_blank else leaf

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
    containers = list_containers(one.value), list_containers(other.value)
    if current.mode is not None and not all(map(operator.is_, *containers)):
        return False
    return one.structure == other.structure and all(map(operator.is_, one.leaves, other.leaves))


def make_unbound(name: str, value: Any) -> Any:
    """What a variable is before the iteration that binds it to something of this type."""
    flat = Flat(value.value if type(value) is MaybeUnbound else value)
    blank = flat.rebuild(list(map(make_blank, flat.leaves)))
    return blank if name[0] == "$" else MaybeUnbound(blank, True)


def make_blank(leaf):
    """Stands for a variable of this type that is not bound yet."""
    leaf_type = type_of(leaf)
    return leaf if leaf_type is None else wrap(to_array(make_zeros(leaf_type.aval)), leaf_type)


# -- permuted memory -----------------------------------------------------------------------------------------
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
        change(leaf.memory.location, raw)
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
            change(leaf.memory.location, held)
            for predicate in is_turn:
                leaf.mark_shared(Alias(predicate, None))


# -- prediction ----------------------------------------------------------------------------------------------
class Precedent(NamedTuple):
    """How a loop was traced.

    entry: types of the variables before it, by name; types: those that its carries settled to, by name.
    rebound: variables that got other memory; written: those whose memory it wrote."""

    entry: dict[str, list]
    types: dict[str, list]
    rebound: list[str]
    written: list[str]


class Forecast:
    """The carries of one loop of which nothing has shown yet that they are needed.

    Making it adds them to the loop."""

    def __init__(self, loop: CarriedState):
        self.loop = loop
        self.key = loop.driver.template, loop.site
        self.entry = {name: _list_types(Flat(value)) for name, value in loop.state.items()}
        precedent = loop.driver.precedents.get(self.key)
        if precedent is None:
            blocks = [loop.driver.blocks[number] for number in loop.loop.body]
            blocks.sort(key=lambda block: block.order)
            rebound, written = find_changed(block.instructions for block in blocks)
        else:
            rebound, written = precedent.rebound, precedent.written
            if precedent.entry == self.entry:
                self._set_types(precedent.types)
        for name in rebound:
            if _has_memory(loop.state.get(name)):
                self._expect(("name", name), loop.state[name])
        places = [place for name in written for place in _locate_memory(loop.state.get(name))]
        if current.mode is not None and current.mode.failure is not None:
            places.insert(0, current.mode.failure)
        for place in places:
            self._expect(("location", place.key), place.read(), place)

    def _expect(self, key: Key, value: Any, location: Location | None = None) -> None:
        if key not in self.loop.carries:
            self.loop.carries[key] = Carry(Flat(value), location)
            self.loop.expected.append(key)

    def _set_types(self, types: dict[str, list]) -> None:
        for name, settled in types.items():
            carry = self.loop.carries.get(("name", name))
            if carry is not None:
                carry.types = list(settled)

    def drop_idle(self, arm: Arm) -> bool:
        """Drops carries that were not needed. Returns: whether the body has to be traced without them."""
        loop, was_read = self.loop, False
        loop.expected = [key for key in loop.expected if key in loop.carries]
        for key in list(loop.expected):
            value = Flat(loop.values[key])
            found = arm.state.get(key[1]) if key[0] == "name" else arm.stores.get(key[1], (None, None))[1]
            if found is None or is_same(found, value):
                loop.expected.remove(key)
                args = [leaf for leaf in value.leaves if isinstance(leaf, Tracer)]
                was_read |= len(args) < len(value.leaves) or not all(map(arm.trace.drop_arg, args))
                arm.stores.pop(key[1], None)
                del loop.carries[key], loop.next_leaves[key]
        return was_read

    def keep(self) -> None:
        """Keeps what the loop carries as a precedent."""
        carries, state = self.loop.carries, self.loop.state
        types = {key[1]: carry.types for key, carry in carries.items()
                 if key[0] == "name" and key[1] in state and not carry.is_poisoned
                 and carry.flat.structure == Flat(state[key[1]]).structure}
        rebound = [name for name in types if _has_memory(state[name])]
        places = {place.key: name for name, value in state.items() for place in _locate_memory(value)}
        written = [places[key[1]] for key in carries if key[0] == "location" and key[1] in places]
        self.loop.driver.precedents[self.key] = Precedent(self.entry, types, rebound, written)


def _list_types(flat: Flat) -> list:
    """Equal for values that are carried alike."""
    return [type_of(leaf) or type(leaf) for leaf in flat.leaves]


def _has_memory(value: Any) -> bool:
    return any(memory_of(leaf) is not None for leaf in Flat(value).leaves)


def _locate_memory(value: Any) -> list[Location]:
    """Where what a variable holds keeps its elements, as far as that is not the memory of others too."""
    handles = [leaf for leaf in Flat(value).leaves if memory_of(leaf) is not None and not leaf.is_shared]
    places = [getattr(handle.memory, "location", None) for handle in handles]
    return [place for place in places if place is not None]


# -- instructions -------------------------------------------------------------------------------------------
#: What gives a part of the operand below the others, or may do so.
_PARTS = frozenset({"BINARY_SUBSCR", "BINARY_SLICE", "LOAD_ATTR"})
#: By instruction that stores an item: how many operands stand above the container.
_STORES = {"STORE_SUBSCR": 1, "STORE_SLICE": 2}


def find_changed(blocks: Iterable[Sequence[Instruction]]) -> tuple[list[str], list[str]]:
    """(variables to which these instructions assign what is no part of them, variables into whose items they
    store, or which they change in place), in order."""
    assigned: dict[str | None, None] = {}
    written: dict[str | None, None] = {}
    for instructions in blocks:
        _add_changed(instructions, assigned, written)
    return [name for name in assigned if name is not None], [name for name in written if name is not None]


def _add_changed(instructions: Sequence[Instruction], assigned: dict, written: dict) -> None:
    stack: list[str | None] = []  # for each value the variable that it is a part of, where it is one

    def pop() -> str | None:
        return stack.pop() if stack else None

    for instruction in instructions:
        op, arg = instruction.op, instruction.arg
        if op == "LOAD_FAST":
            stack.append(str(arg))
        elif op == "STORE_FAST":
            if pop() != arg:
                assigned[str(arg)] = None
        elif op == "COPY":
            stack.append(stack[-arg] if arg <= len(stack) else None)
        elif op == "SWAP":
            stack[:0] = [None] * (arg - len(stack))
            stack[-1], stack[-arg] = stack[-arg], stack[-1]
        elif op in _PARTS or op == "BINARY_OP" and arg in IN_PLACE:
            operands = [pop() for _ in range(1 - stack_effect(instruction))]
            stack.append(operands[-1])
            if op == "BINARY_OP":
                written[operands[-1]] = None
        else:
            effect = stack_effect(instruction)
            if op in _STORES and len(stack) > _STORES[op]:
                written[stack[-1 - _STORES[op]]] = None
            taken = _count_operands(op, effect)
            for _ in range(taken):
                pop()
            stack += [None] * (taken + effect)


def _count_operands(op: str, effect: int) -> int:
    """How many values an instruction takes from the stack, if it leaves at most one there."""
    if op.startswith(("STORE_", "POP_", "DELETE_")):
        return -effect
    return 1 - effect if effect <= 0 else 0
