"""Linear forms: what tests say of sums of several numbers, as `i < n - k` says that `i + k < n`.

In: a scope of the interval analysis. Out: relations that hold in a loop's body or in a branch: the linear
form of each of its inputs, in variables of the scopes around it, and linear forms that are at most 0 there.
Forms hold for numbers as the machine computes them: of a sum that may wrap around nothing is known. They
narrow the ranges of sums, whose operands alone, each in its range, could be further apart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jitcore.core.jaxpr import Atom, Equation, Literal, Var
from jitcore.passes.interval_rules import Range, full_range

# Equations that one form is read through, facts of one scope, and variables of a form.
MAX_DEPTH, MAX_FACTS, MAX_TERMS = 8, 8, 4
# Of a comparison of x and y: the sign of x - y, and what is added to it, for what is at most 0.
_DIFFERENCES = {"lt": (1, 1), "le": (1, 0), "gt": (-1, 1), "ge": (-1, 0)}
_NEGATED = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}


class Form(NamedTuple):
    """The sum of variables times numbers, and a number. Without terms of 0, so that equal forms are equal."""

    terms: frozenset[tuple[Var, int]]
    constant: int

    def plus(self, other: Form, factor: int = 1) -> Form:
        terms = dict(self.terms)
        for var, number in other.terms:
            terms[var] = terms.get(var, 0) + factor * number
        kept = frozenset((var, number) for var, number in terms.items() if number)
        return Form(kept, self.constant + factor * other.constant)


class Relations(NamedTuple):
    """forms: of the inputs, None for what is no single integer. facts: forms that are at most 0."""

    forms: tuple[Form | None, ...] = ()
    facts: tuple[Form, ...] = ()


NOTHING = Relations()
ZERO = Form(frozenset(), 0)


def find_form(scope: Any, atom: Atom, depth: int = MAX_DEPTH) -> Form | None:
    """The form of an integer of a scope; of what is not computed linearly, the variable itself."""
    if atom in scope.forms:
        return scope.forms[atom]
    itself = _name_integer(atom)
    if itself is None or isinstance(atom, Literal):
        return itself
    eqn = scope.made.get(atom)
    name = None if eqn is None else eqn.primitive.name
    if depth == 0 or name not in ("add", "sub", "mul", "convert_element_type"):
        return itself
    if scope.read(atom) == full_range(atom.aval):  # may have wrapped around
        return itself
    parts = [find_form(scope, operand, depth - 1) for operand in eqn.invars]
    if None in parts:
        return itself
    found = parts[0] if name == "convert_element_type" else _combine(name, *parts)
    return itself if found is None or len(found.terms) > MAX_TERMS else found


def _name_integer(atom: Atom) -> Form | None:
    if atom.aval.shape or atom.aval.dtype.kind not in "iu":
        return None
    is_number = isinstance(atom, Literal)
    return Form(frozenset(), int(atom.value)) if is_number else Form(frozenset({(atom, 1)}), 0)


def _combine(name: str, x: Form, y: Form) -> Form | None:
    if name == "mul":
        x, y = (y, x) if not x.terms else (x, y)
        return None if y.terms else ZERO.plus(x, y.constant)
    return x.plus(y, 1 if name == "add" else -1)


def narrow(scope: Any, var: Var, known: Range | None) -> Range | None:
    """The range of a sum where facts say more of it."""
    if not scope.facts or known is None or not isinstance(known[0], int) or known == full_range(var.aval):
        return known
    low, high = known
    form = find_form(scope, var)
    for fact in scope.facts if form is not None else ():
        if form.terms == fact.terms:
            high = min(high, form.constant - fact.constant)
        elif form.terms == ZERO.plus(fact, -1).terms:
            low = max(low, form.constant + fact.constant)
    return (low, high) if low <= high else known


def relate_branch(scope: Any, eqn: Equation, number: int) -> Relations:
    """What holds in a branch of a `cond` of two."""
    index, *operands = eqn.invars
    if isinstance(index, Literal) or len(eqn.params["branches"]) != 2:
        return inherit(scope, operands)
    made = scope.made.get(index)
    test = index if made is None or made.primitive.name != "convert_element_type" else made.invars[0]
    return inherit(scope, operands, _list_facts(scope, test, number == 1))


def relate_body(scope: Any, eqn: Equation, cond_scope: Any) -> Relations:
    """What holds in the body of a `while`. cond_scope: of its test, in which the carry can be anything."""
    params, cond, body = eqn.params, eqn.params["cond_jaxpr"].jaxpr, eqn.params["body_jaxpr"].jaxpr
    tested, around = params["cond_nconsts"], params["body_nconsts"]
    given = [find_form(scope, atom) for atom in eqn.invars]
    carries = list(zip(body.invars[around:], body.outvars, given[tested + around :]))
    inside = [start if var is out else _name_integer(var) for var, out, start in carries]
    forms = zip(cond.invars, [*given[:tested], *inside])
    cond_scope.forms = {var: form for var, form in forms if form is not None}
    changing = {var for var, out, _ in carries if var is not out}
    # What does not change in a loop may be computed before it, where its test may not hold.
    facts = tuple(fact for fact in _list_facts(cond_scope, cond.outvars[0], True)
                  if any(var in changing for var, _ in fact.terms))
    return _relate(scope, [*given[tested : tested + around], *inside], facts)


def inherit(scope: Any, operands: list[Atom], facts: tuple[Form, ...] = ()) -> Relations:
    """Of an inner scope, whose first inputs are these operands."""
    return _relate(scope, [find_form(scope, atom) for atom in operands], facts)


def _relate(scope: Any, forms: list[Form | None], facts: tuple[Form, ...]) -> Relations:
    facts = (*facts, *scope.facts)[:MAX_FACTS]
    return Relations(tuple(forms), facts) if facts else NOTHING


def _list_facts(scope: Any, test: Atom, holds: bool) -> tuple[Form, ...]:
    """Forms that are at most 0 where a comparison, or several joined by `and`, hold or do not."""
    eqn = None if isinstance(test, Literal) else scope.made.get(test)
    name = None if eqn is None else eqn.primitive.name
    if name == ("and" if holds else "or"):
        return tuple(fact for atom in eqn.invars for fact in _list_facts(scope, atom, holds))
    if name not in _DIFFERENCES:
        return ()
    sign, gap = _DIFFERENCES[name if holds else _NEGATED[name]]
    x, y = (find_form(scope, atom) for atom in eqn.invars)
    if x is None or y is None:
        return ()
    difference = ZERO.plus(x, sign).plus(y, -sign)
    return (difference.plus(Form(frozenset(), gap)),) if len(difference.terms) > 1 else ()
