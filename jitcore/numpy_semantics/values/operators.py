"""Python's operators of arrays and NumPy scalars: each is a ufunc.

In: the class of a handle. Out: its operators, which `mode` installs. Products and
quotients of Python's complex numbers and NumPy's complex scalars have the bits that CPython and NumPy's
scalars give; those of NumPy's arrays may be others: their loops fuse products and sums where the processor
can.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitcore import lax
from jitcore.array import Array
from jitcore.numpy_semantics.errors import needs_value
from jitcore.rewriter.handles import Handle


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


OPERATORS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "matmul": np.matmul,
    "floordiv": np.floor_divide, "mod": np.remainder, "divmod": np.divmod, "pow": np.power,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift,
    "rshift": np.right_shift, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal}
UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
ACCEPTED = (Handle, np.ndarray, np.generic, bool, int, float, complex, list, tuple, Array)


def refuse(wanted: str):
    """A method by which Python asks for a value. Raises: NeedsValue."""

    def method(self, *args):
        raise needs_value(self, wanted)

    return method


class WithoutValue:
    """What Python cannot have of a traced value. Raises: NeedsValue."""

    __slots__ = ()
    __bool__ = refuse("bool(x)")
    __int__ = __index__ = refuse("int(x)")
    __float__ = refuse("float(x)")
    __complex__ = refuse("complex(x)")
    __hash__ = refuse("hash(x)")  # type: ignore[assignment]
    __array__ = refuse("np.array(x)")
    __str__ = __format__ = refuse("str(x)")
