"""Ranges of what a `while` carries: how they settle, and what its test says of its rounds.

In: a loop's body and what is known of its inputs. Out: ranges of the carry that hold in every round.
"""

from __future__ import annotations

from jitcore.core.algebra import meet
from jitcore.core.jaxpr import Equation, Literal, Var
from jitcore.passes.assumptions import TRUE, Assumptions, LoopScope
from jitcore.passes.interval_rules import (MAX_ROUNDS, Range, full_range, join, range_after, step_of_carry,
                                           widen_after)
from jitcore.passes.linear_forms import Relations

Ranges = list[Range | None]


class WhileRanges:
    """What the carry of a `while` can be.

    relations: what its test says of sums.
    state: before each test. flags: bools of the carry of which the test asks for one value. facts: for each
    flag, what the carry can be where the flag has that value, which it has in the rounds that run: so an
    iteration that was told by `j >= 0` to go on has no negative j.
    rounds: the most that there can be, if that is known. steps: of the elements whose range comes from it, by
    how much a round changes them."""

    def __init__(self, scope, eqn: Equation, relations: Relations):
        self.scope, self.relations, params = scope, relations, eqn.params
        self.cond, self.body = params["cond_jaxpr"], params["body_jaxpr"]
        tested, self.around = params["cond_nconsts"], params["body_nconsts"]
        operands = scope.read_all(eqn.invars)
        self.cond_consts, self.consts = operands[:tested], operands[tested : tested + self.around]
        self.init = operands[tested + self.around :]
        self.state = scope.guess(self.init, self.body)
        self.avals = self.body.out_avals
        self.steps: list[tuple | None] = [None] * len(self.avals)
        self.rounds: int | None = None
        carried, outs = self.body.jaxpr.invars[self.around :], self.body.jaxpr.outvars
        self.changing = [var is not out for var, out in zip(carried, outs)]
        self.flags = self._list_flags()
        self.facts = [list(self.state) for _ in self.flags]

    def describe(self) -> LoopScope:
        _, scope = self.scope.inner(self.body, [*self.consts, *self.list_entry()], self.relations)
        return LoopScope(scope, self.around, len(self.cond_consts) + self.around, dict(self.flags))

    def _assume_test(self) -> dict[Var, Range]:
        """What is known of the test's inputs where it holds."""
        if self.cond.out_avals[0].shape:
            return {}
        _, scope = self.scope.inner(self.cond, [*self.cond_consts, *self.state])
        test = Assumptions(scope)
        return test.found if test.add(self.cond.jaxpr.outvars[0], TRUE) else {}

    def _list_carries(self) -> list[Var]:
        return self.cond.jaxpr.invars[len(self.cond_consts) :]

    def _list_flags(self) -> list[tuple[int, Range]]:
        """(element of the carry, the value that the test asks for)."""
        if not any(aval.dtype.kind in "iu" and not aval.shape for aval in self.avals):
            return []
        whole = list(map(full_range, self.avals))
        self.state, state = whole, self.state
        found = self._assume_test()
        self.state = state
        return [(k, found[var]) for k, var in enumerate(self._list_carries()) if self.changing[k]
                and var.aval.dtype.kind == "b" and found.get(var, (0, 1)) != (0, 1)]

    def list_entry(self) -> Ranges:
        """The ranges of the carry where the test holds, of what changes in the body."""
        test, entry = self._assume_test(), list(self.state)
        for k, var in enumerate(self._list_carries()):
            for known in (test.get(var), *(facts[k] for facts in self.facts)):
                if self.changing[k] and known is not None and entry[k] is not None:
                    both = meet(entry[k], known)
                    entry[k] = both if both[0] <= both[1] else entry[k]
        return entry

    def run_round(self) -> tuple:
        """The carry behind a round, and what is known of it where each flag has its value."""
        outs, scope = self.scope.inner(self.body, [*self.consts, *self.list_entry()], self.relations)
        told = []
        for k, value in self.flags:
            way = Assumptions(scope)
            can_be = way.add(self.body.jaxpr.outvars[k], value)
            told.append([way.find_range(atom) for atom in self.body.jaxpr.outvars] if can_be else None)
        return outs, told, scope

    def settle(self) -> None:
        """Finds ranges that hold in all rounds, and then what a last round makes of them."""
        for number in range(MAX_ROUNDS + 1):
            outs, told, scope = self.run_round()
            steps = [step_of_carry(scope, self.around + k, k) for k in range(len(self.avals))]
            state = self._follow_round(number, outs, scope, steps)
            facts = [self._widen(number, old, new, steps) for old, new in zip(self.facts, told)]
            if state == self.state and facts == self.facts:
                break
            self.state, self.facts = state, facts
        else:
            self.state = list(map(full_range, self.avals))
            self.facts, self.steps = [list(self.state) for _ in self.flags], [None] * len(self.avals)
            outs, told, scope = self.run_round()
        self.facts = [self.init if new is None else list(map(join, self.init, new)) for new in told]
        self.state = [join(self.init[k], out) if step is None else self.state[k]
                      for k, (out, step) in enumerate(zip(outs, self.steps))]

    def _widen(self, number: int, old: Ranges, new: Ranges | None, steps: list) -> Ranges:
        return old if new is None else [
            one if join(one, other) == one else widen_after(number, one, other, step, aval)
            for one, other, step, aval in zip(old, new, steps, self.avals)]

    def _follow_round(self, number: int, outs: Ranges, scope, steps: list) -> Ranges:
        """The state with what a round makes of it; what counts rounds has its range at once."""
        wider, is_counted = self._widen(number, self.state, outs, steps), False
        if number == 0:
            self.rounds = self._count_rounds(scope)
        elif self.rounds is not None and any(self.steps):
            # By less at a time than it did from what the loop begins with, the counter takes more rounds.
            again = self._count_rounds(scope)
            is_counted = again is not None and again <= self.rounds
        rounds = None if number else self.rounds
        for k, (step, aval) in enumerate(zip(steps, self.avals)):
            is_within = is_counted and step is not None and self.steps[k] is not None
            if is_within and meet(step, self.steps[k]) == step:
                wider[k] = self.state[k]
            elif wider[k] != self.state[k] or self.steps[k] is not None:
                counted = None if rounds is None else range_after(self.init[k], step, rounds, aval)
                self.steps[k] = None if counted is None else step
                wider[k] = wider[k] if counted is None else counted
        return wider

    def _count_rounds(self, scope) -> int | None:
        """How many rounds there can be, from a counter that stays below what the body does not change."""
        _, test = self.scope.inner(self.cond, [*self.cond_consts, *self.state])
        fixed = {var for var, changes in zip(self._list_carries(), self.changing) if not changes}
        fixed.update(self.cond.jaxpr.invars[: len(self.cond_consts)])
        places = {var: k for k, var in enumerate(self._list_carries())}
        for eqn in self.cond.jaxpr.eqns:
            if eqn.primitive.name not in ("lt", "gt") or eqn.outvars[0] not in self._list_conjuncts():
                continue
            counter, limit = eqn.invars if eqn.primitive.name == "lt" else eqn.invars[::-1]
            k = None if isinstance(counter, Literal) else places.get(counter)
            step = None if k is None else step_of_carry(scope, self.around + k, k)
            bound = test.read(limit)
            if step is None or step[0] < 1 or bound is None or self.init[k] is None:
                continue
            if isinstance(limit, Literal) or limit in fixed:
                return max(0, -(-(bound[1] - self.init[k][0]) // step[0]))
        return None

    def _list_conjuncts(self) -> set[Var]:
        """Bools that all hold where the test does."""
        made = {var: eqn for eqn in self.cond.jaxpr.eqns for var in eqn.outvars}
        waiting, found = list(self.cond.jaxpr.outvars), set()
        while waiting:
            atom = waiting.pop()
            if isinstance(atom, Var):
                found.add(atom)
                if atom in made and made[atom].primitive.name == "and":
                    waiting += made[atom].invars
        return found
