"""Runs the user's Python function once on tracers.

In: a function and the signature of a call. Out: a `TracedFunction`: jaxpr, captured values, structure of the
result. Stage: the entry of the tracing core.

`abstracted_axes` names axes whose extent stays open in a trace, so that one trace serves all sizes: the avals
of such a call have symbolic dimensions there; for executables that know only concrete shapes, the sizes of
one call are put into the jaxpr.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jitcore import errors, tree_util
from jitcore.array import Array, DeviceArray
from jitcore.config import config
from jitcore.core import source
from jitcore.core.jaxpr import (Atom, ClosedJaxpr, DebugInfo, DropVar, Jaxpr, Literal, ShapedArray, Var,
                                find_shardings, is_array_like)
from jitcore.core.refs import Ref, watch_refs
from jitcore.core.symbolic import DimExpr, DimVar, evaluate
from jitcore.core.symbolic_text import solve_sizes
from jitcore.core.trace import close_over_consts, trace_to_jaxpr
from jitcore.dispatch.signature import CallSignature, hide_float0
from jitcore.errors import arguments
from jitcore.events.publishing import compiling
from jitcore.process.effort import counters
from jitcore.sharding import Sharding

#: Structure of a result that is one array, which needs no treedef.
SINGLE = None


class TracedFunction:
    """A traced function.

    Attributes:
        jaxpr: its constvars stand for `consts`, arrays or tracers of an enclosing trace.
        out_structure: treedef of the result, `SINGLE` for one array.
        fun_name: as messages and jaxprs show it."""

    __slots__ = ("jaxpr", "consts", "out_structure", "fun_name", "_closed")

    def __init__(self, jaxpr: Jaxpr, consts: list, out_structure: tree_util.PyTreeDef | None, fun_name: str):
        self.jaxpr, self.consts, self.out_structure, self.fun_name = jaxpr, consts, out_structure, fun_name
        self._closed: ClosedJaxpr | None = None

    @property
    def closed(self) -> ClosedJaxpr:
        """The jaxpr with the captured values as leading inputs; one object, which caches may have as key."""
        if self._closed is None:
            self._closed, _ = close_over_consts(self.jaxpr, self.consts)
        return self._closed

    def list_shardings(self) -> list[Sharding]:
        """Those of arrays on several devices that it captures, and those that it names."""
        captured = [const.sharding for const in self.consts if isinstance(const, DeviceArray)]
        return [*(sharding for sharding in captured if sharding.num_devices > 1), *find_shardings(self.jaxpr)]

    def make_out_tree(self) -> tree_util.PyTreeDef:
        return tree_util.tree_structure(0) if self.out_structure is SINGLE else self.out_structure

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        return leaves[0] if self.out_structure is SINGLE else self.out_structure.unflatten(leaves)


#: Leaves of calls whose names are kept for the texts of programs.
MAX_NAMED = 64


class CallDebugInfo(DebugInfo):
    """Debug information whose argument names are looked up when a message asks for them."""

    __slots__ = ("_fun", "_call", "_names")

    def __init__(self, fun: Callable, call: CallSignature, transform: str):
        self.fun_name, self.location = source.locate_function(fun)
        self.transform = transform
        self._fun, self._call, self._names = fun, call, None

    @property
    def arg_names(self) -> list[str]:
        if self._names is None:
            self._names = self._call.name_leaves(self._fun)
        return self._names

    def freeze(self) -> DebugInfo:
        """The same without function and arguments, so that a cached jaxpr keeps neither alive."""
        names = self.arg_names if len(self._call.avals) <= MAX_NAMED else None
        return DebugInfo(self.fun_name, self.location, self.transform, names)


def trace_call(fun: Callable, call: CallSignature, avals: Sequence[ShapedArray] | None = None, *,
               transform: str = "jit", rewrite: bool = False, refs: dict[Ref, None] | None = None
               ) -> TracedFunction:
    """Traces `fun` for this call. avals: of the leaves, when they are not those of the call; refs: gets the
    references that it uses and has not made.

    Raises: JitcoreTypeError when the function returns something that is no array; RuntimeError under
        `no_tracing`; whatever `fun` raises."""
    info = CallDebugInfo(fun, call, transform)
    if config.no_tracing:
        raise RuntimeError(f"re-tracing function {info.fun_name} for `{transform}`, but 'no_tracing' is set")
    run = fun
    if rewrite or config.rewrite:
        # It reads bytecode, and is loaded where it is asked for.
        from jitcore.rewriter.functions import rewrite_function

        run = rewrite_function(fun)
    run = run if refs is None else watch_refs(run, refs)
    structure: list[tree_util.PyTreeDef | None] = []

    def run_flat(*tracers):
        args, kwargs = call.rebuild(tracers)
        leaves, out_structure = flatten_result(run(*args, **kwargs), info)
        structure.append(out_structure)
        return leaves

    counters.add(traces=1)
    with compiling("trace", info.fun_name, info.location):
        jaxpr, consts = trace_to_jaxpr(run_flat, call.avals if avals is None else avals, info)
    jaxpr.debug_info = info.freeze()
    return TracedFunction(jaxpr, consts, structure[0], info.fun_name)


def flatten_result(out: Any, info: DebugInfo) -> tuple[list, tree_util.PyTreeDef | None]:
    """Leaves and structure of what a function returned.

    Raises: JitcoreTypeError naming the component that is not an array; ValueError for a reference."""
    if isinstance(out, Array):
        return [out], SINGLE
    leaves, structure = tree_util.tree_flatten(out)
    if not all(map(is_array_like, leaves)):
        out = hide_float0(out)
        leaves, structure = tree_util.tree_flatten(out)
        leaves = [leaf.__jax_array__() if isinstance(leaf, DimExpr) else leaf for leaf in leaves]
    for position, leaf in enumerate(leaves):
        if isinstance(leaf, Ref):
            raise ValueError(f"function {info.fun_name} at {info.location} traced for {info.transform} "
                             f"returned a mutable array reference of type {leaf.describe()}, but mutable "
                             "array references cannot be returned: return ref[...].")
        if not is_array_like(leaf):
            path, _ = tree_util.tree_leaves_with_path(out)[position]
            origin = errors.Origin(info.fun_name, info.location, info.transform)
            raise arguments.result_type_error(origin, str(type(leaf)), tree_util.keystr(path))
    return leaves, structure


# -- `abstracted_axes` ---------------------------------------------------------------------------------------
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
    return any(isinstance(extent, DimExpr) for var in jaxpr.invars for extent in var.aval.shape)


def specialize_jaxpr(closed_jaxpr: ClosedJaxpr, in_avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The jaxpr for inputs of these concrete shapes; the jaxpr itself when it has no symbolic dimension.

    Raises: ValueError where the sizes of its variables do not follow from the extents of inputs."""
    if not has_symbolic_shapes(closed_jaxpr.jaxpr):
        return closed_jaxpr
    sizes = solve_sizes(pair for var, aval in zip(closed_jaxpr.jaxpr.invars, in_avals)
                        for pair in zip(var.aval.shape, aval.shape))
    return replace_dims(closed_jaxpr, lambda dim: evaluate(dim, sizes))


