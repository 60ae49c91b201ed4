"""Functions with a batching rule of their own: `custom_vmap`, and `sequential_vmap`, whose rule is a loop.

In: a function of pytrees, and what `vmap` shall do with it. Out: a function that does the same, and whose
batches the rule computes. Derivatives are those of the function's own operations, in both modes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from jitcore.core import source
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.jaxpr import ClosedJaxpr, eval_jaxpr
from jitcore.lax.control_flow import control
from jitcore.lax.control_flow.scan import map as map_elements
from jitcore.lax.define import define
from jitcore.transforms.batching import BatchAxis, Unmapped
from jitcore.transforms.jvp import run_jvp
from jitcore.transforms.transpose import transpose
from jitcore.tree_util import PyTreeDef, flatten_axes, tree_flatten, tree_leaves, tree_structure

__all__ = ["custom_vmap", "sequential_vmap"]

R = TypeVar("R")


class _BatchRule:
    """The user's rule for leaves.

    Args:
        rule: `rule(axis_size, in_batched, *args) -> (out, out_batched)`.
        name: of the function, for messages.
        in_tree, out_tree: structures of the arguments and of the result.
        num_consts: so many leading operands are values that the function closes over."""

    def __init__(self, rule: Callable, name: str, in_tree: PyTreeDef, out_tree: PyTreeDef, num_consts: int):
        self.rule, self.name, self.in_tree, self.out_tree = rule, name, in_tree, out_tree
        self.num_consts = num_consts

    def __repr__(self) -> str:
        return source.locate_function(self.rule)[0]

    def __call__(self, axis: BatchAxis, values: Sequence, batched: Sequence[bool]) -> list:
        """The results, each with its batch axis first, or `Unmapped`."""
        if any(batched[: self.num_consts]):
            raise ValueError(f"custom_vmap function {self.name} closes over a value that vmap maps, of "
                             "which its rule cannot know.\nTo fix: pass the value as an argument.")
        args, flags = (self.in_tree.unflatten(x[self.num_consts :]) for x in (values, batched))
        pair = self.rule(axis.size, list(flags), *args)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"the vmap rule {self!r} of {self.name} must return a pair of the result and of "
                            f"which of its parts are batched, got {pair!r}")
        outs, out_tree = tree_flatten(pair[0])
        if out_tree != self.out_tree:
            raise ValueError(f"structure of the result of the vmap rule {self!r}, {out_tree}, differs from "
                             f"that of the custom_vmap function {self.name}, {self.out_tree}")
        flags = flatten_axes(f"batched flags that the vmap rule {self!r} returned:", out_tree, pair[1])
        return [out if flag else Unmapped(out) for out, flag in zip(outs, flags)]


def _jvp_call(primitive, primals, tangents, *, call: ClosedJaxpr, **params) -> tuple[list, list]:
    """The results come from the call, so that it stays one; tangents from the operations inside."""
    _, found = run_jvp(lambda *args: eval_jaxpr(call.jaxpr, call.consts, args), primals, tangents)
    return primitive.bind(*primals, call=call, **params), found


def _run_call(*values, call: ClosedJaxpr, rule: _BatchRule) -> list:
    return run_jaxpr_numpy(call, values)


@define("custom_vmap_call", impl=_run_call, aval=lambda *avals, call, rule: call.out_avals, jvp=_jvp_call,
        transpose=lambda primitive, cotangents, operands, *, call, rule: transpose(
            call.jaxpr, call.consts, operands, cotangents),
        batch=lambda primitive, axis, values, batched, *, call, rule: rule(axis, values, batched),
        inline=lambda params, operands: (params["call"], operands), effects=control.effects_of_jaxprs,
        multiple_results=True)
def _call(traced: control.TracedFunction, leaves: Sequence, make_rule: Callable[[int], _BatchRule]) -> list:
    closed, consts = traced.close()
    return _call.primitive.bind(*consts, *leaves, call=closed, rule=make_rule(len(consts)))


class custom_vmap(Generic[R]):  # noqa: N801  JAX's name
    """A function whose batches a rule of yours computes, where `vmap` meets it.

    Same as (as long as nothing is mapped):
        fun(*args)

    Args:
        fun: a function of pytrees of arrays of any shapes and dtypes; it is traced. Keyword arguments are
            resolved to positions.

    Raises: AttributeError when it is mapped without a rule; TypeError, ValueError for a rule that does not
        return (result, which parts of it are batched), or a result of another structure; ValueError for a
        mapped value that the function closes over.
    Cost: outside of `vmap` none: the function's operations become part of the program.
    Source: what `jax.custom_batching.custom_vmap` does; derivatives inside of `vmap` are those of `fun`, not
        of the rule, and reverse mode works.

    Example:
        >>> import jitcore, jitcore.numpy as jnp
        >>> from jitcore.custom_batching import custom_vmap
        >>> @custom_vmap
        ... def product(a, x):
        ...     return a @ x
        >>> @product.def_vmap
        ... def product_of_batch(axis_size, in_batched, a, x):
        ...     if not in_batched[0]:
        ...         return x @ a.T, True
        ...     return jnp.einsum("bij,bj->bi" if in_batched[1] else "bij,j->bi", a, x), True
        >>> jitcore.vmap(product, (None, 0))(jnp.eye(2), jnp.ones((3, 2))).shape
        (3, 2)"""

    def __init__(self, fun: Callable[..., R]):
        if not callable(fun):
            raise TypeError(f"Expected a callable value, got {fun}")
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: Callable | None = None

    def def_vmap(self, vmap_rule: Callable) -> Callable:
        """Sets the rule; works as a decorator.

        Args:
            vmap_rule: `vmap_rule(axis_size, in_batched, *args) -> (out, out_batched)`. `in_batched` is a list
                with an entry for each argument, a pytree of bools of its structure: which arrays have the
                batch axis, always as their first. `out_batched`: the same for the result, or a bool for all
                of it.

        Returns: the rule."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    @source.api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> R:
        name = source.locate_function(self.fun)[0]
        if kwargs:
            bound = source.inspect_signature(self.fun).bind(*args, **kwargs)
            if bound.kwargs:
                raise TypeError(f"custom_vmap function {name}: arguments that have no position: "
                                f"{list(bound.kwargs)}")
            args = bound.args
        leaves, in_tree, avals = control.flatten_operands(args)
        traced = control.trace_function(self.fun, in_tree, avals, "custom_vmap")
        rule = self.vmap_rule or functools.partial(_raise_missing_rule, name)
        make_rule = functools.partial(_BatchRule, rule, name, in_tree, traced.out_tree)
        return traced.out_tree.unflatten(_call(traced, leaves, make_rule))


