"""What can be seen of a program's state: types, contents, which objects are one, which arrays share memory.

In: values, and the variables of a module. Out: nested tuples that hold no objects of the program, and where two
of them differ.
"""

from __future__ import annotations

import array
import collections
import functools
import inspect
import itertools
import math
import re
import types
from typing import Any

import numpy as np

from jitcore import autojit

#: Attributes that decorators give a function beside the user's.
_OF_DECORATORS = frozenset(vars(autojit(lambda: None))) | frozenset(vars(functools.singledispatch(lambda v: None)))
_UNSEEN = frozenset({"compiled", "make", "CALLS", "f"})  # f: the last, by its attributes
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_SCALARS = (int, float, complex, str, bytes, type(None), type(...), type(NotImplemented))


class Observer:
    """Notes values one after the other. An object that was met before is noted by its number."""

    def __init__(self, module: str):
        self.module = module
        self.numbers: dict[int, int] = {}
        self.arrays: list[np.ndarray] = []
        self.kept: list[Any] = []  # temporary objects, whose ids must not be given again

    def note(self, value: Any) -> tuple:
        kind = type(value)
        if kind in _SCALARS or kind is bool:
            return kind.__name__, value
        if kind in (range, slice):
            return kind.__name__, repr(value)
        if isinstance(value, np.generic):
            return "scalar", kind.__name__, value.dtype.str, value.item()
        if kind is tuple:  # which one it is makes no difference
            return "tuple", [self.note(one) for one in value]
        if id(value) in self.numbers:
            return "object", self.numbers[id(value)]
        self.numbers[id(value)] = len(self.numbers)
        self.kept.append(value)
        if kind.__module__.startswith("jitcore"):
            return "STAND-IN", kind.__name__
        return self._note_object(value, kind)

    def _note_object(self, value: Any, kind: type) -> tuple:
        """Asks the type only: `isinstance` may enter code of the user's."""
        if issubclass(kind, np.ndarray):
            self.arrays.append(value)
            items = value.tolist() if value.dtype != object else [self.note(one) for one in value.flat]
            return kind.__name__, value.dtype.str, value.shape, value.flags.writeable, items
        if issubclass(kind, (tuple, list, collections.deque)):
            limit = (value.maxlen,) if issubclass(kind, collections.deque) else ()
            items = list.__iter__(value) if issubclass(kind, list) else iter(value)
            return kind.__name__, *limit, [self.note(one) for one in items], *self._note_attributes(value)
        if issubclass(kind, dict):
            factory = (self.note(value.default_factory),) if issubclass(kind, collections.defaultdict) else ()
            return kind.__name__, *factory, [(self.note(key), self.note(one)) for key, one in dict.items(value)], *self._note_attributes(value)
        if issubclass(kind, (set, frozenset)):
            return kind.__name__, sorted([self.note(one) for one in value], key=repr)
        if issubclass(kind, types.FunctionType):
            return self._note_function(value)
        if issubclass(kind, type):
            return self._note_type(value)
        if issubclass(kind, types.ModuleType):
            seen = vars(value) if value.__spec__ is None and value.__loader__ is None and not hasattr(value, "__file__") else {}
            return "module", value.__name__, self._note_names(seen)
        if issubclass(kind, types.MethodType):
            return "method", value.__func__.__name__, self.note(value.__self__)
        if issubclass(kind, types.BuiltinMethodType):
            return "method", value.__name__, self.note(value.__self__) if type(value.__self__).__hash__ is None else ()
        if issubclass(kind, functools.partial):
            return "partial", self.note(value.func), self.note(value.args), self.note(value.keywords)
        if issubclass(kind, functools._lru_cache_wrapper):
            return "lru_cache", value.cache_info().currsize, self.note(value.__wrapped__)
        if issubclass(kind, (itertools.count, bytearray, memoryview)):
            return kind.__name__, _ADDRESS.sub("", repr(value)), bytes(value) if not issubclass(kind, itertools.count) else 0
        if issubclass(kind, array.array):
            return "array.array", value.typecode, value.tolist()
        if issubclass(kind, (property, staticmethod, classmethod)):
            parts = (value.fget, value.fset) if issubclass(kind, property) else (value.__func__,)
            return kind.__name__, [self.note(part) for part in parts]
        if issubclass(kind, types.CellType):
            try:
                return "cell", self.note(value.cell_contents)
            except ValueError:
                return ("empty cell",)
        own = (self.note(kind),) if kind.__module__ == self.module else ()
        return kind.__name__, *own, *self._note_attributes(value)

    def _note_attributes(self, value: Any) -> list:
        found = []
        try:
            found.append(self._note_names(object.__getattribute__(value, "__dict__")))
        except AttributeError:
            pass
        slots = [name for owner in type(value).__mro__ for name in vars(owner).get("__slots__", ()) if isinstance(name, str)]
        for name in slots if type(value).__module__ == self.module else ():
            try:
                found.append((name, self.note(object.__getattribute__(value, name))))
            except AttributeError:
                found.append((name, "no value"))
        return found

    def _note_names(self, names: dict) -> list:
        return [(name, self.note(one)) for name, one in list(names.items()) if not (isinstance(name, str) and name.startswith("__"))]

    def _note_function(self, function: types.FunctionType) -> tuple:
        if function.__module__ != self.module:
            return "STAND-IN" if "jitcore" in (function.__module__ or "") else "function", function.__name__
        attributes = self._note_names({name: one for name, one in vars(function).items() if name not in _OF_DECORATORS})
        inner = inspect.unwrap(function)
        cells = [self.note(cell) for cell in inner.__closure__ or ()]
        defaults = self.note(function.__defaults__), self.note(function.__kwdefaults__)
        return "function", function.__name__, attributes, *defaults, cells

    def _note_type(self, kind: type) -> tuple:
        if kind.__module__ != self.module:
            return "type", kind.__name__
        return "type", kind.__name__, [(name, self.note(one)) for name, one in vars(kind).items()
                                       if not name.startswith("_") and not isinstance(one, (types.MemberDescriptorType, types.GetSetDescriptorType))]

    def note_module(self, space: dict) -> list:
        names = sorted(name for name in space if not name.startswith("__") and name not in _UNSEEN)
        found = [(name, self.note(space[name])) for name in names if not isinstance(space[name], types.ModuleType) or space[name].__spec__ is None]
        return [*found, ("f", self.note(space["f"]))]

    def list_shared(self) -> list:
        """Pairs of arrays that share memory."""
        bounds = [np.lib.array_utils.byte_bounds(one) if one.size else (0, 0) for one in self.arrays]
        return [(i, j) for i, (low, high) in enumerate(bounds) for j in range(i) if low < bounds[j][1] and bounds[j][0] < high
                and np.shares_memory(self.arrays[i], self.arrays[j])]


def mask_addresses(text: str) -> str:
    return _ADDRESS.sub("0x", text)


def find_difference(one: Any, other: Any, path: tuple = ()) -> tuple | None:
    """(where, what, what instead) of the first difference, or None. Floats may differ in their last digits."""
    if one.__class__ is not other.__class__:
        return path, one, other
    if isinstance(one, (tuple, list)):
        if len(one) == len(other):
            for i, (a, b) in enumerate(zip(one, other)):
                label = a[0] if isinstance(a, tuple) and len(a) == 2 and isinstance(a[0], str) else i
                if a is not b and (found := find_difference(a, b, (*path, label))):
                    return found
            return None
        return path, one, other
    if isinstance(one, complex):
        return find_difference((one.real, one.imag), (other.real, other.imag), path)
    if isinstance(one, float):
        same = one == other or (one != one and other != other) or math.isclose(one, other, rel_tol=1e-6 if abs(one) > 1e-30 else 1e-9, abs_tol=1e-12)
        same = same and (one != 0 or other != 0 or math.copysign(1, one) == math.copysign(1, other))
        return None if same else (path, one, other)
    return None if one == other else (path, one, other)