def replace_dims(closed_jaxpr: ClosedJaxpr, replace: Callable[[DimExpr], Any]) -> ClosedJaxpr:
    """A copy of the jaxpr with other dimensions in place of its symbolic ones."""
    return _Specializer(replace).map_closed(closed_jaxpr)


class _Specializer:
    """Copies jaxprs with symbolic dimensions replaced."""

    def __init__(self, replace: Callable[[DimExpr], Any]):
        self.replace = replace
        self.copies: dict[Var, Var] = {}

    def map_closed(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        jaxpr = closed.jaxpr
        eqns = [eqn.replace(invars=list(map(self.map_atom, eqn.invars)),
                            outvars=list(map(self.map_atom, eqn.outvars)),
                            params={name: self.map_value(value) for name, value in eqn.params.items()})
                for eqn in jaxpr.eqns]
        constvars, invars, outvars = (list(map(self.map_atom, atoms))
                                      for atoms in (jaxpr.constvars, jaxpr.invars, jaxpr.outvars))
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
            return self.replace(value)
        if isinstance(value, ShapedArray):
            return value.update(shape=tuple(map(self.map_value, value.shape)))
        if isinstance(value, ClosedJaxpr):
            return self.map_closed(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self.map_value, value))
        return type(value)(map(self.map_value, value)) if isinstance(value, (tuple, list)) else value
