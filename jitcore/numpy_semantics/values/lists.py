"""Lists whose length or elements a traced loop decides.

In: lists of numbers, or of tuples of numbers, of one type each. Out: a `TracedList`: arrays that hold the
elements, of a capacity, and the number of elements, which stores change. A list that outgrows its capacity
leaves the call to plain Python. Of a list that a loop filled, `find_runs` gives runs of elements that are
rows of one stack one after the other: what is made of them can be made of the stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import Number, bound_int
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.rewriter.handles import Handle, LeafType, current
from jitcore.rewriter.values import Flat, convert, type_of, wrap


class Element(NamedTuple):
    """A row of a stack."""

    raw: Array
    stack: Array
    index: int


class Run(NamedTuple):
    """Elements `start` to `stop` of a list: rows of a stack from `first` on. stack: None for one element that
    is no such row."""

    start: int
    stop: int
    stack: Array | None
    first: int = 0


def find_element(value: Any) -> Element | None:
    """Of which stack a value is a row, as it is now."""
    elements = getattr(current.mode, "elements", None)
    if not elements or not isinstance(value, Handle) or getattr(value, "steps", ()):
        return None
    storage = value.memory
    raw = value.read() if storage is None else storage.value
    found = elements.get(id(raw))
    return found if found is not None and found.raw is raw else None


def find_runs(values: Sequence) -> list[Run]:
    """The values in runs, in order."""
    runs: list[Run] = []
    for place, value in enumerate(values):
        element = find_element(value)
        last = runs[-1] if runs else None
        if element is None:
            runs.append(Run(place, place + 1, None))
        elif last is not None and last.stack is element.stack and (
                element.index == last.first + last.stop - last.start):
            runs[-1] = last._replace(stop=place + 1)
        else:
            runs.append(Run(place, place + 1, element.stack, element.index))
    return runs


#: Elements of a list that a program makes room for.
MAX_CAPACITY = 1 << 20


class ListHandle(Handle):
    """What stands for a list of Python's."""

    __slots__ = ()
    __array_priority__ = 2000

    def to_array(self, *, is_index: bool = False) -> NDArray:
        """`np.array` of it. is_index: as an index."""
        raise NotImplementedError

    def refuse(self, what: str) -> NoReturn:
        """Raises: NotTraceable, of something that is done to it."""
        raise NotImplementedError

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return getattr(ufunc, method)(*map(_as_operand, inputs), **kwargs)

    def __array_function__(self, function, kinds, args, kwargs):
        return function(*map(_as_operand, args), **{name: _as_operand(v) for name, v in kwargs.items()})

    def __getattr__(self, name: str) -> Any:
        if hasattr(list, name):
            self.refuse(f"list.{name} of")
        raise AttributeError(f"'list' object has no attribute '{name}'")

    def _refuse(self, *args: Any) -> Any:
        self.refuse("an operation on")

    __add__ = __radd__ = __iadd__ = __mul__ = __rmul__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = _refuse
    __ge__ = __contains__ = __delitem__ = __reversed__ = __array__ = __format__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def _as_operand(x: Any) -> Any:
    return x.to_array() if isinstance(x, ListHandle) else x


