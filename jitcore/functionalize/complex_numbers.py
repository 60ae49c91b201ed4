"""Products and quotients of Python's complex numbers and NumPy's complex scalars.

In: two arrays without axes of one complex dtype. Out: one, with the bits that CPython and NumPy's scalars
give. Those of NumPy's arrays may be others: their loops fuse products and sums where the processor can.
"""

from __future__ import annotations

from jitcore import lax
from jitcore.array import Array


def as_arrays(x, y) -> tuple[Array, Array]:
    """Both as arrays, where one is a number."""
    like = x if isinstance(x, Array) else y
    return tuple(v if isinstance(v, Array) else lax.full_like(like, v) for v in (x, y))


def multiply_parts(x, y):
    """The product, each product of parts rounded."""
    (a, b), (c, d) = ((lax.real(z), lax.imag(z)) for z in (x, y))
    return lax.complex(lax.sub(lax.mul(a, c), lax.mul(b, d)), lax.add(lax.mul(a, d), lax.mul(b, c)))


def divide_parts(x, y):
    """The quotient as CPython makes it; y is not zero."""
    (a, b), (c, d) = ((lax.real(z), lax.imag(z)) for z in (x, y))
    swaps = lax.lt(lax.abs(c), lax.abs(d))
    a, b, c, d = (lax.select(swaps, *pair) for pair in ((b, a), (a, b), (d, c), (c, d)))
    ratio = lax.div(d, c)
    size = lax.add(c, lax.mul(d, ratio))
    re, part = lax.div(lax.add(a, lax.mul(b, ratio)), size), lax.mul(a, ratio)
    im = lax.select(swaps, lax.sub(part, b), lax.sub(b, part))
    return lax.complex(re, lax.div(im, size))
