"""`checkpoint`: derivatives that compute intermediate values again instead of keeping them.

In: a function, and a policy of what may be kept. Out: a function that computes the same; it is one equation
of the primitive `remat2`, which partial evaluation splits so that only its inputs, and what the policy names,
go from the forward to the backward pass.

A policy is `policy(primitive, *avals, **params) -> bool` for an equation: whether its results may be kept.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Any

from jitcore.core import source
from jitcore.core.jaxpr import (ClosedJaxpr, DebugInfo, Equation, Var, aval_of, eval_jaxpr, is_array_like,
                                slice_eqns)
from jitcore.core.primitive import Primitive, registry
from jitcore.core.refs import Ref, leave_out_same, lend, read_refs, replace_refs, watch_refs
from jitcore.core.trace import close_over_consts, trace_to_jaxpr
from jitcore.transforms.call_rules import batch_call, call_traits, jvp_call, transpose_call
from jitcore.transforms.derivative_rules import jvp_linear, transpose_unary
from jitcore.transforms.jaxpr_parts import lift_consts
from jitcore.transforms.linearize import linearize_flat
from jitcore.transforms.partial_eval import split_jaxpr
from jitcore.transforms.tangents import has_tangent
from jitcore.tree_util import keystr, tree_flatten, tree_flatten_with_path

Policy = Callable[..., bool]


@source.api_boundary
def checkpoint(fun: Callable, *, prevent_cse: bool | Sequence[bool] = True, policy: Policy | None = None,
               static_argnums: int | Sequence[int] = (),
               static_argnames: str | Iterable[str] = ()) -> Callable:
    """A function that computes the same as `fun` and whose derivative keeps less memory.

    In reverse mode, the forward pass keeps the arguments of the call only; the backward pass computes from
    them again what it needs of the rest.

    Args:
        fun: a function of pytrees of arrays.
        prevent_cse: whether the compiler must not merge the second computation with the first, which would
            keep what it computes after all. False is of use inside loops, where nothing can be merged.
        policy: which results are kept as well, one of `checkpoint_policies`; by default none.
        static_argnums, static_argnames: arguments that are no arrays, or that Python control flow depends on.

    Raises: TypeError for arguments and results that are not arrays, or a `prevent_cse` that is no bool;
        ValueError for positions that a call does not have."""
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    if not isinstance(prevent_cse, (bool, tuple, list)):
        raise TypeError(f"prevent_cse must be a bool or tuple of bools, got {type(prevent_cse)=}")
    prevents = prevent_cse if isinstance(prevent_cse, bool) else any(prevent_cse)

    @functools.wraps(fun, updated=())
    @source.api_boundary
    def call_checkpointed(*args, **kwargs):
        call, args, kwargs = _fix_static(fun, numbers, names, args, kwargs)
        leaves, in_tree = tree_flatten((args, kwargs))
        for leaf in leaves:
            if not is_array_like(leaf):
                raise TypeError(f"Argument {leaf!r} of type {type(leaf)} is not a valid jitcore type")
        refs: dict = {}
        closed, consts, out_tree = _trace_call(fun, watch_refs(call, refs), leaves, in_tree)
        if refs:
            return _call_with_refs(list(refs), call, args, kwargs, prevent_cse, policy)
        params = {"prevent_cse": prevents, "differentiated": False, "policy": policy}
        outs = remat_primitive.bind(*consts, *leaves, jaxpr=closed, **params)
        return out_tree.unflatten(outs)

    return call_checkpointed


remat = checkpoint


def _fix_static(fun: Callable, numbers: tuple, names: tuple, args: tuple, kwargs: dict):
    """The function of the arguments that are arrays, and these."""
    if not (numbers or names):
        return fun, args, kwargs
    if any(not -len(args) <= operator.index(number) < len(args) for number in numbers):
        raise ValueError(
            "the `static_argnums` argument to `jitcore.checkpoint` / `jitcore.remat` can only take integer "
            f"values greater than or equal to `-len(args)` and less than `len(args)`, but got {numbers}, "
            f"while `len(args)` = {len(args)}")
    fixed = {number % len(args) for number in numbers}
    fixed_names = {name: kwargs[name] for name in names if name in kwargs}

    def call(*others, **named):
        given = iter(others)
        merged = [args[place] if place in fixed else next(given) for place in range(len(args))]
        return fun(*merged, **named, **fixed_names)

    others = tuple(arg for place, arg in enumerate(args) if place not in fixed)
    return call, others, {name: value for name, value in kwargs.items() if name not in fixed_names}


def _call_with_refs(refs: Sequence[Ref], call: Callable, args: tuple, kwargs: dict, prevent_cse,
                    policy: Policy | None) -> Any:
    """What references hold is an argument, and a result where it changes."""

    @functools.wraps(call)
    def run(values, *args, **kwargs):
        with lend(refs, values):
            return call(*args, **kwargs), leave_out_same(read_refs(refs), values)

    result, values = checkpoint(run, prevent_cse=prevent_cse, policy=policy)(read_refs(refs), *args, **kwargs)
    replace_refs(refs, values)
    return result


def _trace_call(fun: Callable, call: Callable, leaves: Sequence, in_tree):
    """(jaxpr, values it closes over, structure of the result)."""
    name, location = source.locate_function(fun)
    trees: list = []

    def run(*tracers):
        args, kwargs = in_tree.unflatten(tracers)
        outs, tree = tree_flatten(call(*args, **kwargs))
        for out in outs:
            if not is_array_like(out):
                raise TypeError(f"function {name} at {location} traced for checkpoint / remat returned a "
                                f"value of type {type(out)}, which is not a valid jitcore type")
        trees.append(tree)
        return outs

    info = DebugInfo(name, location, "checkpoint / remat", None)
    jaxpr, consts = trace_to_jaxpr(run, list(map(aval_of, leaves)), info)
    return *close_over_consts(jaxpr, consts), trees[0]


# -- the primitive ------------------------------------------------------------------------------------------
def _transpose(primitive, cotangents, operands, **params):
    return transpose_call(primitive, cotangents, operands, **params | {"differentiated": True})


def _split(trace, primitive, args, *, jaxpr, policy, **params):
    """The known part runs here, once, for its results and for what is kept. The unknown part is recorded
    behind a second run of what it needs of the known part."""
    unknown = list(map(trace.is_unknown, args))
    split = split_jaxpr(_inline_calls(jaxpr) if policy is not None else jaxpr, unknown)
    known, values = lift_consts(split.known)
    inner, num_outs, shift = known.jaxpr, split.num_known_outs, len(values)
    operands = [*values, *(x for x, flag in zip(args, unknown) if not flag)]
    computed = iter(inner.outvars[num_outs:])
    residuals = [next(computed) if place is None else inner.invars[place + shift]
                 for place in split.residuals]
    keepable = _find_keepable(inner.eqns, policy)
    again, needed = slice_eqns(inner.eqns, residuals, keepable)
    kept = [var for eqn in inner.eqns for var in eqn.outvars if var in needed and var in keepable]
    outvars = [*inner.outvars[:num_outs], *kept]
    eqns, _ = slice_eqns(inner.eqns, outvars, keep_effects=True)
    outs = eval_jaxpr(inner.replace(eqns=eqns, outvars=outvars), [], operands)
    read = [var in needed for var in inner.invars]
    given = [*compress(inner.invars, read), *kept]
    second = inner.replace(invars=given, eqns=again, outvars=residuals)
    whole, consts = _join(second, split.unknown, len(residuals))
    found = trace.record_unknown(
        primitive, [*consts, *compress(operands, read), *outs[num_outs:], *compress(args, unknown)],
        params | {"jaxpr": whole, "policy": policy, "differentiated": True})
    return split.merge_outputs(outs, found)


def _find_keepable(eqns: Sequence[Equation], policy: Policy | None) -> set[Var]:
    if policy is None:
        return set()
    return {var for eqn in eqns if policy(eqn.primitive, *[atom.aval for atom in eqn.invars], **eqn.params)
            for var in eqn.outvars}


def _join(first, second: ClosedJaxpr, num_residuals: int) -> tuple[ClosedJaxpr, list]:
    """One jaxpr after the other: the results of the first are the leading inputs of the second."""
    count = len(first.invars)

    def run(*args):
        residuals = eval_jaxpr(first, [], args[:count])
        return eval_jaxpr(second.jaxpr, second.consts, [*residuals, *args[count:]])

    avals = [*first.in_avals, *second.in_avals[num_residuals:]]
    jaxpr, consts = trace_to_jaxpr(run, avals, second.jaxpr.debug_info)
    return close_over_consts(jaxpr, consts)


def _inline_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr with the equations of inner jitted functions in place of the calls, for the policy to see
    them."""
    if not any(eqn.primitive.name == "jit" for eqn in closed.eqns):
        return closed

    def evaluate(inner: ClosedJaxpr, args: Sequence) -> list:
        return eval_jaxpr(inner.jaxpr, inner.consts, args, apply)

    def apply(eqn: Equation, operands: list) -> list:
        if eqn.primitive.name == "jit":
            return evaluate(eqn.params["jaxpr"], operands)
        return eqn.primitive.bind_all(*operands, **eqn.params)

    info = closed.jaxpr.debug_info
    jaxpr, consts = trace_to_jaxpr(lambda *args: evaluate(closed, args), closed.in_avals, info)
    return ClosedJaxpr(jaxpr, consts)