def _raise_missing_rule(name: str, *_: Any) -> None:
    raise AttributeError(f"No batching rule defined for custom_vmap function {name} using def_vmap.")


def sequential_vmap(f: Callable[..., R]) -> custom_vmap[R]:
    """A function that `vmap` applies to one element of the batch after the other, in a loop.

    Same as, under `vmap`:
        return lax.map(f, xs)

    Args:
        f: a function of pytrees of arrays of any shapes and dtypes.

    Returns: a function of the same arguments.
    Cost: the memory of one element at a time; no operation works on the whole batch.
    Source: what `jax.custom_batching.sequential_vmap` does.

    Example:
        >>> import jitcore, jitcore.numpy as jnp
        >>> from jitcore.custom_batching import sequential_vmap
        >>> jitcore.vmap(sequential_vmap(jnp.sin))(jnp.zeros(3)).shape
        (3,)"""
    wrapped = custom_vmap(f)

    def rule(axis_size, in_batched, *args):
        leaves, tree = tree_flatten(args)
        flags = tree_leaves(in_batched)

        def run(elements):
            mapped = iter(elements)
            return f(*tree.unflatten([next(mapped) if flag else leaf for leaf, flag in zip(leaves, flags)]))

        out = map_elements(run, [leaf for leaf, flag in zip(leaves, flags) if flag])
        return out, tree_structure(out).unflatten([True] * tree_structure(out).num_leaves)

    wrapped.def_vmap(rule)
    return wrapped
