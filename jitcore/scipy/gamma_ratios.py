"""Ratios of gamma functions, whose logarithms do not cancel for large arguments.

In: Arrays of one floating dtype. Out: logarithms of gamma(x + step) / gamma(x) and of the beta function.

The logarithm of gamma(x) grows as x log(x), so a difference of two has no correct digit left in float32 from
x = 1e6 on. From `_FAR` on Stirling's formula is the smooth part, (x - 1/2) log(x) - x, whose differences are
taken on paper, and a small rest.
Source: A. R. DiDonato and A. H. Morris, ACM Transactions on Mathematical Software 18 (1992), algorithm 708.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore import lax, numpy as jnp
from jitcore.array import Array

_FAR = 8.0  # where seven terms of the rest are exact in float64
#: Bernoulli numbers B[2k] / (2k (2k - 1)).
_REST = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def _rest_of_stirling(x: Any) -> Any:
    """log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi) / 2, for x from `_FAR` on."""
    inverse = 1 / x
    square, total = inverse * inverse, _REST[-1]
    for coefficient in reversed(_REST[:-1]):
        total = total * square + coefficient
    return total * inverse


def _of_two_floats(function: Callable) -> Callable:
    """Computes half precision in float32."""
    @functools.wraps(function)
    def wide(x: Any, y: Any) -> Array:
        if x.dtype.itemsize >= 4:
            return function(x, y)
        return jnp.asarray(function(jnp.asarray(x, np.float32), jnp.asarray(y, np.float32)), x.dtype)

    return wide


@_of_two_floats
def log_gamma_ratio(x: Any, step: Any) -> Array:
    """Logarithm of the magnitude of gamma(x + step) / gamma(x)."""
    is_far = (x >= _FAR) & (x + step >= _FAR)
    far = _far_ratio(jnp.where(is_far, x, _FAR), jnp.where(is_far, step, 0))
    return jnp.where(is_far, far, lax.lgamma(x + step) - lax.lgamma(x))


def _far_ratio(x: Any, step: Any) -> Any:
    slope, end = step / x, x + step
    smooth = (x - 0.5) * jnp.log1p(slope) - step + step * jnp.log(end)
    smooth = jnp.where(slope == 0, step * jnp.log(x), smooth)  # x may be infinite
    return smooth + (_rest_of_stirling(end) - _rest_of_stirling(x))


@_of_two_floats
def betaln(a: Any, b: Any) -> Array:
    """Logarithm of the magnitude of gamma(a) gamma(b) / gamma(a + b)."""
    less, more = jnp.minimum(a, b), jnp.maximum(a, b)
    one_far, both_far = (less >= 0) & (more >= _FAR), less >= _FAR
    near = lax.lgamma(jnp.where(both_far, 1, less))
    x, step = jnp.where(one_far, more, _FAR), jnp.where(one_far & ~both_far, less, 0)
    one = near - _far_ratio(x, step)
    y = jnp.where(both_far, less, _FAR)
    rests = _rest_of_stirling(x) + (_rest_of_stirling(y) - _rest_of_stirling(x + y))
    both = (y - 0.5) * jnp.log(y / (x + y)) - x * jnp.log1p(y / x) - 0.5 * jnp.log(x / (2 * math.pi)) + rests
    return jnp.where(both_far, both, jnp.where(one_far, one, near + lax.lgamma(more) - lax.lgamma(a + b)))