def _inline(params: dict, operands: list) -> tuple[ClosedJaxpr, list]:
    """The function itself; the second run gets its operands through a barrier that no merging crosses."""
    closed = params["jaxpr"]
    if not (params["differentiated"] and params["prevent_cse"]):
        return closed, operands
    jaxpr, barrier = closed.jaxpr, registry["optimization_barrier"]
    outside = [Var(var.aval) for var in jaxpr.invars]
    eqns = [Equation(barrier, [out], [var], {}) for out, var in zip(outside, jaxpr.invars)]
    return ClosedJaxpr(jaxpr.replace(invars=outside, eqns=[*eqns, *jaxpr.eqns]), closed.consts), operands


remat_primitive = Primitive(
    "remat2", jvp=jvp_call, transpose=_transpose, partial=_split, batch=batch_call, inline=_inline,
    **call_traits())


# -- names --------------------------------------------------------------------------------------------------
name_primitive = Primitive(
    "name", impl=lambda x, *, name: x, aval=lambda x, *, name: x, jvp=jvp_linear(),
    transpose=transpose_unary(lambda ct, x, *, name: ct),
    batch=lambda primitive, axis, values, batched, *, name: primitive.bind(*values, name=name),
    lower=lambda builder, x, *, name: x, hlo=lambda b, x, *, name: x)


