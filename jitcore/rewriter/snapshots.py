"""Snapshots: what the side of a traced decision changed without a store that the journal could note.

In: values from which code can reach others. Out: the containers, arrays and iterators among these that
methods and C code changed (`append`, `sort`, `fill`, `setattr`, `next`), found by comparing copies, and put
back to what they were.
"""

from __future__ import annotations

import array
import contextlib
import gc
import itertools
import math
import operator
import threading
import types
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from copy import copy as copy_object
from typing import Any

import numpy as np

from jitcore.core.trace import context
from jitcore.process.effort import spend
from jitcore.rewriter.control_flow.raising import make_conditional
from jitcore.rewriter.handles import UNDEFINED, Compound, current
from jitcore.rewriter.journal import ATOMS, ItemLocation, Location, is_a, list_children, logs, read_variables
from jitcore.rewriter.user_code import is_user_code

#: How many values are looked at.
_MAX_ITEMS = 20_000
#: Bytes of arrays that are copied; of the arrays beyond, so many elements are compared.
_MAX_BYTES, _MAX_SAMPLES = 1 << 20, 1 << 12
#: Steps that each object of a snapshot costs.
_OBJECT = 1
#: Each with the methods of its own, so that those of subclasses are not called.
_CONTAINERS = (OrderedDict, dict, list, set, deque, bytearray, array.array)


def kind_of(value: Any) -> type | None:
    """Which container it is, or is a subclass of."""
    return next((kind for kind in _CONTAINERS if is_a(value, kind)), None)


class ContainerLocation(Location):
    """The contents of a container."""

    def __init__(self, container):
        self.container, self.key = container, ("container", id(container))
        self.name = type(container).__name__

    def read(self):
        return copy_contents(self.container)

    def write(self, value):
        kind, container = kind_of(self.container), self.container
        contents = list(value.items()) if isinstance(value, dict) else value
        if kind is array.array:
            del container[:]
        else:
            kind.clear(container)
        (kind.update if kind in (dict, set, OrderedDict) else kind.extend)(container, contents)


def find_container(location: Location) -> Any:
    """The container of which a location is the whole, or an item; None for other places."""
    return location.container if isinstance(location, ContainerLocation) else getattr(location, "owner", None)


def find_variables(location: Location) -> dict | None:
    """The dict in which a location is an item, or an attribute stands; None for other places."""
    owner = find_container(location)
    variables = owner if type(owner) is dict else read_variables(owner)
    return variables if type(variables) is dict else None


def copy_contents(container: Any) -> Any:
    """A copy as a plain dict, list or set; of a buffer as a buffer."""
    kind = kind_of(container)
    if kind in (dict, OrderedDict):
        return dict(kind.items(container))
    if kind in (list, deque):
        return list(container)
    return set(container) if kind is set else container[:]


class _ArrayCopy:
    """What an ndarray was. contents: all elements, or some of a large one."""

    def __init__(self, value: np.ndarray, is_whole: bool):
        self.array, self.is_whole = value, is_whole
        self.layout = value.shape, value.strides, value.dtype, value.flags.writeable
        self.contents = self._read()

    def _read(self) -> Any:
        value = self.array
        if not self.is_whole:
            step = math.ceil((value.size / _MAX_SAMPLES) ** (1 / max(value.ndim, 1)))
            value = value[(slice(None, None, step),) * value.ndim]
        return value.copy()

    def has_changed(self) -> bool:
        value = self.array
        if (value.shape, value.strides, value.dtype, value.flags.writeable) != self.layout:
            return True
        return self._read().tobytes() != self.contents.tobytes()

    def restore(self) -> None:
        value, (shape, _, dtype, is_writeable) = self.array, self.layout
        if self.is_whole and value.size != self.contents.size:
            value.resize(shape, refcheck=False)
        if value.size == self.contents.size and value.itemsize == dtype.itemsize and self.is_whole:
            value.flags.writeable = True
            if value.dtype != dtype:
                value.dtype = dtype
            if value.shape != shape:
                value.shape = shape
            value[...] = self.contents
        if is_writeable != value.flags.writeable:
            value.flags.writeable = is_writeable


class VariableLocation(ItemLocation):
    """An attribute in the dict of its object."""

    def __init__(self, variables: dict, name: str):
        super().__init__(variables, name)
        self.name = name


