"""Joining: two arms of a traced decision become one `cond`, and their states one state.

In: two `Arm`s and the predicate. Out: an `Outcome` whose values hold whichever side is taken. An arm that
raises has no values: the other one's go on.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jitcore import dtypes
from jitcore.core.jaxpr import aval_of, eval_jaxpr
from jitcore.core.trace import JaxprTrace, context, set_current_trace
from jitcore.lax import elementwise
from jitcore.lax.control_flow.cond import cond, join_consts
from jitcore.lax.control_flow.control import TracedFunction
from jitcore.lax.define import cast
from jitcore.rewriter import errors
from jitcore.rewriter.control_flow.arms import (FLAG, KIND, Arm, Outcome, Scope, find_outer_memory,
                                                raise_where, refuse_advanced, refuse_reordered)
from jitcore.rewriter.control_flow.growing import note_growth
from jitcore.rewriter.control_flow.iterators import join_iterators
from jitcore.rewriter.control_flow.raising import MaybeUnbound, negate
from jitcore.rewriter.errors import RESULT
from jitcore.rewriter.handles import (UNDEFINED, Alias, CompoundHandle, ConflictError, Handle, LeafType,
                                      current)
from jitcore.rewriter.journal import (ArrayLocation, ContainerLocation, ItemLocation, Location,
                                      find_container, find_variables, record)
from jitcore.rewriter.objects import copy_contents
from jitcore.rewriter.values import (Flat, Poison, PoisonedAttribute, as_flag, convert, count_containers,
                                     count_memory, find_joint, is_same_leaf, join_types, list_containers,
                                     make_zeros, memory_of, type_of, wrap)

Read = Callable[[Sequence], Any]


class _Merge:
    """Collects what differs between two arms as outputs of a `cond`.

    outputs: for each output both arms' values (UNDEFINED for none) and its type; kept: values that stay what
    they are; has_conflict: whether a Python value differs.
    """

    def __init__(self, predicate, first: Arm, second: Arm, scope: Scope):
        self.predicate, self.arms, self.place, self.scope = predicate, (first, second), scope.place, scope
        self.outputs: list[tuple[Any, Any, LeafType]] = []
        self.kept: list[Any] = []
        self.has_conflict = False
        self._reads: dict[tuple[int, int], Read] = {}
        self._iterators: dict[int, Iterator] = {}  # the first arm's copies, by id of the second arm's
        self._containers: dict[tuple[int, int], Read] = {}
        self._partners: dict[tuple[int, int], int] = {}  # of containers: by arm and id, the other arm's
        self._holders: list[Counter[int]] = []
        self._chosen: dict[tuple[int, int], Handle] = {}

    def add_output(self, one, other, leaf_type: LeafType) -> Read:
        self.outputs.append((one, other, leaf_type))
        return lambda values, place=len(self.outputs) - 1: values[place]

    def join_leaves(self, one, other, leaf_type: LeafType) -> Read:
        """An output; two names of one object in both arms are names of one object behind them, and so are
        extents and masks that are equal in both."""
        key = id(one), id(other)
        if key not in self._reads:
            same = next((place for place, output in enumerate(self.outputs) if output[2] == leaf_type
                         and _is_equal(output[0], one) and _is_equal(output[1], other)), None)
            self._reads[key] = self.add_output(one, other, leaf_type) if same is None else (
                lambda values: values[same])
        return self._reads[key]

    def merge_leaves(self, one, other, name: str) -> Read:
        if one is UNDEFINED or other is UNDEFINED:
            return self._merge_single(one, other)
        if is_same_leaf(one, other):
            if isinstance(other, Iterator):
                self._iterators[id(other)] = one
            return self._keep(self._choose_object(one, other))
        for leaf in (one, other):
            if isinstance(leaf, Poison):
                self.has_conflict = True
                return lambda values: leaf
        types = type_of(one), type_of(other)
        if types[0] != types[1]:
            read = self._merge_joint(one, other, name)
            if read is not None:
                return read
        if types[0] is None or types[1] is None:
            return self._conflict(errors.branch_values_error, name, one, other)
        try:
            return self.join_leaves(one, other, join_types(*types))
        except ConflictError as conflict:
            return self._conflict(errors.branch_types_error, name, str(conflict))

    def _choose_object(self, one, other):
        """Two leaves that are one value, but perhaps two objects of Python's."""
        if one is other or not isinstance(one, Handle) or memory_of(one) is None:
            return one
        if (id(one), id(other)) not in self._chosen:
            self._chosen[id(one), id(other)] = one.choose_object(self.predicate, other)
        return self._chosen[id(one), id(other)]

    def _merge_joint(self, one, other, name: str) -> Read | None:
        """The merge of values without memory that have a common form; None for others."""
        convert_both = find_joint(one, other)
        leaves = [leaf for value in (one, other) for leaf in Flat(value).leaves]
        if convert_both is None or any(memory_of(leaf) is not None for leaf in leaves):
            return None
        flats = []
        for arm, value in zip(self.arms, (one, other)):
            with arm.resume():
                flats.append(Flat(convert_both(value)))
        for pair, made in zip(*(zip(*map(list_containers, values))
                                for values in ((one, other), [flat.value for flat in flats]))):
            is_kept = pair[0] is made[0] and pair[1] is made[1]
            if not is_kept and self._is_found_elsewhere(*pair):
                return self._conflict(errors.branch_containers_error, name, pair[0])
        return self.merge(*flats, name)

    def _merge_single(self, one, other) -> Read:
        """A value that only one arm has: what lies behind does not read it when the other was taken."""
        arm, leaf = (self.arms[1], other) if one is UNDEFINED else (self.arms[0], one)
        leaf_type = type_of(leaf)
        if leaf_type is None or not arm.made(leaf):
            return self._keep(leaf)
        return self.join_leaves(one, other, leaf_type)

    def _keep(self, value) -> Read:
        """A value that is what it was."""
        self.kept.append(value)
        return lambda values: value

    def _conflict(self, make_error: Callable[..., Exception], *args: Any) -> Read:
        """A value that cannot be known behind the condition, and why."""
        self.has_conflict = True
        poison = Poison(functools.partial(make_error, *args, self.place))
        return lambda values: poison

    def merge_variable(self, one: Flat | None, other: Flat | None, name: str) -> Read:
        """As `merge`; a variable that one of the arms may have left unbound says so. None: nothing reads it
        behind that arm."""
        pair = one, other
        flags = [flat is not None and flat.value is UNDEFINED for flat in pair]
        is_maybe = [flat is not None and type(flat.value) is MaybeUnbound for flat in pair]
        if not any(flags + is_maybe):
            return self.merge(one, other, name)
        values = [Flat(flat.value.value) if maybe else None if flag else flat
                  for flat, flag, maybe in zip(pair, flags, is_maybe)]
        if values == [None, None]:
            return lambda found: UNDEFINED
        read = self.merge(*values, name)
        if not any(is_maybe):
            return lambda found: MaybeUnbound(read(found), self.predicate, flags[0])
        for place, (arm, flat) in enumerate(zip(self.arms, pair)):
            with set_current_trace(arm.trace):
                flags[place] = as_flag(flat.value.is_unbound if is_maybe[place] else flags[place])
        read_flag = self.merge(*map(Flat, flags), name)
        return lambda found: MaybeUnbound(read(found), read_flag(found))

    def merge(self, one: Flat | None, other: Flat | None, name: str) -> Read:
        if one is None or other is None:
            flat = one or other
            arm = self.arms[0] if other is None else self.arms[1]
            if id(flat.value) in arm.known or not any(map(arm.made, flat.leaves)):
                return self._keep(flat.value)  # what the arm stored in a list is merged there
            if isinstance(flat.value, CompoundHandle):
                with arm.resume():
                    flat = Flat(flat.value.settle())
            if type(flat.value) in _CONTAINERS:
                pair = (flat.value, UNDEFINED) if other is None else (UNDEFINED, flat.value)
                return self._merge_container(*pair, name)
            leaves = [(leaf, UNDEFINED) if other is None else (UNDEFINED, leaf) for leaf in flat.leaves]
        elif one.value is other.value:
            return self._keep(one.value)
        elif one.structure != other.structure:
            joint = join_iterators(one.value, other.value)
            read = self._merge_joint(one.value, other.value, name) if joint is None else None
            if read is not None:
                return read
            if joint is not None:
                return self.merge(*map(Flat, joint), name)
            if not _have_same_keys(one.value, other.value):
                return self._conflict(errors.branch_structures_error, name, one.value, other.value)
            return self._merge_container(one.value, other.value, name)
        elif type(one.value) in _CONTAINERS:
            return self._merge_container(one.value, other.value, name)
        else:
            flat, leaves = one, list(zip(one.leaves, other.leaves))
        reads = [self.merge_leaves(*pair, name) for pair in leaves]
        return lambda values: flat.rebuild([read(values) for read in reads])

    def _merge_container(self, one, other, name: str) -> Read:
        """The merge of two containers put together alike, UNDEFINED for none. Two names of one list in both
        arms are names of one list behind them."""
        pair = id(one), id(other)
        if pair in self._containers and type(one) is not tuple:
            return self._containers[pair]
        if self._is_found_elsewhere(one, other):
            return self._conflict(errors.branch_containers_error, name, other if one is UNDEFINED else one)
        held = [arm.contents.get(id(value), value) for arm, value in zip(self.arms, (one, other))]
        flats = [None if value is UNDEFINED else {key: Flat(item) for key, item in _list_items(value)}
                 for value in held]
        first = flats[0] if flats[1] is None else flats[1]
        reads = {key: self.merge(*(flat and flat[key] for flat in flats), name) for key in first}
        kind, made = type(other if one is UNDEFINED else one), []

        def read(values):
            if not made:
                made.append(_put_together(kind, reads, values))
            return made[0]

        self._containers[pair] = read
        return read

    def _is_found_elsewhere(self, one, other) -> bool:
        """Whether a store into what becomes of two lists or dicts would have to reach another one: that was
        there before the decision, under another name too, or is another name's in one of the arms."""
        if current.mode is None or type(one) is tuple or type(other) is tuple:
            return False
        found = False
        for place, (value, partner) in enumerate(((one, other), (other, one))):
            if value is not UNDEFINED:
                found |= current.mode.is_given(value)
                found |= id(value) in self.arms[place].known and self._count_holders(place)[id(value)] > 1
                found |= self._partners.setdefault((place, id(value)), id(partner)) != id(partner)
        return found

    def _count_holders(self, place: int) -> Counter[int]:
        """From how many places each list and dict is seen behind an arm."""
        if not self._holders:
            outer = count_containers(self.scope.list_outer())
            self._holders = [count_containers(arm.list_values()) + outer for arm in self.arms]
        return self._holders[place]

    def finish(self, reads: dict[str, Read], stores: Sequence[tuple[Location, Read]], kinds: tuple,
               read_kind: Read | None) -> Outcome:
        """Binds the `cond`, and stores what its outputs are for. Two names of one iterator are that too where
        one arm alone has the second."""
        inner = self._export_aliases()
        values = self.bind()
        self.mark_shared(values, self.scope.list_outer(), inner)
        for location, read in stores:
            record(location)  # first: to make the value may change what is there
            location.write(read(values))
        state = {name: read(values) for name, read in reads.items()}
        state = {name: self._iterators.get(id(value), value) for name, value in state.items()}
        return Outcome(kinds, state, None if read_kind is None else read_kind(values))

    def bind(self) -> list:
        """Ends both arms' traces; returns the outputs of the `cond`."""
        functions = []
        for place, arm in reversed(list(enumerate(self.arms))):
            with arm.resume():
                outs = [make_zeros(output[2].aval) if output[place] is UNDEFINED
                        else convert(output[place], output[2]) for output in self.outputs]
            functions.append(arm.close(outs))
        if not self.outputs and not any(function.jaxpr.effects for function in functions):
            return []
        if all(map(_is_cheap, functions)):
            pairs = zip(*[eval_jaxpr(function.jaxpr, function.consts, []) for function in functions])
            found = [elementwise.select_n(self.predicate, *pair) for pair in pairs]
            return [wrap(raw, output[2]) for raw, output in zip(found, self.outputs)]
        branches, consts = join_consts(functions)
        index = cast(self.predicate, aval_of(self.predicate), dtypes.int32, False)
        found = cond.primitive.bind(index, *consts, branches=branches)
        return [wrap(raw, output[2]) for raw, output in zip(found, self.outputs)]

    def _export_aliases(self) -> dict[tuple[int, int], list[tuple[Read, Any]]]:
        """When memory of an arm's is that of an array from outside, by a decision in that arm: outputs that
        tell it, and the arrays, by the number of the output and that of the arm."""
        found = {}
        for place, arm in enumerate(self.arms):
            leaves = [(number, output[place]) for number, output in enumerate(self.outputs)]
            made = [(number, leaf) for number, leaf in leaves
                    if memory_of(leaf) is not None and leaf.is_shared and arm.made(leaf)]
            if len(made) != 1:  # several may share memory with each other too
                continue
            (number, leaf), = made
            with arm.resume():
                aliases = find_outer_memory(arm, leaf, True)
            if aliases is not None:
                pairs = [((predicate, False)[:: -1 if place else 1], handle) for predicate, handle in aliases]
                found[number, place] = [(self.add_output(*pair, FLAG), handle) for pair, handle in pairs]
        return found

    def mark_shared(self, values: list, outer: Iterable[Any], inner: Mapping[tuple[int, int], list]) -> None:
        """Marks memory that became one by value, while one of the two may be seen under another name: of the
        arm's, from outside, or by a decision before it. inner: as `_export_aliases` has it."""
        if not any(memory_of(value) is not None for value in values):
            return
        elsewhere = count_memory([*outer, *self.kept])
        for place, arm in enumerate(self.arms):
            holders = count_memory(arm.list_values())
            names = Counter(id(memory_of(output[place])) for output in self.outputs)
            is_taken = negate(self.predicate) if place else self.predicate
            for number, (output, value) in enumerate(zip(self.outputs, values)):
                leaf = output[place]
                memory = memory_of(leaf)
                if memory is None:
                    continue
                has_names = holders[id(memory)] > 1 or names[id(memory)] > 1
                if not has_names and (number, place) in inner:
                    for read, handle in inner[number, place]:
                        handle.mark_shared(Alias(read(values), None))
                        value.mark_shared(Alias(read(values), handle))
                elif has_names or leaf.is_shared or id(memory) in elsewhere:
                    is_known = not arm.made(leaf)
                    leaf.mark_shared(Alias(is_taken, None) if is_known else None)
                    value.mark_shared(Alias(is_taken, leaf) if is_known else None)


