"""Arms: the sides of a traced decision, each traced by itself, and their merge to a `cond`.

In: functions that drive the code from a point to one of several exits. Out: an `Outcome` whose values hold
whichever side is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from jitcore import dtypes
from jitcore.core.aval import ShapedArray, aval_of
from jitcore.core.jaxpr import DebugInfo
from jitcore.core.trace import JaxprTrace, context, set_current_trace
from jitcore.lax.cond import cond, join_consts
from jitcore.lax.control import TracedFunction
from jitcore.lax.define import cast
from jitcore.rewrite.emission import UNDEFINED, Point
from jitcore.rewrite.journal import (
    AttributeLocation,
    ContainerLocation,
    ItemLocation,
    Location,
    Snapshot,
    logs,
    record,
)
from jitcore.rewrite.values import (
    ConflictError,
    ControlFlowError,
    Flat,
    Poison,
    convert,
    is_numeric,
    is_same_leaf,
    join_avals,
    make_zeros,
)

#: The variable that holds what a function returns.
RESULT = "$result"

KIND = ShapedArray((), dtypes.int32)


class Outcome(NamedTuple):
    """How a piece of code ended.

    kinds: the exits that it may have reached; state: variables by name, stack slots as `slot@block`; kind:
    the number of the exit that was reached, a traced int32, where there are several.
    """

    kinds: tuple[Point, ...]
    state: dict[str, Any]
    kind: Any = None


class Arm:
    """One side, traced. Its effects on Python objects have been rolled back.

    Attributes:
        state: `Flat`s by name; stores: changed locations by key, with the `Flat` of their new value.
        changes: containers that changed in other ways by id, with the `Flat` of their new contents.
    """

    def __init__(self, trace: JaxprTrace, outcome: Outcome):
        self.trace, self.kinds, self.kind = trace, outcome.kinds, outcome.kind
        self.state = {name: Flat(value) for name, value in outcome.state.items()}
        self.stores: dict[tuple, tuple[Location, Flat]] = {}
        self.changes: dict[int, tuple[Any, Flat]] = {}

    def made(self, leaf) -> bool:
        """Whether a value was computed in this arm."""
        return self.trace.owns(leaf)

    def close(self, outs: Sequence) -> TracedFunction:
        with set_current_trace(self.trace):
            jaxpr, consts = self.trace.close(outs)
        return TracedFunction(jaxpr, consts, None, None)


def run_arm(run: Callable[[JaxprTrace], Outcome], roots: Iterable[Any], info: DebugInfo) -> Arm:
    """Traces `run(trace)` in a sub-trace, which stays open for the arm's outputs."""
    snapshot, trace, log = Snapshot(roots), JaxprTrace(info, context.trace), {}
    logs.stack.append(log)
    arm = None
    try:
        with set_current_trace(trace):
            arm = Arm(trace, run(trace))
            for key, (location, old) in log.items():
                if not _is_new(location, old, trace, snapshot):
                    arm.stores[key] = (location, Flat(location.read()))
    finally:
        logs.stack.pop()
        for location, old in reversed(log.values()):
            location.write(old)
        changes = snapshot.roll_back()
        if arm is None:
            trace.abandon()
    arm.changes = {id(container): (container, Flat(contents)) for container, contents in changes}
    return arm


def _is_new(location: Location, old: Any, trace: JaxprTrace, snapshot: Snapshot) -> bool:
    """Whether a store went into an object made in the arm, so that nothing is left of it outside."""
    if old is not UNDEFINED or not isinstance(location, (AttributeLocation, ItemLocation)):
        return trace.owns(old)
    return id(location.owner) not in snapshot.reached


# -- merging ------------------------------------------------------------------------------------------------
Read = Callable[[Sequence], Any]