class Snapshot:
    """Shallow copies of what can change among the values that can be reached from some.

    reached: ids of all objects that were looked at: an object that is not among them is new, if the search
    is_complete."""

    def __init__(self, roots: Iterable[Any]):
        self._copies: list[tuple[Any, Any]] = []
        self._variables: list[tuple[dict, dict]] = []
        self._arrays: list[_ArrayCopy] = []
        self._iterators: list[tuple[Any, _Items, Any]] = []
        self._n_bytes = self._count = 0
        self.reached: dict[int, Any] = {}
        self.is_complete = True
        self.add(roots)

    def add(self, roots: Iterable[Any]) -> None:
        """Adds what can be reached from further values, as it is now."""
        waiting, before = list(roots), self._count + len(self.reached)
        while waiting and self._count < _MAX_ITEMS:
            value = waiting.pop()
            if type(value) in ATOMS or id(value) in self.reached:
                continue
            children = self._note(value)
            if children is None:
                continue
            self.reached[id(value)] = value
            self._count += len(children)
            waiting += children
        self.is_complete &= not waiting
        spend(_OBJECT * (self._count + len(self.reached) - before))

    def _note(self, value: Any) -> list | None:
        """Notes what a value is now. Returns: what can be reached from it; None for what holds nothing."""
        if is_a(value, np.ndarray):
            self._n_bytes += value.nbytes
            self._arrays.append(_ArrayCopy(value, self._n_bytes <= _MAX_BYTES))
            return []
        if type(value) is types.FunctionType:
            return _list_captured(value)
        children = list_children(value)
        if hasattr(type(value), "__next__"):
            self._iterators.append((value, find_position(value), _save(value)))
            children = [*(children or ()), *_list_sources(value)]
        if children is None:
            return None
        if kind_of(value) is not None:
            self._copies.append((value, copy_contents(value)))
        variables = read_variables(value)
        if type(variables) is dict and not is_a(value, (Compound, SharedIterator)):
            self._variables.append((variables, dict(variables)))
            self.reached[id(variables)] = variables
        return children

    def find_advanced(self) -> Any:
        """An iterator that has come further, or None."""
        return next((one for one, before, _ in self._iterators if find_position(one) != before), None)

    def rewind(self) -> bool:
        """Puts iterators back to where they were. Returns: whether that could be done."""
        moved = [(one, saved) for one, before, saved in self._iterators if find_position(one) != before]
        for iterator, saved in moved:
            if saved is not None:
                _restore(iterator, saved)
        return all(is_a(one, _REWOUND) for one, _ in moved) and self.find_advanced() is None

    def find_written(self) -> list[np.ndarray]:
        """The arrays that have changed."""
        return [one.array for one in self._arrays if one.has_changed()]

    def read_contents(self) -> dict[int, Any]:
        """What the containers that have changed hold now, by id."""
        copies = (*self._copies, *self._variables)
        return {id(container): copy_contents(container) for container, copy in copies
                if has_changed(container, copy)}

    def find_described(self, contents: dict[int, Any], stores: Iterable[Location]) -> set[int]:
        """The ids of containers that hold what stores have put there, and else what they held."""
        places: dict[int, list[ItemLocation]] = {}
        described = set()
        for location in stores:
            if isinstance(location, ContainerLocation):
                described.add(id(location.container))
            elif isinstance(location, ItemLocation):
                places.setdefault(id(location.owner), []).append(location)
        for container, copy in self._copies:
            stored = places.get(id(container))
            if stored and _is_described(contents.get(id(container), copy), copy, stored):
                described.add(id(container))
        return described

    def list_known(self) -> set[int]:
        """The ids of the containers, and dicts of attributes, of which there are copies."""
        return {id(container) for container, _ in (*self._copies, *self._variables)}

    def roll_back(self, contents: dict[int, Any], described: set[int]
                  ) -> tuple[list[tuple[Any, Any]], list[tuple[Location, Any]]]:
        """Gives everything its old contents.

        Returns: containers that were changed in other ways than by stores, which are not `described`, and
            attributes; and what these held before that."""
        for copy in self._arrays:
            if copy.has_changed():
                copy.restore()
        changes, attributes = [], []
        for container, copy in self._copies:
            if has_changed(container, copy):
                if id(container) not in described:
                    changes.append((container, contents[id(container)]))
                ContainerLocation(container).write(copy)
        for variables, copy in self._variables:
            if has_changed(variables, copy):
                new = contents[id(variables)]
                for name in dict.fromkeys([*copy, *new]):
                    if new.get(name, UNDEFINED) is not copy.get(name, UNDEFINED):
                        attributes.append((VariableLocation(variables, name), new.get(name, UNDEFINED)))
                ContainerLocation(variables).write(copy)
        return changes, attributes


def _is_described(contents: Any, copy: Any, stores: list[ItemLocation]) -> bool:
    """Whether a container holds what was in its copy, apart from stores of items."""
    expected = copy.copy()
    for location in stores:
        value = location.read()
        if value is UNDEFINED and (isinstance(copy, list) or location.index in copy):
            return False
        if value is not UNDEFINED:
            if isinstance(copy, list) and location.index >= len(copy):
                return False
            expected[location.index] = value
    return not has_changed(contents, expected)


class _Open(threading.local):
    """The snapshots of the sides that are being run, innermost last."""

    def __init__(self):
        self.stack: list[Snapshot] = []


_open = _Open()


@contextlib.contextmanager
def watch_captures(snapshot: Snapshot) -> Iterator[None]:
    """Within, what is captured becomes a part of a snapshot."""
    _open.stack.append(snapshot)
    try:
        yield
    finally:
        _open.stack.pop()


def note_captured(value: Any) -> None:
    """A value from outside of the traced code that it meets now, with the contents that it had before: it was
    there before every side that is being run."""
    for snapshot in _open.stack:
        snapshot.add([value])


