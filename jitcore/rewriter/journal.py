"""The journal: what a rewritten function stores outside of its local variables.

In: each store to a cell, attribute, item or global name, before it happens. Out: the locations that the side
of a traced decision changed, with their old values, so that it can be rolled back and the other side run;
then both are merged as local variables are. Lists, dicts and sets that were changed without a store
(`append`, `sort`, C code) are found by comparing shallow copies.
"""

from __future__ import annotations

import operator
import threading
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jitcore.core.trace import JaxprTrace
from jitcore.rewriter.emission import UNDEFINED
from jitcore.rewriter.handles import Handle
from jitcore.rewriter.iterators import copy_iterator, is_copyable, is_same_position


class Location:
    """A place that can be read and set; UNDEFINED where nothing is there. key: equal for the same place."""

    name = "value"
    key: tuple

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
        self.owner, self.name, self.key = owner, name, ("attribute", id(owner), name)

    def read(self):
        return getattr(self.owner, self.name, UNDEFINED)

    def write(self, value):
        if value is UNDEFINED:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, value)


class ItemLocation(Location):
    """An item of a list or dict."""

    def __init__(self, owner: list | dict, index: Any):
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


class ContainerLocation(Location):
    """The contents of a list, dict or set."""

    def __init__(self, container):
        self.container, self.key = container, ("container", id(container))
        self.name = type(container).__name__

    def read(self):
        return type(self.container)(self.container)

    def write(self, value):
        contents = type(self.container)(value)
        self.container.clear()
        (self.container.extend if isinstance(self.container, list) else self.container.update)(contents)


class _Logs(threading.local):
    """The journals of the sides that are being run, innermost last: (location, old value) by key."""

    def __init__(self):
        self.stack: list[dict[tuple, tuple[Location, Any]]] = []


logs = _Logs()


def record(location: Location) -> None:
    """Notes a location that is about to be changed, once for each side."""
    if logs.stack and location.key not in logs.stack[-1]:
        logs.stack[-1][location.key] = (location, location.read())


# -- containers ---------------------------------------------------------------------------------------------
#: How deep containers are searched, and how many items.
MAX_DEPTH, _MAX_ITEMS = 4, 20_000
_CONTAINERS = (list, dict, set)


class Snapshot:
    """Shallow copies of the lists, dicts and sets that can be reached from some values.

    reached: ids of all objects that were looked at: an object that is not among them is new."""

    def __init__(self, roots: Iterable[Any]):
        self._copies: list[tuple[Any, Any]] = []
        roots = list(roots)
        self._iterators = [(root, copy_iterator(root)) for root in roots if is_copyable(root)]
        self.reached: dict[int, Any] = {}
        waiting, count = [(root, 0) for root in roots], 0
        while waiting and count < _MAX_ITEMS:
            value, depth = waiting.pop()
            children = list_children(value)
            if children is None or id(value) in self.reached:
                continue
            self.reached[id(value)] = value
            if type(value) in _CONTAINERS:
                self._copies.append((value, type(value)(value)))
            count += len(children)
            if depth < MAX_DEPTH:
                waiting += [(child, depth + 1) for child in children]

    def find_advanced(self) -> Any:
        """An iterator among the roots that has come further, or None."""
        return next((one for one, other in self._iterators if not is_same_position(one, other)), None)

    def read_contents(self) -> dict[int, Any]:
        """What the containers that have changed hold now, by id."""
        return {id(container): type(container)(container) for container, copy in self._copies
                if _has_changed(container, copy)}  # fmt: skip

    def roll_back(self, contents: dict[int, Any]) -> list[tuple[Any, Any]]:
        """Gives containers their old contents, when stores have been rolled back.

        Returns: those that were changed in other ways than by stores, and their contents before that."""
        changes = []
        for container, copy in self._copies:
            if _has_changed(container, copy):
                changes.append((container, contents[id(container)]))
                ContainerLocation(container).write(copy)
        return changes


def list_children(value: Any) -> list | None:
    """What a container or an object of a Python class holds; None for all else."""
    if type(value) in (list, tuple, set):
        return list(value)
    if type(value) is dict:
        return list(value.values())
    if isinstance(value, (Handle, type, types.ModuleType, types.FunctionType)):
        return None
    if hasattr(value, "__dict__"):
        return list(vars(value).values())
    return None


def _has_changed(container, copy) -> bool:
    if len(container) != len(copy):
        return True
    if isinstance(container, list):
        return any(map(operator.is_not, container, copy))
    if isinstance(container, dict):
        return any(key not in copy or copy[key] is not value for key, value in container.items())
    return container != copy
