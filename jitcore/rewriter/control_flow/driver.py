"""The driver: runs code with many entries, and compiles the decisions that traced values make.

In: a `Template` and the `Suspended` that its code returned. Out: what the function returns. Where a traced
value decides, the code is entered twice, at both successors, under two traces and with a set of exits; both
states are merged with a `cond`, and the code goes on from where the ways meet. A region need not be
structured: it is the code from one point until one of some exits, or a return.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from jitcore import dtypes
from jitcore.core.jaxpr import DebugInfo
from jitcore.errors import ConcretizationTypeError, TracerIntegerConversionError
from jitcore.lax import elementwise
from jitcore.rewriter.bytecode.flow import AGAIN, Loop
from jitcore.rewriter.bytecode.graph import ROOT, find_reachable, is_site
from jitcore.rewriter.bytecode.instructions import Branch, ForIter, Instruction, Return
from jitcore.rewriter.control_flow.arms import Arm, Outcome, Region, Scope, is_final, raise_where, run_arm
from jitcore.rewriter.control_flow.growing import MIN_COUNT
from jitcore.rewriter.control_flow.iterators import TracedIterator, lift_iterator
from jitcore.rewriter.control_flow.merging import merge_arms
from jitcore.rewriter.control_flow.raising import MaybeUnbound, assume, fail, is_raised_defect, negate
from jitcore.rewriter.control_flow.while_loops import is_due
from jitcore.rewriter.errors import RESULT, iterator_error, recursion_error
from jitcore.rewriter.handles import UNDEFINED, current
from jitcore.rewriter.journal import attempt
from jitcore.rewriter.objects import Place, copy_iterator
from jitcore.rewriter.values import as_predicate, memory_of
from jitcore.rewriter.writing.resumable import Point, Suspended, Template, name_slot

#: The exit of a function that has returned.
RETURN = Point(-1, None)

#: Iterations of a loop that is none in the program: slices by what it counts or picks are constants then. And
#: how many instructions they have in all: more would take long to compile.
FEW, MAX_INSTRUCTIONS = 4, 1000
_SLICES = ("BUILD_SLICE", "BINARY_SLICE", "STORE_SLICE")

#: How often code behind a decision is traced once for each side, where a Python value differs.
_MAX_DUPLICATIONS = 6


class NotLiftable(Exception):
    """An iterator cannot be part of a traced loop's state."""


class _Active(threading.local):
    """The templates whose activations are being driven, and whether one of them called itself too deep.
    precedents: how their loops were traced before (`carries.Forecast`)."""

    def __init__(self):
        self.templates: list[Template] = []
        self.recursive = False
        self.precedents: dict[tuple, Any] = {}


_active = _Active()