class _Merge:
    """Collects what differs between two arms as outputs of a `cond`.

    outputs: for each output both arms' values (UNDEFINED for none) and its type; conflicts: reasons.
    """

    def __init__(self, first: Arm, second: Arm, where: str):
        self.arms, self.where = (first, second), where
        self.outputs: list[tuple[Any, Any, ShapedArray]] = []
        self.conflicts: list[str] = []

    def add_output(self, one, other, aval: ShapedArray) -> Read:
        self.outputs.append((one, other, aval))
        return lambda values, place=len(self.outputs) - 1: values[place]

    def merge_leaves(self, one, other, name: str) -> Read:
        if one is UNDEFINED or other is UNDEFINED:
            return self._merge_single(one, other)
        if is_same_leaf(one, other):
            return lambda values: one
        if not (is_numeric(one) and is_numeric(other)):
            texts = (repr(leaf)[:40] for leaf in (one, other))
            return self._conflict("'{}' is {} in one branch and {} in the other branch".format(name, *texts))
        try:
            return self.add_output(one, other, join_avals(aval_of(one), aval_of(other)))
        except ConflictError as conflict:
            return self._conflict(f"'{name}' has {conflict} in the two branches")

    def _merge_single(self, one, other) -> Read:
        """A value that only one arm has: what lies behind does not read it when the other was taken."""
        arm, leaf = (self.arms[1], other) if one is UNDEFINED else (self.arms[0], one)
        if not arm.made(leaf):
            return lambda values: leaf
        return self.add_output(one, other, aval_of(leaf))

    def _conflict(self, text: str) -> Read:
        reason = f"{text} of {self.where}"
        self.conflicts.append(reason)
        return lambda values: Poison(reason)

    def merge(self, one: Flat | None, other: Flat | None, name: str) -> Read:
        if one is None or other is None:
            flat = one or other
            arm = self.arms[0] if other is None else self.arms[1]
            if not any(map(arm.made, flat.leaves)):
                return lambda values: flat.value
            leaves = [(leaf, UNDEFINED) if other is None else (UNDEFINED, leaf) for leaf in flat.leaves]
        elif one.value is other.value:
            return lambda values: one.value
        elif one.structure != other.structure:
            return self._conflict(f"'{name}' has structure {_describe(one)} in one branch and "
                                  f"{_describe(other)} in the other branch")  # fmt: skip
        else:
            flat, leaves = one, list(zip(one.leaves, other.leaves))
        reads = [self.merge_leaves(*pair, name) for pair in leaves]
        return lambda values: flat.rebuild([read(values) for read in reads])

    def bind(self, predicate) -> list:
        """Ends both arms' traces; returns the outputs of the `cond`."""
        functions = []
        for place, arm in reversed(list(enumerate(self.arms))):
            with set_current_trace(arm.trace):
                outs = [make_zeros(aval) if pair[place] is UNDEFINED else convert(pair[place], aval)
                        for *pair, aval in self.outputs]  # fmt: skip
            functions.append(arm.close(outs))
        if not self.outputs and not any(function.jaxpr.effects for function in functions):
            return []
        branches, consts = join_consts(functions)
        index = cast(predicate, aval_of(predicate), dtypes.int32, False)
        return cond.primitive.bind(index, *consts, branches=branches)

    def abandon(self) -> None:
        for arm in self.arms:
            arm.trace.abandon()


def _describe(flat: Flat) -> str:
    structure = flat.structure
    return repr(flat.value)[:40] if structure == "*" else f"{structure[0]} of {len(structure) - 1}"


def merge_arms(predicate, first: Arm, second: Arm, where: str, *, strict: bool = False) -> Outcome | None:
    """The outcome of taking the first arm where the predicate holds, else the second.

    strict: returns None where a live Python value differs, instead of a value that raises when it is used."""
    merge = _Merge(first, second, where)
    names = dict.fromkeys([*first.state, *second.state])
    reads = {name: merge.merge(first.state.get(name), second.state.get(name), name) for name in names}
    if strict and merge.conflicts:
        merge.abandon()
        return None
    stores = [*_merge_stores(merge, first, second), *_merge_changes(merge, first, second)]
    kinds = tuple(dict.fromkeys(first.kinds + second.kinds))
    read_kind = None
    if len(kinds) > 1:
        one, other = (arm.kinds[0].number if arm.kind is None else arm.kind for arm in (first, second))
        read_kind = merge.add_output(one, other, KIND)
    values = merge.bind(predicate)
    for location, read in stores:
        record(location)
        location.write(read(values))
    state = {name: read(values) for name, read in reads.items()}
    _check_result(state)
    return Outcome(kinds, state, None if read_kind is None else read_kind(values))


def _merge_stores(merge: _Merge, first: Arm, second: Arm) -> list[tuple[Location, Read]]:
    found = []
    for key in dict.fromkeys([*first.stores, *second.stores]):
        location = (first.stores.get(key) or second.stores[key])[0]
        flats = [arm.stores[key][1] if key in arm.stores else Flat(location.read())
                 for arm in (first, second)]  # fmt: skip
        one, other = (None if flat.value is UNDEFINED else flat for flat in flats)
        if one is not None or other is not None:
            found.append((location, merge.merge(one, other, location.name)))
    return found


def _merge_changes(merge: _Merge, first: Arm, second: Arm) -> list[tuple[Location, Read]]:
    """Containers that an arm changed without a store. Raises: ControlFlowError where their lengths differ."""
    found = []
    for key in dict.fromkeys([*first.changes, *second.changes]):
        container = (first.changes.get(key) or second.changes[key])[0]
        one, other = (arm.changes[key][1] if key in arm.changes else Flat(type(container)(container))
                      for arm in (first, second))  # fmt: skip
        name = type(container).__name__
        if one.structure != other.structure or isinstance(container, set):
            raise ControlFlowError(f"a {name} is changed differently by the two branches of {merge.where}: "
                                   f"it has {len(one.value)} and {len(other.value)} items")  # fmt: skip
        found.append((ContainerLocation(container), merge.merge(one, other, name)))
    return found


def _check_result(state: dict[str, Any]) -> None:
    for leaf in Flat(state.get(RESULT)).leaves:
        if isinstance(leaf, Poison):
            reason = object.__getattribute__(leaf, "reason")
            raise ControlFlowError(reason.replace(f"'{RESULT}'", "the return value"))
