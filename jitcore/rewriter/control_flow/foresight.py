"""Foresight: what a traced loop will carry, guessed before its body is traced.

In: a loop's instructions, and what it carried when it was traced before, in another tracing of the body of
the loop around it. Out: carries: variables that get other memory, memory that the body writes, the flag of
what failed; and types that carries settle to.

What a loop carries is known only behind its body, which is then traced again: a nest of loops would be traced
twice as often for each level. A guess that is right saves that. One that is wrong is found out behind the
body, and given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from jitcore.core.trace import Tracer
from jitcore.rewriter.bytecode.graph import stack_effect
from jitcore.rewriter.bytecode.instructions import Instruction
from jitcore.rewriter.bytecode.versions import IN_PLACE
from jitcore.rewriter.control_flow.arms import Arm
from jitcore.rewriter.control_flow.carries import Carry, Key, is_same
from jitcore.rewriter.control_flow.settling import CarriedState
from jitcore.rewriter.handles import current
from jitcore.rewriter.journal import Location
from jitcore.rewriter.values import Flat, memory_of, type_of


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
