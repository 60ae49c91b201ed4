"""`while` loops: their tests, and when those that Python could go through are compiled.

Tests: the code at the head of a loop that decides whether there is another iteration. In: a loop of a flow.
Out: its `Test`: blocks that only compute, and end in branches of which one way leaves the loop, to one place.
Such a test is traced by itself, as the condition of the `while` equation. A loop without one carries what its
first decision depends on.

Rolling, for a `while` whose test Python can read. In: each time that such a loop comes to its head while
something is traced. Out: whether it has gone on for so long, or counts so evenly, that its iterations had
better not all be in the program. A loop that computes nothing but Python values is none of them.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from jitcore.array import Array
from jitcore.core.trace import JaxprTrace, context
from jitcore.rewriter.bytecode.flow import Loop
from jitcore.rewriter.bytecode.graph import Block
from jitcore.rewriter.bytecode.instructions import Branch, Jump
from jitcore.rewriter.control_flow.arms import Region
from jitcore.rewriter.control_flow.raising import negate
from jitcore.rewriter.handles import current
from jitcore.rewriter.journal import Location, Snapshot, change, logs
from jitcore.rewriter.values import as_predicate, find_recording, is_traced
from jitcore.rewriter.writing.resumable import Point

if TYPE_CHECKING:
    from jitcore.rewriter.control_flow.driver import Driver

# -- tests ---------------------------------------------------------------------------------------------------
_PURE = ("LOAD_", "COMPARE_OP", "UNARY_", "BINARY_", "CONTAINS_OP", "IS_OP", "BUILD_", "PUSH_NULL", "CALL",
         "PRECALL", "KW_NAMES", "FORMAT_")


class ImpureTest(Exception):
    """A loop's test does more than compute."""


class Test(NamedTuple):
    """header: where it begins; entry, leave: where control goes when it holds and when it does not; sites:
    its branches, in order."""

    header: Point
    entry: Point
    leave: Point
    sites: tuple[Point, ...]


def find_test(driver: Driver, loop: Loop) -> Test | None:
    """The test of a loop, or None where it has none of this form."""
    found = driver.template.tests
    if loop.header not in found:
        found[loop.header] = _search_test(driver, loop)
    return found[loop.header]


def _search_test(driver: Driver, loop: Loop) -> Test | None:
    number, leave, sites = loop.header, None, []
    while number in loop.body and _is_pure(driver.blocks[number]):
        block = driver.blocks[number]
        if isinstance(block.terminator, Jump):
            number = block.successors[0]
            if number == loop.header:
                break
            continue
        inside = [target for target in block.successors if target in loop.body and target != loop.header]
        outside = [target for target in block.successors if target not in loop.body]
        is_test = len(inside) == 1 and len(outside) == 1 and leave in (None, outside[0])
        if not is_test or number not in driver.flow.join or number not in driver.template.stops:
            break
        leave, number = outside[0], inside[0]
        sites.append(block.number)
    # Blocks behind the last site belong to the body.
    if not sites:
        return None
    last = driver.blocks[sites[-1]]
    entry = next(target for target in last.successors if target in loop.body)
    depth = len(driver.blocks[loop.header].layout)
    if any(len(driver.blocks[place].layout) != depth for place in (entry, leave)):
        return None
    header, entry, leave = map(driver.point, (loop.header, entry, leave))
    return Test(header, entry, leave, tuple(map(driver.point, sites)))


def _is_pure(block: Block) -> bool:
    """Whether a block only computes, and goes on at one or at two places."""
    return (isinstance(block.terminator, (Jump, Branch)) and block.handler is None and not block.handled
            and all(instruction.op.startswith(_PURE) for instruction in block.instructions))


def go_back(driver: Driver, site: Point, state: dict[str, Any], test: Test) -> dict[str, Any] | None:
    """The state at the beginning of a test, from that at one of its branches. None where it is lost."""
    state.pop(driver.top_slot(site))
    if any(name not in state for name in driver.flow.live[test.header.number]):
        return None
    if driver.flow.loop_of[site.number].iterates:
        return None
    return driver.move_slots(state, site, test.header)


