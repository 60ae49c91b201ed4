"""Common subexpressions: what has been computed is not computed again.

In: a jaxpr. Out: the same program where of several equations with the same primitive, operands and params the
first remains. Equations with effects all remain.
"""

from __future__ import annotations

from jitcore.core.jaxpr import Atom, ClosedJaxpr, DropVar, Equation, Literal, Var
from jitcore.passes.canonical import encode_literal, encode_params
from jitcore.passes.walk import Walk, rewrite_equations


def merge_common_subexpressions(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Keeps the first of equal equations, within each jaxpr."""
    return rewrite_equations(closed_jaxpr, _merge)


def _merge(walk: Walk, eqn: Equation) -> list[Atom] | None:
    if eqn.effects:
        return None
    operands = tuple(encode_literal(atom) if atom.__class__ is Literal else atom for atom in eqn.invars)
    key = (eqn.primitive, operands, encode_params(eqn.params))
    position = walk.memory.setdefault(key, len(walk.eqns))
    if position == len(walk.eqns):
        return None
    return _name_outputs(walk, position, eqn)


def _name_outputs(walk: Walk, position: int, eqn: Equation) -> list[Var]:
    """The outputs of the earlier equation; one that it dropped gets a variable where `eqn` needs it."""
    first = walk.eqns[position]
    outvars = [
        Var(var.aval) if isinstance(var, DropVar) and not isinstance(wanted, DropVar) else var
        for var, wanted in zip(first.outvars, eqn.outvars)
    ]
    if outvars != first.outvars:
        walk.eqns[position] = first.replace(outvars=outvars)
    return outvars
