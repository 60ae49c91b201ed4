"""Arms: the sides of a traced decision and the bodies of traced loops, each traced by itself.

In: a function that drives the code from a point to one of several exits. Out: an `Arm`: what it computed, and
what it changed, which has been rolled back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.jaxpr import DebugInfo, Jaxpr, ShapedArray, aval_of
from jitcore.core.trace import JaxprTrace, context, set_current_trace
from jitcore.lax.control_flow.cond import cond, join_consts
from jitcore.lax.control_flow.control import TracedFunction
from jitcore.lax.define import cast
from jitcore.process.effort import spend
from jitcore.rewriter.control_flow.raising import (check_callers, fail, is_explicit, is_left_to_python,
                                                   make_conditional, note_place)
from jitcore.rewriter.errors import iterator_error, name_container, reordered_error
from jitcore.rewriter.handles import UNDEFINED, LeafType, current
from jitcore.rewriter.journal import (ArrayLocation, AttributeLocation, ContainerLocation, GlobalLocation,
                                      ItemLocation, Location, Snapshot, find_container, find_variables, logs,
                                      watch_captures)
from jitcore.rewriter.objects import Place
from jitcore.rewriter.values import Flat, as_flag, is_made_in
from jitcore.rewriter.writing.resumable import Point

#: Steps of a side, apart from what is done in it.
_ARM = 100

KIND = LeafType(ShapedArray((), dtypes.int32))
FLAG = LeafType(ShapedArray((), dtypes.bool_))


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
        error: the exception that the user's code raises in it whenever it runs, or None; then there is no
            outcome, and nothing is left of what it changed.
        advanced: an iterator of Python's that it has advanced, or None; is_rewound: whether all iterators are
            where they were again, so that the code may be traced in another way.
        known: by id the containers and objects that were there before it; contents: by id what those of them
            that it changed held at its end.
    """

    def __init__(self, trace: JaxprTrace, outcome: Outcome):
        self.trace, self.kinds, self.kind = trace, outcome.kinds, outcome.kind
        self.state = {name: Flat(value) for name, value in outcome.state.items()}
        self.stores: dict[tuple, tuple[Location, Flat]] = {}
        self.changes: dict[int, tuple[Any, Flat]] = {}
        self.error: BaseException | None = None
        self.advanced: Any = None
        self.is_rewound = True
        self.known: Mapping[int, Any] = {}
        self.contents: Mapping[int, Any] = {}

    def made(self, leaf) -> bool:
        """Whether a value was computed in this arm."""
        return is_made_in(leaf, self.trace)

    @contextlib.contextmanager
    def resume(self) -> Iterator[None]:
        """Within, the arm's trace is current, and handles' memory holds what it held at the arm's end."""
        memory = [(location, location.read(), flat.value) for location, flat in self.stores.values()
                  if location.is_new_in(self.trace) is not None]
        with set_current_trace(self.trace):
            try:
                for location, _, new in memory:
                    location.write(new)
                yield
            finally:
                for location, old, _ in memory:
                    location.write(old)

    def close(self, outs: Sequence) -> TracedFunction:
        with set_current_trace(self.trace):
            jaxpr, consts = self.trace.close(outs)
        return TracedFunction(jaxpr, consts, None, None)

    def list_values(self) -> list:
        """What is left of it: values of variables and of changed places."""
        changed = [*self.stores.values(), *self.changes.values()]
        return [flat.value for flat in (*self.state.values(), *(flat for _, flat in changed))]


def run_arm(run: Callable[[JaxprTrace], Outcome], roots: Iterable[Any], info: DebugInfo) -> Arm:
    """Traces `run(trace)` in a sub-trace, which stays open for the arm's outputs."""
    spend(_ARM)
    captured = () if current.mode is None else current.mode.list_captured()  # other arms may have added some
    snapshot, log = Snapshot([*roots, *captured]), {}
    make_trace = JaxprTrace if current.mode is None else current.mode.make_trace
    trace = make_trace(info, context.trace)
    logs.stack.append(log)
    arm = failure = None
    try:
        with set_current_trace(trace), watch_captures(snapshot):
            arm = Arm(trace, run(trace))
            arm.advanced = snapshot.find_advanced()
            for key, (location, old) in log.items():
                if not _is_new(location, old, trace, snapshot):
                    arm.stores[key] = (location, Flat(location.read()))
            for written in map(ArrayLocation, snapshot.find_written()):
                arm.stores[written.key] = (written, Flat(None))
    except Exception as error:
        if not (is_explicit(error) or is_left_to_python(error)):
            make_conditional(error)
            failure = error
            raise
        check_callers(error)
        arm = Arm(trace, Outcome((), {}))
        arm.error = error
    finally:
        logs.stack.pop()
        contents = snapshot.read_contents()
        described = snapshot.find_described(contents, [location for location, _ in log.values()])
        known = snapshot.list_known()
        for location, old in reversed(log.values()):  # what is known is put back as a whole
            is_known = location.key[0] in ("item", "container") and location.key[1] in known
            if not is_known and not _is_new(location, old, trace, snapshot):
                location.write(old)
        changes, attributes = snapshot.roll_back(contents, described)
        is_rewound = snapshot.rewind()
        if failure is not None and not is_rewound:
            make_final(failure)
        if arm is None:
            trace.abandon()
    arm.is_rewound, arm.known, arm.contents = is_rewound, snapshot.reached, contents
    if arm.error is None:
        arm.changes = {id(container): (container, Flat(contents)) for container, contents in changes}
        arm.stores = {key: store for key, store in arm.stores.items()
                      if id(find_container(store[0])) not in arm.changes}
        arm.stores |= {location.key: (location, Flat(value)) for location, value in attributes}
    return arm


