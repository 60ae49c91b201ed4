"""Traced loops: a loop whose end a traced value decides becomes a `while`, one of known length a `scan`.

In: a driver at a point of a loop that every iteration comes to. Out: an `Outcome`. The body is traced from
that point until it comes there again or leaves the loop. What it changes is carried; since that is known only
behind the trace, and a carry may take another type in an iteration than it had before, the body is traced
again until both have settled (`fixpoint`); they are predicted, so that mostly once is enough. Where the loop
begins with a test that only computes (`while_loops`), it is cut before the test, which becomes the condition
of the `while`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jitcore import dtypes
from jitcore.array import Array, ConcreteArray
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray
from jitcore.core.trace import close_over_consts, trace_to_jaxpr
from jitcore.lax import elementwise
from jitcore.lax.control_flow.scan import scan
from jitcore.lax.control_flow.while_loop import while_loop
from jitcore.rewriter import errors
from jitcore.rewriter.bytecode.graph import is_site
from jitcore.rewriter.bytecode.instructions import ForIter, Unsupported
from jitcore.rewriter.control_flow.arms import KIND, Arm, Outcome, Region, refuse_advanced, refuse_reordered
from jitcore.rewriter.control_flow.carries import NO_ALIASES, Forecast, Key, advance, bind_if, lend
from jitcore.rewriter.control_flow.driver import Driver, lift_slot
from jitcore.rewriter.control_flow.fixpoint import CarriedState, binds_cell
from jitcore.rewriter.control_flow.growing import Growth, note_growth
from jitcore.rewriter.control_flow.raising import fail, negate, note_place
from jitcore.rewriter.control_flow.while_loops import (ImpureTest, Test, find_test, go_back, join_predicates,
                                                       run_test, trace_test)
from jitcore.rewriter.handles import UNDEFINED, current
from jitcore.rewriter.journal import ArrayLocation, AttributeLocation, CellLocation, ItemLocation, change
from jitcore.rewriter.objects import copy_contents, has_changed
from jitcore.rewriter.values import (Flat, as_predicate, convert, is_same_leaf, is_traced, join_types,
                                     list_containers, make_zeros, type_of, wrap)
from jitcore.rewriter.writing.resumable import Point, name_slot

_MAX_ATTEMPTS = 12
_PREDICATE = ShapedArray((), dtypes.bool_)


def trace_loop(driver: Driver, site: Point, state: dict[str, Any], region: Region) -> Outcome:
    """What the loop around a point ends with. state: at that point.

    Raises: NotLiftable for a loop over an iterator without a traced form; ControlFlowError for a carry whose
        shape or structure changes from one iteration to the next."""
    bound = {name: value for name, value in state.items() if value is not UNDEFINED}
    loop = driver.flow.loop_of[site.number]
    test = None if loop.iterates else find_test(driver, loop)
    if test is not None and (site is test.header or site in test.sites):
        moved = dict(bound) if site is test.header else go_back(driver, site, dict(bound), test)
        if moved is not None:
            try:
                return _LoopTracer(driver, test.header, moved, region, test).run()
            except ImpureTest:
                driver.template.tests[test.header.number] = None
    return _LoopTracer(driver, site, bound, region).run()


class _LoopTracer(CarriedState):
    """One loop that is being traced.

    Attributes:
        iterates: whether the point is the head of a `for`; begins: whether it is no decision at all, but the
            loop's header. Otherwise a predicate decides there, which is carried.
        stays, leaves: the successors inside and outside of the loop, where exactly one is inside.
        growth: of lists to which the body only appends, if there are any; stacks: what all iterations
            appended, by leaf.
    """

    def __init__(self, driver: Driver, site: Point, state: dict[str, Any], region: Region,
                 test: Test | None = None):
        self.driver, self.site, self.state, self.region, self.test = driver, site, state, region, test
        self.loop = loop = driver.flow.loop_of[site.number]
        self.iterates = test is None and isinstance(site.block.terminator, ForIter)
        self.begins = test is None and not is_site(site.block)
        self.has_predicate = test is None and not self.iterates and not self.begins
        self.top = driver.top_slot(site) if self.iterates or self.has_predicate else None
        if not self.iterates and loop.iterates:
            lift_slot(state, f"{name_slot(loop.base)}@{site.number}")
        self.stay = self.leave = None
        self.is_negated = False
        if test is not None:
            self.stay, self.leave = test.entry, test.leave
        elif not self.begins:
            first, second = map(driver.point, site.block.successors)
            inside = first.number in loop.body, second.number in loop.body
            if inside[0] != inside[1]:
                self.stay, self.leave = (first, second) if inside[0] else (second, first)
                self.is_negated = inside[1]
        self.initial_predicate = self.stays(state.pop(self.top)) if self.has_predicate else None
        mode = current.mode
        self.failure = ("location", mode.failure.key) if mode and mode.failure else None
        self.growth: Growth | None = None
        outs = frozenset(map(driver.point, loop.outs))
        self.inner = Region(region.exits | outs | {site}, region.stepped | {loop.header})
        super().__init__()

    def stays(self, value):
        """Whether the loop goes on, of the value that decides at the site."""
        predicate = as_predicate(value, self.place)
        return negate(predicate) if self.is_negated else predicate

    # -- tracing --------------------------------------------------------------------------------------------
    def run(self) -> Outcome:
        forecast = Forecast(self)
        for _ in range(_MAX_ATTEMPTS):
            arm = self._try_body()
            if arm is None:
                continue
            if arm.error is not None:
                return self._raise_first(arm)
            is_settled = self.is_settled(arm)
            if not forecast.drop_idle(arm) and is_settled:
                forecast.keep()
                return self._finish(arm)
            arm.trace.abandon()
        raise errors.carry_unsettled_error(self.place)

    def _raise_first(self, arm: Arm) -> Outcome:
        """For a body that always raises: the loop ends before it begins, or raises."""
        note_place(arm.error)
        begins = self._find_begins()
        fail(begins, arm.error)
        if begins is True:
            raise arm.error
        return self._skip(arm)

    def _skip(self, arm: Arm) -> Outcome:
        """The loop ends before it begins."""
        arm.trace.abandon()
        return Outcome((self.leave,), self.driver.move_slots(self.state, self.site, self.leave))

    def _asks_whether_begun(self) -> bool:
        """Whether it matters behind the loop whether there was an iteration."""
        has_new = any(type(name) is not str or name[0] != "$" for name in (*self.written, *self.fixed))
        is_shared = any(carry.shared for carry in self.carries.values())
        return has_new or is_shared or bool(self.replaced) or any(self._list_constants())

    def _list_constants(self) -> Iterator[tuple[tuple, Array]]:
        """Leaves, with their slots, to which each iteration gives one known value: the type of a number."""
        for key, leaves in self.next_leaves.items():
            carry = self.carries[key]
            for place, leaf in enumerate(leaves):
                if isinstance(leaf, ConcreteArray) and leaf.shape == () and not carry.is_poisoned:
                    yield (key, place), leaf

    def _find_begins(self) -> Array | bool:
        """Whether there is a first iteration."""
        if self.iterates:
            return as_predicate(self.state[self.top].has_next())
        if self.test is not None:
            return run_test(self.driver, self.test, self.state)
        return True if self.stay is None else self.initial_predicate

    def _try_body(self) -> Arm | None:
        """`_trace_body`, or None where a list has become one of traced length."""
        around = self.driver.loops
        around.append(self)
        try:
            return self._trace_body()
        except (errors.ControlFlowError, Unsupported) as error:
            if not self._find_growth().replace_all(error, around[:-1], self.carries):
                raise
            return None
        finally:
            around.pop()

    def _find_growth(self) -> Growth:
        if self.growth is None:
            count = self.state[self.top].count_left() if self.iterates else None
            self.growth = Growth(self.driver, self.state, count)
        return self.growth

    def _trace_body(self) -> Arm | None:
        """The arm of an iteration; None where there are lists that grow, as was not known."""
        roots = self.driver.list_roots(self.state)
        with self._lend_memory():
            arm = self.driver.trace_arm(self._run_body, roots, "the body of the traced loop", self.place)
        refuse_advanced(arm, self.state, self.place, in_loop=True)
        refuse_reordered(arm, self.state, self.place)
        for location, _ in arm.stores.values():
            if isinstance(location, ArrayLocation):
                name = errors.name_container(location.array, self.state)
                raise errors.numpy_array_error(name, self.place, in_loop=True)
        for location, behind in arm.stores.values():
            is_new = location.read() is UNDEFINED
            is_changed = is_new != (behind.value is UNDEFINED) and not binds_cell(location, behind)
            if is_changed and isinstance(location, (AttributeLocation, ItemLocation, CellLocation)):
                arm.trace.abandon()
                raise errors.loop_attribute_error(location.name, self.place)
        if arm.changes and self._find_growth().accepts(arm):
            arm.trace.abandon()
            return None
        for container, behind in arm.changes.values():
            arm.trace.abandon()
            name = errors.name_container(container, self.state)
            error = errors.loop_container_error(name, container, behind.value, self.place)
            raise note_growth(error, container, behind.value, is_certain=len(arm.kinds) == 1)
        if arm.error is None and self.growth is not None:
            self.growth.leave(arm)
        return arm

    def _lend_memory(self):
        return lend(self.lent, lambda: errors.lent_memory_error(self.place))

    def _run_body(self, trace) -> Outcome:
        self.begin_iteration()
        state = self._enter_iteration(trace)
        contents = {key: [(one, copy_contents(one)) for one in list_containers(value)]
                    for key, value in self.values.items()}
        outcome = self._run_iteration(state)
        self.stored = {key for key, pairs in contents.items()
                       if any(has_changed(one, before) for one, before in pairs)}
        return outcome

    def _enter_iteration(self, trace) -> dict[str, Any]:
        """The variables at the beginning of an iteration; places get the values that they have there."""
        state = dict(self.state)
        for key, carry in self.carries.items():
            self.values[key] = self.make_value(key, carry, trace.new_arg)
        for key, value in self.unify(self.values).items():
            self.mark_containers(key, self.carries[key])
            self._assign(state, key, value)
        self.predicate = trace.new_arg(_PREDICATE) if self.has_predicate else None
        return state if self.growth is None else self.growth.enter(state, self.values.values())

    def _run_iteration(self, state: dict[str, Any]) -> Outcome:
        driver, site = self.driver, self.site
        if self.iterates:
            iterator = state.pop(self.top)
            return driver.drive(self.stay, driver.enter_body(site, self.stay, state, iterator), self.inner)
        if self.begins:
            return driver.drive(site, state, self.inner, is_inside=True)
        if self.stay is not None:
            return driver.drive(self.stay, driver.move_slots(state, site, self.stay), self.inner)
        return driver.go_on(driver.branch(site, {**state, self.top: self.predicate}, self.inner), self.inner)

    def _assign(self, state: dict[str, Any], key: Key, value: Any) -> None:
        """Gives the variable or place of a carry a value."""
        location = self.carries[key].location
        if location is None:
            state[key[1]] = value
        else:
            change(location, value)

    # -- the equation ---------------------------------------------------------------------------------------
    def _finish(self, arm: Arm) -> Outcome:
        begins = self._find_begins() if self._asks_whether_begun() else True
        if begins is False:
            return self._skip(arm)
        aliases = self.find_aliases(arm, begins)
        if self.growth is not None:
            self.growth.note_names(arm, self.values, self.next_leaves)
        results = self._bind(arm)
        for slot, constant in self._list_constants() if begins is not False else ():
            before = self._find_initial(*slot, constant.aval)
            results[slot] = constant if begins is True else elementwise.select_n(begins, before, constant)
        state, values = dict(self.state), {key: self.values[key] for key in self.carries}
        for key, carry in self.carries.items():
            if not carry.is_poisoned:
                values[key] = self.rebuild_carry(key, results, aliases.get(key, NO_ALIASES))
                carry.mark_memory(aliases.get(key, NO_ALIASES), self.next_leaves.get(key, ()))
        for key, value in self.unify(values).items():
            self._assign(state, key, value)
        for key, value in self.rotate(results, self._count_iterations(arm)).items():
            self._assign(state, key, value)
        if self.replaced and begins is not True:  # behind the carries, of which the flag of failure is one
            self._expect_iteration(begins)
        new = {name: self.rebuild_written(name, flat, results, values) for name, flat in self.written.items()}
        new |= self.fixed
        self._bind_cells(begins, new)
        state |= {name: value if name[0] == "$" else bind_if(begins, value) for name, value in new.items()}
        if self.growth is not None:
            self.growth.finish(self.stacks, state)
        if self.leave is not None:
            state |= self._leave_by_test(arm, state, results)
        return self._list_ends(arm, state, results)

    def _expect_iteration(self, begins: Array | bool) -> None:
        """Leaves the call to plain Python where there is no iteration: the lists of carries then have other
        names, and what is stored behind the loop would have to be seen under these."""
        error = ValueError("a list has a second name")
        if begins is False or not current.mode.fail(negate(begins), error):
            value = self.carries[next(iter(self.replaced))].flat.value
            raise errors.carry_object_error("list", value, value, self.place)

    def _bind_cells(self, begins: Array | bool, new: dict[Any, Any]) -> None:
        """Takes out what cells get, and stores it. Without an iteration they have no value: such a call is
        left to plain Python, or has a loop that is none."""
        for location in [name for name in new if isinstance(name, CellLocation)]:
            value = new.pop(location)
            if begins is False:
                continue
            if begins is not True:
                current.mode.fail(negate(begins), NameError(f"variable {location.name!r} has no value"))
            change(location, value)

    def _bind(self, arm: Arm) -> dict[tuple, Any]:
        """Closes the body and applies the loop: the last carries, by (key, place of the leaf)."""
        slots: list[tuple] = []
        initial, outs = [], []
        trace = arm.trace
        with arm.resume():
            for key, carry in self.carries.items():
                for place, leaf_type in enumerate(carry.types):
                    if leaf_type is not None and not carry.is_poisoned:
                        slots.append((key, place))
                        outs.append(convert(self.next_leaves[key][place], leaf_type))
            if self.has_predicate:
                slots.append(("predicate", 0))
                outs.append(self._next_predicate(arm))
            for name, flat in self.written.items():
                for place, leaf in enumerate(flat.leaves):
                    leaf_type = type_of(leaf)
                    if leaf_type is not None and arm.made(leaf):
                        trace.new_arg(leaf_type.aval)
                        slots.append((("written", name), place))
                        outs.append(convert(leaf, leaf_type))
            if arm.kinds != (self.site,):
                trace.new_arg(KIND.aval)
                slots.append(("kind", 0))
                outs.append(convert(arm.kinds[0].number if arm.kind is None else arm.kind, KIND))
            if self._count_iterations(arm) is None:
                for length in {cycle.length for cycle in self.cycles if any(cycle.is_seen)}:
                    slots.append(("turn", length))
                    outs.append(advance(trace.new_arg(KIND.aval), length))
            avals = [var.aval for var in trace.invars]
            grown = [] if self.growth is None else self.growth.list_outputs()
            body, body_consts = trace.close(outs + grown)
        for (key, place), aval in zip(slots, avals):
            initial.append(self._find_initial(key, place, aval))
        body_jaxpr, body_operands = close_over_consts(body, body_consts)
        length = self._count_iterations(arm)
        if length is not None:  # as `fori_loop` of known bounds
            found = scan.primitive.bind(
                *body_operands, *initial, jaxpr=body_jaxpr, length=length, reverse=False, unroll=1,
                num_consts=len(body_operands), num_carry=len(initial))
            self.stacks = found[len(initial) :]
            return dict(zip(slots, found))
        self.stacks = []
        cond_jaxpr, cond_consts = self._trace_condition(slots, avals)
        found = while_loop.primitive.bind(
            *cond_consts, *body_operands, *initial, cond_nconsts=len(cond_consts), cond_jaxpr=cond_jaxpr,
            body_nconsts=len(body_operands), body_jaxpr=body_jaxpr)
        return dict(zip(slots, found))

    def _count_iterations(self, arm: Arm) -> int | None:
        """The number of iterations, where it is known."""
        return self.state[self.top].count_left() if self.iterates and arm.kinds == (self.site,) else None

    def _next_predicate(self, arm: Arm):
        value = self.is_negated  # leaves
        if self.top in arm.state and self.site in arm.kinds:
            value = arm.state[self.top].value
        return self.stays(value) if is_traced(value) else bool(value) != self.is_negated

    def _find_initial(self, key, place: int, aval: ShapedArray):
        if key == "predicate":
            return self.initial_predicate
        if key == "kind":
            return convert(self.site.number, KIND)
        if key == "turn":
            return convert(0, KIND)
        if key[0] == "written":
            return make_zeros(aval)
        carry = self.carries[key]
        return convert(carry.flat.leaves[place], carry.types[place])

    def _trace_condition(self, slots: list[tuple], avals: list[ShapedArray]) -> tuple[ClosedJaxpr, list]:
        def run(*params):
            given = dict(zip(slots, params))
            goes_on: Any = True
            if self.iterates:
                key = ("name", self.top)
                goes_on = as_predicate(self.rebuild_carry(key, given).has_next())
            elif self.test is not None:
                goes_on = self._trace_test(given)
            elif self.stay is not None:
                goes_on = given["predicate", 0]
            if not self.iterates and self.failure in self.carries:
                has_failed = given[self.failure, 0]
                goes_on = join_predicates(goes_on, negate(has_failed))
            if ("kind", 0) in given:
                returns = elementwise.eq(given["kind", 0], dtypes.int32.type(self.site.number))
                goes_on = join_predicates(goes_on, returns)
            return [goes_on]

        with self._lend_memory():
            jaxpr, consts = trace_to_jaxpr(run, avals)
        return close_over_consts(jaxpr, consts)

    def _trace_test(self, given: dict[tuple, Any]) -> Array | bool:
        """The test of the loop, of carries."""
        state, places = dict(self.state), {}
        for key, carry in self.carries.items():
            value = self.values[key] if carry.is_poisoned else self.rebuild_carry(key, given)
            if carry.location is None:
                state[key[1]] = value
            else:
                places[carry.location] = value
        return trace_test(self.driver, self.test, state, places)

    # -- behind the loop ------------------------------------------------------------------------------------
    def _leave_by_test(self, arm: Arm, state: dict[str, Any], results: dict) -> dict[str, Any]:
        """The stack as it is where the test leaves the loop to. If the body may leave to there too, its own
        stack counts where it did."""
        moved = self.driver.move_slots(state, self.site, self.leave)
        if self.leave not in arm.kinds or self.site not in arm.kinds:
            return moved
        suffix = f"@{self.leave.number}"
        by_test = elementwise.eq(results["kind", 0], dtypes.int32.type(self.site.number))
        for name, value in moved.items():
            if name.endswith(suffix) and name in state and value is not state[name]:
                one, other = Flat(value), Flat(state[name])
                pairs = zip(one.leaves, other.leaves)
                moved[name] = one.rebuild([_select(by_test, *pair) for pair in pairs])
        return moved

    def _list_ends(self, arm: Arm, state: dict[str, Any], results: dict) -> Outcome:
        ends = [kind for kind in arm.kinds if kind is not self.site]
        if self.leave is not None and self.leave not in ends:
            ends.append(self.leave)
        if not ends:
            raise errors.endless_loop_error(self.place)
        if len(ends) == 1:
            return Outcome(tuple(ends), state)
        kind = results["kind", 0]
        if self.leave is not None:
            by_test = elementwise.eq(kind, dtypes.int32.type(self.site.number))
            kind = elementwise.select_n(by_test, kind, dtypes.int32.type(self.leave.number))
        return Outcome(tuple(ends), state, kind)


def _select(predicate, one, other):
    if is_same_leaf(one, other):
        return one
    joined = join_types(type_of(one), type_of(other))
    chosen = elementwise.select_n(predicate, convert(other, joined), convert(one, joined))
    return wrap(chosen, joined)
