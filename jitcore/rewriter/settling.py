"""Settling: which variables and places the body of a traced loop changes, and to which types.

In: the state before a loop, and the arm that its body was traced to. Out: the carries with which the body is
traced again, until nothing new turns up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from jitcore.array import Array
from jitcore.core.aval import ShapedArray
from jitcore.core.trace import Tracer
from jitcore.rewriter import errors
from jitcore.rewriter.arms import Arm
from jitcore.rewriter.carries import Carry, Key, count_entries, count_of, is_same, make_unbound
from jitcore.rewriter.driver import Driver
from jitcore.rewriter.emission import UNDEFINED, Point
from jitcore.rewriter.errors import Place
from jitcore.rewriter.flow import Loop
from jitcore.rewriter.handles import ConflictError, current
from jitcore.rewriter.raising import MaybeUnbound
from jitcore.rewriter.values import (
    Flat,
    Poison,
    count_memory,
    find_joint,
    is_same_leaf,
    join_types,
    memory_of,
    type_of,
    wrap,
)


class CarriedState:
    """What a loop carries.

    Attributes:
        driver, site, loop, state: where the loop is cut, and the variables there before it. top: the stack
            slot of the iterator or of what decides, or None; iterates: whether it is an iterator.
        carries: by key; values: what they are at the beginning of the iteration that is being traced;
            next_leaves: the leaves behind it.
        written: what is computed in the body and read only behind the loop; fixed: what the body sets to one
            Python value; shared: ids of leaves of `written` whose memory has several names.
        leaders, followed, distinct: leaves that are equal before the loop and behind each iteration are one.
    """

    driver: Driver
    site: Point
    loop: Loop
    state: dict[str, Any]
    top: str | None
    iterates: bool

    def __init__(self):
        state = self.state
        self.deleted = self._find_deleted()
        changed = {name: Flat(value) for name, value in state.items() if self._is_assigned(name)}
        # A handle on memory may stay what it is: in-place operators assign it to its own name.
        self.carries: dict[Key, Carry] = {
            ("name", name): Carry(flat) for name, flat in changed.items()
            if not any(memory_of(leaf) is not None for leaf in flat.leaves)}  # fmt: skip
        self.distinct: set[tuple] = set()
        self.begin_iteration()

    def begin_iteration(self) -> None:
        """Forgets what was found in the iteration before."""
        self.values: dict[Key, Any] = {}
        self.leaders: list[tuple] = []
        self.followed: dict[tuple, tuple] = {}

    @property
    def place(self) -> Place:
        return self.driver.describe(self.site)

    def _is_assigned(self, name: str) -> bool:
        if name[0] != "$":
            return name in self.loop.stored
        return int(name[2 : name.index("@")]) >= self.loop.base

    def _find_deleted(self) -> set[str]:
        """Variables that the body unbinds."""
        blocks = [self.driver.blocks[number] for number in self.loop.body]
        return {instruction.arg for block in blocks for instruction in block.instructions
                if instruction.op == "DELETE_FAST"}  # fmt: skip

    def make_value(self, key: Key, carry: Carry, new_arg: Callable[[ShapedArray], Tracer]):
        """A carry's value at the beginning of an iteration."""
        if carry.is_poisoned:
            name, place = self._name(key), self.place
            return Poison(lambda: errors.carry_object_error(name, *carry.changed, place))
        raws = [new_arg(leaf_type.aval) for leaf_type in carry.types if leaf_type is not None]
        return carry.rebuild(raws if current.mode is None else self._follow(key, carry, raws))

    def _follow(self, key: Key, carry: Carry, raws: list) -> list:
        """The leaves of a carry, those that equal others as these: masks that several compound handles have
        in common at the beginning, and as far as we have seen behind each iteration."""
        places = [place for place, leaf_type in enumerate(carry.types) if leaf_type is not None]
        found = []
        for place, raw in zip(places, raws):
            initial, slot, leaf_type = carry.flat.leaves[place], (key, place), carry.types[place]
            found.append(raw)
            if not isinstance(initial, Array):
                continue
            for leader, value, joint_type, arg in () if slot in self.distinct else self.leaders:
                if joint_type == leaf_type and current.mode.is_equal(value, initial):
                    self.followed[slot], found[-1] = leader, arg
                    break
            else:
                self.leaders.append((slot, initial, leaf_type, raw))
        return found

    # -- settling -------------------------------------------------------------------------------------------
    def is_settled(self, arm: Arm) -> bool:
        """Takes note of what else the body changes, and to which types."""
        is_settled = not self._add_carries(arm)
        self.next_leaves: dict[Key, list] = {}
        for key, carry in self.carries.items():
            if carry.is_poisoned or key not in self.values:
                continue
            flat = self._find_next(arm, key, carry)
            is_maybe = type(carry.flat.value) is MaybeUnbound
            if type(flat.value) is MaybeUnbound and not is_maybe and key[1] not in self.deleted:
                flat = Flat(flat.value.value)
            if is_maybe and type(flat.value) is not MaybeUnbound:
                flat = Flat(MaybeUnbound(flat.value, False))
            elif type(flat.value) is MaybeUnbound and not is_maybe:
                carry = self.carries[key] = Carry(Flat(MaybeUnbound(carry.flat.value, False)), carry.location)
                is_settled = False
            if flat.structure != carry.flat.structure:
                old, flat = carry.flat.structure, self._join_structures(arm, key, carry, flat)
                is_settled &= carry.flat.structure == old
            self.next_leaves[key] = flat.leaves
            for place, leaf in enumerate(flat.leaves):
                is_settled &= self._join_leaf(key, carry, place, leaf)
        return is_settled and not self._find_distinct() and not self._find_shared(arm)

    def _find_distinct(self) -> bool:
        """Whether leaves that were taken for equal ones are not behind an iteration."""
        before = len(self.distinct)
        for slot, leader in self.followed.items():
            (key, place), (other, other_place) = slot, leader
            one, joint = self.next_leaves[key][place], self.next_leaves[other][other_place]
            if not current.mode.is_equal(one, joint):
                self.distinct.add(slot)
        return len(self.distinct) > before

    def _join_structures(self, arm: Arm, key: Key, carry: Carry, flat: Flat) -> Flat:
        """A carry's next value, put together like the carry, which may take another structure for that."""
        convert_both = find_joint(carry.flat.value, flat.value)
        if convert_both is None:
            name = self._name(key)
            raise errors.carry_structure_error(name, carry.flat.value, flat.value, self.place)
        before, behind = self._count_holders(arm)
        is_shared = any(count_of(before, leaf) > 1 for leaf in carry.flat.leaves) or any(
            count_of(behind, leaf) > 1 for leaf in flat.leaves)  # fmt: skip
        joint = Flat(convert_both(carry.flat.value))
        if joint.structure != carry.flat.structure:
            carry.flat, carry.types = joint, [type_of(leaf) for leaf in joint.leaves]
        if is_shared:
            carry.shared |= {place for place, leaf in enumerate(joint.leaves) if memory_of(leaf) is not None}
        with arm.resume():
            return Flat(convert_both(flat.value))

    def _find_shared(self, arm: Arm) -> bool:
        """Whether more memory is found that a carry shares with another name, before the loop or behind an
        iteration: a store in the next iteration would have to be seen under both."""
        self.shared: set[int] = set()
        written = [leaf for flat in self.written.values() for leaf in flat.leaves]
        leaves = [leaf for leaves in self.next_leaves.values() for leaf in leaves]
        if not any(memory_of(leaf) is not None for leaf in leaves + written):
            return False
        before, behind = self._count_holders(arm)
        self.shared = {id(leaf) for leaf in written if count_of(behind, leaf) > 1}
        is_new = False
        for key, leaves in self.next_leaves.items():
            carry = self.carries[key]
            for place, (old, new) in enumerate(zip(carry.flat.leaves, leaves)):
                is_shared = count_of(before, old) > 1 or count_of(behind, new) > 1
                if is_shared and place not in carry.shared:
                    carry.shared.add(place)
                    is_new = True
        return is_new

    def _count_holders(self, arm: Arm) -> tuple[Counter[int], Counter[int]]:
        """From how many places each memory is seen before the loop, and behind an iteration."""
        outer = count_memory(self.driver.list_outer())
        return count_entries([*self.state.values()]) + outer, count_entries(arm.list_values()) + outer

    def _name(self, key: Key) -> str:
        location = self.carries[key].location
        return key[1] if location is None else location.name

    def _find_next(self, arm: Arm, key: Key, carry: Carry) -> Flat:
        """A carry's value behind an iteration."""
        if carry.location is None:
            found = arm.state.get(key[1])
        else:
            found = arm.stores[key[1]][1] if key[1] in arm.stores else None
        if found is None:
            return Flat(self.values[key])
        return Flat(MaybeUnbound(self.values[key], True)) if found.value is UNDEFINED else found

    def _join_leaf(self, key: Key, carry: Carry, place: int, leaf) -> bool:
        old, new = carry.types[place], type_of(leaf)
        if old is None:
            if not is_same_leaf(leaf, carry.flat.leaves[place]):
                carry.is_poisoned, carry.changed = True, (carry.flat.leaves[place], leaf)
            return not carry.is_poisoned
        if new is None:
            raise errors.carry_kind_error(self._name(key), leaf, self.place)
        try:
            carry.types[place] = join_types(old, new)
        except ConflictError as conflict:
            raise errors.carry_types_error(self._name(key), str(conflict), self.place) from None
        return carry.types[place] == old

    def _add_carries(self, arm: Arm) -> bool:
        """Whether there are new ones. Besides, `written` gets what is computed in the body and read only
        behind the loop, and `fixed` what the body sets to one Python value."""
        before = len(self.carries)
        for key, (location, _) in arm.stores.items():
            if ("location", key) not in self.carries:
                self.carries["location", key] = Carry(Flat(location.read()), location)
        self.written: dict[str, Flat] = {}
        self.fixed: dict[str, Any] = {}
        for name, flat in arm.state.items():
            if ("name", name) in self.carries or name == self.top and not self.iterates:
                continue
            if name in self.state:
                if not is_same(flat, Flat(self.state[name])):
                    self.carries["name", name] = Carry(Flat(self.state[name]))
            elif flat.value is UNDEFINED:
                continue
            elif self.site in arm.kinds and name in self.driver.flow.live[self.site.number]:
                self.carries["name", name] = Carry(Flat(make_unbound(name, flat.value)))
            elif any(map(arm.made, flat.leaves)):
                self.written[name] = flat
            else:
                self.fixed[name] = flat.value
        return len(self.carries) > before

    def rebuild_carry(self, key: Key, found: dict[tuple, Any]) -> Any:
        """A carry with the Arrays that were found by (key, place)."""
        carry = self.carries[key]
        places = [place for place, leaf_type in enumerate(carry.types) if leaf_type is not None]
        slots = [self.followed.get((key, place), (key, place)) for place in places]
        return carry.rebuild([found[slot] for slot in slots])

    def rebuild_written(self, name: str, flat: Flat, found: dict[tuple, Any]) -> Any:
        """A value that the last iteration computed."""
        leaves = list(flat.leaves)
        for place, leaf in enumerate(leaves):
            raw = found.get((("written", name), place))
            if raw is not None:
                leaves[place] = wrap(raw, type_of(leaf))
                if id(leaf) in self.shared:
                    leaves[place].mark_shared()
        return flat.rebuild(leaves)
