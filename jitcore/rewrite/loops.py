"""Traced loops: a loop whose end a traced value decides becomes a `while`.

In: a driver at a point of a loop that every iteration comes to. Out: an `Outcome`. The body is traced from
that point until it comes there again or leaves the loop. What it changes is carried; since that is known only
behind the trace, and a carry may take another type in an iteration than it had before, the body is traced
again until both have settled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitcore import dtypes
from jitcore.core.aval import ShapedArray, aval_of
from jitcore.core.jaxpr import ClosedJaxpr
from jitcore.core.trace import Tracer, close_over_consts, set_current_trace, trace_to_jaxpr
from jitcore.lax import elementwise
from jitcore.lax.while_loop import while_loop
from jitcore.rewrite.arms import KIND, Arm, Outcome
from jitcore.rewrite.blocks import is_site
from jitcore.rewrite.driver import Driver, Region, lift_slot
from jitcore.rewrite.emission import Point, name_slot
from jitcore.rewrite.instructions import ForIter
from jitcore.rewrite.journal import Location, record
from jitcore.rewrite.values import (
    ConflictError,
    ControlFlowError,
    Flat,
    Poison,
    as_predicate,
    convert,
    is_numeric,
    is_same_leaf,
    join_avals,
    make_zeros,
    negate,
)

_MAX_ATTEMPTS = 12
_PREDICATE = ShapedArray((), dtypes.bool_)

#: What is carried: a variable by name, or a location by key.
Key = tuple[str, Any]


def trace_loop(driver: Driver, site: Point, state: dict[str, Any], region: Region) -> Outcome:
    """What the loop around a point ends with. state: at that point; it is changed.

    Raises: NotLiftable for a loop over an iterator without a traced form; ControlFlowError for a carry whose
        shape or structure changes from one iteration to the next."""
    return _LoopTracer(driver, site, state, region).run()


class _Carry:
    """One value that the body changes. avals: of its leaves, None for those that are no numbers."""

    def __init__(self, flat: Flat, location: Location | None = None):
        self.flat, self.location = flat, location
        self.avals = [aval_of(leaf) if is_numeric(leaf) else None for leaf in flat.leaves]
        self.is_poisoned = False


class _LoopTracer:
    """One loop that is being traced.

    Attributes:
        iterates: whether the point is the head of a `for`; begins: whether it is no decision at all, but the
            loop's header. Otherwise a predicate decides there, which is carried.
        stays, leaves: the successors inside and outside of the loop, where exactly one is inside.
    """

    def __init__(self, driver: Driver, site: Point, state: dict[str, Any], region: Region):
        self.driver, self.site, self.state, self.region = driver, site, state, region
        self.loop = loop = driver.flow.loop_of[site.number]
        self.iterates = isinstance(site.block.terminator, ForIter)
        self.begins = not is_site(site.block)
        self.has_predicate = not self.iterates and not self.begins
        self.top = None if self.begins else driver.top_slot(site)
        if not self.iterates and loop.iterates:
            lift_slot(state, f"{name_slot(loop.base)}@{site.number}")
        self.stay = self.leave = None
        self.is_negated = False
        if not self.begins:
            first, second = map(driver.point, site.block.successors)
            inside = first.number in loop.body, second.number in loop.body
            if inside[0] != inside[1]:
                self.stay, self.leave = (first, second) if inside[0] else (second, first)
                self.is_negated = inside[1]
        self.initial_predicate = self.stays(state.pop(self.top)) if self.has_predicate else None
        outs = frozenset(map(driver.point, loop.outs))
        self.inner = Region(region.exits | outs | {site}, region.stepped | {loop.header})
        changed = {name: value for name, value in state.items() if self._is_assigned(name)}
        self.carries: dict[Key, _Carry] = {("name", name): _Carry(Flat(x)) for name, x in changed.items()}

    def _is_assigned(self, name: str) -> bool:
        if name[0] != "$":
            return name in self.loop.stored
        return int(name[2 : name.index("@")]) >= self.loop.base

    def stays(self, value):
        """Whether the loop goes on, of the value that decides at the site."""
        return negate(as_predicate(value)) if self.is_negated else as_predicate(value)

    # -- tracing --------------------------------------------------------------------------------------------
    def run(self) -> Outcome:
        for _ in range(_MAX_ATTEMPTS):
            arm = self._trace_body()
            if self._is_settled(arm):
                return self._finish(arm)
            arm.trace.abandon()
        raise ControlFlowError(f"the types of a traced loop do not settle at {self.where}")

    @property
    def where(self) -> str:
        return self.driver.describe(self.site)

    def _trace_body(self) -> Arm:
        roots = self.driver.list_roots(self.state)
        arm = self.driver.trace_arm(self._run_body, roots, f"the body of the traced loop at {self.where}")
        for container, _ in arm.changes.values():
            arm.trace.abandon()
            name = type(container).__name__
            raise ControlFlowError(f"a {name} is changed inside the traced loop at {self.where}")
        return arm

    def _run_body(self, trace) -> Outcome:
        driver, site, state = self.driver, self.site, dict(self.state)
        self.values: dict[Key, Any] = {}
        for key, carry in self.carries.items():
            value = self.values[key] = self._make_value(key, carry, trace.new_arg)
            if carry.location is None:
                state[key[1]] = value
            else:
                record(carry.location)
                carry.location.write(value)
        self.predicate = trace.new_arg(_PREDICATE) if self.has_predicate else None
        if self.iterates:
            iterator = state.pop(self.top)
            return driver.drive(self.stay, driver.enter_body(site, self.stay, state, iterator), self.inner)
        if self.begins:
            return driver.drive(site, state, self.inner, is_inside=True)
        if self.stay is not None:
            return driver.drive(self.stay, driver.move_slots(state, site, self.stay), self.inner)
        return driver.go_on(driver.branch(site, {**state, self.top: self.predicate}, self.inner), self.inner)

    def _make_value(self, key: Key, carry: _Carry, new_arg: Callable[[ShapedArray], Tracer]):
        """A carry's value at the beginning of an iteration."""
        if carry.is_poisoned:
            return Poison(f"the Python object '{key[1]}' changes between iterations of the traced loop at "
                          f"{self.where}")  # fmt: skip
        leaves = zip(carry.avals, carry.flat.leaves)
        return carry.flat.rebuild([leaf if aval is None else new_arg(aval) for aval, leaf in leaves])

    # -- settling -------------------------------------------------------------------------------------------
    def _is_settled(self, arm: Arm) -> bool:
        """Takes note of what else the body changes, and to which types."""
        is_settled = not self._add_carries(arm)
        self.next_leaves: dict[Key, list] = {}
        for key, carry in self.carries.items():
            if carry.is_poisoned or key not in self.values:
                continue
            flat = self._find_next(arm, key, carry)
            if flat.structure != carry.flat.structure:
                raise self._error(key, "changes its structure in")
            self.next_leaves[key] = flat.leaves
            for place, leaf in enumerate(flat.leaves):
                is_settled &= self._join_leaf(key, carry, place, leaf)
        return is_settled

    def _error(self, key: Key, what: str) -> ControlFlowError:
        location = self.carries[key].location
        name = key[1] if location is None else location.name
        return ControlFlowError(f"'{name}' {what} the traced loop at {self.where}")

    def _find_next(self, arm: Arm, key: Key, carry: _Carry) -> Flat:
        """A carry's value behind an iteration."""
        if carry.location is None:
            found = arm.state.get(key[1])
        else:
            found = arm.stores[key[1]][1] if key[1] in arm.stores else None
        return Flat(self.values[key]) if found is None else found

    def _join_leaf(self, key: Key, carry: _Carry, place: int, leaf) -> bool:
        aval = carry.avals[place]
        if aval is None:
            if not is_same_leaf(leaf, carry.flat.leaves[place]):
                carry.is_poisoned = True
            return not carry.is_poisoned
        if not is_numeric(leaf):
            raise self._error(key, f"becomes a {type(leaf).__name__} in")
        try:
            carry.avals[place] = join_avals(aval, aval_of(leaf))
        except ConflictError as conflict:
            raise self._error(key, f"changes from {conflict} between iterations of") from None
        return carry.avals[place] == aval

    def _add_carries(self, arm: Arm) -> bool:
        """Whether there are new ones. Besides, `written` gets what is computed in the body and read only
        behind the loop, and `fixed` what the body sets to one Python value."""
        before = len(self.carries)
        for key, (location, _) in arm.stores.items():
            if ("location", key) not in self.carries:
                self.carries["location", key] = _Carry(Flat(location.read()), location)
        self.written: dict[str, Flat] = {}
        self.fixed: dict[str, Any] = {}
        for name, flat in arm.state.items():
            if ("name", name) in self.carries or name == self.top and not self.iterates:
                continue
            if name in self.state:
                if flat.value is not self.state[name]:
                    self.carries["name", name] = _Carry(Flat(self.state[name]))
            elif self.site in arm.kinds and name in self.driver.flow.live[self.site.number]:
                zeros = [make_zeros(aval_of(leaf)) if is_numeric(leaf) else leaf for leaf in flat.leaves]
                self.carries["name", name] = _Carry(Flat(flat.rebuild(zeros)))
            elif any(map(arm.made, flat.leaves)):
                self.written[name] = flat
            else:
                self.fixed[name] = flat.value
        return len(self.carries) > before

    # -- the equation ---------------------------------------------------------------------------------------
    def _finish(self, arm: Arm) -> Outcome:
        results = self._bind(arm)
        state = dict(self.state)
        for key, carry in self.carries.items():
            value = self.values[key]
            if not carry.is_poisoned:
                value = _rebuild(carry.flat, key, results)
            if carry.location is None:
                state[key[1]] = value
            else:
                record(carry.location)
                carry.location.write(value)
        for name, flat in self.written.items():
            state[name] = _rebuild(flat, ("written", name), results)
        state |= self.fixed
        if self.leave is not None:
            state |= self._leave_by_test(arm, state, results)
        return self._list_ends(arm, state, results)

    def _bind(self, arm: Arm) -> dict[tuple, Any]:
        """Closes the body and applies the loop: the last carries, by (key, place of the leaf)."""
        slots: list[tuple] = []
        initial, outs = [], []
        trace = arm.trace
        with set_current_trace(trace):
            for key, carry in self.carries.items():
                for place, aval in enumerate(carry.avals):
                    if aval is not None and not carry.is_poisoned:
                        slots.append((key, place))
                        outs.append(convert(self.next_leaves[key][place], aval))
            if self.has_predicate:
                slots.append(("predicate", 0))
                outs.append(self._next_predicate(arm))
            for name, flat in self.written.items():
                for place, leaf in enumerate(flat.leaves):
                    if arm.made(leaf):
                        trace.new_arg(aval_of(leaf))
                        slots.append((("written", name), place))
                        outs.append(leaf)
            if arm.kinds != (self.site,):
                trace.new_arg(KIND)
                slots.append(("kind", 0))
                outs.append(convert(arm.kinds[0].number if arm.kind is None else arm.kind, KIND))
            avals = [var.aval for var in trace.invars]
            body, body_consts = trace.close(outs)
        for (key, place), aval in zip(slots, avals):
            initial.append(self._find_initial(key, place, aval))
        cond_jaxpr, cond_consts = self._trace_condition(slots, avals)
        body_jaxpr, body_operands = close_over_consts(body, body_consts)
        found = while_loop.primitive.bind(
            *cond_consts, *body_operands, *initial, cond_nconsts=len(cond_consts), cond_jaxpr=cond_jaxpr,
            body_nconsts=len(body_operands), body_jaxpr=body_jaxpr)  # fmt: skip
        return dict(zip(slots, found))

    def _next_predicate(self, arm: Arm):
        value = self.is_negated  # leaves
        if self.top in arm.state and self.site in arm.kinds:
            value = arm.state[self.top].value
        return self.stays(value) if isinstance(value, Tracer) else bool(value) != self.is_negated

    def _find_initial(self, key, place: int, aval: ShapedArray):
        if key == "predicate":
            return self.initial_predicate
        if key == "kind":
            return convert(self.site.number, KIND)
        if key[0] == "written":
            return make_zeros(aval)
        return convert(self.carries[key].flat.leaves[place], aval)

    def _trace_condition(self, slots: list[tuple], avals: list[ShapedArray]) -> tuple[ClosedJaxpr, list]:
        def run(*params):
            given = dict(zip(slots, params))
            goes_on: Any = True
            if self.iterates:
                key = ("name", self.top)
                goes_on = _rebuild(self.carries[key].flat, key, given).has_next()
            elif self.stay is not None:
                goes_on = given["predicate", 0]
            if ("kind", 0) in given:
                returns = elementwise.eq(given["kind", 0], dtypes.int32.type(self.site.number))
                goes_on = returns if goes_on is True else goes_on & returns
            return [goes_on]

        jaxpr, consts = trace_to_jaxpr(run, avals)
        return close_over_consts(jaxpr, consts)

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
            raise ControlFlowError(f"a traced loop never ends: {self.where}")
        if len(ends) == 1:
            return Outcome(tuple(ends), state)
        kind = results["kind", 0]
        if self.leave is not None:
            by_test = elementwise.eq(kind, dtypes.int32.type(self.site.number))
            kind = _select(by_test, dtypes.int32.type(self.leave.number), kind)
        return Outcome(tuple(ends), state, kind)


def _rebuild(flat: Flat, key, found: dict[tuple, Any]):
    """A value with the leaves that were found by (key, place), and its own for others."""
    return flat.rebuild([found.get((key, place), leaf) for place, leaf in enumerate(flat.leaves)])


def _select(predicate, one, other):
    if is_same_leaf(one, other):
        return one
    aval = join_avals(aval_of(one), aval_of(other))
    return elementwise.select_n(predicate, convert(other, aval), convert(one, aval))