def find_outer_memory(arm: Arm, leaf: Any, predicate: Any) -> list[tuple[Any, Any]] | None:
    """Arrays from outside of an arm whose memory a leaf of the arm's may have, and when; None where that is
    not known. predicate: under which the leaf is asked about."""
    aliases = leaf.memory.aliases
    if aliases is None:
        return None
    found = []
    for alias in aliases:
        if alias.handle is None:  # what took this memory
            continue
        both = alias.predicate if predicate is True else as_flag(predicate) & as_flag(alias.predicate)
        inner: Any = [(both, alias.handle)]
        if arm.made(alias.handle):
            inner = find_outer_memory(arm, alias.handle, both)
        if inner is None:
            return None
        found += inner
    return found


def make_final(error: BaseException) -> None:
    """Marks an error behind which the code is not traced in another way: an iterator has gone on, say."""
    error.__dict__["jitcore_is_final"] = True


def is_final(error: BaseException) -> bool:
    return error.__dict__.get("jitcore_is_final", False)


def refuse_advanced(arm: Arm, names: Mapping[str, Any], place: Place, *, in_loop: bool = False) -> None:
    """Raises: ControlFlowError for an arm that advanced an iterator."""
    if arm.advanced is not None:
        error = iterator_error(name_container(arm.advanced, names), place, in_loop=in_loop)
        if not arm.is_rewound:
            make_final(error)
        raise error


def refuse_reordered(arm: Arm, names: Mapping[str, Any], place: Place) -> None:
    """Raises: ControlFlowError for an arm behind which keys of a dict, or attributes of an object, stand in
    another order than stores put them: one was deleted and set again."""
    stored: dict[int, tuple[dict, list]] = {}
    for location, flat in arm.stores.values():
        variables = find_variables(location) if location.key[0] == "item" else None
        if variables is not None and id(variables) in arm.contents and flat.value is not UNDEFINED:
            stored.setdefault(id(variables), (variables, []))[1].append(location.key[2])
    for variables, keys in stored.values():
        behind = arm.contents[id(variables)]
        if list(behind) != [key for key in dict.fromkeys([*variables, *keys]) if key in behind]:
            raise reordered_error(name_container(variables, names), place)


def raise_where(predicate: Array | bool, arm: Arm) -> None:
    """Records that an arm, which raises, runs where a predicate holds."""
    effects = arm.close([])
    if effects.jaxpr.effects and predicate is not True:
        branches, consts = join_consts([TracedFunction(Jaxpr([], [], [], []), [], None, None), effects])
        index = cast(predicate, aval_of(predicate), dtypes.int32, False)
        cond.primitive.bind(index, *consts, branches=branches)
    note_place(arm.error)
    fail(predicate, arm.error)


def _is_new(location: Location, old: Any, trace: JaxprTrace, snapshot: Snapshot) -> bool:
    """Whether a store went into an object made in the arm, so that nothing is left of it outside."""
    is_new = location.is_new_in(trace)
    if is_new is not None:
        return is_new
    if isinstance(location, ArrayLocation):
        owner = location.array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return owner.base is None and not {id(owner), id(location.array)} & snapshot.reached.keys()
    if isinstance(location, GlobalLocation):
        return False
    if isinstance(location, ContainerLocation):
        return snapshot.is_complete and id(location.container) not in snapshot.reached
    is_part = isinstance(location, (AttributeLocation, ItemLocation))
    if not is_part or old is not UNDEFINED and current.mode is None:
        return is_made_in(old, trace)
    return snapshot.is_complete and id(location.owner) not in snapshot.reached


class Region(NamedTuple):
    """What the code that is being run is part of.

    exits: points at which it stops. stepped: headers of the loops whose iteration it is a part of: a decision
    in them does not begin the loop again.
    """

    exits: frozenset[Point] = frozenset()
    stepped: frozenset[int] = frozenset()

    def until(self, *points: Point | None) -> Region:
        return self._replace(exits=self.exits | {point for point in points if point is not None})


class Scope(NamedTuple):
    """What surrounds a decision.

    place: its line. list_outer: values from which others see what the code's variables hold. names: the
    variables before it.
    """

    place: Place
    list_outer: Callable[[], Sequence[Any]]
    names: Mapping[str, Any]
