"""Policies of `checkpoint`: which results the backward pass may keep. Each is `policy(primitive, *avals,
**params)`.

In: an equation. Out: whether its results are kept. Names are JAX's; there is one memory, so that policies
which move values to another one do not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Policy = Callable[..., bool]


def everything_saveable(*_, **__) -> bool:
    """Keeps all, as if there were no `checkpoint`."""
    return True


def nothing_saveable(*_, **__) -> bool:
    """Keeps the arguments of the call only."""
    return False


def dots_saveable(primitive, *_, **__) -> bool:
    """Keeps results of matrix products and convolutions."""
    return primitive.name in ("dot_general", "conv_general_dilated")


def dots_with_no_batch_dims_saveable(primitive, *_, **params) -> bool:
    """Keeps results of matrix products without batch dimensions, as of weights and activations."""
    return primitive.name == "dot_general" and not any(params["dimension_numbers"][1])


checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


class _OnlyNames(NamedTuple):
    names: frozenset[str]

    def __call__(self, primitive, *_, **params) -> bool:
        return primitive.name == "name" and params["name"] in self.names


class _AllNamesBut(NamedTuple):
    names: frozenset[str]

    def __call__(self, primitive, *_, **params) -> bool:
        return primitive.name == "name" and params["name"] not in self.names


class _Either(NamedTuple):
    first: Policy
    second: Policy

    def __call__(self, primitive, *avals, **params) -> bool:
        return bool(self.first(primitive, *avals, **params) or self.second(primitive, *avals, **params))


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Keeps values that `checkpoint_name` gave one of these names."""
    return _OnlyNames(frozenset(names_which_can_be_saved))


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Keeps named values, without those of these names."""
    return _AllNamesBut(frozenset(names_not_to_save))


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Keeps all values, without those of these names."""
    names = frozenset(names_not_to_save)
    return lambda primitive, *_, **params: not (primitive.name == "name" and params["name"] in names)


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Keeps what one of the two keeps."""
    return _Either(policy_1, policy_2)
