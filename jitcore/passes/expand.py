"""Expansion: equations that a backend has no routine for give way to the loops that compute them, derivatives
above all.

In: a jaxpr with equations of primitives that have the trait `expand`, a function `expand(avals, params)` that
gives the jaxpr of an application, or None for one that stays. Out: the same program without them, also inside
loop bodies and branches. Outermost first: what an expansion differentiates still has the derivative rules of
its parts.
"""

from __future__ import annotations

from collections.abc import Collection

from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation
from jitcore.passes.walk import Transform, Walk, map_inner_jaxprs, rewrite_each_once, walk_through


def expand_equations(closed_jaxpr: ClosedJaxpr, kept: Collection[str] = ("qr",)) -> ClosedJaxpr:
    """Replaces each equation whose primitive has the trait `expand`. kept: primitives that the backend has a
    routine for; by default what LAPACK has."""

    def expand_one(closed_jaxpr: ClosedJaxpr, expand: Transform) -> ClosedJaxpr:
        def rule(walk: Walk, eqn: Equation) -> list[Atom] | None:
            find = None if eqn.primitive.name in kept else eqn.primitive.traits.get("expand")
            callee = find and find([atom.aval for atom in eqn.invars], eqn.params)
            if callee is not None:
                return walk.splice(expand(callee), eqn.invars)
            walk.emit(map_inner_jaxprs(eqn, expand))
            return eqn.outvars

        return walk_through(closed_jaxpr, closed_jaxpr.eqns, rule)

    return rewrite_each_once(closed_jaxpr, expand_one)
