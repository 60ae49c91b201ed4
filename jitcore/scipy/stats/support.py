"""What distributions are made of: operands of one dtype, densities that are zero outside of the support.

In: points and parameters, which broadcast. Out: Arrays of one floating dtype; logarithms are -inf outside.

A parameter that no distribution has is NaN, as in SciPy, and so is all that is computed from it or from a
point that is NaN. Comparisons with NaN are false: what is asked is whether a point lies outside, not whether
it lies inside.
"""

from __future__ import annotations

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import promote_arrays


def promote(name: str, *args, complex_too: bool = False) -> list[Array]:
    """Raises: TypeError for complex numbers, which have no order."""
    arrays = promote_arrays(name, *args, to=dtypes.inexact_dtype)
    if not complex_too and jnp.iscomplexobj(arrays[0]):
        raise TypeError(f"{name} of real numbers, got {arrays[0].dtype}")
    return arrays


def standardize(x, loc, scale) -> Array:
    """(x - loc) / scale, NaN where the scale is not positive."""
    return (x - loc) / positive(scale)


def positive(parameter) -> Array:
    return jnp.where(parameter > 0, parameter, jnp.nan)


def nonnegative(parameter) -> Array:
    return jnp.where(parameter >= 0, parameter, jnp.nan)


def probability(parameter) -> Array:
    return jnp.where((parameter >= 0) & (parameter <= 1), parameter, jnp.nan)


def known(value, *operands) -> Array:
    """The value where no operand is NaN, else NaN."""
    for operand in operands:
        value = jnp.where(operand == operand, value, jnp.nan)
    return value


def without(outside, logarithm, *parameters) -> Array:
    """A logarithm of a density, minus infinity outside of the support where all parameters are known."""
    for parameter in parameters:
        outside &= parameter == parameter
    return jnp.where(outside, -jnp.inf, logarithm)


def no_count(y, most=jnp.inf) -> Array:
    """Where y is no whole number from 0 to `most`."""
    return (y < 0) | (y > most) | (y > jnp.floor(y)) | (y == jnp.inf)


def within_unit(q, quantile) -> Array:
    """A quantile of probabilities, NaN outside of [0, 1]."""
    return jnp.where((q >= 0) & (q <= 1), quantile, jnp.nan)
