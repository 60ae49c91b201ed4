"""Bitwise primitives: logic, shifts and counts on the bits of integers and bools.

In: operands of one dtype and one shape (scalars broadcast). Out: one array of that shape. Shifts by the
width or more give 0, or the sign, as in XLA.
"""

from __future__ import annotations

import numpy as np

from jitcore.lax.define import elementwise


@elementwise(impl=np.invert, hlo="not", accepts="biu")
def not_(x):
    """Bitwise (logical for bools) complement."""


@elementwise(impl=np.bitwise_and, hlo="and", accepts="biu")
def and_(x, y):
    """Bitwise and."""


@elementwise(impl=np.bitwise_or, hlo="or", accepts="biu")
def or_(x, y):
    """Bitwise or."""


@elementwise(impl=np.bitwise_xor, hlo="xor", accepts="biu")
def xor(x, y):
    """Bitwise exclusive or."""


def _bits(dtype) -> int:
    return dtype.itemsize * 8


def _unsigned(x):
    return x.view(np.dtype(f"u{x.dtype.itemsize}"))


def _in_range(x, y):
    return (_unsigned(y) < _bits(x.dtype)).astype(bool)


@elementwise(impl=lambda x, y: np.where(_in_range(x, y), np.left_shift(x, y), np.zeros_like(x)),
             hlo="shift_left", accepts="iu")
def shift_left(x, y):
    """`x << y`; 0 when y is the width or more."""


@elementwise(impl=lambda x, y: np.where(_in_range(x, y), np.right_shift(_unsigned(x), _unsigned(y)),
                                        np.zeros_like(_unsigned(x))).view(x.dtype),
             hlo="shift_right_logical", accepts="iu")
def shift_right_logical(x, y):
    """`x >> y` filling with zeros; 0 when y is the width or more."""


@elementwise(
    impl=lambda x, y: (
        np.right_shift(x, np.where(_in_range(x, y), y, _bits(x.dtype) - 1).astype(x.dtype))
        if x.dtype.kind == "i"
        else np.where(_in_range(x, y), np.right_shift(x, y), np.zeros_like(x))),
    hlo="shift_right_arithmetic",
    accepts="iu")
def shift_right_arithmetic(x, y):
    """`x >> y` filling with the sign bit."""


@elementwise(impl=lambda x: np.bitwise_count(_unsigned(x)).astype(x.dtype), hlo="popcnt", accepts="iu")
def population_count(x):
    """Number of set bits."""


def _count_leading_zeros(x):
    bits = _unsigned(x)
    count = np.full(x.shape, _bits(x.dtype), x.dtype)
    for position in range(_bits(x.dtype)):
        count[np.asarray((bits >> np.array(position, bits.dtype)) & np.array(1, bits.dtype), bool)] = (
            _bits(x.dtype) - 1 - position)
    return count


@elementwise(impl=_count_leading_zeros, hlo="count_leading_zeros", accepts="iu")
def clz(x):
    """Number of leading zero bits."""
