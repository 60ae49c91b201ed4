"""What distributions are made of: operands of one dtype, densities that are zero outside of the support.

In: points and parameters, which broadcast. Out: Arrays of one floating dtype; logarithms are -inf outside.
"""

from __future__ import annotations

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import promote_arrays


def promote(name: str, *args) -> list[Array]:
    return promote_arrays(name, *args, to=dtypes.inexact_dtype)


def within(inside, logarithm) -> Array:
    """A logarithm of a density inside of the support, minus infinity outside."""
    return jnp.where(inside, logarithm, -jnp.inf)


def within_unit(q, quantile) -> Array:
    """A quantile of probabilities, NaN outside of [0, 1]."""
    return jnp.where((q >= 0) & (q <= 1), quantile, jnp.nan)