class Driver:
    """One activation of a rewritten function in which a traced value decided."""

    def __init__(self, template: Template, function: FunctionType, arguments: tuple, trace_loop: Callable):
        """function: of the template's code. trace_loop: (driver, site, state, region) -> outcome."""
        self.template, self.function, self.arguments = template, function, arguments
        self.first = arguments[0] if arguments else None
        self.trace_loop = functools.partial(trace_loop, self)
        self.loops: list = []  # that are being traced, the outer ones first
        self.flow, self.blocks = template.flow, template.graph.blocks
        self.info = DebugInfo(template.source.co_qualname, template.source.co_filename, "rewrite", None)
        self._duplications = 0

    def finish(self, suspended: Suspended) -> Any:
        """What the function returns."""
        region = Region()
        _active.templates.append(self.template)
        try:
            outcome = self.decide(suspended.point, self.read_state(suspended), region)
            return self.go_on(outcome, region).state[RESULT]
        except RecursionError:
            if len(_active.templates) > 1 or not _active.recursive:
                _active.recursive |= _active.templates.count(self.template) > 1
                raise
        finally:
            _active.templates.pop()
            if not _active.templates:
                _active.recursive = False
                _active.precedents.clear()
        code = self.template.source
        raise recursion_error(code.co_qualname, Place(code, code.co_firstlineno))

    @property
    def precedents(self) -> dict[tuple, Any]:
        return _active.precedents

    # -- places ---------------------------------------------------------------------------------------------
    def point(self, number: int | None) -> Point | None:
        return None if number is None else self.template.points[number]

    def describe(self, point: Point) -> Place:
        """The place of a decision, for messages."""
        code = self.template.source
        position = point.block.position
        return Place(code, position[0], position[1:]) if position else Place(code, code.co_firstlineno)

    def surround(self, point: Point, state: dict[str, Any]) -> Scope:
        """What surrounds a decision."""
        return Scope(self.describe(point), self.list_outer, state)

    def list_roots(self, state: dict[str, Any]) -> list:
        """All values from which the code can reach others, but for those that a mode has captured. Iterators
        of loops are copied for each side."""
        variables = [value for name, value in state.items()
                     if name[0] != "$" or not hasattr(type(value), "__next__")]
        return [*variables, *self._list_cells(), *(self._list_globals() if current.mode is None else ())]

    def _list_cells(self) -> tuple[CellType, ...]:
        """Those of variables that inner or outer functions share."""
        return self.function.__closure__ or ()

    def _list_globals(self) -> list:
        """What the code reads from global names."""
        if current.mode is not None:
            return current.mode.list_captured()
        variables, names = self.function.__globals__, self.function.__code__.co_names
        return [variables[name] for name in names if name in variables]

    def list_outer(self) -> list:
        """Values from which others see what variables hold."""
        arguments = [one for one in self.arguments if not getattr(memory_of(one), "is_moved", False)]
        return [*arguments, *self._list_cells(), *self._list_globals()]

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
        number, values = point.number, []
        certain = self.flow.assigned[number]
        for name in self.template.vectors[number]:
            value = state.get(f"{name}@{number}" if name[0] == "$" else name, UNDEFINED)
            is_maybe = type(value) is MaybeUnbound and (name in certain or name[0] == "$")
            values.append(value.value if is_maybe else value)
        return tuple(values)

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

    def prune(self, outcome: Outcome) -> Outcome:
        """The outcome with what is read behind one of its ends, and without all else."""
        slots = tuple([f"@{kind.number}" for kind in outcome.kinds])
        live = {RESULT}.union(*[self.flow.live[kind.number] for kind in outcome.kinds if kind is not RETURN])
        state = {name: value for name, value in outcome.state.items() if name in live or name.endswith(slots)}
        missing = live.difference(state, (RESULT,))
        return outcome._replace(state={**state, **dict.fromkeys(missing, UNDEFINED)} if missing else state)

    # -- running --------------------------------------------------------------------------------------------
    def drive(self, point: Point, state: dict[str, Any], region: Region, *, is_inside=False) -> Outcome:
        """Runs the code from a point to an exit of the region. is_inside: the point itself is not one now."""
        while is_inside or point not in region.exits:
            if is_inside or not (self.template.begins_while(point.number) and is_due(point, state)):
                result = self.function(self.first, point, self.pack_state(point, state), region.exits)
                if type(result) is not Suspended:
                    return Outcome((RETURN,), {RESULT: result})
                point, state = result.point, self.read_state(result)
                if point in region.exits:
                    break
            is_inside = False
            outcome = self.settle(self.decide(point, state, region), region)
            if self._has_ended(outcome, region):
                return self.prune(outcome)
            point, state = outcome.kinds[0], outcome.state
        return self.prune(Outcome((point,), state))

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
        chosen, stops = self._choose_end(pending)
        inner = region.until(*stops)
        rest = tuple(kind for kind in outcome.kinds if kind is not chosen)
        state, roots = outcome.state, self.list_roots(outcome.state)

        def run_chosen(trace) -> Outcome:
            own = self.copy_iterators(chosen, state)
            if chosen is not loop_at:
                return self.drive(chosen, own, inner)
            return self.prune(self.go_on(self.trace_loop(chosen, dict(own), inner), inner))

        def run_rest(trace) -> Outcome:
            return self.prune(Outcome(rest, state, outcome.kind if len(rest) > 1 else None))

        predicate = elementwise.eq(outcome.kind, dtypes.int32.type(chosen.number))
        with assume(predicate, True):
            first = run_arm(run_chosen, roots, self.info)
        if first.error is not None:
            raise_where(predicate, first)
            return Outcome(rest, state, outcome.kind if len(rest) > 1 else None)
        second = run_arm(run_rest, roots, self.info)
        return merge_arms(predicate, first, second, self.surround(chosen, state))

    def _choose_end(self, pending: list[Point]) -> tuple[Point, list[Point | None]]:
        """The end behind which the code is run next, and where it stops: the innermost loop's iteration is
        finished first, so that nothing is traced for two ends."""
        loops = [self.flow.loop_of[kind.number] for kind in pending]
        loop = max(loops, key=_find_depth)
        own = [kind for kind, around in zip(pending, loops) if around is loop]
        join = self._find_common_join(own, loop)
        header = None if loop is None else self.point(loop.header)
        own.sort(key=lambda kind: (kind is header, kind.block.order))
        chosen = next(kind for kind in own if kind is not join)
        stops = [join, *(kind for kind in pending if kind is not chosen)]
        if loop is not None:
            stops += map(self.point, loop.outs)
            stops += [header] if chosen is not header else []
        return chosen, stops

    def _find_common_join(self, ends: list[Point], loop: Loop | None) -> Point | None:
        if len(ends) == 1:
            return None
        join = self.flow.find_join([kind.number for kind in ends], loop)
        return self.point(join) if join in self.template.stops else None

    # -- decisions ------------------------------------------------------------------------------------------
    def decide(self, site: Point, state: dict[str, Any], region: Region) -> Outcome:
        """What happens at a site where a traced value decides.

        Raises: ControlFlowError for a traced loop over an iterator that is read elsewhere too."""
        loop = self.flow.loop_of[site.number]
        if not is_site(site.block):
            # A `while` whose test Python can read, and which goes on for long: compiled from here on.
            rolled = self._try_loop(site, state, region)
            return self.drive(site, state, region, is_inside=True) if rolled is None else rolled
        name = find_name(state, self.top_slot(site)) if isinstance(site.block.terminator, ForIter) else None
        if name is not None:
            raise iterator_error(f"The iterator '{name}'", self.describe(site), in_loop=True)
        is_plain = loop is None or loop.header in region.stepped or not self.flow.leaves[site.number]
        if is_plain or self._find_doomed(site) is not None:
            return self.branch(site, state, region)
        iterator = state.get(f"{name_slot(loop.base)}@{site.number}") if loop.iterates else None
        if isinstance(iterator, TracedIterator) and iterator.is_known and loop.header == site.number:
            is_tried = self._is_worth_rolling(loop, iterator)
            rolled = self._try_loop(site, state, region) if is_tried else None
            if rolled is not None:
                return rolled
            if is_tried and iterator.is_new and any(state.get(name, name) is None for name in loop.stored):
                body = self.point(site.block.terminator.body)  # tried again when these are no None any more
                return self.drive(body, self.enter_body(site, body, state, iterator), region)
            state = {**state, self.top_slot(site): iterator.read()}
            return self.drive(site, state, region, is_inside=True)
        try:
            with attempt():
                # A `for` whose body always leaves is no loop: a decision of the one around it.
                is_head = site.number == loop.header or not isinstance(site.block.terminator, ForIter)
                if is_head and all(self.flow.dominates(site.number, latch) for latch in loop.latches):
                    return self.trace_loop(site, dict(state), region)
                return self._peel(site, dict(state), region, loop)
        except (NotLiftable, ConcretizationTypeError, TracerIntegerConversionError) as error:
            if not loop.iterates or isinstance(iterator, TracedIterator) or is_final(error):
                raise
            self._note_unrolled(loop, error)
            return self._unroll(site, state, region, loop)

    def _unroll(self, site: Point, state: dict[str, Any], region: Region, loop: Loop) -> Outcome:
        """A loop that Python can run, with a traced way out: each iteration is traced by itself, in the arm
        that the one before goes on in."""
        outs = frozenset(map(self.point, loop.outs))
        inner = Region(region.exits | outs | {self.point(loop.header)}, region.stepped | {loop.header})
        outcome = self.go_on(self.branch(site, state, inner), inner)
        return self.settle(outcome, region.until(*outs))

    def _is_worth_rolling(self, loop: Loop, iterator: TracedIterator) -> bool:
        """Whether a loop that Python could go through is compiled as a loop: one of more than a few
        iterations, with a way out, or whose slices do not depend on what it counts; a comprehension, if it is
        long or has a condition."""
        count, is_numpy = iterator.count_left(), current.mode is not None
        if loop.is_comprehension:
            has_sites = any(number != loop.header and number in self.flow.join for number in loop.body)
            return is_numpy and (has_sites or count is None or count >= MIN_COUNT)
        if not is_numpy or count is None or count > FEW or len(loop.outs) > 1:
            return True
        instructions = [one for number in loop.body for one in self.blocks[number].instructions]
        first = self.blocks[self.blocks[loop.header].terminator.body].instructions[:1]
        is_read = not first or first[0].op != "STORE_FAST" or any(
            one.op == "LOAD_FAST" and one.arg == first[0].arg for one in instructions)
        may_slice = any(map(self._makes_slice, instructions))
        return not (is_read and may_slice) or count * len(instructions) > MAX_INSTRUCTIONS

    def _makes_slice(self, one: Instruction) -> bool:
        names = self.template.source.co_names
        return one.op in _SLICES or one.op == "LOAD_GLOBAL" and names[one.arg >> 1] == "slice"

    def _try_loop(self, site: Point, state: dict[str, Any], region: Region) -> Outcome | None:
        """A loop that Python could go through, compiled; None, with all undone, where its body cannot do with
        a traced element, without the values of what it changes, or with a carry of fixed types."""
        try:
            with attempt():
                return self.trace_loop(site, dict(state), region)
        except Exception as error:  # what is wrong with the body may be anything: Python's own way will say
            if is_final(error) or is_raised_defect(error):
                raise
            self._note_unrolled(self.flow.loop_of[site.number], error)
            return None

    def _note_unrolled(self, loop: Loop, error: Exception) -> None:
        if current.mode is not None:
            current.mode.note_unrolled(self.describe(self.point(loop.header)).resolve(), error)

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
            return self.trace_loop(header, dict(outcome.state), region)
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
            predicate = as_predicate(value, self.describe(site))
            return predicate, lambda region: self.drive(first, enter(first), region), run_second

        def run_body(region: Region) -> Outcome:
            own = self.copy_iterators(site, state)
            return self.drive(first, self.enter_body(site, first, own, value), region)

        return as_predicate(value.has_next()), run_body, run_second

    def enter_body(self, site: Point, body: Point, state: dict[str, Any], iterator) -> dict[str, Any]:
        """The state at the beginning of a `for` loop's body. state: at the site, without the iterator."""
        depth = len(site.block.layout) - 1
        element, behind = iterator.advance()
        return {**self.move_slots(state, site, body), f"{name_slot(depth)}@{body.number}": behind,
                f"{name_slot(depth + 1)}@{body.number}": element}

    def branch(self, site: Point, state: dict[str, Any], region: Region) -> Outcome:
        """Both ways of a site, up to where they meet."""
        predicate, run_first, run_second = self.list_ways(site, state)
        if isinstance(predicate, bool):
            return (run_first if predicate else run_second)(region)
        join = self._find_reached_join(site)
        roots, scope = self.list_roots(state), self.surround(site, state)

        def run_side(holds: bool, region: Region) -> Arm:
            run = run_first if holds else run_second
            what = f"the {'true' if holds else 'false'} side of the traced condition"
            with assume(predicate, holds):
                return self.trace_arm(lambda trace: run(region), roots, what, scope.place)

        def run_both(region: Region) -> tuple[Arm, Arm]:
            return run_side(True, region), run_side(False, region)

        doomed = self._find_doomed(site)
        if doomed is not None:  # the other side is no side: it goes on here
            is_hit, go_on = (predicate, run_second) if doomed else (negate(predicate), run_first)
            whole = region if current.mode is None else Region(frozenset(), region.stepped)
            try:
                arm = run_side(doomed, whole)
            except Exception as error:
                if current.mode is None or is_final(error) or is_raised_defect(error):
                    raise
                fail(is_hit, error)  # the text, say, needs values: who runs the call instead makes it
                return go_on(region)
            if arm.error is not None:
                raise_where(is_hit, arm)
                return go_on(region)
            arm.trace.abandon()
        strict = join is not None and self._duplications < _MAX_DUPLICATIONS
        outcome = merge_arms(predicate, *run_both(region.until(join)), scope, strict=strict)
        if outcome is not None:
            return outcome
        # A Python value that is still needed differs: what is behind the join is traced for each side.
        self._duplications += 1
        try:
            return merge_arms(predicate, *run_both(region), scope)
        finally:
            self._duplications -= 1

    def _find_doomed(self, site: Point) -> bool | None:
        """Which way of a site only leads to a `raise` that no handler of this function is around."""
        for holds, number in zip((True, False), site.block.successors):
            reached = find_reachable(self.flow.successors, [number])
            blocks = [self.blocks[inside] for inside in reached if inside != ROOT]
            if all(not isinstance(block.terminator, Return) and block.handler is None for block in blocks):
                return holds
        return None

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

    def trace_arm(self, run: Callable, roots: list, what: str, place: Place) -> Arm:
        """`run_arm`; an error says what was being traced."""
        try:
            return run_arm(run, roots, self.info)
        except Exception as error:
            note = f"[jitcore] raised while tracing {what} at {place}"
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            raise


def _find_depth(loop: Loop | None) -> int:
    return 0 if loop is None else 1 + _find_depth(loop.parent)


def find_name(state: dict[str, Any], slot: str) -> str | None:
    """A variable that is the iterator of a slot."""
    return next((name for name, value in state.items() if value is state[slot] and name[0] != "$"), None)


def lift_slot(state: dict[str, Any], slot: str) -> None:
    """Makes the iterator of a slot a traced one. Raises: NotLiftable where it has no such form, or a name of
    its own: what reads that would not see how far the loop has come."""
    lifted = lift_iterator(state[slot])
    if lifted is None or find_name(state, slot) is not None:
        raise NotLiftable(f"a {type(state[slot]).__name__} cannot be part of a compiled loop")
    state[slot] = lifted
