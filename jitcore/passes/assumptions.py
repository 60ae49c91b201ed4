"""Assumptions: what else is known of the numbers of a jaxpr where one of them is in a given range.

In: the ranges that hold in any case, and an atom with the range that it is assumed to have: the predicate of
a branch that runs, a flag that a loop tests. Out: narrower ranges of the variables that it is computed from,
through comparisons, logic, sums, choices, and the branches of a `cond` that can have led to it.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from jitcore.core.algebra import COMPARISONS, NEGATED, SWAPPED, add, meet, subtract
from jitcore.core.jaxpr import Atom, Equation, Literal, Var
from jitcore.passes.interval_rules import Range, compute_range, full_range, join, range_of_literal

# Steps of one question, a guard of what compiling takes: branches inside of branches multiply.
MAX_STEPS = 400
TRUE, FALSE = (1, 1), (0, 0)


class LoopScope(NamedTuple):
    """A loop's body. first_carry: of its inputs; first_init: of the equation's operands; flags: elements of
    the carry of which the loop's test asks for one value."""

    body: Any
    first_carry: int
    first_init: int
    flags: dict[int, Range]


class Assumptions:
    """Ranges of variables of one scope under assumptions; the scope has those that hold in any case.

    budget: steps that are left to all of one question, in a list."""

    def __init__(self, scope, found: dict[Var, Range] | None = None, budget: list[int] | None = None):
        self.scope, self.found = scope, dict(found or {})
        self.budget = [MAX_STEPS] if budget is None else budget

    def copy(self) -> Assumptions:
        return Assumptions(self.scope, self.found, self.budget)

    def read(self, atom: Atom) -> Range | None:
        if isinstance(atom, Literal):
            return range_of_literal(atom)
        return self.found[atom] if atom in self.found else self.scope.read(atom)

    def add(self, atom: Atom, assumed: Range) -> bool:
        """Assumes one more thing. False where it cannot be."""
        known = self.read(atom)
        if known is None or not isinstance(known[0], int) or atom.aval.shape:
            return True
        new = meet(known, assumed)
        if new[0] > new[1]:
            return False
        self.budget[0] -= 1
        if isinstance(atom, Literal) or self.budget[0] < 0 or new == known:
            return True
        self.found[atom] = new
        eqn = self.scope.made.get(atom)
        return eqn is None or self._follow(eqn, atom, new)

    def _follow(self, eqn: Equation, atom: Var, new: Range) -> bool:
        """What an equation's result says about its operands."""
        name = eqn.primitive.name
        if name == "cond":
            return id(eqn) not in self.scope.branches or self._join(self.split(eqn), eqn.invars)
        if id(eqn) in self.scope.loops:
            return self._follow_loop(eqn, self.scope.loops[id(eqn)], eqn.outvars.index(atom), new)
        if name == "select_n" and len(eqn.invars) == 3:
            return self._follow_choice(eqn, new)
        if any(operand.aval.shape for operand in eqn.invars):
            return True
        if name in COMPARISONS and new[0] == new[1]:
            return self._compare(name if new == TRUE else NEGATED[name], *eqn.invars)
        if name in ("and", "or", "not") and atom.aval.dtype.kind == "b" and new[0] == new[1]:
            return self._follow_logic(name, eqn.invars, new)
        if name == "convert_element_type":
            known, whole = self.read(eqn.invars[0]), full_range(atom.aval)
            keeps = known is not None and whole is not None and meet(known, whole) == known
            return not keeps or self.add(eqn.invars[0], new)
        return name not in ("add", "sub") or self._follow_sum(eqn, new)

    def _follow_logic(self, name: str, operands: list[Atom], new: Range) -> bool:
        if name == "not":
            return self.add(operands[0], subtract(TRUE, new))
        neutral = TRUE if name == "and" else FALSE
        if new == neutral:
            return all(self.add(operand, new) for operand in operands)
        decided = [operand for operand in operands if self.read(operand) != neutral]
        return len(decided) != 1 or self.add(decided[0], new)

    def _follow_sum(self, eqn: Equation, new: Range) -> bool:
        x, y = map(self.read, eqn.invars)
        whole = full_range(eqn.outvars[0].aval)
        if x is None or y is None or whole is None or not isinstance(x[0], int):
            return True
        if eqn.primitive.name == "add":
            total, parts = add(x, y), (subtract(new, y), subtract(new, x))
        else:
            total, parts = subtract(x, y), (add(new, y), subtract(x, new))
        if meet(total, whole) != total:  # may have wrapped around
            return True
        return all(map(self.add, eqn.invars, parts))

    def _follow_choice(self, eqn: Equation, new: Range) -> bool:
        which, *cases = eqn.invars
        if which.aval.shape or which.aval.dtype.kind != "b":
            return True
        ways = []
        for number, case in enumerate(cases):
            way = self.copy()
            if way.add(which, (number, number)) and way.add(case, new):
                ways.append(way.found)
        return self._take(ways)

    def _take(self, ways: list[dict[Var, Range]]) -> bool:
        """What holds on all ways that can be."""
        if not ways:
            return False
        common = [var for var in ways[0] if all(var in way for way in ways)]
        for var in common:
            self.found[var] = functools.reduce(join, (way[var] for way in ways))
        return True

    def _compare(self, name: str, x: Atom, y: Atom) -> bool:
        """A comparison of scalars that holds."""
        if name in ("gt", "ge"):
            name, x, y = SWAPPED[name], y, x
        one, other = self.read(x), self.read(y)
        if one is None or other is None or not (isinstance(one[0], int) and isinstance(other[0], int)):
            return True
        if name in ("lt", "le"):
            gap = name == "lt"
            return self.add(x, (one[0], other[1] - gap)) and self.add(y, (one[0] + gap, other[1]))
        if name == "eq":
            return self.add(x, other) and self.add(y, one)
        for atom, known, apart in ((x, one, other), (y, other, one)):
            if apart[0] == apart[1] and apart[0] in known:
                low, high = known[0] + (apart[0] == known[0]), known[1] - (apart[0] == known[1])
                if low > high or not self.add(atom, (low, high)):
                    return False
        return True

    # -- branches -------------------------------------------------------------------------------------------
    def split(self, eqn: Equation) -> list[tuple[Assumptions, Assumptions]]:
        """(what holds here, what holds in the branch) for each branch of a `cond` that can have run."""
        index, *operands = eqn.invars
        scopes, ways = self.scope.branches[id(eqn)], []
        for number, scope in enumerate(scopes):
            here = self.copy()
            if not here.add(index, range_of_index(number, len(scopes), index)):
                continue
            inside, can_run = Assumptions(scope, budget=self.budget), True
            for var, operand in zip(scope.closed.jaxpr.invars, operands):
                known = here.read(operand)
                can_run = can_run and (known is None or inside.add(var, known))
            for out, atom in zip(eqn.outvars, scope.closed.jaxpr.outvars):
                can_run = can_run and (out not in self.found or inside.add(atom, self.found[out]))
            if can_run:
                ways.append((here, inside))
        return ways

    def _join(self, ways: list[tuple[Assumptions, Assumptions]], invars: list[Atom]) -> bool:
        outer = []
        for here, inside in ways:
            pairs = zip(inside.scope.closed.jaxpr.invars, invars[1:])
            if all(here.add(operand, inside.found[var]) for var, operand in pairs if var in inside.found):
                outer.append(here.found)
        return self._take(outer)

    def _follow_loop(self, eqn: Equation, loop: LoopScope, number: int, new: Range) -> bool:
        """A bool behind a loop had its value before, if each round needs it to have that, or keeps it."""
        init, jaxpr = loop.first_init + number, loop.body.closed.jaxpr
        if loop.first_carry + number >= len(jaxpr.invars) or new[0] != new[1] or (
                eqn.outvars[number].aval.dtype.kind != "b"):
            return True
        if loop.flags.get(number) != new:
            inside = Assumptions(loop.body, budget=self.budget)
            is_kept = inside.add(jaxpr.outvars[number], new) and (
                inside.read(jaxpr.invars[loop.first_carry + number]) == new)
            if not is_kept:
                return True
        return self.add(eqn.invars[init], new)

    # -- results --------------------------------------------------------------------------------------------
    def find_range(self, atom: Atom) -> Range | None:
        """The range of a scalar under the assumptions."""
        known = self.read(atom)
        self.budget[0] -= 1
        eqn = None if isinstance(atom, Literal) or atom in self.found else self.scope.made.get(atom)
        if eqn is None or self.budget[0] < 0 or atom.aval.shape or atom.aval.dtype.kind not in "iu":
            return known
        if id(eqn) in self.scope.branches:
            number, found = eqn.outvars.index(atom), None
            for _, inside in self.split(eqn):
                part = inside.find_range(inside.scope.closed.jaxpr.outvars[number])
                if part is None:
                    return known
                found = part if found is None else join(found, part)
        elif eqn.primitive.name in ("select_n", "clamp") or (
                eqn.primitive.traits.get("family") == "elementwise"):
            found = compute_range(eqn, [self.find_range(operand) for operand in eqn.invars])
        else:
            return known
        if found is None or known is None:
            return known
        both = meet(known, found)
        return both if both[0] <= both[1] else known


def range_of_index(number: int, count: int, index: Atom) -> Range:
    """What an index is where it chooses a branch, to which it is clamped."""
    low, high = full_range(index.aval)
    return (low if number == 0 else number, high if number == count - 1 else number)