class TracedList(ListHandle):
    """A list of traced length, which nobody sees but the traced code.

    Attributes:
        frames: an array for each leaf of an element; count: an array with the number of elements.
        types: of the leaves; template: an element, taken apart; capacity: of the frames."""

    __slots__ = ("frames", "count", "types", "template", "capacity")

    def __init__(self, items: Sequence, template: Flat, types: Sequence[LeafType], capacity: int):
        self.types, self.template, self.capacity = list(types), template, capacity
        self.frames = [new_array(lax.full((capacity,), 0, leaf_type.aval.dtype)) for leaf_type in types]
        self.count = new_array(lax.full((), 0, dtypes.int64))
        self.extend(items)

    # -- as a handle ----------------------------------------------------------------------------------------
    @property
    def leaf_type(self) -> None:
        """It is not carried: what it holds is."""
        return None

    def is_same(self, other: Handle) -> bool:
        return self is other

    def is_made_in(self, trace) -> bool:
        return self.count.storage.trace is trace

    def as_predicate(self):
        return (self._read_count() > 0).as_predicate()

    def read(self):
        raise not_traceable("the elements of a list of traced length are one value")

    @property
    def shape(self) -> tuple:
        """The number of elements, as of an array: `for` goes through them."""
        return (self._read_count(),)

    @property
    def is_nested(self) -> bool:
        """Whether its elements are tuples."""
        return self.template.structure != "*"

    def _read_count(self) -> Any:
        return bound_int(self.count[()].item(), 0, self.capacity)

    # -- as a list ------------------------------------------------------------------------------------------
    def append(self, item: Any, /) -> None:
        flat = Flat(item)
        if flat.structure != self.template.structure or list(map(type_of, flat.leaves)) != self.types:
            raise not_traceable("a list of traced length gets an element of another type")
        place = self._read_count()
        for frame, leaf, leaf_type in zip(self.frames, flat.leaves, self.types):
            frame[place] = Scalar(convert(leaf, leaf_type))
        self.count[()] = place + 1

    def extend(self, items: Iterable, /) -> None:
        if not isinstance(items, TracedList):
            for item in items:
                self.append(item)
            return
        joined = self + items
        count = joined._read_count()
        fail(count > self.capacity, OverflowError("a list of traced length outgrows its memory"))
        for frame, other in zip(self.frames, joined.frames):
            frame[:] = other[: self.capacity]
        self.count[()] = count

    def pop(self, index: int = -1, /) -> Any:
        if not isinstance(index, int) or index != -1:
            raise not_traceable("pop() of another element than the last one, of a list of traced length")
        count = self._read_count()
        fail(count == 0, IndexError("pop from empty list"))
        found = self._read_at(count - 1)
        self.count[()] = count - 1
        return found

    def clear(self) -> None:
        self.count[()] = 0

    def reverse(self) -> None:
        last = self._read_count() - 1
        self._rearrange(np.maximum(last - np.arange(self.capacity), 0))

    def sort(self, *, key: Any = None, reverse: Any = False) -> None:
        if key is not None or not isinstance(reverse, (bool, int)):
            self.refuse("list.sort with a key of")
        if any(frame.dtype.kind == "c" for frame in self.frames):
            raise TypeError("'<' not supported between instances of 'complex' and 'complex'")
        if reverse:
            self.reverse()  # so that equal elements keep their order
        is_behind = np.arange(self.capacity) >= self._read_count()
        places = lax.iota(dtypes.int64, self.capacity)
        operands = [is_behind.read(), *map(self._read_key, self.frames), places]
        self._rearrange(new_array(lax.sort(operands, num_keys=len(operands) - 1)[-1]))
        if reverse:
            self.reverse()

    def _read_key(self, frame: NDArray) -> Array:
        """What is compared: both zeros are equal, and the order of NaN depends on how Python sorts."""
        if frame.dtype.kind != "f":
            return frame.read()
        is_nan = np.isnan(frame) & (np.arange(self.capacity) < self._read_count())
        fail(is_nan.any(), ValueError("a list with NaN is sorted"))
        return (frame + 0.0).read()

    def _rearrange(self, places: NDArray) -> None:
        for frame in self.frames:
            frame[:] = frame[places]

    def copy(self) -> TracedList:
        return self._take(np.arange(self.capacity), self._read_count())

    def _take(self, places: Any, count: Any) -> TracedList:
        """A list of so many elements: those at the first of these places."""
        found = TracedList((), self.template, self.types, len(places))
        for one, other in zip(found.frames, self.frames):
            one[:] = other[places]
        found.count[()] = count
        return found

    def __add__(self, other: Any) -> TracedList:
        items = other if isinstance(other, TracedList) else self._adopt(other)
        is_alike = items.template.structure == self.template.structure and items.types == self.types
        capacity = self.capacity + items.capacity
        if not is_alike or capacity > MAX_CAPACITY:
            self.refuse("a sum with")
        count = self._read_count()
        places = np.arange(capacity)
        found = TracedList((), self.template, self.types, capacity)
        for one, own, others in zip(found.frames, self.frames, items.frames):
            first = own[np.minimum(places, self.capacity - 1)]
            rest = others[np.clip(places - count, 0, items.capacity - 1)]
            one[:] = np.where(places < count, first, rest)
        found.count[()] = count + items._read_count()
        return found

    def __radd__(self, other: Any) -> TracedList:
        return self._adopt(other) + self

    def __iadd__(self, other: Any) -> TracedList:
        self.extend(other)
        return self

    def _adopt(self, items: Any) -> TracedList:
        """A list whose elements are known as one of traced length."""
        if type(items) is not list:
            self.refuse("a sum with")
        return TracedList(items, self.template, self.types, max(len(items), 1))

    def holds(self, value: Any) -> Any:
        """`value in self`, as a predicate."""
        return (self.to_array() == self._as_element(value)).any().as_predicate()

    def index(self, value: Any, /, *bounds: Any) -> Any:
        if bounds:
            self.refuse("list.index between bounds of")
        is_equal = self.to_array() == self._as_element(value)
        fail(~is_equal.any(), ValueError("it is not in list"))
        return bound_int(np.argmax(is_equal).item(), 0, self.capacity - 1)

    def _as_element(self, value: Any) -> Any:
        """A number that is looked for. NaN is found by which object it is, which is not known."""
        if not isinstance(value, (Number, Scalar, int, float, np.generic)):
            self.refuse("a search of something that is no number in")
        fail(value != value, ValueError("NaN is looked for in a list"))
        return value

    def _cut(self, part: slice) -> TracedList:
        step = 1 if part.step is None else part.step
        if not isinstance(step, int) or not step:
            self.refuse("a part of")
        count, is_up = self._read_count(), step > 0
        low, high = (0, count) if is_up else (-1, count - 1)
        first, last = (low, high) if is_up else (high, low)

        def bound(given: Any, default: Any) -> Any:
            if given is None:
                return default
            if not isinstance(given, (int, Number)):
                self.refuse("a part of")
            return np.clip(np.where(given < 0, given + count, given), low, high)

        start, stop = bound(part.start, first), bound(part.stop, last)
        size = np.maximum((stop - start + step - (1 if is_up else -1)) // step, 0)
        places = np.clip(start + step * np.arange(self.capacity), 0, self.capacity - 1)
        return self._take(places, size)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._cut(index)
        count = self._read_count()
        is_negative = index < 0
        if isinstance(is_negative, Handle):
            raise not_traceable("an index of a list of traced length that may be negative")
        place = count + index if is_negative else index
        fail(place < 0, IndexError("list index out of range"))
        fail(place >= count, IndexError("list index out of range"))
        return self._read_at(place)

    def _read_at(self, place: Any) -> Any:
        """The element at a place that is known to have one."""
        place = bound_int(place, 0, self.capacity - 1)
        leaves = [wrap(frame[place].read(), leaf_type) for frame, leaf_type in zip(self.frames, self.types)]
        return self.template.rebuild(leaves)

    def to_array(self, *, is_index: bool = False) -> NDArray:
        """`np.array` of it. Without elements NumPy's has floats, or is an index as any other."""
        count = self._read_count()
        if not self.is_nested:
            if self.frames[0].dtype != dtypes.float64 and not is_index:
                fail(count == 0, ValueError("an array of a list without elements"))
            return new_array(self.frames[0].read())[:count]
        raise not_traceable("an array of a list of traced length whose elements are tuples")

    def refuse(self, what: str) -> NoReturn:
        raise not_traceable(f"{what} a list of traced length")

    __setitem__ = __iter__ = __len__ = __bool__ = ListHandle._refuse

    def __repr__(self) -> str:
        return "Traced<list>"


def make_list(items: Sequence, item: Any, capacity: int) -> TracedList | None:
    """A list of traced length in place of a list. item: one of those that it gets; None where its elements
    are of other kinds."""
    template = Flat(item)
    types = [type_of(leaf) for leaf in template.leaves]
    is_plain = all(leaf_type is not None and leaf_type.aval.shape == () for leaf_type in types)
    kinds = [isinstance(leaf, (Number, Scalar, int, float, complex, np.generic)) for leaf in template.leaves]
    if not types or not is_plain or not all(kinds) or capacity > MAX_CAPACITY:
        return None
    return TracedList(items, template, types, capacity)