_CONTAINERS = (tuple, list, dict)


def _have_same_keys(one: Any, other: Any) -> bool:
    """Whether two containers are of one type, and have the same keys, or as many items."""
    if type(one) is not type(other) or type(one) not in _CONTAINERS:
        return False
    return list(one) == list(other) if isinstance(one, dict) else len(one) == len(other)


def _list_items(container: Any) -> list[tuple[Any, Any]]:
    return list(container.items() if isinstance(container, dict) else enumerate(container))


# What may be computed for both sides: it costs nothing, cannot fail, and its derivative is finite whatever
# the operands are, so that the side that is not taken does not make NaNs of a derivative.
_CHEAP = frozenset("""add sub neg abs max min lt le gt ge eq ne and or not xor select_n
    convert_element_type""".split())
_MAX_CHEAP = 4


def _is_cheap(function: TracedFunction) -> bool:
    """Whether an arm is a few scalar operations, for which there need be no branch."""
    jaxpr = function.jaxpr
    outs = [atom for eqn in jaxpr.eqns for atom in eqn.outvars] + jaxpr.outvars
    return (len(jaxpr.eqns) <= _MAX_CHEAP and all(eqn.primitive.name in _CHEAP for eqn in jaxpr.eqns)
            and all(atom.aval.shape == () for atom in outs))


