"""The specification of the jaxpr, executable: every rule that a well-formed jaxpr obeys.

In: a jaxpr. Out: nothing, or `JaxprTypeError` naming the equation. Runs between passes when
`config.check_jaxprs` is on.
"""

from __future__ import annotations

from jitcore.core.jaxpr import ClosedJaxpr, DropVar, Equation, Jaxpr, Literal, Var, sub_jaxprs


class JaxprTypeError(TypeError):
    """A jaxpr breaks a rule of its language: a compiler error, not a user error."""


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Each variable is bound once and before use, avals agree with each primitive's rule, effects are
    declared."""
    if isinstance(jaxpr, ClosedJaxpr):
        if len(jaxpr.consts) != len(jaxpr.jaxpr.constvars):
            raise JaxprTypeError(f"{len(jaxpr.consts)} constants for {len(jaxpr.jaxpr.constvars)} constvars")
        jaxpr = jaxpr.jaxpr
    bound: set[Var] = set()
    for var in [*jaxpr.constvars, *jaxpr.invars]:
        _bind(var, bound, "the arguments")
    for eqn in jaxpr.eqns:
        _check_equation(eqn, bound)
    for atom in jaxpr.outvars:
        _check_read(atom, bound, "the outputs")
    undeclared = frozenset().union(*(eqn.effects for eqn in jaxpr.eqns)) - jaxpr.effects
    if undeclared:
        raise JaxprTypeError(f"effects {set(undeclared)} are not declared by the jaxpr")


def _check_equation(eqn: Equation, bound: set[Var]) -> None:
    for atom in eqn.invars:
        _check_read(atom, bound, eqn)
    for inner in sub_jaxprs(eqn.params):
        check_jaxpr(inner)
    expected = eqn.primitive.aval(*[atom.aval for atom in eqn.invars], **eqn.params)
    expected = list(expected) if eqn.primitive.multiple_results else [expected]
    if len(expected) != len(eqn.outvars):
        raise JaxprTypeError(f"{eqn!r}: {len(eqn.outvars)} outputs where the rule gives {len(expected)}")
    for var, aval in zip(eqn.outvars, expected):
        if (var.aval.shape, var.aval.dtype) != (aval.shape, aval.dtype):
            raise JaxprTypeError(f"{eqn!r}: output {var.aval.short()} where the rule gives {aval.short()}")
        if not isinstance(var, DropVar):
            _bind(var, bound, eqn)


def _bind(var, bound: set[Var], where: Equation | str) -> None:
    """where: is shown in errors only, for it takes long."""
    if not isinstance(var, Var) or var in bound:
        raise JaxprTypeError(f"{where}: {var!r} is bound twice or is not a variable")
    bound.add(var)


def _check_read(atom, bound: set[Var], where: Equation | str) -> None:
    if isinstance(atom, Literal):
        if atom.aval.shape:
            raise JaxprTypeError(f"{where}: literal {atom!r} is not a scalar")
    elif atom not in bound or isinstance(atom, DropVar):
        raise JaxprTypeError(f"{where}: {atom!r} is read before it is bound")
