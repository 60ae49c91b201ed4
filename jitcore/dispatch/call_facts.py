"""Calls of compiled programs: what they answer, and what is known of their arguments.

In: nothing. Out: answers, facts of arrays and numbers. Stage: from the writing of a call to the call itself;
processes without NumPy have it, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from jitcore.process.lazy import LazyModule

if TYPE_CHECKING:
    import numpy

np = LazyModule("numpy")


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


def tell_nothing(*arrays: numpy.ndarray) -> int:
    """Stands for the check of a call by native code, where there is none."""
    return 0


class Scalars(NamedTuple):
    """Numbers in the place of arrays of no axes: for each input and output of a program their type, or None
    for an ndarray. takes: `float`, `int`, `bool`, `complex` or that of the input's dtype."""

    takes: tuple[type | None, ...]
    gives: tuple[type | None, ...]

    def convert(self, run: Callable[..., list]) -> Callable[..., list]:
        """A function of ndarrays as one of these."""
        taken = [k for k, kind in enumerate(self.takes) if kind is not None]

        def run_on_arrays(*values):
            given = list(values)
            for k in taken:
                given[k] = np.array(given[k])
            return [out if kind is None else out[()] if issubclass(kind, np.generic) else out.item()
                    for out, kind in zip(run(*given), self.gives)]

        return run_on_arrays


#: Of the flags of an ndarray those that calls look at: its order, alignment, whether it may be written.
FLAGS = 0x503


class ArrayFacts(NamedTuple):
    """What a call needs an ndarray to be, and whether it writes to it. flags: as `ndarray.flags.num` has
    them."""

    dtype: numpy.dtype
    shape: tuple[int, ...]
    flags: int
    is_written: bool
