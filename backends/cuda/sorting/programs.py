"""Programs by sorts of rows: what stands around `SORT` so that it computes `sort` and `top_k`.

In: operands. Out: what `libraries.programs` writes in the place of the equations of `TABLE`. The axis comes
last, complex keys are two, and of several keys the least significant one is sorted by first. Elements follow
by the places that were found: all of this becomes kernels, which are fused with what is around.
"""

from __future__ import annotations

from typing import Any

from jitcore import dtypes, numpy as jnp
from jitcore.backends.cuda.libraries.bindings import Routine
from jitcore.backends.cuda.libraries.programs import Row
from jitcore.backends.cuda.sorting.radix import LONGEST
from jitcore.backends.gpu.tuning import Tuning
from jitcore.core.jaxpr import ShapedArray
from jitcore.lax.sort import take_along

#: Of an array: its rows in order, and the places where the elements were. is_top: the largest come first.
SORT = Routine("sort_rows", None)


def _sort_rows(x, is_top: bool = False) -> list:
    return SORT.bind(x, outs=((x.shape, x.dtype), (x.shape, dtypes.int32)), is_top=is_top)


def _sort(*operands, dimension: int, num_keys: int, is_stable: bool) -> list:
    rows, order = [jnp.moveaxis(x, dimension, -1) for x in operands], None
    last, keys = rows[0].ndim - 1, []
    for x in rows[:num_keys]:
        keys += [x.real, x.imag] if dtypes.is_complex(x.dtype) else [x]
    for key in reversed(keys):
        if order is None:
            first, order = _sort_rows(key)
        else:
            first, places = _sort_rows(take_along(key, order, last))
            order = take_along(order, places, last)
    found = [first if x is keys[0] else take_along(x, order, last) for x in rows]
    return [jnp.moveaxis(x, -1, dimension) for x in found]


def _top_k(x, *, k: int, axis: int) -> list:
    return [jnp.moveaxis(found[..., :k], -1, axis) for found in _sort_rows(jnp.moveaxis(x, axis, -1), True)]


def _fits(tuning: Tuning, x: ShapedArray, *others: ShapedArray, **params: Any) -> bool:
    """Whether rows are short enough: the host sorts longer ones."""
    return bool(x.shape) and x.shape[params["axis" if "axis" in params else "dimension"]] < LONGEST


TABLE = {"sort": Row(None, _sort, _fits), "top_k": Row(None, _top_k, _fits)}
