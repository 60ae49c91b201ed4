"""`abstracted_axes`: axes whose extent stays open in a trace, so that one trace serves all sizes.

In: the avals of a call and the names of its axes. Out: avals with symbolic dimensions there; and, for
executables that know only concrete shapes, a jaxpr with the sizes of one call put in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitcore import tree_util
from jitcore.core.aval import ShapedArray
from jitcore.core.jaxpr import Atom, ClosedJaxpr, DropVar, Jaxpr, Literal, Var
from jitcore.core.symbolic import DimExpr, DimVar, evaluate, is_symbolic
from jitcore.dispatch.signature import CallSignature

AxisNames = dict[int, str]


def abstract_avals(call: CallSignature, abstracted_axes: Any) -> list[ShapedArray]:
    """The avals of the call's leaves with symbolic dimensions.

    abstracted_axes: for each positional argument, or for all of them, a pytree prefix whose leaves are a
    tuple of axis names (None for an axis that stays fixed) or a dict axis -> name.
    Raises: ValueError when it does not fit the arguments, or one name has two sizes in the call."""
    if abstracted_axes is None:
        return call.avals
    sizes: dict[str, int] = {}
    avals = []
    for aval, names in zip(call.avals, _spread_names(call, abstracted_axes)):
        shape = list(aval.shape)
        for axis, name in names.items():
            if not -len(shape) <= axis < len(shape):
                raise ValueError(f"abstracted_axes names axis {axis} of an argument of shape {aval.shape}")
            size = aval.shape[axis]
            if sizes.setdefault(name, size) != size:
                raise ValueError(f"abstracted_axes: the axis {name!r} has size {sizes[name]} in one argument "
                                 f"and {size} in another")
            # Sizes 0 and 1 broadcast differently from all others, so they are not generalized.
            shape[axis] = DimVar(name, lower=2) if size >= 2 else size
        avals.append(aval.update(shape=tuple(shape)))
    return avals


def _spread_names(call: CallSignature, abstracted_axes: Any) -> list[AxisNames]:
    """For each leaf of the call: axis -> name."""
    indices = list(range(len(call.leaves)))
    args, _ = call.rebuild(indices, static=lambda value: None)
    if not isinstance(abstracted_axes, tuple) or _is_axis_names(abstracted_axes):
        abstracted_axes = (abstracted_axes,) * len(args)
    if len(abstracted_axes) > len(args):
        raise ValueError(f"abstracted_axes has {len(abstracted_axes)} entries, but the call has {len(args)} "
                         "positional arguments")
    spread: list[AxisNames] = [{} for _ in indices]
    for prefix, arg in zip(abstracted_axes, args):
        spread_names = tree_util.broadcast_prefix(prefix, arg, is_leaf=_is_prefix_leaf)
        for names, index in zip(spread_names, tree_util.tree_leaves(arg)):
            spread[index] = _read_names(names)
    return spread


def _is_axis_names(node: Any) -> bool:
    if isinstance(node, dict):
        return bool(node) and all(isinstance(axis, int) for axis in node)
    return isinstance(node, tuple) and all(name is None or isinstance(name, str) for name in node)


def _is_prefix_leaf(node: Any) -> bool:
    return node is None or _is_axis_names(node)


def _read_names(names: Any) -> AxisNames:
    if names is None:
        return {}
    pairs = names.items() if isinstance(names, dict) else enumerate(names)
    return {axis: name for axis, name in pairs if name is not None}


def has_symbolic_shapes(jaxpr: Jaxpr) -> bool:
    """Whether an input has a symbolic extent."""
    return any(is_symbolic(extent) for var in jaxpr.invars for extent in var.aval.shape)


def specialize_jaxpr(closed_jaxpr: ClosedJaxpr, in_avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The jaxpr for inputs of these concrete shapes; the jaxpr itself when it has no symbolic dimension.

    Its symbolic dimensions must be expressions of variables that stand alone as an extent of some input."""
    if not has_symbolic_shapes(closed_jaxpr.jaxpr):
        return closed_jaxpr
    sizes: dict[str, int] = {}
    for var, aval in zip(closed_jaxpr.jaxpr.invars, in_avals):
        for extent, size in zip(var.aval.shape, aval.shape):
            if isinstance(extent, DimVar):
                sizes[extent.name] = size
    return _Specializer(sizes).map_closed(closed_jaxpr)


class _Specializer:
    """Copies jaxprs with symbolic dimensions replaced by sizes."""

    def __init__(self, sizes: dict[str, int]):
        self.sizes = sizes
        self.copies: dict[Var, Var] = {}

    def map_closed(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        jaxpr = closed.jaxpr
        eqns = [eqn.replace(invars=list(map(self.map_atom, eqn.invars)),
                            outvars=list(map(self.map_atom, eqn.outvars)),
                            params={name: self.map_value(value) for name, value in eqn.params.items()})
                for eqn in jaxpr.eqns]
        constvars, invars, outvars = (
            list(map(self.map_atom, atoms)) for atoms in (jaxpr.constvars, jaxpr.invars, jaxpr.outvars)
        )
        mapped = jaxpr.replace(constvars=constvars, invars=invars, eqns=eqns, outvars=outvars)
        return ClosedJaxpr(mapped, closed.consts)

    def map_atom(self, atom: Atom) -> Atom:
        if isinstance(atom, Literal):
            return atom
        if isinstance(atom, DropVar):
            return DropVar(self.map_value(atom.aval))
        if atom not in self.copies:
            self.copies[atom] = Var(self.map_value(atom.aval))
        return self.copies[atom]

    def map_value(self, value: Any) -> Any:
        if isinstance(value, DimExpr):
            return evaluate(value, self.sizes)
        if isinstance(value, ShapedArray):
            return value.update(shape=tuple(map(self.map_value, value.shape)))
        if isinstance(value, ClosedJaxpr):
            return self.map_closed(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self.map_value, value))
        return type(value)(map(self.map_value, value)) if isinstance(value, (tuple, list)) else value
