"""The first use of a compiled loop is checked: on copies of what it works on it does some iterations, Python
does the same ones, and both must agree.

In: a region and the variables of a frame at the loop's head. Out: `Trial`, which later says where the two
differ.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

from jitcore.process import lists, streams
from jitcore.scripts.environment import MAX_ITEMS, is_plain_class, read_state

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Copies", "MOST_BYTES", "Trial", "Unchecked"]

#: Arrays that are copied.
MOST_BYTES = 64 << 20
#: Numbers of a list that are copied.
MOST_NUMBERS = 1 << 20
#: How much numbers may differ: where compiled code rounds otherwise, in units of their dtype's precision.
ULPS = 1024


_NUMBERS = {int, float, bool}
_IMMUTABLE = (int, float, complex, bool, str, bytes, type(None))


class Unchecked(Exception):
    """What cannot be copied."""


class Copies:
    """Copies of values; what is one object stays one.

    Attributes:
        pairs: (array of the script, its copy); objects: the same of its classes.
        lists: the same of its lists; generators: of its generators of random numbers.
    """

    def __init__(self):
        self.pairs: list[tuple[np.ndarray, np.ndarray]] = []
        self.objects: list[tuple[Any, Any]] = []
        self.lists: list[tuple[list, list]] = []
        self.generators: list[tuple[Any, Any]] = []
        self._known: dict[int, Any] = {}
        self._kept: list = []
        self._bytes = 0

    def copy(self, value: Any, is_own: bool = False) -> Any:
        """is_own: whether nobody else has it, so that it does not matter what becomes of it."""
        kind, np = type(value), sys.modules.get("numpy")
        if kind in _IMMUTABLE or np and isinstance(value, np.generic):
            return value
        if id(value) in self._known:
            return self._known[id(value)]
        if np and kind is np.ndarray:
            if value.base is not None:
                raise Unchecked("a part of an array")
            self._bytes += value.nbytes
            if self._bytes > MOST_BYTES:
                raise Unchecked("large arrays")
            made: Any = value.copy(order="K")
            if not is_own:
                self.pairs.append((value, made))
        elif kind is list and (shape := find_shape(value)) is not None:
            made = [row[:] for row in value] if len(shape) > 1 else value[:]
            self.lists.append((value, made))
        elif kind in (list, dict, tuple) and len(value) > MAX_ITEMS:
            raise Unchecked("a long list")
        elif kind is list:
            made = []
            self._known[id(value)] = made
            made += map(self.copy, value)
            self.lists.append((value, made))
        elif kind is tuple:
            made = tuple(map(self.copy, value))
        elif kind is dict:
            made = {key: self.copy(item) for key, item in value.items()}
        elif streams.is_generator(value):
            made = streams.duplicate(value)
            self.generators.append((value, made))
        elif streams.is_method(value):
            made = getattr(self.copy(value.__self__), value.__name__)
        elif is_plain_class(kind):
            made = object.__new__(kind)
            self._known[id(value)] = made
            for name, item in read_state(value).items():
                setattr(made, name, self.copy(item))
            self.objects.append((value, made))
        else:
            return value
        self._known[id(value)] = made
        self._kept.append(value)
        return made

    def find_by(self, find: Callable[[str, Any], Any], read: Container[str]) -> Callable[[str, Any], Any]:
        """Gives copies of what constants of a program stand for. read: names that it reads of modules."""
        copies = {"module": lambda names: self.copy_names(names, read), "array": self.copy,
                  "generator": self.copy, "stream": self.copy}
        return lambda kind, number: copies.get(kind, lambda value: value)(find(kind, number))

    def run(self, function: Callable, *arguments: Any) -> Any:
        """Calls what must not draw from a generator that is no copy. Raises: Unchecked."""
        try:
            with streams.limit_to([made for _, made in self.generators]):
                return function(*arguments)
        except streams.Unlisted:
            raise Unchecked("another generator") from None

    def are_alike(self) -> bool:
        """Whether arrays and objects and their copies are the same now."""
        known = self.list_known()
        return all(is_alike(*pair) for pair in self.pairs) and all(
            is_alike(*pair, known) for pair in self.lists) and all(
            streams.are_alike(*pair) for pair in self.generators) and all(
            is_alike(read_state(one), read_state(copy), known) for one, copy in self.objects)

    def list_known(self) -> dict[int, Any]:
        """Copies of objects, which are compared by themselves, by the numbers of these objects."""
        return {id(original): copy for original, copy in (*self.objects, *self.generators)}

    def copy_names(self, names: dict, read: Container[str]) -> dict:
        """A module's variables, those that are read copied."""
        if id(names) not in self._known:
            self._known[id(names)] = made = dict(names)
            self._kept.append(names)
            for name, value in names.items():
                if name in read:
                    made[name] = self.copy(value)
        return self._known[id(names)]


def find_shape(items: list) -> tuple[int, ...] | None:
    """Of a list of numbers, or of rows of them, that are few enough to be copied."""
    found = lists.describe(items) if len(items) <= MOST_NUMBERS else None
    return None if found is None or math.prod(found[1]) > MOST_NUMBERS else found[1]


class Trial:
    """Args: copies of what a region works on; its results by name; of results that were to be appended to
    lists, how long these were before."""

    def __init__(self, copies: Copies, results: dict[str, Any], lengths: dict[str, int]):
        self.copies, self.results, self.lengths = copies, results, lengths

    def find_difference(self, variables: dict[str, Any]) -> str:
        """Where Python has come to something else; "" if it has not."""
        known = self.copies.list_known()
        for name, value in self.results.items():
            if name not in variables:
                return f"{name} has no value"
            found = variables[name][self.lengths[name]:] if name in self.lengths else variables[name]
            if not is_alike(found, value, known):
                return f"{name} is {found!r:.60}, and {value!r:.60} compiled"
        return "" if self.copies.are_alike() else "an array has other elements"


def is_alike(one: Any, other: Any, known: dict[int, Any] | None = None) -> bool:
    """Whether two values are the same, but for rounding. known: what stands for objects, by their numbers;
    new ones are added."""
    known = {} if known is None else known
    if type(one) is not type(other):
        return False
    if id(one) in known:
        return known[id(one)] is other
    np = sys.modules.get("numpy")
    if np and isinstance(one, np.ndarray):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        if one.dtype.kind in "fc":
            part = ULPS * np.finfo(one.dtype).eps
            scale = np.abs(one).max(initial=0, where=np.isfinite(one))
            return bool(np.allclose(one, other, rtol=part, atol=part * scale, equal_nan=True))
        return bool((one == other).all())
    if isinstance(one, (float, complex)) or np and isinstance(one, np.inexact):
        if one == other or one != one and other != other:
            return True
        eps = 2.0**-52 if isinstance(one, (float, complex)) else np.finfo(type(one)).eps
        return bool(abs(one - other) <= ULPS * eps * max(abs(one), abs(other))) and not math.isinf(abs(one))
    if isinstance(one, (list, tuple)):
        if {*map(type, one)} <= _NUMBERS and one == other and [*map(type, one)] == [*map(type, other)]:
            return True
        return len(one) == len(other) and all(is_alike(*pair, known) for pair in zip(one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_alike(one[key], other[key], known) for key in one)
    if is_plain_class(type(one)):
        known[id(one)] = other
        return is_alike(read_state(one), read_state(other), known)
    return bool(one == other)
