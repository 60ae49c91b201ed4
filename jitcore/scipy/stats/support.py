"""What distributions are made of: operands of one dtype, densities that are zero outside of the support.

In: points and parameters, which broadcast. Out: Arrays of one floating dtype; logarithms are -inf outside.

A parameter that no distribution has is NaN, as in SciPy, and so is all that is computed from it or from a
point that is NaN. Comparisons with NaN are false: what is asked is whether a point lies outside, not whether
it lies inside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import promote_arrays

P = ParamSpec("P")


def promote(name: str, *args, complex_too: bool = False) -> list[Array]:
    """Raises: TypeError for complex numbers, which have no order."""
    arrays = promote_arrays(name, *args, to=dtypes.inexact_dtype)
    if not complex_too and jnp.iscomplexobj(arrays[0]):
        raise TypeError(f"{name} of real numbers, got {arrays[0].dtype}")
    return arrays


def standardize(name: str, x, loc, scale, *shapes, complex_too: bool = False) -> list[Array]:
    """(x - loc) / scale, the scale, and shape parameters: NaN where scale or shape is not positive."""
    x, loc, scale, *shapes = promote(name, x, loc, scale, *shapes, complex_too=complex_too)
    return [(x - loc) / positive(scale), scale, *map(positive, shapes)]


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


_DOCSTRINGS = {"pdf": "Density at x.", "pmf": "Probability of k.", "cdf": "Probability of a number up to x.",
               "sf": "Probability of a number above x.", "logcdf": "Logarithm of `cdf`.",
               "logsf": "Logarithm of `sf`."}


def exp_of(logarithm: Callable[P, Array]) -> Callable[P, Array]:
    """`pdf` of `logpdf`."""
    return _compose(jnp.exp, logarithm, logarithm.__name__.removeprefix("log"))


def log_of(function: Callable[P, Array]) -> Callable[P, Array]:
    """`logcdf` of `cdf`."""
    return _compose(jnp.log, function, f"log{function.__name__}")


def _compose(outer: Callable[[Array], Array], function: Callable[P, Array], name: str) -> Callable[P, Array]:
    @functools.wraps(function)
    def composed(*args: P.args, **kwargs: P.kwargs) -> Array:
        return outer(function(*args, **kwargs))

    composed.__name__ = composed.__qualname__ = name
    composed.__doc__ = _DOCSTRINGS[name]
    return composed


def within_unit(q, quantile) -> Array:
    """A quantile of probabilities, NaN outside of [0, 1]."""
    return jnp.where((q >= 0) & (q <= 1), quantile, jnp.nan)