def trace_test(driver: Driver, test: Test, state: dict[str, Any],
               places: dict[Location, Any]) -> Array | bool:
    """Whether a test holds, under the trace of the loop's condition. places: what changed places hold.

    Raises: ImpureTest where it does more than compute."""
    snapshot, log = Snapshot(driver.list_roots(state)), {}
    logs.stack.append(log)
    try:
        for location, value in places.items():
            change(location, value)
        holds = run_test(driver, test, state)
        values = {location.key: value for location, value in places.items()}
        is_pure = all(location.is_new_in(context.trace) or key in values and location.read() is values[key]
                      for key, (location, _) in log.items())
        is_pure = is_pure and snapshot.find_advanced() is None and not snapshot.find_written()
    finally:
        logs.stack.pop()
        contents = snapshot.read_contents()
        for location, old in reversed(log.values()):
            location.write(old)
        changes = any(snapshot.roll_back(contents, set()))
    if holds is None or not is_pure or changes or any(eqn.effects for eqn in context.trace.eqns):
        raise ImpureTest
    return holds


def run_test(driver: Driver, test: Test, state: dict[str, Any]) -> Array | bool | None:
    """Whether a test holds, of the state at its beginning. None where a traced value decides on the way."""
    point, holds = test.header, True
    for site in test.sites:
        region = Region(frozenset((site,)), frozenset((test.header.number,)))
        outcome = driver.drive(point, state, region, is_inside=True)
        if outcome.kinds != (site,):
            return None
        state = dict(outcome.state)
        value = state.pop(driver.top_slot(site))
        predicate = as_predicate(value, driver.describe(site)) if is_traced(value) else bool(value)
        if site.block.successors[0] == test.leave.number:
            predicate = negate(predicate)
        holds = join_predicates(holds, predicate)
        inside = next(target for target in site.block.successors if target != test.leave.number)
        point = driver.point(inside)
        state = driver.move_slots(state, site, point)
    return holds


def join_predicates(one: Array | bool, other: Array | bool) -> Array | bool:
    """Whether both hold."""
    if one is True or other is False:
        return other
    return one if other is True or one is False else one & other


# -- rolling -------------------------------------------------------------------------------------------------
#: Arrivals at the head of a loop after which it is compiled, if it can be; the next try is when there are so
#: many times as many.
_LIMIT, _PATIENCE = 16, 4
#: Arrivals that show how the variables of a loop advance.
_SEEN = 3


class _Progress:
    """Of one loop: arrivals at its head; the one at which it is due; how many equations there were at the
    first; its ints, at the first arrivals."""

    __slots__ = ("count", "due_at", "first_eqn", "ints")

    def __init__(self, first_eqn: int):
        self.count, self.due_at, self.first_eqn = 0, _LIMIT, first_eqn
        self.ints: list[dict[str, int]] = []

    def counts_evenly(self) -> bool:
        """Whether ints advance, all of them by equal steps: there is no telling how far."""
        first, second, third = self.ints
        steps = {(second[name] - first[name], third[name] - second[name]) for name in first
                 if name in second and name in third}
        steps.discard((0, 0))
        return bool(steps) and all(one == other for one, other in steps)


_Table = weakref.WeakKeyDictionary[JaxprTrace, dict[Point, _Progress]]


class _State(threading.local):
    def __init__(self):
        self.found: _Table = weakref.WeakKeyDictionary()


_state = _State()


def is_due(point: Point, variables: Mapping[str, Any]) -> bool:
    """Whether the loop that begins at a point is to be compiled from here on. variables: at the point."""
    trace = find_recording()
    if trace is None:
        return False
    loops = _state.found.setdefault(trace, {})
    progress = loops.get(point)
    if progress is None:
        progress = loops[point] = _Progress(len(trace.eqns))
    progress.count += 1
    if progress.count <= _SEEN:
        progress.ints.append({name: value for name, value in variables.items() if type(value) is int})
    is_early = progress.count == _SEEN and current.mode is not None and progress.counts_evenly()
    if not is_early and progress.count < progress.due_at:
        return False
    progress.due_at = _PATIENCE * max(progress.count, _LIMIT)
    return len(trace.eqns) - progress.first_eqn >= progress.count - 1


class _RollGuard:
    """`point in self` in the code at the head of a loop."""

    __slots__ = ()

    def __contains__(self, point: Point) -> bool:
        return is_due(point, sys._getframe(1).f_locals)


ROLL_GUARD = _RollGuard()