def _is_equal(one: Any, other: Any) -> bool:
    return one is other or current.mode is not None and current.mode.is_equal(one, other)


def merge_arms(predicate, first: Arm, second: Arm, scope: Scope, *, strict: bool = False) -> Outcome | None:
    """The outcome of taking the first arm where the predicate holds, else the second.

    strict: returns None where a live Python value differs, instead of a value that raises when it is used."""
    for arm in (first, second):
        refuse_advanced(arm, scope.names, scope.place)
        refuse_reordered(arm, scope.names, scope.place)
        for location, _ in arm.stores.values():
            if isinstance(location, ArrayLocation):
                name = errors.name_container(location.array, scope.names)
                raise errors.numpy_array_error(name, scope.place)
    if first.error is not None or second.error is not None:
        return _merge_raising(predicate, first, second, scope)
    merge = _Merge(predicate, first, second, scope)
    names = dict.fromkeys([*first.state, *second.state])
    reads = {name: merge.merge_variable(first.state.get(name), second.state.get(name), name)
             for name in names}
    if strict and merge.has_conflict:
        for arm in merge.arms:
            arm.trace.abandon()
        return None
    changed = _find_changed(merge)
    stores = [*_merge_stores(merge, changed), *_merge_changes(merge, changed)]
    kinds = tuple(dict.fromkeys(first.kinds + second.kinds))
    read_kind = None
    if len(kinds) > 1:
        one, other = (arm.kinds[0].number if arm.kind is None else arm.kind for arm in (first, second))
        read_kind = merge.add_output(one, other, KIND)
    outcome = merge.finish(reads, stores, kinds, read_kind)
    for leaf in Flat(outcome.state.get(RESULT)).leaves:
        if isinstance(leaf, Poison):
            leaf.raise_reason()
    return outcome


