"""Tokens, by which XLA's programs order effects: `create_token`, `after_all`.

In: tokens. Out: tokens. Effects of one program are ordered here without them, so that a token is nothing but
itself: a node without leaves in pytrees, which jitted functions take and give.
"""

from __future__ import annotations

from typing import Any

from jitcore.tree_util import register_pytree_node


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
