"""Order, asked for: `optimization_barrier` and `stage`, whose results no pass takes for what they were made
of, and tokens.

In: pytrees of arrays. Out: the same. Effects of one program are ordered here without tokens, so that a token
is nothing but itself: a node without leaves in pytrees, which jitted functions take and give.
"""

from __future__ import annotations

from typing import Any

from jitcore.array import Array
from jitcore.lax.define import define
from jitcore.transforms.batching import Unmapped
from jitcore.transforms.tangents import is_zero
from jitcore.tree_util import register_pytree_node, tree_flatten


def _hlo_barrier(b, *values):
    return b.ops("optimization_barrier", values, [(value.shape, value.dtype) for value in values])


def _jvp_barrier(primitive, primals, tangents):
    given = [t for t in tangents if not is_zero(t)]
    found = iter(primitive.bind(*given))
    return primitive.bind(*primals), [t if is_zero(t) else next(found) for t in tangents]


def _transpose_barrier(primitive, cotangents, operands):
    given = [ct for ct in cotangents if not is_zero(ct)]
    found = iter(primitive.bind(*given))
    return [ct if is_zero(ct) else next(found) for ct in cotangents]


def _batch_barrier(primitive, axis, values, batched):
    outs = primitive.bind(*values)
    return [out if flag else Unmapped(out) for out, flag in zip(outs, batched)]


@define("optimization_barrier", impl=lambda *values: list(values), aval=lambda *avals: list(avals),
        jvp=_jvp_barrier, transpose=_transpose_barrier, batch=_batch_barrier,
        lower=lambda builder, *values: list(values), hlo=_hlo_barrier, multiple_results=True)
def optimization_barrier(operand: Any, /) -> Any:
    """The operand, a pytree of arrays, unchanged. What is computed from it is never merged with what is
    computed from the operand itself."""
    leaves, treedef = tree_flatten(operand)
    return treedef.unflatten(optimization_barrier.primitive.bind(*leaves)) if leaves else operand


def stage(x, /) -> Array:
    """x as a value of the program that is being recorded, of which nothing is known but its type; outside of
    one, as an Array.

    x: an array or number. Returns: of its shape, dtype and weak type. Raises: TypeError for what is not an
    array. Source: jax.lax.stage."""
    return optimization_barrier.primitive.bind(x)[0]


# -- tokens -------------------------------------------------------------------------------------------------
class Token:
    """What `create_token` and `after_all` give."""

    def __repr__(self) -> str:
        return "Token()"


register_pytree_node(Token, lambda token: ((), None), lambda _, children: Token())


def create_token(_: Any = None) -> Token:
    """A token. The argument is ignored. Returns: a `Token`. Raises: nothing. Source: jax.lax.create_token."""
    return Token()


def after_all(*operands: Token) -> Token:
    """A token of several ones. Returns: a `Token`. Raises: TypeError for anything else.
    Source: jax.lax.after_all."""
    if not all(isinstance(operand, Token) for operand in operands):
        raise TypeError("Arguments to after_all must be tokens")
    return Token()
