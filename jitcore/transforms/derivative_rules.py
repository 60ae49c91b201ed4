"""What rules of `jvp` and `transpose` are made of.

In: derivatives as short functions, or the fact that a primitive is linear in some operands. Out: functions to
put on `Primitive.jvp` and `Primitive.transpose`; their forms are explained in `jvp.py` and `transpose.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.primitive import registry
from jitcore.transforms.tangents import (Masked, add_derivatives, instantiate, is_zero, make_sparse, unmask,
                                         zero_like)
from jitcore.transforms.transpose import is_linear


# -- jvp ----------------------------------------------------------------------------------------------------
def jvp_elementwise(*derivatives: Callable | None) -> Callable:
    """The rule of an elementwise primitive.

    Args:
        derivatives: for each operand `d(t, ans, *operands, **params)`, the tangent of the result by a tangent
            t of this operand, which may be a `Zero`; None where it is zero."""

    def rule(primitive, primals, tangents, /, **params):
        ans = primitive.bind(*primals, **params)
        terms = [d(t, ans, *primals, **params) for d, t in zip(derivatives, tangents)
                 if d is not None and not is_zero(t)]
        total = functools.reduce(add_derivatives, terms, zero_like(ans))
        return ans, total if is_zero(total) else broadcast_to(total, aval_of(ans))

    return rule


def jvp_zero(primitive, primals, tangents, /, **params):
    """The rule of primitives whose derivative is zero wherever there is one: `floor`, comparisons."""
    outs = primitive.bind(*primals, **params)
    return outs, [zero_like(out) for out in outs] if primitive.multiple_results else zero_like(outs)


def jvp_linear(*places: int) -> Callable:
    """The rule of a primitive that is linear in the operands at these places together; by default in all.

    The other operands are indices and the like, by which there is no derivative."""

    def rule(primitive, primals, tangents, /, **params):
        outs = primitive.bind(*primals, **params)
        linear = [not places or place in places for place in range(len(primals))]
        if all(is_zero(t) for t, flag in zip(tangents, linear) if flag):
            return outs, [zero_like(out) for out in outs] if primitive.multiple_results else zero_like(outs)
        operands = [instantiate(t) if flag else x for x, t, flag in zip(primals, tangents, linear)]
        return outs, primitive.bind(*operands, **params)

    rule.is_linear = True  # what all orders of derivatives need to know
    return rule


def jvp_multilinear(*places: int) -> Callable:
    """The rule of a product, linear in each of the operands at these places by itself; by default in all."""

    def rule(primitive, primals, tangents, /, **params):
        ans = primitive.bind(*primals, **params)
        terms = [primitive.bind(*primals[:place], t, *primals[place + 1 :], **params)
                 for place, t in enumerate(tangents)
                 if not is_zero(t) and (not places or place in places)]
        if not terms:
            return ans, zero_like(ans)
        return ans, functools.reduce(add_derivatives, terms)

    return rule


# -- transpose ----------------------------------------------------------------------------------------------
def transpose_unary(transposed: Callable) -> Callable:
    """The rule of a primitive that is linear in its first operand: `transposed(ct, operand, **params)`, where
    the operand is a `Linear` and tells its aval. Other operands are indices and the like: `*rest`."""

    def rule(primitive, ct, operands, /, **params):
        operand, *rest = operands
        return [transposed(ct, operand, *rest, **params), *[None] * len(rest)]

    return rule


def transpose_elementwise(*transposed: Callable | None, sparse: tuple = ()) -> Callable:
    """The rule of an elementwise primitive that is linear in some operands together.

    Args:
        transposed: for each operand `f(ct, *operands, **params)`, its cotangent before the sum over elements
            that a scalar operand was broadcast to; None where the primitive is not linear.
        sparse: the same for a cotangent that is sparse, where factors may be infinite."""

    def rule(primitive, ct, operands, /, **params):
        masked = ct if isinstance(ct, Masked) else Masked(ct)
        protects = sparse and masked.is_sparse and any(map(_may_be_infinite, operands))

        def pull_back(f, x):
            found = f(masked.value, *operands, **params)
            return unbroadcast(found if masked is not ct else masked._replace(value=found), x.aval)

        return [pull_back(f, x) if f is not None and is_linear(x) else None
                for f, x in zip(sparse if protects else transposed, operands)]

    return rule


def _may_be_infinite(x) -> bool:
    """Whether an operand is a value that is not known to be finite."""
    return not is_linear(x) and (isinstance(x, Array) or not np.all(np.isfinite(x)))


# -- shapes -------------------------------------------------------------------------------------------------
def broadcast_to(x, aval: ShapedArray):
    """A scalar in the shape of an aval; x itself when it has that shape."""
    if aval_of(x).shape == aval.shape:
        return x
    return registry["broadcast_in_dim"].bind(x, shape=aval.shape, broadcast_dimensions=())


def unbroadcast(ct, aval: ShapedArray):
    """The cotangent of an operand of this type that was broadcast as a scalar."""
    shape = aval.shape if is_zero(ct) else aval_of(ct.value if isinstance(ct, Masked) else ct).shape
    if shape == aval.shape:
        return ct
    total = registry["reduce_sum"].bind(unmask(ct), axes=tuple(range(len(shape))))
    return make_sparse(total) if isinstance(ct, Masked) else total

