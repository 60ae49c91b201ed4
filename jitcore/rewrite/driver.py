"""The driver: runs code with many entries, and compiles the decisions that traced values make.

In: a `Template` and the `Suspended` that its code returned. Out: what the function returns. Where a traced
value decides, the code is entered twice, at both successors, under two traces and with a set of exits; both
states are merged with a `cond`, and the code goes on from where the ways meet. A region need not be
structured: it is the code from one point until one of some exits, or a return.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from jitcore import dtypes
from jitcore.core.jaxpr import DebugInfo
from jitcore.errors import ConcretizationTypeError, TracerIntegerConversionError
from jitcore.lax import elementwise
from jitcore.rewrite.arms import RESULT, Arm, Outcome, merge_arms, run_arm
from jitcore.rewrite.dominators import find_reachable
from jitcore.rewrite.emission import UNDEFINED, Point, Suspended, Template, name_slot
from jitcore.rewrite.flow import AGAIN, Loop
from jitcore.rewrite.instructions import Branch
from jitcore.rewrite.iterators import CountIterator, TracedIterator, copy_iterator, lift_iterator
from jitcore.rewrite.values import as_predicate

#: The exit of a function that has returned.
RETURN = Point(-1, None)

#: How often code behind a decision is traced once for each side, where a Python value differs.
_MAX_DUPLICATIONS = 6


class NotLiftable(Exception):
    """An iterator cannot be part of a traced loop's state."""


class Region(NamedTuple):
    """What the code that is being run is part of.

    exits: points at which it stops. stepped: headers of the loops whose iteration it is a part of: a decision
    in them does not begin the loop again.
    """

    exits: frozenset[Point] = frozenset()
    stepped: frozenset[int] = frozenset()

    def until(self, *points: Point | None) -> Region:
        return self._replace(exits=self.exits | {point for point in points if point is not None})