def _merge_raising(predicate, first: Arm, second: Arm, scope: Scope) -> Outcome:
    """The outcome of the arm that does not raise; where both do, there is none."""
    if first.error is not None:
        raise_where(predicate, first)
        if second.error is not None:
            raise_where(True, second)
            raise second.error
        return _enter(second, negate(predicate), scope)
    raise_where(negate(predicate), second)
    return _enter(first, predicate, scope)


def _enter(arm: Arm, predicate, scope: Scope) -> Outcome:
    """The outcome of an arm that runs where a predicate holds, and all behind with it."""
    trace = JaxprTrace(arm.trace.debug_info, context.trace)
    other = Arm(trace, Outcome((), {}))
    merge = _Merge(predicate, arm, other, scope)
    reads = {name: merge.merge(flat, None, name) for name, flat in arm.state.items()}
    failure = current.mode and current.mode.failure
    stores = []
    for location, flat in arm.stores.values():
        is_flag = failure and location.key == failure.key  # it says what the other side did
        before = Flat(location.read()) if is_flag else None
        stores.append((location, merge.merge(flat, before, location.name)))
    stores += [(ContainerLocation(container), merge.merge(flat, None, "container"))
               for container, flat in arm.changes.values()]
    read_kind = None if arm.kind is None else merge.add_output(arm.kind, UNDEFINED, KIND)
    return merge.finish(reads, stores, arm.kinds, read_kind)


