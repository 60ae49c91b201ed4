"""The journal: what a rewritten function changes outside of its local variables.

In: each store to a cell, attribute, item or global name, before it happens. Out: the locations that the side
of a traced decision changed, with their old values, so that it can be rolled back and the other side run;
then both are merged as local variables are. What methods and C code change without a store that could be
noted (`append`, `sort`, `fill`, `setattr`, `next`) is found by comparing copies (`Snapshot`), and put back.
"""

from __future__ import annotations

import array
import contextlib
import math
import operator
import threading
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from jitcore.core.trace import JaxprTrace, context
from jitcore.process.effort import spend
from jitcore.rewriter.control_flow.raising import make_conditional
from jitcore.rewriter.handles import UNDEFINED, Compound, current
from jitcore.rewriter.objects import (ATOMS, REWOUND, SharedIterator, copy_contents, find_in_class,
                                      find_position, has_changed, is_a, is_user_code, kind_of, list_children,
                                      list_sources, read_slot, read_variables, restore_position,
                                      save_position)


class Location:
    """A place that can be read and set; UNDEFINED where nothing is there. key: equal for the same place;
    memory: that of handles, if it is that."""

    name = "value"
    key: tuple
    memory: Any = None

    def is_new_in(self, trace: JaxprTrace) -> bool | None:
        """For the memory of handles, whether it was made while a trace was being recorded: nothing is left
        of it outside. None for other places."""
        return None

    def merge_parts(self, arms: Sequence, values: Sequence, add_output: Callable) -> Callable | None:
        """For the memory of handles, how to put together what two arms left there from parts: a function from
        the outputs of the `cond`. add_output(one, other, type): adds such an output. None for other places.
        """
        return None

    def read(self) -> Any:
        raise NotImplementedError

    def write(self, value: Any) -> None:
        raise NotImplementedError


class CellLocation(Location):
    def __init__(self, cell: types.CellType, name: str = "value"):
        self.cell, self.name, self.key = cell, name, ("cell", id(cell))

    def read(self):
        try:
            return self.cell.cell_contents
        except ValueError:
            return UNDEFINED

    def write(self, value):
        if value is not UNDEFINED:
            self.cell.cell_contents = value
        elif self.read() is not UNDEFINED:
            del self.cell.cell_contents


class AttributeLocation(Location):
    def __init__(self, owner: Any, name: str):
        self.owner, self.name = owner, name
        variables = read_variables(owner)
        is_slot = type(variables) is not dict or type(find_in_class(type(owner), name)[1]) is _Slot
        self.key = ("attribute", id(owner), name) if is_slot else ("item", id(variables), name)

    def read(self):
        """What the object itself holds: what its class has is there all the same."""
        held = read_variables(self.owner) or {}
        base, found = find_in_class(type(self.owner), self.name)
        if self.name in held or type(found) is not _Slot:
            return held.get(self.name, UNDEFINED)
        return read_slot(self.owner, base, self.name)

    def write(self, value):
        if value is not UNDEFINED:
            object.__setattr__(self.owner, self.name, value)
        elif self.read() is not UNDEFINED:
            object.__delattr__(self.owner, self.name)


_Slot = types.MemberDescriptorType


class ItemLocation(Location):
    """An item of a list or dict; what is in the dict of an object is an attribute too."""

    def __init__(self, owner: list | dict, index: Any):
        if type(owner) is list and hasattr(index, "__index__"):
            index = operator.index(index)
            index += len(owner) if index < 0 else 0
        self.owner, self.index, self.key = owner, index, ("item", id(owner), index)
        self.name = f"[{index!r}]"

    def read(self):
        try:
            return self.owner[self.index]
        except (KeyError, IndexError):
            return UNDEFINED

    def write(self, value):
        if value is UNDEFINED:
            self.owner.pop(self.index, None)
        else:
            self.owner[self.index] = value


class GlobalLocation(ItemLocation):
    def __init__(self, namespace: dict, name: str):
        super().__init__(namespace, name)
        self.name = name


class ArrayLocation(Location):
    """The elements of a NumPy array, which are Python's: no traced value fits in."""

    def __init__(self, array: np.ndarray):
        self.array, self.key, self.name = array, ("ndarray", id(array)), "NumPy array"

    def read(self):
        return self.array.copy()

    def write(self, value):
        self.array[...] = value


class _Logs(threading.local):
    """The journals of the sides that are being run, innermost last: (location, old value) by key."""

    def __init__(self):
        self.stack: list[dict[tuple, tuple[Location, Any]]] = []


logs = _Logs()


class Unknown:
    """What stands at a location whose value is not known."""

    def note_store(self, location: Location) -> None:
        """Is told before something is put there. Raises: what says that this cannot be done."""


def record(location: Location) -> None:
    """Notes a location that is about to be changed, once for each side. Raises: as `Unknown.note_store`."""
    old = location.read()
    if is_a(old, Unknown):
        old.note_store(location)
    if logs.stack and location.key not in logs.stack[-1]:
        logs.stack[-1][location.key] = (location, old)


def change(location: Location, value: Any) -> None:
    """Puts a value there, noted. Raises: as `Unknown.note_store`."""
    record(location)
    location.write(value)


class _Attempts(threading.local):
    """What takes back the marks that were made in each attempt to trace code in one way, innermost last."""

    def __init__(self):
        self.stack: list[list[Callable[[], None]]] = []


_attempts = _Attempts()


def note_mark(take_back: Callable[[], None]) -> None:
    """Notes a mark on a traced object, which is no store, but says how code may go on with it."""
    if _attempts.stack:
        _attempts.stack[-1].append(take_back)


@contextlib.contextmanager
def attempt() -> Iterator[None]:
    """Within, code is traced in a way that may turn out not to work: then its marks are taken back."""
    marks: list[Callable[[], None]] = []
    _attempts.stack.append(marks)
    try:
        yield
    except Exception:
        for take_back in reversed(marks):
            take_back()
        marks.clear()
        raise
    finally:
        _attempts.stack.pop()
        if _attempts.stack:
            _attempts.stack[-1] += marks


# -- what changes without a store ---------------------------------------------------------------------------
#: How many values are looked at.
_MAX_ITEMS = 20_000
#: Bytes of arrays that are copied; of the arrays beyond, so many elements are compared.
_MAX_BYTES, _MAX_SAMPLES = 1 << 20, 1 << 12
#: Steps that each object of a snapshot costs.
_OBJECT = 1
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
        self._iterators: list[tuple[Any, Any, Any]] = []
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
            self._iterators.append((value, find_position(value), save_position(value)))
            children = [*(children or ()), *list_sources(value)]
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
                restore_position(iterator, saved)
        return all(is_a(one, REWOUND) for one, _ in moved) and self.find_advanced() is None

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
