"""Iterators whose number of steps, or whose position, is traced.

In: a range with traced bounds, or a traced array. Out: `TracedIterator`s, at which a `for` loop is a site:
the driver asks whether there is a next element (`has_next`) and for it and the iterator behind (`advance`).
As ordinary iterators they work where their length is known: in comprehensions, `list(...)`, `zip(...)`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jitcore.array import Array
from jitcore.core.trace import Tracer


class TracedIterator:
    """An iterator with leaves: `children()`, their `structure()`, and `rebuild(leaves)`."""

    def __iter__(self):
        return self

    def children(self) -> list:
        raise NotImplementedError

    def structure(self) -> Any:
        raise NotImplementedError

    def rebuild(self, children: Sequence) -> TracedIterator:
        raise NotImplementedError

    def has_next(self):
        raise NotImplementedError

    def advance(self) -> tuple[Any, TracedIterator]:
        raise NotImplementedError


class CountIterator(TracedIterator):
    """The elements start + i * step for i from `position` to `count`, None for no end."""

    def __init__(self, start, step, count, position=0):
        self.start, self.step, self.count, self.position = start, step, count, position

    @property
    def is_known(self) -> bool:
        """Whether Python could go through it instead."""
        return self.count is not None and not any(
            isinstance(x, Array) for x in (self.start, self.step, self.count, self.position))  # fmt: skip

    def read(self) -> Iterator[int]:
        """The ordinary iterator over the rest."""
        places = range(self.start, self.start + self.count * self.step, self.step)
        return iter(places[self.position :])

    def children(self) -> list:
        return [self.position]

    def structure(self) -> Any:
        return "range", *(id(x) if isinstance(x, Array) else x for x in (self.start, self.step, self.count))

    def rebuild(self, children: Sequence) -> CountIterator:
        return CountIterator(self.start, self.step, self.count, children[0])

    def has_next(self):
        return self.count is None or self.position < self.count

    def advance(self):
        element = self.start + self.position * self.step
        return element, CountIterator(self.start, self.step, self.count, self.position + 1)

    def __next__(self):
        if not self.has_next():  # raises where that is traced
            raise StopIteration
        element, behind = self.advance()
        self.position = behind.position
        return element


class SequenceIterator(TracedIterator):
    """The elements along the first axis of an array."""

    def __init__(self, array: Array, position=0):
        self.array, self.position = array, position

    def children(self) -> list:
        return [self.position]

    def structure(self) -> Any:
        return "array", id(self.array)

    def rebuild(self, children: Sequence) -> SequenceIterator:
        return SequenceIterator(self.array, children[0])

    def has_next(self):
        return self.position < self.array.shape[0]

    def advance(self):
        return self.array[self.position], SequenceIterator(self.array, self.position + 1)

    def __next__(self):
        if not self.has_next():
            raise StopIteration
        element, behind = self.advance()
        self.position = behind.position
        return element


class JointIterator(TracedIterator):
    """Tuples of the elements of several: `zip` and `enumerate`."""

    def __init__(self, parts: Sequence[TracedIterator]):
        self.parts = list(parts)

    def children(self) -> list:
        return [child for part in self.parts for child in part.children()]

    def structure(self) -> Any:
        return ("zip", *(part.structure() for part in self.parts))

    def rebuild(self, children: Sequence) -> JointIterator:
        parts, rest = [], list(children)
        for part in self.parts:
            count = len(part.children())
            parts.append(part.rebuild(rest[:count]))
            del rest[:count]
        return JointIterator(parts)

    def has_next(self):
        found: Any = True
        for part in self.parts:
            more = part.has_next()
            if more is False or more is True:
                found = found if more else False
            else:
                found = more if found is True else more & found if found is not False else False
        return found

    def advance(self):
        pairs = [part.advance() for part in self.parts]
        return tuple(element for element, _ in pairs), JointIterator([behind for _, behind in pairs])

    def __next__(self):
        return tuple([next(part) for part in self.parts])


class TracedIterable:
    """What `range`, `enumerate` and `zip` of traced values return: each `iter` of it begins anew."""

    def __init__(self, make: Callable[[], TracedIterator]):
        self._make = make

    def __iter__(self) -> TracedIterator:
        return self._make()


def as_traced_iterator(value) -> TracedIterator | None:
    """A traced iterator over something, or None where there is none."""
    if isinstance(value, TracedIterator):
        return value
    if isinstance(value, Tracer):
        return SequenceIterator(value)
    if isinstance(value, TracedIterable):
        return iter(value)
    if isinstance(value, range):
        return CountIterator(value.start, value.step, len(value))
    return None


# -- ordinary iterators -------------------------------------------------------------------------------------
_RANGE_ITERATORS = (type(iter(range(0))), type(iter(range(1 << 70))))


# Iterators that can be asked for what they are made of, other iterators among it.
_COMPOUND = (enumerate, zip, map, filter, reversed)
_PLAIN = tuple(type(iter(kind())) for kind in (list, tuple, str, dict, set, bytes)) + (
    type(iter({}.values())), type(iter({}.items())), *_RANGE_ITERATORS)  # fmt: skip


class SharedIterator:
    """A generator, or another iterator that cannot be copied: copies share what was taken from it, and each
    has its own position."""

    __slots__ = ("source", "taken", "position")

    def __init__(self, source: Iterator, taken: list, position: int = 0):
        self.source, self.taken, self.position = source, taken, position

    def __iter__(self):
        return self

    def __next__(self):
        if self.position == len(self.taken):
            self.taken.append(next(self.source))
        self.position += 1
        return self.taken[self.position - 1]


def copy_iterator(iterator):
    """An iterator over the same elements that goes on by itself; a traced one never changes."""
    if isinstance(iterator, SharedIterator):
        return SharedIterator(iterator.source, iterator.taken, iterator.position)
    if isinstance(iterator, _PLAIN):
        return copy.copy(iterator)
    if isinstance(iterator, _COMPOUND):
        make, parts, *state = iterator.__reduce__()
        copied = make(*map(copy_iterator, parts))
        if state:
            copied.__setstate__(*state)
        return copied
    if isinstance(iterator, TracedIterator) or not isinstance(iterator, Iterator):
        return iterator
    return SharedIterator(iterator, [])


def is_same_position(one, other) -> bool:
    """Whether two iterators are copies of one and have come equally far."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, SharedIterator):
        return one.taken is other.taken and one.position == other.position
    if isinstance(one, (*_PLAIN, *_COMPOUND)):
        return is_same_position(one.__reduce__()[1:], other.__reduce__()[1:])
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(is_same_position, one, other))
    return isinstance(one, (int, str, range)) and one == other


def lift_iterator(iterator) -> TracedIterator | None:
    """The traced form of an ordinary iterator over a range, with its position; None for all others."""
    if isinstance(iterator, TracedIterator):
        return iterator
    if not isinstance(iterator, _RANGE_ITERATORS):
        return None
    # The range begins where the iterator is; older versions keep where it was, and a number of steps.
    _, (values,), *steps = iterator.__reduce__()
    done = steps[0] if steps and steps[0] else 0
    return CountIterator(values.start, values.step, len(values), done)
