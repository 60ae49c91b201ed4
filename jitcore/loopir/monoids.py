"""The monoids that reductions and scans combine with.

In: an operation's name and a dtype. Out: its identity, with which a running value begins.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes

__all__ = ["identity_of", "scan_start_of"]


def identity_of(op: str, dtype):
    """Combined with any value of the dtype it gives that value. Of "argmax" and "argmin": what any value is
    better than, or equal to.

    Raises: KeyError for what is no monoid."""
    return _IDENTITIES[op](np.dtype(dtype))


def scan_start_of(op: str, dtype):
    """What a running total begins with: combined with anything, -0.0 too, it gives just that."""
    dtype = np.dtype(dtype)
    if op == "add" and dtype.kind == "c":
        return complex(-0.0, -0.0)
    return -0.0 if op == "add" and dtypes.is_floating(dtype) else identity_of(op, dtype)


def _lowest(dtype: np.dtype):
    if dtype == dtypes.bool_:
        return False
    if dtype.kind == "c":
        return complex(-np.inf, -np.inf)
    return -np.inf if dtypes.is_floating(dtype) else int(np.iinfo(dtype).min)


def _highest(dtype: np.dtype):
    if dtype == dtypes.bool_:
        return True
    if dtype.kind == "c":
        return complex(np.inf, np.inf)
    return np.inf if dtypes.is_floating(dtype) else int(np.iinfo(dtype).max)


_IDENTITIES = {
    "add": lambda dtype: 0,
    "mul": lambda dtype: 1,
    "max": _lowest,
    "min": _highest,
    "logaddexp": _lowest,
    "argmax": _lowest,
    "argmin": _highest,
    "or": lambda dtype: 0,
    "xor": lambda dtype: 0,
    "and": lambda dtype: True if dtype == dtypes.bool_ else -1,
}
