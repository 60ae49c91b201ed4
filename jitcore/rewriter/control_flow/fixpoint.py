"""The fixpoint of the carry: which variables and places the body of a traced loop changes, to which types.

In: the state before a loop, and the arm that its body was traced to. Out: the carries with which the body is
traced again, until nothing new turns up: each carry has behind an iteration the type that it had before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray
from jitcore.core.trace import Tracer
from jitcore.process.effort import spend
from jitcore.rewriter import errors
from jitcore.rewriter.bytecode.flow import Loop
from jitcore.rewriter.control_flow.arms import Arm
from jitcore.rewriter.control_flow.carries import (NO_ALIASES, Aliases, Carry, Cycle, Key, Slot,
                                                   assign_memory, choose_memory, count_entries, find_cycles,
                                                   has_other_names, is_same, make_unbound)
from jitcore.rewriter.control_flow.driver import Driver
from jitcore.rewriter.control_flow.raising import MaybeUnbound, negate
from jitcore.rewriter.handles import UNDEFINED, Alias, CompoundHandle, ConflictError, Handle, current
from jitcore.rewriter.journal import CellLocation, Location
from jitcore.rewriter.objects import Place
from jitcore.rewriter.values import (LEAF, Flat, Poison, count_containers, count_memory, find_joint,
                                     have_other_kinds, is_same_leaf, join_types, list_containers, memory_of,
                                     type_of, wrap)
from jitcore.rewriter.writing.resumable import Point


class CarriedState:
    """What a loop carries.

    Attributes:
        driver, site, loop, state: where the loop is cut, and the variables there before it. top: the stack
            slot of the iterator or of what decides, or None; iterates: whether it is an iterator.
        carries: by key; values: what they are at the beginning of the iteration that is being traced;
            next_leaves: the leaves behind it.
        written: what is computed in the body and read only behind the loop, by variable or cell; fixed: what
            the body sets to one Python value; shared: ids of leaves of `written` whose memory has more names.
        cycles: carries that exchange their memory; lent: arrays before the loop whose memory they have, and
            which are seen under other names.
        stored: carries into whose lists or dicts the body stores; replaced: those whose lists before the loop
            have other names, and are not these in any iteration but the first.
        expected: carries that are guessed, and not needed as far as is known.
        twins: leaves of carries whose memory is that of another one's behind each iteration, and before the
            loop as far as there is one; parted: those of which that is not so; leaders_before: leaves of
            these others before the loop. seen: leaves of `written` whose memory is that of a carry, by their
            ids.
        leaders, followed, distinct: leaves that are equal before the loop and behind each iteration are one:
            the slots and Arrays of the first ones, by type and `equality_key`.
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
            if not any(memory_of(leaf) is not None for leaf in flat.leaves)}
        self.distinct: set[tuple] = set()
        self.twins: dict[Slot, Slot] = {}
        self.parted: set[Slot] = set()
        self.leaders_before: dict[Key, list] = {}
        self.seen: dict[int, Slot] = {}
        self.cycles: list[Cycle] = []
        self.lent: list[Handle] = []
        self.expected: list[Key] = []
        self.begin_iteration()

    def begin_iteration(self) -> None:
        """Forgets what was found in the iteration before."""
        self.values: dict[Key, Any] = {}
        self.leaders: dict[tuple, list[tuple]] = {}
        self.followed: dict[tuple, tuple] = {}
        self.stored: set[Key] = set()
        self.replaced: set[Key] = set()

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
                if instruction.op == "DELETE_FAST"}

    def make_value(self, key: Key, carry: Carry, new_arg: Callable[[ShapedArray], Tracer]):
        """A carry's value at the beginning of an iteration."""
        if carry.is_poisoned:
            return self._make_poison(self._name(key), *carry.changed)
        spend(LEAF * len(carry.types))
        raws = [new_arg(leaf_type.aval) for leaf_type in carry.types if leaf_type is not None]
        # Memory is written, so what it holds is not that of other memory for long.
        is_memory = carry.location is not None and isinstance(carry.flat.value, Array)
        return carry.rebuild(raws if current.mode is None or is_memory else self._follow(key, carry, raws))

    def _follow(self, key: Key, carry: Carry, raws: list) -> list:
        """The leaves of a carry, those that equal others as these: masks and extents that several compound
        handles have in common at the beginning, and as far as we have seen behind each iteration."""
        places = [place for place, leaf_type in enumerate(carry.types) if leaf_type is not None]
        found = []
        for place, raw in zip(places, raws):
            slot, leaf_type = (key, place), carry.types[place]
            found.append(raw)
            known = current.mode.equality_key(carry.flat.leaves[place])
            if known is None:
                continue
            leaders = self.leaders.setdefault((leaf_type, known), [])
            leader = next((one for one in leaders if (slot, one[0]) not in self.distinct), None)
            if leader is None:
                leaders.append((slot, raw))
            else:
                self.followed[slot], found[-1] = leader
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
            if not self._has_own_containers(arm, key, carry, flat):
                carry.is_poisoned, carry.changed, is_settled = True, (carry.flat.value, flat.value), False
                self.next_leaves[key] = carry.flat.leaves
                continue
            is_maybe = type(carry.flat.value) is MaybeUnbound
            if type(flat.value) is MaybeUnbound and not is_maybe and key[1] not in self.deleted:
                flat = Flat(flat.value.value)
            if is_maybe and type(flat.value) is not MaybeUnbound:
                flat = Flat(MaybeUnbound(flat.value, False))
            elif type(flat.value) is MaybeUnbound and not is_maybe:
                carry = self.carries[key] = Carry(Flat(MaybeUnbound(carry.flat.value, False)), carry.location)
                is_settled = False
            if self._needs_joint(key, carry, flat):
                old, flat = carry.flat.structure, self._join_structures(arm, key, carry, flat)
                is_settled &= carry.flat.structure == old
            self.next_leaves[key] = flat.leaves
            for place, leaf in enumerate(flat.leaves):
                is_settled &= self._join_leaf(key, carry, place, leaf)
        return is_settled and not self._find_distinct() and not self._find_shared(arm)

    def _needs_joint(self, key: Key, carry: Carry, flat: Flat) -> bool:
        """Whether a carry has to be put together otherwise, or had better be, for what it is behind an
        iteration."""
        if flat.structure != carry.flat.structure:
            return True
        if have_other_kinds(carry.types, carry.flat.leaves, flat.leaves):
            return find_joint(carry.flat.value, flat.value) is not None
        value = self.values[key]
        return isinstance(value, CompoundHandle) and value.changes_places(flat.value)

    def _has_own_containers(self, arm: Arm, key: Key, carry: Carry, flat: Flat) -> bool:
        """Whether the lists and dicts of a carry can be made anew: nobody sees them under another name.

        Those before the loop may have one (`replaced`) if nothing is stored in them, and no iteration leaves
        them."""
        if current.mode is None or not list_containers(carry.flat.value) + list_containers(flat.value):
            return True
        behind = self._count_lists(arm)
        if any(behind[id(container)] > 1 for container in list_containers(flat.value)):
            return False
        if self._has_known_containers(carry):
            self.replaced.add(key)
            carried = list_containers(self.values[key])
            is_changed = any(id(container) in arm.contents for container in list_containers(carry.initial))
            return not is_changed and key not in self.stored and not any(
                behind[id(container)] for container in carried)
        return True

    def _has_known_containers(self, carry: Carry) -> bool:
        """Whether lists and dicts of a carry have other names before the loop."""
        found = list_containers(carry.initial)
        outer = count_containers([*self.state.values(), *self.driver.list_outer()]) if found else {}
        return any(outer[id(one)] > 1 or current.mode.is_given(one) for one in found)

    def mark_containers(self, key: Key, carry: Carry) -> None:
        """Marks what stands for such lists and dicts at the beginning of an iteration."""
        if current.mode is not None and self._has_known_containers(carry):
            for container in list_containers(self.values[key]):
                current.mode.mark_given(container)

    def _count_lists(self, arm: Arm) -> Counter[int]:
        """From how many places each list and dict is seen behind an iteration."""
        return count_containers([*arm.list_values(), *self.driver.list_outer()])

    def _find_distinct(self) -> bool:
        """Whether leaves that were taken for equal ones are not behind an iteration."""
        before = len(self.distinct)
        for slot, leader in self.followed.items():
            (key, place), (other, other_place) = slot, leader
            one, joint = self.next_leaves[key][place], self.next_leaves[other][other_place]
            if not current.mode.is_equal(one, joint):
                self.distinct.add((slot, leader))
        return len(self.distinct) > before

    def _join_structures(self, arm: Arm, key: Key, carry: Carry, flat: Flat) -> Flat:
        """A carry's next value, put together like the carry, which may take another structure for that."""
        convert_both = find_joint(carry.flat.value, flat.value)
        if convert_both is None:
            name = self._name(key)
            raise errors.carry_structure_error(name, carry.flat.value, flat.value, self.place)
        before, behind = self._count_holders(arm)
        is_shared = any(has_other_names(before, leaf) for leaf in carry.flat.leaves) or any(
            has_other_names(behind, leaf) for leaf in flat.leaves)
        joint = Flat(convert_both(carry.flat.value))
        if joint.structure != carry.flat.structure:
            carry.flat, carry.types = joint, [type_of(leaf) for leaf in joint.leaves]
            carry.fixed.clear()
            self.twins = {one: other for one, other in self.twins.items() if key not in (one[0], other[0])}
        if is_shared:
            carry.shared |= {place for place, leaf in enumerate(joint.leaves) if memory_of(leaf) is not None}
        with arm.resume():
            return Flat(convert_both(flat.value))

    def _find_shared(self, arm: Arm) -> bool:
        """Whether more memory is found that a carry shares with another name, before the loop or behind an
        iteration: a store in the next iteration would have to be seen under both."""
        self.shared: set[int] = set()
        self.cycles = []
        written = [leaf for flat in self.written.values() for leaf in flat.leaves]
        leaves = [leaf for leaves in self.next_leaves.values() for leaf in leaves]
        if not any(memory_of(leaf) is not None for leaf in leaves + written):
            return False
        if self._find_twins(written):
            return True
        before, behind = self._count_holders(arm)
        self.shared = {id(leaf) for leaf in written if has_other_names(behind, leaf)}
        self.cycles = find_cycles(self.carries, self.values, self.next_leaves, behind,
                                  lambda leaf: has_other_names(before, leaf))
        is_new = self._lend()
        rotating = {key for cycle in self.cycles for key in cycle.keys}
        for key, leaves in self.next_leaves.items():
            carry = self.carries[key]
            if key in rotating or key in self.expected and self._stays(arm, key, carry):
                continue
            for place, (old, new) in enumerate(zip(carry.flat.leaves, leaves)):
                is_shared = has_other_names(before, old) or has_other_names(behind, new)
                if is_shared and place not in carry.shared | carry.fixed:
                    carry.shared.add(place)
                    is_new = True
        return self._forbid_stores(arm) or is_new

    def _find_twins(self, written: list) -> bool:
        """Whether there are others than before. written: leaves that are no carries'."""
        kept = {slot: leader for slot, leader in self.twins.items()
                if leader[0] in self.next_leaves and slot[0] in self.next_leaves
                and not self.carries[leader[0]].is_poisoned and not self.carries[slot[0]].is_poisoned
                and is_same_leaf(self._behind(slot), self._behind(leader))}
        lost = [slot for slot in self.twins if slot not in kept and slot[0] in self.carries]
        for (key, place) in lost:
            self.carries[key].types[place] = type_of(self.carries[key].flat.leaves[place])
        self.parted.update(lost)
        by_memory: dict[int, list[Slot]] = {}
        for key, leaves in self.next_leaves.items():
            for place, leaf in enumerate(leaves):
                is_carried = self.carries[key].types[place] is not None and not self.carries[key].is_poisoned
                if memory_of(leaf) is not None and is_carried and current.mode is not None:
                    by_memory.setdefault(id(memory_of(leaf)), []).append((key, place))
        self.twins, count = kept, len(kept)
        for slots in by_memory.values():
            leader = min(slots, key=lambda slot: self.carries[slot[0]].is_blank)
            for slot in slots:
                if slot is not leader and slot not in self.parted and self._is_twin(slot, leader):
                    self.twins[slot] = leader
                    self.leaders_before[leader[0]] = self.carries[leader[0]].flat.leaves
                    self.carries[slot[0]].types[slot[1]] = None
        self.seen = {id(leaf): slot for leaf in written for slot in by_memory.get(id(memory_of(leaf)), ())
                     if is_same_leaf(leaf, self._behind(slot))}
        return bool(lost) or len(self.twins) > count

    def _is_twin(self, slot: Slot, leader: Slot) -> bool:
        (key, place), (other, other_place) = slot, leader
        carry, leading = self.carries[key], self.carries[other]
        return is_same_leaf(self._behind(slot), self._behind(leader)) and (
            carry.is_blank or is_same_leaf(carry.flat.leaves[place], leading.flat.leaves[other_place]))

    def _behind(self, slot: Slot) -> Any:
        """A leaf behind an iteration."""
        return self.next_leaves[slot[0]][slot[1]]

    def unify(self, values: dict[Key, Any]) -> dict[Key, Any]:
        """Values of carries, twins with the memory of those whose twins they are."""
        for (key, place), (other, other_place) in self.twins.items():
            if key not in values:  # it turned out to be no carry
                continue
            if self.carries[key].is_poisoned or other in values and self.carries[other].is_poisoned:
                values[key] = values.get(other, values[key])
                continue
            flat = Flat(values[key])
            leaves = Flat(values[other]).leaves if other in values else self.leaders_before[other]
            flat.leaves[place] = leaves[other_place]
            values[key] = flat.rebuild(flat.leaves)
        return values

    def _stays(self, arm: Arm, key: Key, carry: Carry) -> bool:
        """Whether a carry is what it was behind an iteration: the same handles, in the same lists."""
        return is_same(self._find_next(arm, key, carry), Flat(self.values[key]))

    def _lend(self) -> bool:
        """Whether memory is found that has other names, and in which carries of a cycle are."""
        seen = {id(leaf.memory): leaf for cycle in self.cycles
                for leaf, is_seen in zip(cycle.leaves, cycle.is_seen) if is_seen}
        if any(id(memory_of(leaf)) in seen for leaves in self.next_leaves.values() for leaf in leaves):
            self.cycles, seen = [], {}
        is_new = seen.keys() != {id(leaf.memory) for leaf in self.lent}
        self.lent = [*seen.values()]
        for leaf in self.lent:  # what was stored there before the carries were known
            self.carries.pop(("location", leaf.memory.location.key), None)
            self.next_leaves.pop(("location", leaf.memory.location.key), None)
        return is_new

    def rotate(self, results: dict[tuple, Any], count: int | None) -> dict[Key, Any]:
        """The carries that exchange their memory, behind the loop. count: of the iterations, or None."""
        found: dict[Key, Any] = {}
        for cycle in self.cycles:
            raws = [results[key, 0] for key in cycle.keys]
            if count is not None:
                found |= zip(cycle.keys, assign_memory(cycle, raws, count))
            elif any(cycle.is_seen):
                values = [self.rebuild_carry(key, results) for key in cycle.keys]
                choose_memory(cycle, raws, values, results["turn", cycle.length])
                found |= zip(cycle.keys, values)
        return found

    def _forbid_stores(self, arm: Arm) -> bool:
        """Whether the body writes memory that a carry has in some iterations, and others in the rest: from
        now on that raises."""
        stored = {id(location.memory) for location, _ in arm.stores.values() if location.memory is not None}
        leaves = [leaves[place] for key, carry in self.carries.items()
                  for leaves in (carry.flat.leaves, self.next_leaves.get(key, carry.flat.leaves))
                  for place in carry.shared]
        written = [leaf for leaf in leaves if id(memory_of(leaf)) in stored and not leaf.is_shared]
        for leaf in written:
            leaf.mark_shared()
        return bool(written)

    def _count_holders(self, arm: Arm) -> tuple[Counter[int], Counter[int]]:
        """From how many places each memory is seen before the loop, and behind an iteration."""
        outer = count_memory(self.driver.list_outer(), by_place=True)
        before, behind = (count_entries(values) + outer for values in ([*self.state.values()],
                                                                       arm.list_values()))
        for slot in self.twins:  # which are no names of their own
            behind[id(memory_of(self._behind(slot)))] -= 1
            if not self.carries[slot[0]].is_blank:
                before[id(memory_of(self.carries[slot[0]].flat.leaves[slot[1]]))] -= 1
        for slot in self.seen.values():
            behind[id(memory_of(self._behind(slot)))] -= 1
        return before, behind

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
        if (key, place) in self.twins:
            return True
        if old is None:
            if place in carry.fixed and not is_same_leaf(leaf, carry.flat.leaves[place]):
                carry.release(place)
                return False
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
        self.written: dict[Any, Flat] = {}
        self.fixed: dict[str, Any] = {}
        for key, (location, behind) in arm.stores.items():
            if current.mode is not None and binds_cell(location, behind):
                self.written[location] = behind
            elif ("location", key) not in self.carries and not is_same(behind, Flat(location.read())):
                self._carry(arm, ("location", key), behind, Carry(Flat(location.read()), location))
        for name, flat in arm.state.items():
            if ("name", name) in self.carries or name == self.top and not self.iterates:
                continue
            if name in self.state:
                if not is_same(flat, Flat(self.state[name])):
                    self._carry(arm, ("name", name), flat, Carry(Flat(self.state[name])))
            elif flat.value is UNDEFINED:
                continue
            elif self.site in arm.kinds and name in self.driver.flow.live[self.site.number]:
                blank = Carry(Flat(make_unbound(name, flat.value)), is_blank=True)
                self._carry(arm, ("name", name), flat, blank)
            elif any(map(arm.made, flat.leaves)):
                counts = self._count_lists(arm) if list_containers(flat.value) else {}
                if current.mode is not None and any(count > 1 for count in map(
                        counts.get, map(id, list_containers(flat.value)))):
                    self.fixed[name] = self._make_poison(name, None, flat.value)
                else:
                    self.written[name] = flat
            else:
                self.fixed[name] = flat.value
        return len(self.carries) > before

    def _carry(self, arm: Arm, key: Key, behind: Flat, carry: Carry) -> None:
        self.carries[key] = carry
        if current.mode is not None:
            carry.fix(behind, arm.made)

    def _make_poison(self, name: str, before: Any, behind: Any) -> Poison:
        place = self.place
        return Poison(lambda: errors.carry_object_error(name, before, behind, place))

    def find_aliases(self, arm: Arm, begins: Any) -> dict[Key, dict[int, list[Alias]]]:
        """Of carries whose memory has other names: where the body makes new memory in each iteration, it is
        the memory before the loop only if there was no iteration. begins: whether there was, or None."""
        if begins is None or not any(carry.shared for carry in self.carries.values()):
            return {}
        behind = self._count_holders(arm)[1]
        carried = count_memory(self.values.values())
        found: dict[Key, dict[int, list[Alias]]] = {}
        for key, leaves in self.next_leaves.items():
            carry = self.carries[key]
            for place in carry.shared:
                leaf = leaves[place]
                is_new = arm.made(leaf) and id(memory_of(leaf)) not in carried
                if is_new and not has_other_names(behind, leaf):
                    old = carry.flat.leaves[place]
                    aliases = [] if begins is True else [Alias(negate(begins), old, is_rare=True)]
                    found.setdefault(key, {})[place] = aliases
        return found

    def rebuild_carry(self, key: Key, found: dict[tuple, Any], aliases: Aliases = NO_ALIASES) -> Any:
        """A carry with the Arrays that were found by (key, place)."""
        carry = self.carries[key]
        places = [place for place, leaf_type in enumerate(carry.types) if leaf_type is not None]
        slots = [self.followed.get((key, place), (key, place)) for place in places]
        flat = Flat(carry.rebuild([found[slot] for slot in slots], aliases))
        twins = {place: leader for (own, place), leader in self.twins.items() if own == key}
        for place, (other, other_place) in twins.items():
            leaf_type = self.carries[other].types[other_place]
            flat.leaves[place] = wrap(found[other, other_place], leaf_type)
        return flat.rebuild(flat.leaves) if twins else flat.value

    def rebuild_written(self, name: Any, flat: Flat, found: dict[tuple, Any], values: dict[Key, Any]) -> Any:
        """A value that the last iteration computed. name: of a variable, or the location of a cell; values:
        of the carries."""
        leaves = list(flat.leaves)
        for place, leaf in enumerate(leaves):
            if id(leaf) in self.seen:
                key, seen = self.seen[id(leaf)]
                leaves[place] = Flat(values[key]).leaves[seen]
                continue
            raw = found.get((("written", name), place))
            if raw is not None:
                leaves[place] = wrap(raw, type_of(leaf))
                if id(leaf) in self.shared:
                    leaf.mark_shared()
                    leaves[place].mark_shared()
        return flat.rebuild(leaves)


def binds_cell(location: Location, behind: Flat) -> bool:
    """Whether the body binds a variable that inner functions share, and that has no value before: the body
    reads what it has bound itself, as another iteration's is not there."""
    return (isinstance(location, CellLocation) and location.read() is UNDEFINED
            and behind.value is not UNDEFINED and not isinstance(behind.value, Poison))
