"""What the code of generated calls asks of arrays.

In: arguments of a call, and outputs of its program. Out: whether the program may have them, and outputs where
they belong. No compiler is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.lib.array_utils import byte_bounds

try:
    from numpy._core._ufunc_config import _extobj_contextvar as state_variable

    read_state: Callable = state_variable.get
except ImportError:  # another NumPy keeps it elsewhere
    state_variable, read_state = None, np.geterr

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


def any_overlap(written: Sequence[np.ndarray], read: Sequence[np.ndarray]) -> bool:
    """Whether an array that is written may share an element with another one, written or read. Cost: of
    sorting them by their places, where some are views."""
    if all([array.base is None for array in (*written, *read)]):
        return False
    places = sorted([(*byte_bounds(array), is_written, k)
                     for is_written, arrays in ((True, written), (False, read))
                     for k, array in enumerate(arrays) if array.size])
    reaching: list[tuple] = []  # those before that end behind the place that is looked at
    for place in places:
        start, _, is_written, k = place
        reaching = [one for one in reaching if one[1] > start]
        array = (written if is_written else read)[k]
        for _, _, other_is_written, other in reaching:
            if is_written or other_is_written:
                if overlaps(array, (written if other_is_written else read)[other]):
                    return True
        reaching.append(place)
    return False


#: Types whose objects hold a value where ndarrays hold the address of theirs; and all that programs take.
HOLDING = frozenset({float, complex, *(np.dtype(code).type for code in "?bhilqBHILQefdFD")})
TAKEN = HOLDING | {int, bool}


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
