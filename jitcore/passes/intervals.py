"""Intervals: comparisons, clamps and checks whose outcome the ranges of integers decide go away.

In: a jaxpr with loops. Out: the same program, in which what is known of loop counters, and of what is
computed from them, has been used: a comparison that always holds is a literal, a `max` that changes nothing
is its operand, and a dynamic slice that lies inside says so (`in_bounds`). Ranges hold for numbers as the
machine computes them: what may wrap around may be anything.

A range is only used where the equation runs: `assumptions` says what follows in a branch from its having
been chosen, and in a loop from its test. Where branches are all computed, slices in them are clamped again
(`Builder.speculates`). From the test of a `while` something follows only for values that change in its body.
"""

from __future__ import annotations

import functools

from jitcore.core.algebra import add, compare, meet, subtract
from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation, Literal, ShapedArray, Var
from jitcore.core.primitive import registry
from jitcore.passes.assumptions import Assumptions, LoopScope, range_of_index
from jitcore.passes.interval_rules import (MAX_ROUNDS, Range, compute_range, full_range, join, range_after,
                                           range_of_literal, step_of_carry, widen_after)
from jitcore.passes.linear_forms import NOTHING, Relations, inherit, narrow, relate_body, relate_branch
from jitcore.passes.loop_ranges import WhileRanges
from jitcore.passes.walk import Walk, walk_through

# Visits of jaxprs after which carries are taken to be anything at once, a guard of what compiling takes:
# nested loops multiply.
_MAX_VISITS = 600
Ranges = list[Range | None]
Step = tuple[Var, Range]