@contextlib.contextmanager
def refuse_changes(values: Iterable[Any], reason: str) -> Iterator[None]:
    """Within, code is traced that Python may not come to: it must change nothing that can be reached from
    these values or is captured, and print nothing; what it raises no handler may catch. Raises: what the mode
    makes of the reason."""
    snapshot, log = Snapshot([*values, *current.mode.list_captured()]), {}
    eqns = getattr(context.trace, "eqns", [])
    before = len(eqns)
    logs.stack.append(log)
    try:
        with watch_captures(snapshot):
            yield
    except Exception as error:
        make_conditional(error)
        raise
    finally:
        logs.stack.pop()
    has_effects = any(eqn.effects for eqn in eqns[before:])
    if log or has_effects or snapshot.read_contents() or snapshot.find_written():
        raise current.mode.refuse(reason)


def _list_captured(function: types.FunctionType) -> list | None:
    """What a function of the user's reads from its cells and from global names."""
    if not is_user_code(function.__code__):
        return None
    found = list(function.__closure__ or ())
    if current.mode is None:  # a mode knows what is read from global names
        found += [function.__globals__.get(name) for name in function.__code__.co_names]
    return found


def has_changed(container: Any, copy: Any) -> bool:
    """Whether a container holds other objects than a copy of its contents."""
    if len(container) != len(copy):
        return True
    if isinstance(copy, list):
        return any(map(operator.is_not, container, copy))
    if isinstance(copy, dict):
        pairs = zip(kind_of(container).items(container), copy.items())
        return any(one[0] is not other[0] or one[1] is not other[1] for one, other in pairs)
    return container != copy


# -- iterators ----------------------------------------------------------------------------------------------
class _Items(tuple):
    """Objects that are compared by identity, ints and strings by value."""

    __slots__ = ()

    def __eq__(self, other) -> bool:
        return type(other) is _Items and len(self) == len(other) and all(map(_is_one, self, other))

    def __ne__(self, other) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]


def _is_one(one: Any, other: Any) -> bool:
    return one is other or type(one) is type(other) and type(one) in (int, str, _Items) and one == other


RANGE_ITERATORS = (type(iter(range(0))), type(iter(range(1 << 70))))
# Iterators that can be asked for what they are made of, other iterators among it.
_COMPOUND = (enumerate, zip, map, filter, reversed)
_PLAIN = tuple(type(iter(kind())) for kind in (list, tuple, str, dict, set, bytes)) + (
    type(iter({}.values())), type(iter({}.items())), *RANGE_ITERATORS)


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
        return copy_object(iterator)
    if isinstance(iterator, _COMPOUND):
        make, parts, *state = iterator.__reduce__()
        copied = make(*map(copy_iterator, parts))
        if state:
            copied.__setstate__(*state)
        return copied
    if isinstance(iterator, Compound) or not isinstance(iterator, Iterator):
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


def find_position(iterator: Any) -> _Items:
    """How far an iterator has come: unequal behind a `next`, as far as that can be seen."""
    if is_a(iterator, Compound):
        return _Items(iterator.children())
    if is_a(iterator, SharedIterator):
        return _Items([iterator.position])
    if is_a(iterator, types.GeneratorType):
        frame = iterator.gi_frame
        if frame is None:
            return _Items()
        held = list(frame.f_locals.values())
        nested = [find_position(value) for value in held if hasattr(type(value), "__next__")]
        return _Items([frame.f_lasti, *held, *nested])
    if type(iterator).__module__ not in ("builtins", "itertools", "collections"):
        return _Items()  # an object of the user's: what it holds is looked at
    if is_a(iterator, (itertools.count, itertools.repeat)):
        return _Items([repr(iterator)])
    nested = [find_position(value) for value in _list_sources(iterator)]
    return _Items([operator.length_hint(iterator, -1), *nested])


_SEQUENCES = tuple(type(iter(kind())) for kind in (list, tuple, str, bytes))
#: Those that can be put back, and those that are where they were when what they take from is.
_REWOUND = (Compound, SharedIterator, *_SEQUENCES, zip, map, filter)


def _save(iterator: Any) -> Any:
    """What `_restore` needs; None for iterators that only go on."""
    if is_a(iterator, Compound):
        return dict(vars(iterator))
    if is_a(iterator, SharedIterator):
        return iterator.position
    if is_a(iterator, _SEQUENCES):
        place = iterator.__reduce__()[2:]
        return place[0] if place else None  # nothing: it has ended
    return None


def _restore(iterator: Any, saved: Any) -> None:
    if is_a(iterator, Compound):
        vars(iterator).update(saved)
    elif is_a(iterator, SharedIterator):
        iterator.position = saved
    else:
        iterator.__setstate__(saved)  # of no effect behind its end


def _list_sources(iterator: Any) -> list:
    """The iterators that an iterator takes from."""
    found: list[Any] = []
    for value in gc.get_referents(iterator):
        found += value if type(value) is tuple else [value]
    return [value for value in found if hasattr(type(value), "__next__")]
