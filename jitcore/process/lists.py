"""Lists of numbers, and lists of such lists, as arrays and back.

In: a list of the caller's. Out: the array of its numbers, which are all of one type; and the list with what
an array holds, the same object. Needs nothing of the compiler: the run time of compiled loops has it, too.
"""

from __future__ import annotations

from typing import Any

from jitcore.process.lazy import LazyModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy

np = LazyModule("numpy")  # scripts that do without it need not load it

__all__ = ["describe", "pack", "unpack"]

_NAMES = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
#: Ints that programs are given are smaller than this.
_LIMIT = 1 << 62


def describe(items: list) -> tuple[type, tuple[int, ...]] | None:
    """The type of a list's numbers and its shape; None where it is something else than numbers of one type,
    or rows of as many such numbers."""
    first = items[0] if items else None
    if type(first) is list:
        kind, shape = type(first[0]) if first else None, (len(items), len(first))
    else:
        kind, shape = type(first), (len(items),)
    return (kind, shape) if kind in _NAMES and _holds(kind, shape, items) else None


def _holds(kind: type, shape: tuple[int, ...], items: list) -> bool:
    """Whether a list has this shape, its numbers are of this type, and no row stands in it twice."""
    if len(items) != shape[0]:
        return False
    if len(shape) == 1:
        return {*map(type, items)} == {kind}
    return ({*map(type, items)} == {list} and {*map(len, items)} == {shape[1]}
            and len({*map(id, items)}) == shape[0]
            and {found for row in items for found in {*map(type, row)}} == {kind})


def pack(kind: type, shape: tuple[int, ...], items: Any) -> numpy.ndarray | None:
    """The array of a list's numbers; None where they are not of this type, or not so many. Cost: 50 ns for
    each."""
    if type(items) is not list or not _holds(kind, shape, items):
        return None
    try:
        made = np.array(items, _NAMES[kind])
    except OverflowError:
        return None
    return made if kind is not int or -_LIMIT <= made.min() and made.max() < _LIMIT else None


def unpack(items: list, array: numpy.ndarray) -> None:
    """Gives a list, or its rows, what an array holds."""
    if array.ndim == 1:
        items[:] = array.tolist()
    else:
        for row, numbers in zip(items, array.tolist()):
            row[:] = numbers
