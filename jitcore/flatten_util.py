"""A pytree of arrays as one vector, and back: what optimizers and `hessian` of whole models work on."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.core import source
from jitcore.core.jaxpr import aval_of
from jitcore.docstrings import document
from jitcore.tree_util import tree_flatten

__all__ = ["ravel_pytree"]


@source.api_boundary
def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Array], Any]]:
    """All elements of a pytree as one vector, and the function that puts a vector back into such a tree.

    Args:
        pytree: of arrays and scalars. Dtypes are promoted to a common one, and converted on the way back.

    Returns: (vector, unravel). `unravel` raises ValueError for a vector of another length, TypeError for
        another dtype where leaves had but one.

    >>> vector, unravel = ravel_pytree({"w": jnp.ones((2, 2)), "b": 0.0})    # 5 elements"""
    leaves, tree = tree_flatten(pytree)
    avals = list(map(aval_of, leaves))
    if not leaves:
        return jnp.zeros(0), lambda vector: tree.unflatten(())
    vector = jnp.concatenate([jnp.ravel(jnp.asarray(leaf)) for leaf in leaves])
    dtype = vector.dtype
    ends = list(itertools.accumulate(aval.size for aval in avals))
    same = all(aval.dtype == dtype for aval in avals)

    @source.api_boundary
    def unravel(vector):
        given = aval_of(vector)
        if given.shape != (ends[-1],):
            raise ValueError("The unravel function expected an input of shape "
                             f"{(ends[-1],)}, but got {given.shape}")
        if same and given.dtype != dtype and not dtypes.differ_in_width(given.dtype, dtype):
            raise TypeError("unravel function given array of dtype "
                            f"{given.dtype}, but expected dtype {dtype}")
        parts = zip(avals, [0, *ends[:-1]], ends)
        pieces = [(jnp.reshape(vector[start:end], aval.shape), aval.dtype) for aval, start, end in parts]
        return tree.unflatten([x if x.dtype == own else x.astype(own) for x, own in pieces])

    return vector, unravel


document(sys.modules[__name__], __all__)