@source.api_boundary
def checkpoint_name(x: Any, name: str) -> Any:
    """The pytree x, its arrays known to policies under a name."""
    leaves, treedef = tree_flatten(x)
    return treedef.unflatten([name_primitive.bind(leaf, name=name) for leaf in leaves])


# -- what is kept -------------------------------------------------------------------------------------------
@source.api_boundary
def saved_residuals(fun: Callable, *args, **kwargs) -> list[tuple]:
    """What reverse-mode differentiation of a call keeps: (aval, where it comes from) of each array."""
    leaves, in_tree = tree_flatten((args, kwargs))
    in_linear = list(map(has_tangent, leaves))

    def flat(*values):
        args, kwargs = in_tree.unflatten(values)
        return tree_flatten(fun(*args, **kwargs))[0]

    def run(*values):
        return linearize_flat(flat, values, in_linear)[1].residuals

    jaxpr, _ = trace_to_jaxpr(run, list(map(aval_of, leaves)))
    wanted = [atom for atom in jaxpr.outvars if isinstance(atom, Var)]
    paths = [path for path, _ in tree_flatten_with_path((args, kwargs))[0]]
    names = _name_leaves(fun, paths)
    found: list[tuple] = [(var.aval, "from a constant") for var in jaxpr.constvars if var in wanted]
    found += [(var.aval, f"from the argument {name}")
              for var, name in zip(jaxpr.invars, names) if var in wanted]
    for eqn in jaxpr.eqns:
        found += [(var.aval, _describe_origin(eqn)) for var in eqn.outvars if var in wanted]
    return found


def _name_leaves(fun: Callable, paths: Sequence) -> list[str]:
    code = getattr(inspect.unwrap(fun), "__code__", None)
    parameters = code.co_varnames[: code.co_argcount] if code is not None else ()
    names = []
    for path in paths:
        kind, first, rest = path[0].idx, path[1], path[2:]
        if kind:
            names.append(f"{first.key}{keystr(rest)}")
        else:
            root = parameters[first.idx] if first.idx < len(parameters) else f"args[{first.idx}]"
            names.append(root + keystr(rest))
    return names


def _describe_origin(eqn: Equation) -> str:
    if eqn.primitive is name_primitive:
        return f"named '{eqn.params['name']}'"
    if eqn.primitive.name == "jit":
        return f"output of jitted function '{eqn.params['name']}'"
    return f"output of {eqn.primitive}"


def print_saved_residuals(fun: Callable, *args, **kwargs) -> None:
    """Prints a line for each array that reverse-mode differentiation of a call keeps."""
    for aval, origin in saved_residuals(fun, *args, **kwargs):
        print(f"{aval.short()} {origin}")
