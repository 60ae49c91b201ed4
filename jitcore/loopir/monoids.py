"""The monoids that reductions and scans combine with.

In: an operation's name and a dtype. Out: its identity, with which a running value begins.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes
from jitcore.lax.reduce import MONOIDS

#: Operations whose running values begin as those of a monoid.
_MONOID_OF = {"logaddexp": "max", "argmax": "max", "argmin": "min"}


def identity_of(op: str, dtype):
    """Combined with any value of the dtype it gives that value. Of "argmax" and "argmin": what any value is
    better than, or equal to.

    Raises: KeyError for what is no monoid."""
    found = MONOIDS[_MONOID_OF.get(op, op)].identity(np.dtype(dtype)).item()
    is_bound = isinstance(found, complex) and np.isinf(found.real)  # by both parts
    return complex(found.real, found.real) if is_bound else found


def scan_start_of(op: str, dtype):
    """What a running total begins with: combined with anything, -0.0 too, it gives just that."""
    dtype = np.dtype(dtype)
    if op == "add" and dtype.kind == "c":
        return complex(-0.0, -0.0)
    return -0.0 if op == "add" and dtypes.is_floating(dtype) else identity_of(op, dtype)


def is_summed(op: str, dtype: np.dtype) -> bool:
    """Whether a combination is a sum that rounds, of numbers of 4 or 8 bytes."""
    return op == "add" and dtype.kind in "fc" and dtypes.part_size(dtype) in (4, 8)
