"""`compress`: the elements where a mask holds, side by side.

In: an array and a mask of its shape. Out: an array of this shape in which each row, along the last axis,
begins with those elements of the row where the mask holds, in their order. What follows is not specified.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.lax.cumulative import cumsum
from jitcore.lax.define import define
from jitcore.lax.elementwise import convert_element_type, select_n, sub
from jitcore.lax.indexing.dimension_numbers import GatherDimensionNumbers, GatherScatterMode
from jitcore.lax.indexing.gather_scatter import gather
from jitcore.lax.shape import reshape
from jitcore.transforms.batch_rules import rebind
from jitcore.transforms.derivative_rules import jvp_linear, transpose_unary
from jitcore.transforms.tangents import fill


def _run_compress(x, mask):
    order = np.argsort(~mask, axis=-1, kind="stable")
    return np.take_along_axis(x, order, -1)


def _compress_aval(x: ShapedArray, mask: ShapedArray) -> ShapedArray:
    if mask.dtype != dtypes.bool_:
        raise TypeError(f"compress requires a mask of bools, got dtype {mask.dtype.name}.")
    if not x.shape or not x.shape == mask.shape:
        raise TypeError(f"compress requires an array and a mask of one shape with axes, got {x.shape} and "
                        f"{mask.shape}.")
    return x


def _hlo_compress(b, x, mask):
    """A stable sort by the mask."""
    keys = [b.map("not", mask), x]
    kinds = [((), value.dtype) for value in keys for _ in range(2)]
    body = b.region(kinds, lambda one, other, *_: [b.map("and", b.map("not", one), other)], is_closed=True)
    return b.ops("sort", keys, [(x.shape, value.dtype) for value in keys], [body], dimension=x.ndim - 1,
                 is_stable=True)[1]


def _transpose_compress(ct, x, mask):
    """Each element's cotangent lies where the element went."""
    dims = tuple(range(len(x.aval.shape) - 1))
    last = len(dims)
    numbers = GatherDimensionNumbers((), (last,), (last,), dims, dims)
    places = sub(cumsum(convert_element_type(mask, dtypes.int64), last), np.int64(1))
    indices = reshape(places, (*x.aval.shape, 1))
    found = gather(ct, indices, numbers, (1,) * (last + 1), mode=GatherScatterMode.CLIP)
    return select_n(mask, fill(aval_of(found), 0), found)


@define("compress", impl=_run_compress, aval=_compress_aval, jvp=jvp_linear(0),
        transpose=transpose_unary(_transpose_compress), zeros="made", batch=rebind(),
        lower=lambda builder, x, mask: builder.compress(x, mask), hlo=_hlo_compress,
        reads_once=lambda: (0, 1), updates_operand=True, stores_result=True)
def compress(operand, mask) -> Array:
    """operand's elements where a mask holds, first in each row along the last axis, in their order.

    Args:
        operand: array of any dtype with at least one axis; mask: bools of operand's shape.
    Returns: an array of operand's shape; elements behind those of the mask are not specified.
    Raises: TypeError for a mask that is not of bools, or of another shape.
    Cost: one sweep; calls with one mask share it."""
    return compress.primitive.bind(operand, mask)
