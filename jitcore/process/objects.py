"""Lists of objects of one class, taken apart by attribute and put together again.

In: a list of the caller's. Out: for each attribute a list of what the objects hold, and the same objects with
what such lists hold. Needs nothing of the compiler: the run time of compiled loops has it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitcore.process.lazy import LazyModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy

np = LazyModule("numpy")  # scripts that do without it need not load it

__all__ = ["are_apart", "are_one", "read_column", "split_tuples", "stack", "take_apart", "unstack",
           "write_column", "write_tuples"]


def take_apart(kind: type, names: frozenset[str], count: int, items: Any) -> list[dict] | None:
    """The attributes of so many objects of a class; None for other lists, for objects with other attributes,
    and where an object stands in the list twice. Cost: 0.2 us for each."""
    if type(items) is not list or len(items) != count or {*map(type, items)} != {kind}:
        return None
    variables = [item.__dict__ for item in items]
    if len({*map(id, variables)}) != count or any([own.keys() != names for own in variables]):
        return None
    return variables


def read_column(name: str, variables: Sequence[dict]) -> list:
    """What the objects hold under a name."""
    return [own[name] for own in variables]


def write_column(name: str, items: Sequence[Any], values: Sequence) -> None:
    """Sets an attribute of objects that have it; those that have that value already are not touched."""
    for item, value in zip(items, values):
        if item.__dict__[name] is not value:
            item.__dict__[name] = value


def are_one(values: Sequence) -> bool:
    """Whether all are one object, or equal numbers or texts of one type."""
    first = values[0]
    if all([value is first for value in values]):
        return True
    return type(first) in (int, str) and {*map(type, values)} == {type(first)} and len({*values}) == 1


def split_tuples(count: int, values: Sequence) -> list[list] | None:
    """The columns of tuples of so many items; None for other values."""
    if {*map(type, values)} != {tuple} or {*map(len, values)} != {count}:
        return None
    return [*map(list, zip(*values))]


def write_tuples(name: str, items: Sequence[Any], *columns: Sequence) -> None:
    """Sets an attribute to tuples of which the columns are given; equal ones stay what they are."""
    for item, values in zip(items, zip(*columns)):
        if any([one is not other for one, other in zip(item.__dict__[name], values)]):
            item.__dict__[name] = values


def stack(dtype: Any, shape: tuple[int, ...], arrays: Sequence) -> numpy.ndarray | None:
    """The rows that arrays are; None unless each is one of this dtype and shape with memory of its own."""
    if not all([type(one) is np.ndarray and one.shape == shape and one.dtype == dtype and one.base is None
                and one.flags.num & 0x501 == 0x501 for one in arrays]):
        return None
    return np.array(arrays) if len({*map(id, arrays)}) == len(arrays) else None


def unstack(arrays: Sequence[numpy.ndarray], rows: numpy.ndarray) -> None:
    """Gives arrays what a stack of them holds."""
    for one, row in zip(arrays, rows):
        one[...] = row


def are_apart(stacked: Sequence[Sequence], others: Sequence[numpy.ndarray]) -> bool:
    """Whether arrays that were stacked are all different ones, and none has the memory of another array."""
    own = {id(one) for arrays in stacked for one in arrays}
    if len(own) < sum(map(len, stacked)):
        return False
    for other in others:
        while isinstance(other, np.ndarray):
            if id(other) in own:
                return False
            other = other.base
    return True
