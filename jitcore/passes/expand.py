"""Expansion: equations that a backend has no routine for give way to the loops that compute them, derivatives
above all.

In: a jaxpr with equations of primitives that have the trait `expand`, a function `expand(avals, params)` that
gives the jaxpr of an application, or None for one that stays. Out: the same program without them, also inside
loop bodies and branches. Outermost first: what an expansion differentiates still has the derivative rules of
its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation, sub_jaxprs
from jitcore.passes.walk import Walk, map_inner_jaxprs


def expand_equations(closed_jaxpr: ClosedJaxpr, kept: Collection[str] = ("qr",)) -> ClosedJaxpr:
    """Replaces each equation whose primitive has the trait `expand`. kept: primitives that the backend has a
    routine for; by default what LAPACK has."""
    return _Expander(kept).expand(closed_jaxpr)


class _Expander:
    """Expands each jaxpr object once, however many equations share it."""

    def __init__(self, kept: Collection[str]):
        self._kept = kept
        self._done: dict[ClosedJaxpr, ClosedJaxpr] = {}
        self._known: dict[ClosedJaxpr, bool] = {}

    def has_any(self, closed_jaxpr: ClosedJaxpr) -> bool:
        if closed_jaxpr not in self._known:
            self._known[closed_jaxpr] = any(
                self._find_rule(eqn) is not None or any(map(self.has_any, sub_jaxprs(eqn.params)))
                for eqn in closed_jaxpr.eqns)
        return self._known[closed_jaxpr]

    def _find_rule(self, eqn: Equation) -> Callable | None:
        return None if eqn.primitive.name in self._kept else eqn.primitive.traits.get("expand")

    def expand(self, closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
        if not self.has_any(closed_jaxpr):
            return closed_jaxpr
        if closed_jaxpr not in self._done:
            walk, jaxpr = Walk(closed_jaxpr), closed_jaxpr.jaxpr
            walk.run(jaxpr.eqns, self._expand_equation)
            outvars = list(map(walk.read, jaxpr.outvars))
            expanded = jaxpr.replace(constvars=walk.constvars, eqns=walk.eqns, outvars=outvars)
            self._done[closed_jaxpr] = ClosedJaxpr(expanded, walk.consts)
        return self._done[closed_jaxpr]

    def _expand_equation(self, walk: Walk, eqn: Equation) -> list[Atom] | None:
        expand = self._find_rule(eqn)
        callee = expand and expand([atom.aval for atom in eqn.invars], eqn.params)
        if callee is None:
            walk.emit(map_inner_jaxprs(eqn, self.expand))
            return eqn.outvars
        return walk.splice(self.expand(callee), eqn.invars, _keep)


def _keep(walk: Walk, eqn: Equation) -> None:
    """What is spliced in has been expanded before."""
