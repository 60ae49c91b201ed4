"""Iterators whose number of steps, or whose position, is traced.

In: a range with traced bounds, or a traced array. Out: `TracedIterator`s, at which a `for` loop is a site:
the driver asks whether there is a next element (`has_next`) and for it and the iterator behind (`advance`).
As ordinary iterators they work where their length is known: in comprehensions, `list(...)`, `zip(...)`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jitcore.numpy as jnp
from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.trace import Tracer
from jitcore.rewriter.errors import strict_zip_error, traced_iterable_error, traced_length_error
from jitcore.rewriter.handles import Compound, CompoundHandle, Handle, current
from jitcore.rewriter.objects import RANGE_ITERATORS
from jitcore.rewriter.values import is_traced, type_of


class TracedIterator(Compound):
    """An iterator whose children are traced. Where it `is_known`, Python could go through it instead, by what
    `read()` returns."""

    is_known = False
    position: Any

    def children(self) -> list:
        return [self.position]

    def __iter__(self):
        return self

    @property
    def is_new(self) -> bool:
        """Whether it stands before its first element, and has one."""
        is_at_first = all(isinstance(place, int) and place == 0 for place in self.children())
        return is_at_first and self.has_next() is True

    def has_next(self):
        raise NotImplementedError

    def count_left(self) -> int | None:
        """The number of elements to come, where it is known."""
        return None

    def advance(self) -> tuple[Any, TracedIterator]:
        raise NotImplementedError

    def __next__(self):
        if not self.has_next():  # raises where that is traced
            raise StopIteration
        element, behind = self.advance()
        self.position = behind.position
        return element


class CountIterator(TracedIterator):
    """The elements start + i * step for i from `position` to `count`, None for no end.

    stop: the bound that the elements do not reach, where it is known better than by `count`."""

    def __init__(self, start, step, count, position=0, stop=None):
        self.start, self.step, self.count, self.position, self.stop = start, step, count, position, stop

    @property
    def is_known(self) -> bool:
        """Whether Python could go through it instead."""
        numbers = self.start, self.step, self.count, self.position
        return not any(isinstance(number, (Array, Handle)) for number in numbers)

    def read(self) -> Iterator[int]:
        """The ordinary iterator over the rest."""
        if self.count is None:
            return itertools.count(self.start + self.position * self.step, self.step)
        places = range(self.start, self.start + self.count * self.step, self.step)
        return iter(places[self.position :])

    def structure(self) -> Any:
        return "range", *map(_identify, (self.start, self.step, self.count))

    def rebuild(self, children: Sequence) -> CountIterator:
        return CountIterator(self.start, self.step, self.count, children[0], self.stop)

    def has_next(self):
        return self.count is None or self.position < self.count

    def count_left(self) -> int | None:
        left = None if self.count is None else self.count - self.position
        return max(left, 0) if isinstance(left, int) else None

    def advance(self):
        mode, place = current.mode, self.position
        if mode is not None:
            place = mode.bound_index(place, 0, None if self.count is None else self.count - 1)
        element = place if isinstance(self.step, int) and self.step == 1 else place * self.step
        element = element if isinstance(self.start, int) and self.start == 0 else self.start + element
        if mode is None:
            return element, self.rebuild([place + 1])
        return mode.bound_index(element, *self._find_bounds()), self.rebuild([mode.follow_index(place)])

    def _find_bounds(self) -> tuple[Any, Any]:
        """The least and the greatest element; None for what is not known."""
        if isinstance(self.step, (Array, Handle)):
            is_up = isinstance(self.step, Handle) and self.step > 0
            return (self.start, self.stop - 1) if is_up is True and self.stop is not None else (None, None)
        if self.stop is not None:
            last = self.stop - 1 if self.step > 0 else self.stop + 1
        else:
            last = None if self.count is None else self.start + (self.count - 1) * self.step
        return (self.start, last) if self.step > 0 else (last, self.start)


def _identify(value) -> Any:
    """Equal for numbers that are one number."""
    return id(value) if isinstance(value, (Array, Handle)) else value


def iterate_elements(array: Array | Handle, first: int = 0) -> Iterator:
    """The elements along the first axis of an array, each read when it is reached: of an iterator that can be
    copied and put back, so that no side of a condition gets what another one has read."""
    return map(array.__getitem__, iter(list(range(first, array.shape[0]))))


class SequenceIterator(TracedIterator):
    """The elements along the first axis of an array."""

    def __init__(self, array: Array | Handle, position=0):
        self.array, self.position = array, position

    @property
    def is_known(self) -> bool:
        """Whether Python could go through it instead."""
        return isinstance(self.array.shape[0], int) and not isinstance(self.position, (Array, Handle))

    def read(self) -> Iterator:
        """The ordinary iterator over the rest."""
        return iterate_elements(self.array, self.position)

    def structure(self) -> Any:
        return "array", id(self.array)

    def rebuild(self, children: Sequence) -> SequenceIterator:
        return SequenceIterator(self.array, children[0])

    def has_next(self):
        return self.position < self.array.shape[0]

    def count_left(self) -> int | None:
        left = self.array.shape[0] - self.position
        return left if isinstance(left, int) else None

    def advance(self):
        place = self.position
        if current.mode is not None:
            place = current.mode.bound_index(place, 0, self.array.shape[0] - 1)
        return self.array[place], SequenceIterator(self.array, self.position + 1)


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

    @property
    def is_known(self) -> bool:
        """Whether Python could go through it instead."""
        return all(part.is_known for part in self.parts)

    def read(self) -> Iterator:
        """The ordinary iterator over the rest."""
        return zip(*[part.read() for part in self.parts])

    def count_left(self) -> int | None:
        counts = [part.count_left() for part in self.parts if getattr(part, "count", 0) is not None]
        return min(counts) if counts and None not in counts else None

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
    """What `range`, `enumerate` and `zip` of traced values return: each `iter` of it begins anew. All else
    that Python could ask it is refused. kind: what it is in Python."""

    def __init__(self, kind: type, make: Callable[[], TracedIterator]):
        self.kind, self._make = kind, make

    def __iter__(self) -> TracedIterator:
        return self._make()

    def __eq__(self, other):
        return True if self is other else self.refuse()

    def __ne__(self, other):
        return not self == other

    __hash__ = object.__hash__

    def refuse(self, *args):
        """Raises: what Python cannot be told of it."""
        if current.mode is not None:
            bool(self._make().has_next())  # raises where that is traced, for that value
            raise current.mode.refuse(f"a {self.kind.__name__}() of traced values that is no loop's")
        raise traced_iterable_error(self.kind.__name__, None)

    def _ask(self, *args):
        return self.refuse(*args)  # of a subclass, too

    __len__ = __getitem__ = __bool__ = __reversed__ = __str__ = __repr__ = __format__ = _ask
    start = stop = step = index = count = property(_ask)


def as_traced_iterator(value) -> TracedIterator | None:
    """A traced iterator over something, or None where there is none."""
    if isinstance(value, TracedIterator):
        return value
    if isinstance(value, Tracer) or isinstance(value, Handle) and getattr(value, "shape", ()):
        return SequenceIterator(value)
    if isinstance(value, TracedIterable):
        return iter(value)
    if isinstance(value, range):
        return CountIterator(value.start, value.step, len(value))
    return None


def lift_iterator(iterator) -> TracedIterator | None:
    """The traced form of an ordinary iterator over a range, with its position; None for all others."""
    if isinstance(iterator, TracedIterator):
        return iterator
    if not isinstance(iterator, RANGE_ITERATORS):
        return None
    # The range begins where the iterator is; older versions keep where it was, and a number of steps.
    _, (values,), *steps = iterator.__reduce__()
    done = steps[0] if steps and steps[0] else 0
    return CountIterator(values.start, values.step, len(values), done)


def join_iterators(one, other) -> tuple[TracedIterator, TracedIterator] | None:
    """Two iterators over one range, of which one may be ordinary, in their traced form; None for others."""
    lifted = lift_iterator(one), lift_iterator(other)
    if lifted[0] is None or lifted[1] is None or lifted[0].structure() != lifted[1].structure():
        return None
    return lifted


def make_range(*bounds):
    if not any(map(is_traced, bounds)):
        return range(*bounds)
    bounds = tuple([bound.as_index() if isinstance(bound, CompoundHandle) else bound for bound in bounds])
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
    for bound in (start, stop, step):
        aval = type_of(bound).aval if is_traced(bound) else None
        if aval is not None and (aval.shape or not dtypes.is_integer(aval.dtype)):
            raise TypeError(f"'{aval.long()}' object cannot be interpreted as an integer")
    if current.mode is not None:  # the elements are Python's ints, whatever the bounds are
        start, stop, step = map(current.mode.as_bound, (start, stop, step))
    if not is_traced(step) and step in (1, -1):
        count = stop - start if step == 1 else start - stop
    elif is_traced(step):
        up = _find_sign(step > 0)
        count = (stop - start + step - up) // step
    elif step == 0:
        raise ValueError("range() arg 3 must not be zero")
    else:
        count = (stop - start + (step - 1 if step > 0 else step + 1)) // step
    return TracedIterable(range, lambda: CountIterator(start, step, count, 0, stop))


def _find_sign(is_positive):
    """1 or -1."""
    if isinstance(is_positive, bool):
        return 1 if is_positive else -1
    if current.mode is not None:
        return 2 * current.mode.redirects.get(int)(is_positive) - 1
    return jnp.where(is_positive, 1, -1)


def _is_traced_iterable(value) -> bool:
    return isinstance(value, TracedIterable) or is_traced(value)


def make_enumerate(iterable, start=0):
    if not (_is_traced_iterable(iterable) or is_traced(start)) or as_traced_iterator(iterable) is None:
        return enumerate(iterable, start)
    count = CountIterator(start, 1, None)
    return TracedIterable(enumerate, lambda: JointIterator([count, as_traced_iterator(iterable)]))


def make_zip(*iterables, strict: bool = False):
    if any(map(_is_traced_iterable, iterables)):
        parts = list(map(as_traced_iterator, iterables))
        if all(part is not None for part in parts):
            if strict and (len({part.count_left() for part in parts}) > 1 or parts[0].count_left() is None):
                _refuse_strict_zip()
            return TracedIterable(zip, lambda: JointIterator(list(map(as_traced_iterator, iterables))))
    return zip(*iterables, strict=strict)


def _refuse_strict_zip():
    """Raises: what Python raises behind the last pair is not to be told while tracing."""
    if current.mode is not None:
        raise current.mode.refuse("a zip(strict=True) of lengths that differ or are not known")
    raise strict_zip_error(None)


def find_length(value):
    if isinstance(value, TracedIterable) and current.mode is None:
        raise traced_length_error(None)
    return len(value)