def _find_changed(merge: _Merge) -> dict[int, Any]:
    """By id the containers that an arm changed in another way than by stores of items: what both leave there
    is merged as a whole. Raises: ControlFlowError where stores put keys in two orders into a dict."""
    found = {}
    for arm in merge.arms:
        found |= {key: container for key, (container, _) in arm.changes.items()}
        found |= {id(location.container): location.container for location, _ in arm.stores.values()
                  if isinstance(location, ContainerLocation)}
    for arm in merge.arms:
        for location, _ in arm.stores.values():
            variables = find_variables(location)
            if variables is not None and id(find_container(location)) not in found:
                held = [each.contents.get(id(variables), variables) for each in merge.arms]
                one, other = map(dict.fromkeys, held)
                if list(one) != list(other) and one == other:
                    name = errors.name_container(variables, merge.scope.names)
                    raise errors.branch_container_error(name, one, other, merge.place)
    return found


def _merge_stores(merge: _Merge, changed: Mapping[int, Any]) -> list[tuple[Location, Read]]:
    (first, second), found = merge.arms, []
    for key in dict.fromkeys([*first.stores, *second.stores]):
        location = (first.stores.get(key) or second.stores[key])[0]
        if id(find_container(location)) in changed:
            continue
        flats = [arm.stores[key][1] if key in arm.stores else Flat(location.read()) for arm in merge.arms]
        read = location.merge_parts(merge.arms, [flat.value for flat in flats], merge.add_output)
        one, other = (None if flat.value is UNDEFINED else flat for flat in flats)
        if (one is None) != (other is None) and read is None:
            name = _name_place(location, merge.scope.names)
            if type(location) is ItemLocation:
                raise errors.one_sided_error(name, merge.place)
            poison = PoisonedAttribute(functools.partial(errors.one_sided_error, name, merge.place))
            found.append((location, lambda values, poison=poison: poison))
        elif read is not None:
            found.append((location, read))
        elif one is None and other is None:  # deleted on both sides, or made and deleted
            found.append((location, lambda values: UNDEFINED))
        else:
            found.append((location, merge.merge(one, other, location.name)))
    return found