class Driver:
    """One activation of a rewritten function in which a traced value decided."""

    def __init__(self, template: Template, function: FunctionType, first: Any):
        """function: of the template's code. first: the first argument."""
        self.template, self.function, self.first = template, function, first
        self.flow, self.blocks = template.flow, template.graph.blocks
        self.info = DebugInfo(template.source.co_qualname, template.source.co_filename, "rewrite", None)
        self._duplications = 0

    def finish(self, suspended: Suspended) -> Any:
        """What the function returns."""
        region = Region()
        outcome = self.decide(suspended.point, self.read_state(suspended), region)
        return self.go_on(outcome, region).state[RESULT]

    # -- places ---------------------------------------------------------------------------------------------
    def point(self, number: int | None) -> Point | None:
        return None if number is None else self.template.points[number]

    def describe(self, point: Point) -> str:
        """The place of a decision, for messages."""
        code = self.template.source
        line = point.block.position[0] if point.block.position else code.co_firstlineno
        text = linecache.getline(code.co_filename, line).strip()
        return f"{code.co_filename}:{line} in {code.co_qualname}()" + (f": `{text}`" if text else "")

    def list_roots(self, state: dict[str, Any]) -> list:
        """All values from which the code can reach others."""
        roots = list(state.values())
        for cell in self.function.__closure__ or ():
            try:
                roots.append(cell.cell_contents)
            except ValueError:
                continue
        return roots

    # -- state ----------------------------------------------------------------------------------------------
    def read_state(self, suspended: Suspended) -> dict[str, Any]:
        number, variables = suspended.point.number, suspended.variables
        state = {name: variables[name] for name in self.flow.live[number] if name in variables}
        for depth in range(len(self.blocks[number].layout)):
            if name_slot(depth) in variables:
                state[f"{name_slot(depth)}@{number}"] = variables[name_slot(depth)]
        return self.copy_iterators(suspended.point, state)

    def copy_iterators(self, point: Point, state: dict[str, Any]) -> dict[str, Any]:
        """The state with copies of the iterators of the loops around a point."""
        copies, loop = {}, self.flow.loop_of[point.number]
        while loop is not None:
            if loop.iterates:
                iterator = state.get(f"{name_slot(loop.base)}@{point.number}")
                copies[id(iterator)] = copy_iterator(iterator)
            loop = loop.parent
        return {name: copies.get(id(value), value) for name, value in state.items()} if copies else state

    def pack_state(self, point: Point, state: dict[str, Any]) -> tuple:
        names = self.template.vectors[point.number]
        return tuple([state.get(f"{name}@{point.number}" if name[0] == "$" else name, UNDEFINED)
                      for name in names])  # fmt: skip

    @staticmethod
    def move_slots(state: dict[str, Any], origin: Point, target: Point) -> dict[str, Any]:
        """The state at a site, as it is at one of its successors."""
        suffix, renamed = f"@{origin.number}", f"@{target.number}"

        def rename(name: str) -> str:
            is_slot = name[0] == "$" and name.endswith(suffix)
            return name.removesuffix(suffix) + renamed if is_slot else name

        return {rename(name): value for name, value in state.items()}

    @staticmethod
    def top_slot(point: Point) -> str:
        """Where a site finds what decides."""
        return f"{name_slot(len(point.block.layout) - 1)}@{point.number}"

    # -- running --------------------------------------------------------------------------------------------
    def drive(self, point: Point, state: dict[str, Any], region: Region, *, is_inside=False) -> Outcome:
        """Runs the code from a point to an exit of the region. is_inside: the point itself is not one now."""
        while is_inside or point not in region.exits:
            is_inside = False
            result = self.function(self.first, point, self.pack_state(point, state), region.exits)
            if type(result) is not Suspended:
                return Outcome((RETURN,), {RESULT: result})
            point, state = result.point, self.read_state(result)
            if point in region.exits:
                break
            outcome = self.settle(self.decide(point, state, region), region)
            if self._has_ended(outcome, region):
                return outcome
            point, state = outcome.kinds[0], outcome.state
        return Outcome((point,), state)

    def go_on(self, outcome: Outcome, region: Region) -> Outcome:
        """Runs the code from where it ended to exits of the region."""
        outcome = self.settle(outcome, region)
        if self._has_ended(outcome, region):
            return outcome
        return self.drive(outcome.kinds[0], outcome.state, region)

    @staticmethod
    def _has_ended(outcome: Outcome, region: Region) -> bool:
        kind = outcome.kinds[0]
        return len(outcome.kinds) > 1 or kind is RETURN or kind in region.exits

    def settle(self, outcome: Outcome, region: Region, loop_at: Point | None = None) -> Outcome:
        """Of several ends, runs the code behind those that are no exits of the region, each once.

        loop_at: a point among them that begins a traced loop."""
        while len(outcome.kinds) > 1:
            pending = [kind for kind in outcome.kinds if kind is not RETURN and kind not in region.exits]
            if not pending:
                return outcome
            outcome = self._settle_one(outcome, pending, region, loop_at)
        return outcome

    def _settle_one(self, outcome: Outcome, pending: list[Point], region: Region, loop_at: Point | None):
        join = self._find_common_join(pending)
        inner = region.until(join)
        chosen = next(kind for kind in pending if kind is not join)
        rest = tuple(kind for kind in outcome.kinds if kind is not chosen)
        state, roots = outcome.state, self.list_roots(outcome.state)

        def run_chosen(trace) -> Outcome:
            own = self.copy_iterators(chosen, state)
            if chosen is not loop_at:
                return self.drive(chosen, own, inner)
            return self.go_on(self._loop(chosen, dict(own), inner), inner)

        def run_rest(trace) -> Outcome:
            return Outcome(rest, state, outcome.kind if len(rest) > 1 else None)

        first = run_arm(run_chosen, roots, self.info)
        second = run_arm(run_rest, roots, self.info)
        predicate = elementwise.eq(outcome.kind, dtypes.int32.type(chosen.number))
        return merge_arms(predicate, first, second, self.describe(chosen))

    def _find_common_join(self, pending: list[Point]) -> Point | None:
        if len(pending) == 1:
            return None
        loops = [self.flow.loop_of[kind.number] for kind in pending]
        loop = loops[0] if all(other is loops[0] for other in loops) else None
        join = self.flow.find_join([kind.number for kind in pending], loop)
        return self.point(join) if join in self.template.stops else None

    # -- decisions ------------------------------------------------------------------------------------------
    def decide(self, site: Point, state: dict[str, Any], region: Region) -> Outcome:
        """What happens at a site where a traced value decides."""
        loop = self.flow.loop_of[site.number]
        if loop is None or loop.header in region.stepped or not self.flow.leaves[site.number]:
            return self.branch(site, state, region)
        iterator = state.get(f"{name_slot(loop.base)}@{site.number}") if loop.iterates else None
        if isinstance(iterator, CountIterator) and iterator.is_known and loop.header == site.number:
            return self._roll(site, state, region, iterator)
        try:
            if all(self.flow.dominates(site.number, latch) for latch in loop.latches):
                return self._loop(site, dict(state), region)
            return self._peel(site, dict(state), region, loop)
        except (NotLiftable, ConcretizationTypeError, TracerIntegerConversionError):
            # A loop that Python can run, with a traced way out: each iteration is traced by itself.
            if not loop.iterates or isinstance(iterator, TracedIterator):
                raise
            outs = loop.outs
            join = self.flow.find_join(outs, loop.parent) if len(outs) > 1 else outs[0]
            stop = self.point(join) if join in self.template.stops else None
            return self.branch(site, state, region.until(stop), unrolls=True)

    def _roll(self, site: Point, state: dict[str, Any], region: Region, iterator: CountIterator) -> Outcome:
        """A loop over a range that Python knows: compiled as a loop if its body can do with a traced element
        and a carry of fixed types, else gone through by Python."""
        try:
            return self._loop(site, dict(state), region)
        except Exception:  # whatever is wrong with the body, Python's own way will say
            state = {**state, self.top_slot(site): iterator.read()}
            return self.drive(site, state, region, is_inside=True)

    def _loop(self, site: Point, state: dict[str, Any], region: Region) -> Outcome:
        from jitcore.rewrite.loops import trace_loop

        return trace_loop(self, site, state, region)

    def _peel(self, site: Point, state: dict[str, Any], region: Region, loop: Loop) -> Outcome:
        """For a site that not every iteration comes to: finishes this one, then loops from the header."""
        header = self.point(loop.header)
        if loop.iterates:
            lift_slot(state, f"{name_slot(loop.base)}@{site.number}")
        outs = frozenset(map(self.point, loop.outs))
        inner = Region(region.exits | outs | {header}, region.stepped | {loop.header})
        outcome = self.go_on(self.branch(site, state, inner), inner)
        if header not in outcome.kinds or loop.iterates or header in region.exits:
            return outcome
        if len(outcome.kinds) == 1:
            return self._loop(header, dict(outcome.state), region)
        return self.settle(outcome, region, loop_at=header)

    def list_ways(self, site: Point, state: dict[str, Any]):
        """(predicate, function that runs the first way to exits of a region, the same for the second)."""
        state = dict(state)
        value = state.pop(self.top_slot(site))
        first, second = map(self.point, site.block.successors)

        def enter(target: Point) -> dict[str, Any]:
            return self.move_slots(self.copy_iterators(site, state), site, target)

        def run_second(region: Region) -> Outcome:
            return self.drive(second, enter(second), region)

        if isinstance(site.block.terminator, Branch):
            return as_predicate(value), lambda region: self.drive(first, enter(first), region), run_second

        def run_body(region: Region) -> Outcome:
            own = self.copy_iterators(site, state)
            return self.drive(first, self.enter_body(site, first, own, value), region)

        return value.has_next(), run_body, run_second

    def enter_body(self, site: Point, body: Point, state: dict[str, Any], iterator) -> dict[str, Any]:
        """The state at the beginning of a `for` loop's body. state: at the site, without the iterator."""
        depth = len(site.block.layout) - 1
        element, behind = iterator.advance()
        return {**self.move_slots(state, site, body), f"{name_slot(depth)}@{body.number}": behind,
                f"{name_slot(depth + 1)}@{body.number}": element}  # fmt: skip

    def branch(self, site: Point, state: dict[str, Any], region: Region, *, unrolls: bool = False) -> Outcome:
        """Both ways of a site, up to where they meet."""
        predicate, run_first, run_second = self.list_ways(site, state)
        if isinstance(predicate, bool):
            return (run_first if predicate else run_second)(region)
        join = None if unrolls else self._find_reached_join(site)
        roots, where = self.list_roots(state), self.describe(site)

        def run_both(region: Region) -> tuple[Arm, Arm]:
            place = f"side of the traced condition at {where}"
            first = self.trace_arm(lambda trace: run_first(region), roots, f"the true {place}")
            second = self.trace_arm(lambda trace: run_second(region), roots, f"the false {place}")
            return first, second

        strict = join is not None and self._duplications < _MAX_DUPLICATIONS
        outcome = merge_arms(predicate, *run_both(region.until(join)), where, strict=strict)
        if outcome is not None:
            return outcome
        # A Python value that is still needed differs: what is behind the join is traced for each side.
        self._duplications += 1
        try:
            return merge_arms(predicate, *run_both(region), where)
        finally:
            self._duplications -= 1

    def _find_reached_join(self, site: Point) -> Point | None:
        """The join of a site, if both its ways can come to it."""
        join, loop = self.flow.join[site.number], self.flow.loop_of[site.number]
        if join is None:
            return None
        ways = self.flow.list_ways(loop)
        goal = AGAIN if loop is not None and join == loop.header else self.flow.name_node(join, loop)
        for number in site.block.successors:
            start = self.flow.name_node(number, loop)
            if start != goal and goal not in find_reachable(ways, [start]):
                return None
        return self.point(join)

    def trace_arm(self, run: Callable, roots: list, what: str) -> Arm:
        """`run_arm`; an error says what was being traced."""
        try:
            return run_arm(run, roots, self.info)
        except Exception as error:
            note = f"[jitcore] raised while tracing {what}"
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            raise


def lift_slot(state: dict[str, Any], slot: str) -> None:
    """Makes the iterator of a slot a traced one. Raises: NotLiftable where it has no such form."""
    lifted = lift_iterator(state[slot])
    if lifted is None:
        raise NotLiftable(type(state[slot]).__name__)
    state[slot] = lifted
