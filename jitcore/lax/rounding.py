"""Rounding primitives: to integers below, above, towards zero, and to the nearest ones.

In: arrays of floats. Out: arrays of their shape and dtype, whose derivatives are zero.
"""

from __future__ import annotations

import enum

import numpy as np

from jitcore.lax.define import ZERO_DERIVATIVE, elementwise

__all__ = ["RoundingMethod", "ceil", "floor", "round", "round_half_away", "round_half_even", "trunc"]


@elementwise(impl=np.floor, hlo="floor", accepts="f", domain=(-10, 10), jvp=ZERO_DERIVATIVE)
def floor(x):
    """Largest integer not above x, as a float."""


@elementwise(impl=np.ceil, hlo="ceil", accepts="f", domain=(-10, 10), jvp=ZERO_DERIVATIVE)
def ceil(x):
    """Smallest integer not below x, as a float."""


@elementwise(impl=np.trunc, accepts="f", domain=(-10, 10), jvp=ZERO_DERIVATIVE)
def trunc(x):
    """x without its fraction."""


@elementwise(impl=np.rint, hlo="round_nearest_even", accepts="f", domain=(-10, 10), jvp=ZERO_DERIVATIVE)
def round_half_even(x):
    """Nearest integer; halves go to the even one."""


@elementwise(impl=lambda x: np.copysign(np.floor(np.abs(x)) + (np.abs(x) - np.floor(np.abs(x)) >= 0.5), x),
             hlo="round_nearest_afz", accepts="f", domain=(-10, 10), jvp=ZERO_DERIVATIVE)
def round_half_away(x):
    """Nearest integer; halves go away from zero."""


class RoundingMethod(enum.IntEnum):
    """Where halves go."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO):
    """Nearest integer, as a float; halves go where rounding_method says."""
    away = RoundingMethod(rounding_method) is RoundingMethod.AWAY_FROM_ZERO
    return (round_half_away if away else round_half_even)(x)
