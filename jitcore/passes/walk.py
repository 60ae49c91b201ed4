"""The walk that the rewriting passes share: once through the equations, in order.

In: a jaxpr and a rule for one equation. Out: the jaxpr with each equation kept, replaced by other equations,
or replaced by values that exist already. Linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from jitcore.core.jaxpr import Atom, ClosedJaxpr, DropVar, Equation, Jaxpr, Literal, Var
from jitcore.core.primitive import registry
from jitcore.core.trace import trace_to_jaxpr

Rule = Callable[["Walk", Equation], list | None]
Transform = Callable[[ClosedJaxpr], ClosedJaxpr]


def keep(walk: Walk, eqn: Equation) -> None:
    """The rule that changes nothing."""


class Walk:
    """The state of one walk.

    Attributes:
        eqns: what has been emitted so far.
        defined_by: the emitted equation of each variable.
        constvars, consts: those of the result; a rule may add to them.
        memory: what the rule remembers from one equation of this jaxpr to the next.
        source_info: where the equation stands that the rule is applied to."""

    def __init__(self, closed_jaxpr: ClosedJaxpr):
        self.eqns: list[Equation] = []
        self.defined_by: dict[Var, Equation] = {}
        self.constvars, self.consts = list(closed_jaxpr.jaxpr.constvars), list(closed_jaxpr.consts)
        self.memory: dict = {}
        self.source_info = None
        self._replaced: dict[Var, Atom] = {}

    def read(self, atom: Atom) -> Atom:
        """What stands for an atom of the original jaxpr now."""
        return self._replaced.get(atom, atom)

    def replace(self, variables: Sequence[Var], atoms: Sequence[Atom]) -> None:
        """From here on, these atoms stand for the variables."""
        self._replaced.update(zip(variables, atoms))

    def emit(self, eqn: Equation) -> None:
        self.eqns.append(eqn)
        for var in eqn.outvars:
            self.defined_by[var] = eqn

    def bind(self, name: str, *operands: Atom, **params) -> Var:
        """The result of a primitive that has one, by an equation that is emitted here."""
        primitive = registry[name]
        out = Var(primitive.aval(*[atom.aval for atom in operands], **params))
        self.emit(Equation(primitive, list(operands), [out], params, source_info=self.source_info))
        return out

    def find_definition(self, atom: Atom, name: str) -> Equation | None:
        """The equation that computes an atom, when its primitive has this name."""
        eqn = self.defined_by.get(atom)
        return eqn if eqn is not None and eqn.primitive.name == name else None

    def run(self, eqns: list[Equation], rule: Rule) -> None:
        for eqn in eqns:
            invars = [self._replaced.get(atom, atom) for atom in eqn.invars]
            if invars != eqn.invars:
                eqn = eqn.replace(invars=invars)
            self.source_info = eqn.source_info
            atoms = rule(self, eqn)
            if atoms is None:
                self.emit(eqn)
            else:
                self._replaced.update(zip(eqn.outvars, atoms))

    def splice(self, inner: ClosedJaxpr, operands: Sequence[Atom], rule: Rule = keep) -> list[Atom]:
        """Emits the equations of an inner jaxpr here, under new variables; returns its outputs."""
        scope = dict(zip(inner.jaxpr.invars, operands))
        for var, const in zip(inner.jaxpr.constvars, inner.consts):
            scope[var] = self._add_const(var, const)
        for eqn in inner.jaxpr.eqns:
            outvars = [var if isinstance(var, DropVar) else Var(var.aval) for var in eqn.outvars]
            scope.update(zip(eqn.outvars, outvars))
            copy = eqn.replace(invars=[scope.get(atom, atom) for atom in eqn.invars], outvars=outvars)
            self.run([copy], rule)
        return [self.read(scope.get(atom, atom)) for atom in inner.jaxpr.outvars]

    def spell(self, function: Callable, operands: Sequence[Atom]) -> list[Atom]:
        """The outputs of a function of operands, written with `lax`, computed by equations emitted here."""
        jaxpr, consts = trace_to_jaxpr(function, [atom.aval for atom in operands])
        return self.splice(ClosedJaxpr(jaxpr, consts), operands)

    def _add_const(self, var: Var, const) -> Var:
        """A constant of an inner jaxpr becomes one of this jaxpr."""
        fresh = Var(var.aval)
        self.constvars.append(fresh)
        self.consts.append(const)
        return fresh


def rewrite_equations(closed_jaxpr: ClosedJaxpr, rule: Rule) -> ClosedJaxpr:
    """Applies a rule to each equation of a jaxpr and of the jaxprs inside it, innermost first.

    Args:
        rule: `rule(walk, eqn)` gets the equation with its operands already replaced. It returns None to keep
            the equation, or one atom per output to stand for it; `walk.emit` adds equations before.

    Returns: a jaxpr with the same in_avals and out_avals, weak types included."""
    return rewrite_jaxprs(closed_jaxpr, lambda closed_jaxpr: rule)


def rewrite_jaxprs(closed_jaxpr: ClosedJaxpr, plan: Callable[[ClosedJaxpr], Rule]) -> ClosedJaxpr:
    """The same where each jaxpr has a rule of its own, which `plan` finds."""

    def rewrite_one(closed_jaxpr: ClosedJaxpr, rewrite: Transform) -> ClosedJaxpr:
        eqns = [map_inner_jaxprs(eqn, rewrite) for eqn in closed_jaxpr.eqns]
        return walk_through(closed_jaxpr, eqns, plan(closed_jaxpr))

    return rewrite_each_once(closed_jaxpr, rewrite_one)


def walk_through(closed_jaxpr: ClosedJaxpr, eqns: list[Equation], rule: Rule,
                 known: Mapping[Var, Atom] = MappingProxyType({})) -> ClosedJaxpr:
    """The jaxpr with these equations after the rule, and with the outputs that stand for its own then.
    known: what stands for arguments."""
    jaxpr, walk = closed_jaxpr.jaxpr, Walk(closed_jaxpr)
    walk.replace(list(known), list(known.values()))
    walk.run(eqns, rule)
    outvars = [_keep_weak_type(walk, atom) for atom in jaxpr.outvars]
    if walk.eqns == jaxpr.eqns and outvars == jaxpr.outvars:
        return closed_jaxpr
    rewritten = Jaxpr(walk.constvars, jaxpr.invars, walk.eqns, outvars, debug_info=jaxpr.debug_info)
    return ClosedJaxpr(rewritten, walk.consts)


def rewrite_each_once(closed_jaxpr: ClosedJaxpr,
                      rewrite_one: Callable[[ClosedJaxpr, Transform], ClosedJaxpr]) -> ClosedJaxpr:
    """Rewrites a jaxpr and those inside it, each object once, however many equations share it.

    Args:
        rewrite_one: rewrites one jaxpr; its second argument is what to apply to the jaxprs inside."""
    done: dict[ClosedJaxpr, ClosedJaxpr] = {}

    def rewrite(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
        if closed_jaxpr not in done:
            done[closed_jaxpr] = rewrite_one(closed_jaxpr, rewrite)
        return done[closed_jaxpr]

    return rewrite(closed_jaxpr)


def _keep_weak_type(walk: Walk, atom: Atom) -> Atom:
    """The replacement of an output. Rules may ignore weak types, which mean something at the outputs only."""
    new = walk.read(atom)
    if new.aval.weak_type == atom.aval.weak_type:
        return new
    aval = new.aval.update(weak_type=atom.aval.weak_type)
    if isinstance(new, Literal):
        return Literal(new.to_numpy()[()], aval)
    out = Var(aval)
    params = {"new_dtype": aval.dtype, "weak_type": aval.weak_type}
    walk.emit(Equation(registry["convert_element_type"], [new], [out], params))
    return out


def map_inner_jaxprs(eqn: Equation, transform: Transform) -> Equation:
    """The equation with each closed jaxpr among its params transformed; itself when none of them changes."""
    changed = {}
    for name, value in eqn.params.items():
        new = value
        if isinstance(value, ClosedJaxpr):
            new = transform(value)
        elif value.__class__ in (tuple, list) and any(isinstance(item, ClosedJaxpr) for item in value):
            new = type(value)(transform(item) if isinstance(item, ClosedJaxpr) else item for item in value)
        if new is not value and new != value:
            changed[name] = new
    if not changed:
        return eqn
    params = eqn.params | changed
    return eqn.replace(params=params, effects=eqn.primitive.effects_of(params))
