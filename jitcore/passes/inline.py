"""Inlining: equations of inner jitted functions move into the function that calls them.

In: a jaxpr with `jit` equations, or other calls such as those of functions with derivative rules. Out: the
same program without them, also inside loop bodies and branches. A call is no boundary of the machine code, so
every later pass may look across it.
"""

from __future__ import annotations

from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation
from jitcore.passes.walk import Walk, rewrite_equations


def inline_calls(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Replaces each call, `jit[jaxpr=...]` above all, by the equations of its jaxpr. What that calls has been
    inlined into it before: inner jaxprs are rewritten first.

    A primitive is a call when it has the trait `inline`: `inline(params, operands) -> (jaxpr, operands)`, or
    None for an application that stays."""
    return rewrite_equations(closed_jaxpr, _inline_call)


def _inline_call(walk: Walk, eqn: Equation) -> list[Atom] | None:
    find_callee = eqn.primitive.traits.get("inline")
    if find_callee is None:
        return None
    callee = find_callee(eqn.params, eqn.invars)
    return None if callee is None else walk.splice(*callee)