def use_intervals(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Rewrites the equations of a program that has a loop: without one there is little to find."""
    ranges: Ranges = [full_range(aval) for aval in closed_jaxpr.in_avals]
    return _Scope(closed_jaxpr, ranges, {}).rewrite()


class _Scope:
    """One jaxpr, and what is known of its variables.

    steps: var -> (an argument, by how much it has changed since).
    forms, facts: linear forms of arguments, and those that are at most 0 (`linear_forms`).
    made: var -> its equation. branches: id of a `cond` -> the scopes of its branches; loops: of a loop
    likewise.
    memo: results for jaxprs inside, by their ranges."""

    def __init__(self, closed: ClosedJaxpr, ranges: Ranges, memo: dict, relations: Relations = NOTHING):
        self.closed, self.memo = closed, memo
        forms = zip(closed.jaxpr.invars, relations.forms)
        self.forms = {var: form for var, form in forms if form is not None}
        self.facts = relations.facts
        self.known = dict(zip(closed.jaxpr.invars, ranges))
        self.made: dict = {}
        self.branches: dict[int, list[_Scope]] = {}
        self.loops: dict[int, LoopScope] = {}
        self.steps: dict[Var, Step] = {var: (var, (0, 0)) for var in closed.jaxpr.invars}

    def read(self, atom: Atom) -> Range | None:
        if isinstance(atom, Literal):
            return range_of_literal(atom)
        if atom not in self.known:
            self.known[atom] = full_range(atom.aval)
        return self.known[atom]

    def read_all(self, atoms) -> Ranges:
        return [self.read(atom) for atom in atoms]

    def run(self) -> Ranges:
        """Finds the range of every variable. Returns: those of the outputs."""
        for eqn in self.closed.jaxpr.eqns:
            self.visit(eqn)
        return self.read_all(self.closed.jaxpr.outvars)

    # -- equations ----------------------------------------------------------------------------------------
    def visit(self, eqn: Equation, rewrites: bool = False) -> Equation:
        """Notes the ranges of an equation's outputs. Returns: the equation, its jaxprs rewritten if asked."""
        name, params = eqn.primitive.name, {}
        if name == "scan":
            ranges, params = self.visit_scan(eqn, rewrites)
        elif name == "while":
            ranges, params = self.visit_while(eqn, rewrites)
        elif name == "cond":
            ranges, params = self.visit_cond(eqn, rewrites)
        else:
            operands = self.read_all(eqn.invars)
            ranges = [compute_range(eqn, operands)] if len(eqn.outvars) == 1 else []
            if ranges and ranges[0] is not None:
                self.note_step(eqn, operands, ranges[0])
            if name == "select_n" and len(operands) == 3 and ranges[0] is not None:
                ranges = [self.range_of_choice(eqn, operands)]
        self.made.update(dict.fromkeys(eqn.outvars, eqn))
        self.known.update(zip(eqn.outvars, ranges))
        if name in ("add", "sub"):
            (var,) = eqn.outvars
            self.known[var] = narrow(self, var, ranges[0])
        return eqn.replace(params=eqn.params | params) if params else eqn

    def range_of_choice(self, eqn: Equation, operands: Ranges) -> Range | None:
        """The range of `where(i < limit, i + extent, i)`: each case has to hold where it is chosen only."""
        which, *cases = eqn.invars
        test = None if isinstance(which, Literal) else self.made.get(which)
        name = None if test is None else test.primitive.name
        if operands[0] is not None and operands[0][0] == operands[0][1]:
            return operands[1 + min(max(operands[0][0], 0), 1)]
        if name not in ("lt", "ge") or isinstance(test.invars[0], Literal):
            return _join_all(operands[1:])
        var, known, limit = test.invars[0], *self.read_all(test.invars)
        if known is None or limit is None or not isinstance(known[0], int):
            return _join_all(operands[1:])
        below, above = (known[0], min(known[1], limit[1] - 1)), (max(known[0], limit[0]), known[1])
        parts = (above, below) if name == "lt" else (below, above)
        found = [self.range_where(atom, var, part) for atom, part in zip(cases, parts) if part[0] <= part[1]]
        return _join_all(found) if found else _join_all(operands[1:])

    def range_where(self, atom: Atom, var: Atom, part: Range) -> Range | None:
        """The range of an atom where one of a variable is known."""
        if atom is var:
            return part
        made = None if isinstance(atom, Literal) else self.made.get(atom)
        if made is None or made.primitive.name not in ("add", "sub") or var not in made.invars:
            return self.read(atom)
        operands = [part if operand is var else self.read(operand) for operand in made.invars]
        return compute_range(made, operands)

    def note_step(self, eqn: Equation, operands: Ranges, found_range: Range) -> None:
        """Notes a sum of an argument and a number that does not wrap around, and choices among such sums."""
        name, (var,) = eqn.primitive.name, eqn.outvars
        if name not in ("add", "sub", "select_n") or var.aval.shape or found_range == full_range(var.aval):
            return
        found = [None if isinstance(atom, Literal) else self.steps.get(atom) for atom in eqn.invars]
        if name in ("add", "sub"):
            places = (0, 1) if name == "add" else (0,)
            place = next((place for place in places if found[place]), None)
            if place is None or operands[1 - place] is None:
                return
            (base, change), operate = found[place], add if name == "add" else subtract
            self.steps[var] = base, operate(change, operands[1 - place])
        else:
            self.note_common_step(var, found[1:])

    def note_common_step(self, var: Var, found: list[Step | None]) -> None:
        """Notes what is one of several sums of one and the same argument."""
        if all(found) and len({id(base) for base, _ in found}) == 1:
            self.steps[var] = found[0][0], _join_all([change for _, change in found])

    def inner(self, closed: ClosedJaxpr, ranges: Ranges, relations: Relations = NOTHING
              ) -> tuple[Ranges, _Scope]:
        key = id(closed), tuple(ranges), relations
        if key not in self.memo:
            scope = _Scope(closed, ranges, self.memo, relations)
            self.memo[key] = scope.run(), scope
        return self.memo[key]

    def visit_cond(self, eqn: Equation, rewrites: bool) -> tuple[Ranges, dict]:
        index, *atoms = eqn.invars
        branches, given, runs = eqn.params["branches"], [], []
        for number in range(len(branches)):
            way = Assumptions(self)
            can_run = way.add(index, range_of_index(number, len(branches), index))
            runs.append(can_run)
            given.append([way.find_range(atom) if can_run else self.read(atom) for atom in atoms])
        related = [relate_branch(self, eqn, number) for number in range(len(branches))]
        found = [self.inner(*each) for each in zip(branches, given, related)]
        self.branches[id(eqn)] = [scope for _, scope in found]
        outs = [outs for (outs, _), can_run in zip(found, runs) if can_run or True not in runs]
        ranges = list(map(_join_all, zip(*outs)))
        self.note_steps_of_branches(eqn, ranges)
        if not rewrites:
            return ranges, {}
        each = zip(branches, given, related)
        return ranges, {"branches": tuple(_Scope(branch, known, self.memo, relations).rewrite()
                                          for branch, known, relations in each)}

    def note_steps_of_branches(self, eqn: Equation, ranges: Ranges) -> None:
        """As `note_step`, of what each branch makes of one and the same argument."""
        for number, (var, known) in enumerate(zip(eqn.outvars, ranges)):
            if var.aval.shape or known is None or known == full_range(var.aval):
                continue
            self.note_common_step(
                var, [self._follow_step(eqn, scope, number) for scope in self.branches[id(eqn)]])

    def _follow_step(self, eqn: Equation, scope: _Scope, number: int) -> Step | None:
        jaxpr = scope.closed.jaxpr
        atom = jaxpr.outvars[number]
        inner = None if isinstance(atom, Literal) else scope.steps.get(atom)
        if inner is None:
            return None
        operand = eqn.invars[1 + jaxpr.invars.index(inner[0])]
        outer = None if isinstance(operand, Literal) else self.steps.get(operand)
        return None if outer is None else (outer[0], add(outer[1], inner[1]))

    def guess(self, init: Ranges, body: ClosedJaxpr) -> Ranges:
        """The ranges of a carry to begin with."""
        return init if len(self.memo) < _MAX_VISITS else list(map(full_range, body.out_avals[: len(init)]))

    # -- loops --------------------------------------------------------------------------------------------
    def visit_scan(self, eqn: Equation, rewrites: bool) -> tuple[Ranges, dict]:
        body, length, (consts, count) = eqn.params["jaxpr"], eqn.params["length"], (
            eqn.params["num_consts"], eqn.params["num_carry"])
        operands = self.read_all(eqn.invars)
        around, init, rows = operands[:consts], operands[consts : consts + count], operands[consts + count :]
        related = inherit(self, eqn.invars[:consts])
        entry, steps = self.guess(init, body), [None] * count  # steps: of the carries that are counters
        if not isinstance(length, int) or length < 1:
            return [full_range(var.aval) for var in eqn.outvars], {}
        for number in range(MAX_ROUNDS + 1):
            outs, scope = self.inner(body, [*around, *entry, *rows], related)
            following, steps = list(entry), list(steps)
            for k, aval in enumerate(body.out_avals[:count]):
                step = step_of_carry(scope, consts + k, k)
                if steps[k] is not None and step is not None and meet(step, steps[k]) == step:
                    continue
                if steps[k] is None and join(entry[k], outs[k]) == entry[k]:
                    continue
                counted = None if number else range_after(init[k], step, length - 1, aval)
                steps[k] = step if counted is not None else None
                wider = widen_after(number, entry[k], outs[k], step, aval)
                following[k] = wider if counted is None else counted
            if following == entry:
                break
            entry = following
        else:
            entry, steps = [full_range(aval) for aval in body.out_avals[:count]], [None] * count
            outs, _ = self.inner(body, [*around, *entry, *rows], related)
        # What holds before each round is what holds at first, and what a round makes of what holds before it.
        entry = [join(init[k], outs[k]) if step is None else entry[k] for k, step in enumerate(steps)]
        outs, scope = self.inner(body, [*around, *entry, *rows], related)
        self.loops[id(eqn)] = LoopScope(scope, consts, consts, {})
        last = [join(init[k], outs[k]) if step is None else range_after(init[k], step, length, aval)
                or full_range(aval) for k, (step, aval) in enumerate(zip(steps, body.out_avals))]
        if not rewrites:
            return [*last, *outs[count:]], {}
        body = _Scope(body, [*around, *entry, *rows], self.memo, related).rewrite()
        return [*last, *outs[count:]], {"jaxpr": body}

    def visit_while(self, eqn: Equation, rewrites: bool) -> tuple[Ranges, dict]:
        _, test = self.inner(eqn.params["cond_jaxpr"], self._list_test_inputs(eqn))
        loop = WhileRanges(self, eqn, relate_body(self, eqn, test))
        loop.settle()
        self.loops[id(eqn)] = loop.describe()
        if not rewrites:
            return loop.state, {}
        body = _Scope(loop.body, [*loop.consts, *loop.list_entry()], self.memo, loop.relations)
        test = _Scope(loop.cond, [*loop.cond_consts, *loop.state], self.memo)
        return loop.state, {"body_jaxpr": body.rewrite(), "cond_jaxpr": test.rewrite()}

    def _list_test_inputs(self, eqn: Equation) -> Ranges:
        """Ranges of what a `while` tests, whatever its rounds make of the carry."""
        count, avals = eqn.params["cond_nconsts"], eqn.params["cond_jaxpr"].in_avals
        return [*self.read_all(eqn.invars[:count]), *map(full_range, avals[count:])]

    # -- rewriting ----------------------------------------------------------------------------------------
    def rewrite(self) -> ClosedJaxpr:
        known = {var: self._find_number(var) for var in self.closed.jaxpr.invars}
        known = {var: number for var, number in known.items() if number is not None}
        return walk_through(self.closed, self.closed.jaxpr.eqns, self._rule, known)

    def _rule(self, walk: Walk, eqn: Equation) -> list[Atom] | None:
        rewritten = self.visit(eqn, rewrites=True)
        if eqn.primitive.name in ("scan", "while", "cond"):  # flags of what has failed, where nothing can
            walk.emit(rewritten)
            return [self._find_number(var) or var for var in eqn.outvars]
        found = self._find_value(eqn) if len(eqn.outvars) == 1 else None
        if found is not None:
            return [found]
        if eqn.primitive.name == "scatter":
            rewritten = self._take_for_slice(walk, eqn)
        if rewritten.primitive.name in ("dynamic_slice", "dynamic_update_slice"):
            rewritten = self._mark_slice(rewritten)
        if rewritten is eqn:
            return None
        walk.emit(rewritten)
        return eqn.outvars

    def _find_value(self, eqn: Equation) -> Atom | None:
        """What stands for the result of an elementwise equation: a number, or one of its operands."""
        (var,), name = eqn.outvars, eqn.primitive.name
        known = self.known.get(var)
        if known is None or eqn.primitive.traits.get("family") != "elementwise" and name not in (
            "select_n", "clamp"):
            return None
        number = self._find_number(var)
        if number is not None:
            return number
        chosen = _find_operand(name, self.read_all(eqn.invars))
        if chosen is None or eqn.invars[chosen].aval.update(weak_type=var.aval.weak_type) != var.aval:
            return None
        return eqn.invars[chosen]

    def _find_number(self, var: Var) -> Literal | None:
        """The only number that an integer or bool can be."""
        known, aval = self.known.get(var), var.aval
        if known is None or known[0] != known[1] or aval.shape or aval.dtype.kind not in "biu":
            return None
        return Literal(aval.dtype.type(known[0]), aval)

    def _mark_slice(self, eqn: Equation) -> Equation:
        """A slice with a note along which axes it lies inside without being moved."""
        x, *starts = eqn.invars
        sizes = eqn.params.get("slice_sizes")
        if sizes is None:
            update, *starts = starts
            sizes = update.aval.shape
        inside = []
        for start, extent, size in zip(self.read_all(starts), x.aval.shape, sizes):
            is_known = isinstance(extent, int) and isinstance(size, int) and start is not None
            inside.append(is_known and 0 <= start[0] and start[1] <= extent - size)
        if not any(inside):
            return eqn
        return eqn.replace(params=eqn.params | {"in_bounds": tuple(inside)})

    def _take_for_slice(self, walk: Walk, eqn: Equation) -> Equation:
        """A scatter that puts one window inside of its operand, as `dynamic_update_slice`: reads of that
        place are known to be of the same one; others as they are."""
        (x, indices, updates), numbers = eqn.invars, eqn.params["dimension_numbers"]
        if isinstance(indices, Literal) or len(indices.aval.shape) != 1 or numbers.operand_batching_dims:
            return eqn
        shape, places = x.aval.shape, self._list_scalars(indices)
        sizes = numbers.slice_sizes(len(shape), updates.aval.shape)
        dims = numbers.scatter_dims_to_operand_dims
        if len(places) != len(dims) or not all(isinstance(n, int) for n in (*shape, *sizes)):
            return eqn
        for dim, place in zip(dims, self.read_all(places)):
            if place is None or place[0] < 0 or place[1] > shape[dim] - sizes[dim]:
                return eqn
        dtype = indices.aval.dtype
        starts: list[Atom] = [Literal(dtype.type(0), ShapedArray((), dtype))] * len(shape)
        for dim, atom in zip(dims, places):
            starts[dim] = atom
        window = Var(updates.aval.update(shape=tuple(sizes)))
        walk.emit(Equation(registry["reshape"], [updates], [window], {
            "new_sizes": tuple(sizes), "dimensions": None}))
        return Equation(registry["dynamic_update_slice"], [x, window, *starts], eqn.outvars, {})

    def _list_scalars(self, indices: Atom) -> list[Atom]:
        """The scalars that a vector of indices is put together from; nothing where they are not known."""
        made = None if isinstance(indices, Literal) else self.made.get(indices)
        if made is None:
            return []
        if made.primitive.name == "concatenate":
            parts = [self._list_scalars(atom) for atom in made.invars]
            return [atom for part in parts for atom in part] if all(parts) else []
        is_scalar = made.primitive.name == "broadcast_in_dim" and not made.invars[0].aval.shape
        return [made.invars[0]] if is_scalar and indices.aval.shape == (1,) else []


def _join_all(ranges) -> Range | None:
    return functools.reduce(join, ranges)


def _find_operand(name: str, ranges: Ranges) -> int | None:
    """The number of the operand that is the result, whatever the others are in their ranges."""
    if not all(ranges[:1]):
        return None
    if name == "select_n":
        last = len(ranges) - 2
        return 1 + min(max(ranges[0][0], 0), last) if ranges[0][0] == ranges[0][1] else None
    if not all(known is not None and isinstance(known[0], int) for known in ranges):
        return None  # of two zeros that differ in their sign, max and min choose
    if name in ("max", "min"):
        found = [compare("ge" if name == "max" else "le", *pair) for pair in (ranges, ranges[::-1])]
        return found.index(True) if True in found else None
    if name == "clamp":
        low, known, high = ranges
        return 1 if compare("le", low, known) and compare("le", known, high) else None
    is_neutral = {"or": (0, 0), "and": (1, 1)}.get(name)
    if is_neutral is None or any(high > 1 or low < 0 for low, high in ranges):
        return None
    return next((1 - k for k, known in enumerate(ranges) if known == is_neutral), None)
