"""What the code of generated calls names: answers, and what it asks of arrays.

In: arguments of a call, and outputs of its program. Out: whether the program may have them, and outputs where
they belong. No compiler is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np


class _Miss:
    """The class of what there is one of: where it was pickled with a dispatcher, it is found by name."""

    def __reduce__(self):
        return "MISS"


#: What a dispatcher returns for a call that it does not know.
MISS = _Miss()


class _Absent:
    """What there is where a variable is not defined."""

    def __repr__(self):
        return "<not defined>"


ABSENT = _Absent()

try:
    from numpy._core._ufunc_config import _extobj_contextvar

    read_state: Callable = _extobj_contextvar.get
except ImportError:  # another NumPy keeps it elsewhere
    read_state = np.geterr

#: The state that was found to be silent last; states never change, `np.seterr` makes new ones.
silent: list = [None]


def is_silent() -> bool:
    """Whether errors are ignored or give warnings; looks at the state again."""
    if set(np.geterr().values()) <= {"ignore", "warn"}:
        silent[0] = read_state()
        return True
    return False


is_silent()  # as it is by default, so that the first call need not look

#: Work that `np.shares_memory` may spend on two arrays whose bounds overlap.
_OVERLAP_WORK = 10_000
#: Strides of an argument for which it is remembered whether its elements share memory.
_MAX_STRIDES = 100


class SelfOverlaps(dict):
    """Strides -> whether elements of an array of one shape may share memory with each other: whether some
    axis steps over less than the axes inside of it take."""

    def __init__(self, shape: tuple[int, ...], itemsize: int):
        super().__init__()
        self.shape, self.itemsize = shape, itemsize

    def __missing__(self, strides: tuple[int, ...]) -> bool:
        taken, found = self.itemsize, False
        for stride, extent in sorted((abs(stride), n) for stride, n in zip(strides, self.shape) if n > 1):
            found |= stride < taken
            taken += stride * (extent - 1)
        if len(self) >= _MAX_STRIDES:
            self.clear()
        self[strides] = found
        return found


def overlaps(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays may share an element."""
    if not np.may_share_memory(one, other):
        return False
    try:
        return np.shares_memory(one, other, max_work=_OVERLAP_WORK)
    except np.exceptions.TooHardError:
        return True


def settle(outs: Sequence[np.ndarray], pairs: Sequence[tuple[int, np.ndarray]]) -> list[np.ndarray]:
    """Outputs of a program that put them into other memory of the caller than where they belong.

    pairs: (number of an output, the array whose contents it is)."""
    outs = list(outs)
    targets = dict(pairs)
    given = {id(array) for array in targets.values()}
    for k, out in enumerate(outs):
        if id(out) in given and out is not targets.get(k):
            outs[k] = out.copy()
    for k, array in pairs:
        if outs[k] is not array:
            np.copyto(array, outs[k])
            outs[k] = array
    return outs
