"""Donated arguments: which memory a program may overwrite.

In: the arrays of a call whose caller gave some away. Out: the same arrays, copied where somebody else could
still look at the memory.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitcore import errors
from jitcore.array import ConcreteArray, copy_data
from jitcore.core.source import find_user_frame
from jitcore.dispatch.program import Program

# Who refers to an ndarray that only its Array knows, while `_has_other_users` looks at it: the Array, the
# list of values, and the argument of getrefcount.
_OWN_REFERENCES = 3


def claim_donated(positions: Sequence[int], leaves: Sequence[Any], values: list[np.ndarray]) -> None:
    """Replaces those `values` that must not be overwritten by copies: the caller's ndarrays, and Arrays whose
    memory is seen through a view or an export.

    Raises: JitcoreRuntimeError when an array is donated and passed once more in the same call."""
    if len(set(map(id, values))) < len(values):
        _refuse_repetition(positions, values)
    for i in positions:
        if not isinstance(values[i], np.ndarray):  # a buffer, which its runtime takes over or copies
            continue
        if leaves[i].__class__ is not ConcreteArray or _has_other_users(values, i):
            values[i] = copy_data(values[i])


def _refuse_repetition(positions: Sequence[int], values: list[np.ndarray]) -> None:
    first_use: dict[int, int] = {}
    for i in range(len(values)):
        j = first_use.setdefault(id(values[i]), i)
        if i != j and (i in positions or j in positions):
            raise errors.JitcoreRuntimeError(
                "Attempt to use a buffer that was previously donated in the same call (flattened arguments "
                f"{j} and {i} are the same array).\nTo fix: pass a copy, x.copy(), or do not donate it."
            )


def _has_other_users(values: list[np.ndarray], i: int) -> bool:
    # The item is not put into a variable, which would be one more reference in some versions of Python.
    return values[i].base is not None or sys.getrefcount(values[i]) > _OWN_REFERENCES


def delete_donated(positions: Sequence[int], leaves: Sequence[Any]) -> None:
    """Marks the Arrays whose memory was given away as deleted."""
    for i in positions:
        if isinstance(leaves[i], ConcreteArray):
            leaves[i].delete()


def warn_unusable(program: Program) -> None:
    """Warns, at the user's line, when a donated argument is read but no result can take over its memory."""
    frame = find_user_frame()
    if program.unusable and frame is not None:
        texts = ", ".join(aval.long() for aval in program.unusable)
        message = (f"Some donated buffers were not usable: {texts}.\n"
                   f"No result of {program.traced.fun_name} has that shape and dtype.")
        warnings.warn_explicit(message, UserWarning, frame.f_code.co_filename, frame.f_lineno)
