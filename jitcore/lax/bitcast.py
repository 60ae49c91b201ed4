"""Bits read as another dtype: `bitcast_convert_type`.

In: an array. Out: the same bits, as elements of another dtype; where its width differs, a last axis holds the
parts of an element, lowest bits first.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.lax.bits import shift_left, shift_right_logical
from jitcore.lax.define import define
from jitcore.lax.elementwise import convert_element_type
from jitcore.lax.reduce import reduce_or
from jitcore.lax.shape import broadcast_in_dim
from jitcore.transforms.batch_rules import batch_elementwise
from jitcore.transforms.derivative_rules import jvp_zero


def _bitcast_aval(x, *, new_dtype):
    if x.dtype.itemsize != np.dtype(new_dtype).itemsize:
        raise TypeError(f"bitcast_convert_type needs dtypes of one width, got {x.dtype.name} and {new_dtype}")
    return ShapedArray(x.shape, new_dtype)


@define("bitcast_convert_type", impl=lambda x, *,
        new_dtype: np.ascontiguousarray(x).view(new_dtype).reshape(x.shape), aval=_bitcast_aval, jvp=jvp_zero,
        lower=lambda builder, x, *, new_dtype: builder.bitcast(x, new_dtype), batch=batch_elementwise,
        hlo="bitcast_convert", family="elementwise", arity=1)
def bitcast_convert_type(operand, new_dtype) -> Array:
    """The same bits read as another dtype.

    Args:
        operand: of any dtype but, where widths differ, bool and complex ones. For a dtype that is k times as
            wide, its last axis has k elements, lowest bits first.
        new_dtype: of the result.

    Returns: the operand's shape; without the last axis for a wider dtype, with one of k for one that is k
        times narrower. Derivatives are zero.
    Raises: TypeError for dtypes that it does not take; ValueError for a last axis of another extent.
    Source: XLA's BitcastConvertType.

    Example:
        >>> import jitcore.numpy as jnp
        >>> from jitcore import lax
        >>> lax.bitcast_convert_type(jnp.float32(1), jnp.uint16)
        Array([    0, 16256], dtype=uint16)"""
    aval, new_dtype = aval_of(operand), dtypes.canonicalize(new_dtype)
    for dtype in (aval.dtype, new_dtype):
        if dtypes.is_key(dtype):
            raise ValueError(f"unexpected input: dtype={dtype}")
    own, size = aval.dtype.itemsize, new_dtype.itemsize
    bind = bitcast_convert_type.primitive.bind
    if own == size:
        return bind(operand, new_dtype=new_dtype)
    if {dtypes.kind_of(aval.dtype), dtypes.kind_of(new_dtype)} & {"b", "c"}:
        raise TypeError(f"bitcast_convert_type between widths does not take {aval.dtype.name} and "
                        f"{new_dtype.name}")
    bits, wanted = np.dtype(f"u{own}"), np.dtype(f"u{size}")
    bits_of = operand if aval.dtype == bits else bind(operand, new_dtype=bits)
    if own > size:
        shape = (*aval.shape, own // size)
        shifts = np.arange(own // size).astype(bits) * bits.type(8 * size)
        spread = broadcast_in_dim(bits_of, shape, tuple(range(aval.ndim)))
        parts = shift_right_logical(spread, broadcast_in_dim(shifts, shape, (aval.ndim,)))
        found = convert_element_type(parts, wanted)
    else:
        count = size // own
        if not aval.shape or aval.shape[-1] != count:
            raise ValueError(f"bitcast_convert_type from {aval.long()} to {new_dtype.name} needs a last "
                             f"axis of {count} elements")
        shifts = np.arange(count).astype(wanted) * wanted.type(8 * own)
        wide = convert_element_type(bits_of, wanted)
        found = reduce_or(shift_left(wide, broadcast_in_dim(shifts, aval.shape, (aval.ndim - 1,))),
                          (aval.ndim - 1,))
    return found if new_dtype == wanted else bind(found, new_dtype=new_dtype)
