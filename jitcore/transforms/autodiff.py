"""`grad` and its company: derivatives of functions of pytrees.

In: a function and which arguments to differentiate. Out: functions that compute values and derivatives.
Everything is `run_jvp` and `linearize_flat` on leaves; here trees are taken apart, checked and put together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from jitcore.core import source
from jitcore.core.aval import aval_of, is_array_like
from jitcore.core.jaxpr import DebugInfo
from jitcore.core.trace import to_array
from jitcore.transforms.jvp import run_jvp
from jitcore.transforms.linearize import linearize_flat
from jitcore.transforms.tangents import fill, has_tangent, instantiate
from jitcore.tree_util import tree_flatten


class _Flat:
    """A function of leaves, made of one of pytrees. After a call it knows the structure of the result."""

    def __init__(self, fun: Callable, in_tree, has_aux: bool = False):
        self.fun, self.in_tree, self.has_aux = fun, in_tree, has_aux
        self.out_tree: Any = None
        self.aux: Any = None

    def __call__(self, *leaves):
        out = self.fun(*self.in_tree.unflatten(leaves))
        if self.has_aux:
            out, self.aux = _split_aux(out)
        outs, self.out_tree = tree_flatten(out)
        for leaf in outs:
            if not is_array_like(leaf):
                raise TypeError(f"Output {leaf!r} with type {type(leaf)} is not a valid jitcore type")
        return outs


def _split_aux(out):
    if not (isinstance(out, tuple) and len(out) == 2):
        raise TypeError(f"expected function with aux output to return a two-element tuple, got {out!r}")
    return out


def _debug_info(fun: Callable, transform: str) -> DebugInfo:
    return DebugInfo(*source.locate_function(fun), transform, None)


# -- forward ------------------------------------------------------------------------------------------------
@source.api_boundary
def jvp(fun: Callable, primals: Sequence, tangents: Sequence, has_aux: bool = False) -> tuple:
    """The value of `fun` and its derivative along `tangents`: `(primals_out, tangents_out[, aux])`."""
    leaves, in_tree = tree_flatten(tuple(primals))
    t_leaves, t_tree = tree_flatten(tuple(tangents))
    if in_tree != t_tree:
        raise TypeError("primal and tangent arguments to jvp must have the same tree structure; "
                        f"primals have tree structure {in_tree} whereas tangents have tree structure "
                        f"{t_tree}.")  # fmt: skip
    flat = _Flat(fun, in_tree, has_aux)
    leaves = [to_array(x) for x in leaves]
    given = [t if has_tangent(x) else _zero(x) for x, t in zip(leaves, t_leaves)]
    outs, found = run_jvp(flat, leaves, given, _debug_info(fun, "jvp"))
    result = flat.out_tree.unflatten(outs), flat.out_tree.unflatten(map(instantiate, found))
    return (*result, flat.aux) if has_aux else result


def _zero(x):
    from jitcore.transforms.tangents import zero_like

    return zero_like(x)


@source.api_boundary
def linearize(fun: Callable, *primals, has_aux: bool = False) -> tuple:
    """The value of `fun` at a point and its derivative there, as a function of tangents."""
    leaves, in_tree = tree_flatten(primals)
    flat = _Flat(fun, in_tree, has_aux)
    leaves = [to_array(x) for x in leaves]
    in_linear = list(map(has_tangent, leaves))
    outs, linear = linearize_flat(flat, leaves, in_linear, _debug_info(fun, "linearize"))
    out_tree = flat.out_tree

    def apply(*tangents):
        t_leaves, t_tree = tree_flatten(tangents)
        given = [t for t, flag in zip(t_leaves, in_linear) if flag]
        return out_tree.unflatten(map(instantiate, linear.apply(given)))

    result = out_tree.unflatten(outs), apply
    return (*result, flat.aux) if has_aux else result


# -- reverse ------------------------------------------------------------------------------------------------
@source.api_boundary
def vjp(fun: Callable, *primals, has_aux: bool = False) -> tuple:
    """The value of `fun` at a point, and a function from a cotangent of it to cotangents of the arguments."""
    leaves, in_tree = tree_flatten(primals)
    flat = _Flat(fun, in_tree, has_aux)
    leaves = [to_array(x) for x in leaves]
    in_linear = list(map(has_tangent, leaves))
    outs, linear = linearize_flat(flat, leaves, in_linear, _debug_info(fun, "vjp"))
    out_tree = flat.out_tree

    def pull_back(cotangent):
        cts, ct_tree = tree_flatten(cotangent)
        found = iter(linear.transpose(cts))
        return in_tree.unflatten([instantiate(next(found) if flag else _zero(x))
                                  for x, flag in zip(leaves, in_linear)])  # fmt: skip

    result = out_tree.unflatten(outs), pull_back
    return (*result, flat.aux) if has_aux else result


@source.api_boundary
def value_and_grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False,
                   holomorphic: bool = False, allow_int: bool = False) -> Callable:  # fmt: skip
    """A function that gives the value of the scalar function `fun` and its gradient by some arguments."""

    @functools.wraps(fun, updated=())
    @source.api_boundary
    def compute(*args, **kwargs):
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        numbers = tuple(n % len(args) for n in numbers)

        def partial(*chosen):
            merged = list(args)
            for n, value in zip(numbers, chosen):
                merged[n] = value
            return fun(*merged, **kwargs)

        out, pull_back, *aux = vjp(partial, *[args[n] for n in numbers], has_aux=has_aux)
        aval = aval_of(out)
        if aval.shape:
            raise TypeError("Gradient only defined for scalar-output functions. "
                            f"Output had shape: {aval.shape}.")  # fmt: skip
        grads = pull_back(fill(aval, 1))
        grads = grads[0] if isinstance(argnums, int) else grads
        return ((out, aux[0]) if has_aux else out), grads

    return compute


@source.api_boundary
def grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
         allow_int: bool = False) -> Callable:  # fmt: skip
    """A function that gives the gradient of the scalar function `fun` by some arguments."""
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    @functools.wraps(fun, updated=())
    @source.api_boundary
    def compute(*args, **kwargs):
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return compute