def _name_place(location: Location, names: Mapping[str, Any]) -> str:
    if type(location) is ItemLocation:
        owner = errors.name_container(location.owner, names)
        return f"Item {location.index!r} of {owner[0].lower()}{owner[1:]}"
    return location.name


def _merge_changes(merge: _Merge, changed: Mapping[int, Any]) -> list[tuple[Location, Read]]:
    """Containers that an arm changed without a store. Raises: ControlFlowError where their lengths differ."""
    found = []
    for key, container in changed.items():
        one, other = (Flat(arm.contents[key] if key in arm.contents else copy_contents(container))
                      for arm in merge.arms)
        name = errors.name_container(container, merge.scope.names)
        if isinstance(container, set):
            raise errors.branch_set_error(name, merge.place)
        if not isinstance(one.value, (list, dict)):
            raise errors.numpy_array_error(name, merge.place)
        has_other_keys = isinstance(container, dict) and list(one.value) != list(other.value)
        if has_other_keys or len(one.value) != len(other.value):
            raise note_growth(errors.branch_container_error(name, one.value, other.value, merge.place),
                              container, one.value, other.value)
        found.append((ContainerLocation(container), _merge_items(merge, one.value, other.value, name)))
    return found


def _merge_items(merge: _Merge, one: list | dict, other: list | dict, name: str) -> Read:
    """The contents of a container, item by item."""
    pairs = zip(_list_items(one), _list_items(other))
    reads = {key: merge.merge(Flat(item), Flat(partner), f"{name}[{key!r}]")
             for (key, item), (_, partner) in pairs}
    return lambda values: _put_together(type(one), reads, values)


def _put_together(kind: type, reads: Mapping[Any, Read], values: Sequence) -> Any:
    items = {key: read(values) for key, read in reads.items()}
    return items if kind is dict else kind(items.values())
