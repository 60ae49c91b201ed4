"""What a loop of a script has before it: a number of iterations, and their elements as arrays.

In: the iterator of a loop, which is asked where it stands and not moved. Out: an `Ahead`. Its form says how
elements are made of a number k and of columns; the program of a loop is for one form.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Any

from jitcore.process.lazy import LazyModule

np = LazyModule("numpy")  # takes 0.1 s, and a script may do without

__all__ = ["ANY_STEP", "ROOM", "Ahead", "Once", "look_ahead"]

#: The form of ranges whose step is told.
ANY_STEP = "range *"
#: Elements that a program is told at once.
ROOM = 1000
#: Numbers in the tuples of a list.
_MOST_PARTS = 8
_LISTS = {type(iter([])): 1, type(iter(())): 1, type(reversed([])): -1}
_RANGES = type(iter(range(0))), type(iter(range(1 << 99)))
_ARRAYS = type(iter(type("", (), {"__getitem__": id})()))  # of all that has no iterator of its own


class Ahead:
    """Of a `while`, of which nothing is known.

    Attributes:
        form: how elements are made; left: the number of iterations; most: of those that are done at once.
        sources: what must stay as it is meanwhile. rest: of a range.
        is_bounded: whether the loop ends where a program has done all of them, without asking the iterator.
    """

    form, is_bounded = "while", False
    left = most = 1 << 62
    rest: range | None = None
    sources: Sequence = ()

    @property
    def step(self) -> int:
        """Of a range; 1 of all else."""
        return 1 if self.rest is None else self.rest.step

    def list_values(self, count: int) -> tuple:
        """What a program is told to do so many iterations."""
        return (count,)

    def tell(self, count: int) -> tuple[dict[str, Any], tuple]:
        """The same for another process: arrays by names, and names for arrays."""
        return {}, self.list_values(count)

    def count_done(self, count: int, number: int) -> int:
        """Iterations of so many that were begun, where a program that was left tells a number."""
        return count - number

    def advance(self, count: int) -> Any:
        """The iterator when so many iterations are done."""
        return None

    def take_any_step(self) -> None:
        """Of ranges, see there."""


class Once(Ahead):
    """Of a run of statements."""

    form = "run"
    left = most = 1

    def list_values(self, count: int) -> tuple:
        return ()


class _Numbers(Ahead):
    """Of a range."""

    is_bounded = True

    def __init__(self, iterator: Any):
        self.iterator, self.rest = iterator, count_rest(iterator)
        self.left = self.most = len(self.rest)
        self.form = f"range {self.rest.step}"

    def list_values(self, count: int) -> tuple:
        part = self.rest[:count]
        return (part.start, part.stop, part.step) if self.form == ANY_STEP else (part.start, part.stop)

    def take_any_step(self) -> None:
        """Is for a program that is told the step, too."""
        self.form = ANY_STEP

    def count_done(self, count: int, number: int) -> int:
        return (number - self.rest.start) // self.rest.step + 1

    def advance(self, count: int) -> Any:
        _, at = locate(self.iterator)
        self.iterator.__setstate__(at + count)
        return self.iterator


class _Count(_Numbers):
    """Of `itertools.count`, which has no end."""

    is_bounded = False

    def __init__(self, iterator: Any):
        self.iterator, self.rest = iterator, read_count(iterator)
        self.left, self.most = Ahead.left, len(self.rest)
        self.form = f"range {self.rest.step}"

    def advance(self, count: int) -> Any:
        deque(islice(self.iterator, count), 0)
        return self.iterator


class Column:
    """Numbers of one type, of a list. The array of them is made where NumPy is loaded anyway."""

    def __init__(self, items: Sequence):
        self.items = items

    def fill(self) -> Any:
        """An array of as many elements as a program is told."""
        found = np.array(self.items)
        filled = np.zeros(ROOM, found.dtype)
        filled[:len(found)] = found
        return filled


class _Elements(Ahead):
    """Of lists, arrays, `enumerate` and `zip`."""

    def __init__(self, iterator: Any, room: int):
        self.iterator, self.left, self.most = iterator, 1 << 62, min(room, ROOM)
        self.columns: list = []
        self.sources: list = []
        self.form = self._read(iterator)

    def list_values(self, count: int) -> tuple:
        return 0, count, *[one.fill() if type(one) is Column else one for one in self.columns]

    def tell(self, count: int) -> tuple[dict[str, Any], tuple]:
        columns = [one if type(one) in (int, Column) else f"array {number}"
                   for number, one in enumerate(self.columns)]
        named = {name: one for name, one in zip(columns, self.columns) if type(name) is str}
        return named, (0, count, *columns)

    def count_done(self, count: int, number: int) -> int:
        return number + 1

    def advance(self, count: int) -> Any:
        deque(islice(self.iterator, count), 0)
        return self.iterator

    def _read(self, iterator: Any) -> str:
        """The expression of an element. Raises: TypeError for what there is none for."""
        kind = type(iterator)
        if kind in _RANGES:
            rest = count_rest(iterator)
            self.left = min(self.left, len(rest))
            return f"({self._add(rest.start)} + k * {rest.step})"
        if kind is itertools.count:
            rest = read_count(iterator)
            return f"({self._add(rest.start)} + k * {rest.step})"
        if kind in _LISTS:
            sequence, at = self._locate(iterator)
            if _LISTS[kind] == 1:
                return self._read_sequence(sequence[at:at + self.most], len(sequence) - at)
            return self._read_sequence(sequence[max(at + 1 - self.most, 0):at + 1][::-1], at + 1)
        if kind is enumerate:
            inner, start = iterator.__reduce__()[1]
            return f"({self._add(start)} + k, {self._read(inner)})"
        if kind is zip:
            return f"({', '.join([self._read(one) for one in iterator.__reduce__()[1]])},)"
        if kind is _ARRAYS:
            array, at = self._locate(iterator)
            if type(array).__module__ == "numpy" and type(array).__name__ == "ndarray" and array.ndim:
                self.left = min(self.left, len(array) - at)
                return f"{self._add(array)}[{self._add(at)} + k]"
        raise TypeError("it goes through something else than a range, a list or an array of numbers")

    def _locate(self, iterator: Any) -> tuple[Any, int]:
        sequence, at = locate(iterator)
        self.sources.append(sequence)
        return sequence, at

    def _read_sequence(self, items: Sequence, left: int) -> str:
        self.left = min(self.left, left)
        if items and type(items[0]) is tuple:
            count = len(items[0])
            are_alike = all(type(one) is tuple and len(one) == count for one in items)
            if not are_alike or not 0 < count <= _MOST_PARTS:
                raise TypeError("it goes through tuples of different lengths")
            return f"({', '.join(map(self._read_column, zip(*items)))},)"
        return self._read_column(items)

    def _read_column(self, items: Sequence) -> str:
        if not items:
            raise TypeError("it goes through no elements")
        kind = type(items[0])
        if {*map(type, items)} != {kind}:  # those before the first of another type, then
            items = list(itertools.takewhile(lambda item: type(item) is kind, items))
            self.most = min(self.most, len(items))
        if kind is int and not -1 << 63 <= min(items) <= max(items) < 1 << 63:
            raise TypeError("it goes through large integers")
        if kind in (int, float, bool):
            return f"{self._add(Column(items))}[k].item()"
        if kind.__module__ == "numpy" and issubclass(kind, (np.number, np.bool_)):
            return f"{self._add(Column(items))}[k]"
        raise TypeError(f"it goes through elements of type {kind.__name__}")

    def _add(self, column: Any) -> str:
        self.columns.append(column)
        return f"c{len(self.columns) - 1}"


def look_ahead(iterator: Any, room: int = ROOM) -> Ahead:
    """What there is before a loop. iterator: None of a `while`; room: elements that are looked at.

    Raises: TypeError where it cannot be told a program."""
    if iterator is None:
        return Ahead()
    if type(iterator) is _RANGES[0]:
        return _Numbers(iterator)
    if type(iterator) is itertools.count:
        return _Count(iterator)
    return _Elements(iterator, room)


def count_rest(iterator: Any) -> range:
    """What is left of the iterator of a range."""
    whole, at = locate(iterator)
    return whole[at:]


def read_count(iterator: itertools.count) -> range:
    """Numbers that `itertools.count` gives next. Raises: TypeError where they are no small ints."""
    try:
        start, step = map(int, [*repr(iterator)[6:-1].split(", "), 1][:2])
    except ValueError:
        raise TypeError("it counts by something else than ints") from None
    if not step or not -1 << 60 < start < 1 << 60 or abs(step) >= 1 << 20:
        raise TypeError("it counts in large steps, or in none")
    return range(start, start + step * (1 << 40), step)


def locate(iterator: Any) -> tuple[Any, int]:
    """What an iterator goes through, and where it stands in it. Since 3.12 that of a range goes through what
    is left."""
    _, (source, *_), *state = iterator.__reduce__()
    return source, state[0] or 0 if state else 0
