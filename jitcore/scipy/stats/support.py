"""What distributions are made of: operands of one dtype, densities that are zero outside of the support.

In: points and parameters, which broadcast. Out: Arrays of one floating dtype; logarithms are -inf outside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from jitcore import dtypes
from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import promote_arrays


def promote(name: str, *args) -> list[Array]:
    return promote_arrays(name, *args, to=dtypes.inexact_dtype)


def within(inside, logarithm) -> Array:
    """A logarithm of a density inside of the support, minus infinity outside."""
    return jnp.where(inside, logarithm, -jnp.inf)


def define_density(log_density: Callable[..., Array]) -> Callable[..., Array]:
    """`pdf` of `logpdf`, `pmf` of `logpmf`: the same parameters."""

    @functools.wraps(log_density)
    def density(*args, **kwargs):
        return jnp.exp(log_density(*args, **kwargs))

    density.__name__ = density.__qualname__ = log_density.__name__.removeprefix("log")
    density.__doc__ = "Density at x." if density.__name__ == "pdf" else "Probability of k."
    return density
