"""The journal: what a rewritten function stores outside of its local variables.

In: each store to a cell, attribute, item or global name, before it happens. Out: the locations that the side
of a traced decision changed, with their old values, so that it can be rolled back and the other side run;
then both are merged as local variables are. `snapshots.py` finds what was changed without a store.
"""

from __future__ import annotations

import array
import contextlib
import functools
import operator
import threading
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from jitcore.core.trace import JaxprTrace
from jitcore.rewriter.handles import UNDEFINED, Handle
from jitcore.rewriter.user_code import find_in_class


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


# -- containers ---------------------------------------------------------------------------------------------
#: How deep containers are searched where one may be come to again and again.
MAX_DEPTH = 16
#: Methods that know their object; and what those know that are functions of modules, classes and texts.
BOUND_METHODS = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)
OWNERLESS = (types.NoneType, types.ModuleType, type, str)


def is_a(value: Any, kinds: Any) -> bool:
    """`isinstance` that does not ask for `value.__class__`, which may be code of the user."""
    return issubclass(type(value), kinds)


def read_variables(value: Any) -> Any:
    """The `__dict__` of an object, None where it has none; no code of its class is called."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def read_slot(value: Any, kind: type, name: str) -> Any:
    """What an object holds in a slot of its class; no code of the class is called."""
    try:
        return kind.__dict__[name].__get__(value)
    except AttributeError:
        return UNDEFINED


#: Types of what holds nothing, and is the same wherever it is.
ATOMS = frozenset([int, float, complex, bool, str, bytes, type, types.ModuleType, types.NoneType])


def walk(values: Iterable[Any], list_parts: Callable | None = None) -> Iterator[Any]:
    """Each object that can be reached from some, once. list_parts: what is reached from one at once, or None;
    by itself `list_children`."""
    list_parts = list_parts or list_children
    waiting, seen = list(values), {}
    while waiting:
        value = waiting.pop()
        if type(value) not in ATOMS and id(value) not in seen:
            seen[id(value)] = value
            yield value
            waiting += list_parts(value) or ()


def list_children(value: Any) -> list | None:
    """What a container or an object of a Python class holds; None for all else. No code of its class is
    called."""
    kind = type(value)
    variables = read_variables(value)
    own = list(variables.values()) if type(variables) is dict else []
    base = next((one for one in _CONTAINERS if issubclass(kind, one)), None)
    if base is not None:
        return [*(dict.values(value) if base is dict else base.__iter__(value)), *own]
    if issubclass(kind, (bytearray, array.array)):
        return []
    if kind is types.CellType:
        return [value.cell_contents] if value != types.CellType() else []
    if kind in BOUND_METHODS:
        return None if is_a(value.__self__, OWNERLESS) else [value.__self__]
    if issubclass(kind, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if issubclass(kind, (Handle, type, types.ModuleType, types.FunctionType)):
        return None
    if kind is types.GeneratorType:
        return [] if value.gi_frame is None else list(value.gi_frame.f_locals.values())
    if kind.__module__.startswith("jitcore."):
        return None
    slots = [(base, name) for base in kind.__mro__ for name in _list_slots(base)]
    if variables is None and not slots:
        return None
    held = [read_slot(value, base, name) for base, name in slots]
    return [*own, *[one for one in held if one is not UNDEFINED]]


_CONTAINERS = (list, tuple, set, deque, dict)


def _list_slots(kind: type) -> list[str]:
    """The names of the slots that a class of the user's adds to an object."""
    names = kind.__dict__.get("__slots__", ())
    names = (names,) if isinstance(names, str) else names
    return [name for name in names if type(kind.__dict__.get(name)) is types.MemberDescriptorType]
