"""Tangents and cotangents: their types, symbolic zeros, and sums.

In: avals of primals, derivatives that may be known to be zero. Out: avals and values of derivatives. A
derivative of an inexact array has its shape and dtype; one of integers or bools has no information, its dtype
is `float0`. What is known to be zero is a `Zero`, and costs no operation. A cotangent that a selection makes
zero in places, or an index, a sort, an update that does not take elements, is a `Masked` until something
needs its elements.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.array import ConcreteArray
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.primitive import registry


class Zero(NamedTuple):
    """A derivative that is zero everywhere. aval: of the derivative."""

    aval: ShapedArray


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """The type of a derivative of (or by) a value of this type."""
    return aval if dtypes.has_derivatives(aval.dtype) else ShapedArray(aval.shape, dtypes.float0)


def zero_like(value) -> Zero:
    """The zero tangent of a value."""
    return Zero(tangent_aval(aval_of(value)))


def has_tangent(value) -> bool:
    """Whether a value can have a tangent other than zero."""
    return dtypes.has_derivatives(aval_of(value).dtype)


def is_zero(derivative) -> bool:
    return isinstance(derivative, Zero)


def instantiate(derivative):
    """The derivative as an array, also where it is zero. One of `float0` is an ndarray, for users only."""
    if not isinstance(derivative, Zero):
        return derivative
    aval = derivative.aval
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    return fill(aval, 0)


def fill(aval: ShapedArray, number: int):
    """An array of one number, of this type."""
    scalar = np.asarray(number, aval.dtype)[()]
    if aval.weak_type:
        scalar = ConcreteArray(np.asarray(number, aval.dtype), True)
    if not aval.shape:
        return scalar
    return registry["broadcast_in_dim"].bind(scalar, shape=aval.shape, broadcast_dimensions=())


def add_derivatives(a, b) -> Any:
    """The sum of two derivatives of one type."""
    if isinstance(a, Zero):
        return b
    if isinstance(b, Zero):
        return a
    if isinstance(a, Masked) and isinstance(b, Masked):
        return _add_masked(a, b)
    a, b = unmask(a), unmask(b)
    dtype = aval_of(a).dtype
    if not dtypes.is_narrow(dtype):
        return registry["add_any"].bind(a, b)
    convert = registry["convert_element_type"].bind
    total = registry["add_any"].bind(*(convert(x, new_dtype=dtypes.float32, weak_type=False) for x in (a, b)))
    return convert(total, new_dtype=dtype, weak_type=False)


# -- masks --------------------------------------------------------------------------------------------------
class Mask(NamedTuple):
    """Where `which` selects `case`, of so many cases."""

    which: Any
    case: int
    count: int

    def is_like(self, other: Mask) -> bool:
        return self.which is other.which and self.case == other.case

    def apply(self, x):
        """x there, and zero elsewhere."""
        zero = np.zeros((), aval_of(x).dtype)[()]
        cases = [x if case == self.case else zero for case in range(self.count)]
        return registry["select_n"].bind(self.which, *cases)


class Masked(NamedTuple):
    """A cotangent that is `value` where all masks hold, and zero elsewhere.

    A linear elementwise operation maps zeros to zeros, so that masks can wait behind it. Then they also cover
    what is not finite: the cotangent of x in `where(x > 0, sqrt(x), 0)` is zero at 0, not 0 * inf.

    is_sparse: zeros of the value say that nothing depends on these elements, which were not taken: products
        are made by `mul_sparse`, which keeps them. There may be no masks then."""

    value: Any
    masks: tuple[Mask, ...] = ()
    is_sparse: bool = False


def make_sparse(cotangent) -> Masked:
    """A cotangent (no `Zero`) whose zeros stay."""
    return Masked(unmask(cotangent), (), True)


def mask(cotangent, which, case: int, count: int) -> Masked:
    """The cotangent where `which` selects this case of `count` cases."""
    found = cotangent if isinstance(cotangent, Masked) else Masked(cotangent)
    return found._replace(masks=(*found.masks, Mask(which, case, count)))


def _add_masked(a: Masked, b: Masked):
    """The sum stays masked where the masks agree; what two cases of a selection get is one selection."""
    apart = [(p, q) for p, q in zip(a.masks, b.masks) if not p.is_like(q)]
    is_sparse = a.is_sparse and b.is_sparse
    if len(a.masks) == len(b.masks) and not apart:
        return Masked(add_derivatives(a.value, b.value), a.masks, is_sparse)
    if len(a.masks) == len(b.masks) and len(apart) == 1:
        ((p, q),) = apart
        if p.which is q.which and p.count == 2:
            cases = (a.value, b.value) if p.case == 0 else (b.value, a.value)
            value = registry["select_n"].bind(p.which, *cases)
            common = tuple(mask for mask in a.masks if mask is not p)
            return Masked(value, common, is_sparse) if common or is_sparse else value
    return make_sparse(add_derivatives(unmask(a), unmask(b)))


def split_masks(cotangents: Sequence) -> tuple[list, tuple[Mask, ...]]:
    """Cotangents without the masks that all of them have, and those masks. There may be `Zero`s."""
    first, *others = (ct for ct in cotangents if not isinstance(ct, Zero))
    common = first.masks if isinstance(first, Masked) else ()
    for other in others:
        masks = other.masks if isinstance(other, Masked) else ()
        if len(masks) != len(common) or not all(map(Mask.is_like, masks, common)):
            return list(map(unmask, cotangents)), ()
    return [ct.value if isinstance(ct, Masked) else ct for ct in cotangents], common


def unmask(cotangent):
    """The cotangent as an array (or a `Zero`)."""
    if not isinstance(cotangent, Masked):
        return cotangent
    return functools.reduce(lambda x, mask: mask.apply(x), cotangent.masks, cotangent.value)
