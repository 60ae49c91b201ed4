"""From values to specs.

In: arguments and captured variables, one after the other. Out: the `Spec` of each, and what stands at the
places; `Unreadable` for what cannot be traced.

Python numbers are static (part of the program) or traced (inputs), as `NumberPolicy` says for each path: an
int is static until it has had a few values; a float is traced. A number whose value Python needed while
tracing is static for good.
"""

from __future__ import annotations

import enum
import functools
import re
import types
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from jitcore import dtypes
from jitcore.autojitted.inputs.columns import read_objects
from jitcore.autojitted.inputs.specs import (TRACED_INTS, ArraySpec, DictSpec, ElementSpec, GeneratorSpec,
                                             IdentitySpec, InstanceSpec, NumbersSpec, PartsSpec, RepeatSpec,
                                             ScalarSpec, SequenceSpec, Spec, StaticSpec, TextSpec, Unreadable,
                                             UnreadSpec, is_constant_key, list_key_types)
from jitcore.config import config
from jitcore.dispatch.call_facts import ABSENT, FLAGS
from jitcore.numpy_semantics.values.numbers import NUMBER_DTYPES
from jitcore.numpy_semantics.values.storage import describe_order
from jitcore.process.concurrency import drop_oldest
from jitcore.process.lists import MIXED, describe as describe_list
from jitcore.process.streams import describe as describe_generator, is_generator
from jitcore.rewriter.objects import (BOUND_METHODS, OWNERLESS, find_in_class, is_changeable, is_user_class,
                                      is_user_function, module_of)

#: Values of an int after which it is traced, if that works.
VALUES_BEFORE_TRACING = 3
#: Values of a number that has to be static for which programs are made.
MAX_STATIC_VALUES = 16
#: Programs that are made for arguments of the same kinds, because code or variables are not what they were;
#: when there were more, the calls for each other one.
MAX_VERSIONS, CALLS_PER_VERSION = 32, 64

Path = tuple


class NumberPolicy:
    """Args: names of parameters that are always static; of those whose ints have another value each time.

    Attributes:
        mixed: paths of lists whose numbers may become ints or floats.
    """

    def __init__(self, static_names: Iterable[str], varying_names: Iterable[str] = ()):
        self._names = frozenset(static_names)
        self._varying = frozenset(varying_names)
        self.mixed: frozenset[Path] = frozenset()
        self._pinned: set[Path] = set()
        self._traced: set[Path] = set()
        self._values: dict[Path, set] = {}
        self._versions: dict[Hashable, int] = {}

    def is_static(self, path: Path, value: Any) -> bool:
        if path[0] in self._names:
            return True
        if path in self._pinned:
            if value.__class__ is not list:  # whose elements have paths of their own
                self._note(path, value)
            return True
        if value.__class__ is not int or path[0] in self._varying:
            return False
        if path not in self._traced and self._note(path, value) >= VALUES_BEFORE_TRACING:
            self._traced.add(path)
        return path not in self._traced

    def _note(self, path: Path, value: Any) -> int:
        values = self._values.setdefault(path, set())
        if len(values) <= MAX_STATIC_VALUES:
            values.add(value)
        return len(values)

    def may_make_version(self, specs: Hashable) -> bool:
        """Whether one more program is made for arguments of the same kinds; of many, one in some calls."""
        self._versions[specs] = count = self._versions.get(specs, 0) + 1
        drop_oldest(self._versions, config.cache_size)
        return count <= MAX_VERSIONS or count % CALLS_PER_VERSION == 0

    def pin(self, paths: Iterable[Path]) -> None:
        """Numbers whose value is needed while tracing."""
        self._pinned.update(paths)

    def unpin(self, paths: Iterable[Path]) -> None:
        self._pinned.difference_update(paths)

    def find_exhausted(self, paths: Iterable[Path]) -> Path | None:
        """A number that has to be static and has had too many values."""
        for path in paths:
            if path in self._pinned and len(self._values.get(path, ())) > MAX_STATIC_VALUES:
                return path
        return None

    @property
    def pinned(self) -> frozenset[Path]:
        return frozenset(self._pinned)


#: Values that are passed, those in containers among them: more make a call's overhead larger than its work.
MAX_VALUES = 10_000


#: Elements, or rows, from which on a list of numbers is an array.
MIN_PACKED = 16
#: The same of a list of objects: for each of so many there is much to be written where they are not.
MIN_OBJECTS = 8
#: Letters from which on a text is an array of them, unless it is needed as it is.
MIN_LETTERS = 32


_IDENTITIES = (
    types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, np.ufunc, np.vectorize,
    types.MethodType, types.GenericAlias, types.MethodDescriptorType, types.WrapperDescriptorType,
    type(np.sum))
_STATICS = (type(None), bool, str, bytes, type(Ellipsis), np.dtype, slice, range)


def _is_wrapper(value: Any) -> bool:
    """Whether an object is one function and nothing else: jitted, cached, an operator with its operands."""
    module = module_of(type(value))
    if module.startswith("numpy.lib._index_tricks"):  # np.mgrid
        return True
    return callable(value) and module.startswith(("numba.", "jitcore.", "functools", "operator"))


#: Objects that do not change: their methods are known by themselves.
_UNCHANGING_OWNERS = (*OWNERLESS, bytes, frozenset, range, re.Pattern, np.ufunc)


#: What makes an object more than its `__dict__` says.
_RULES = ("__slots__", "__new__", "__getattr__", "__setattr__", "__del__")


def _describe_rule(kind: type) -> str:
    """Why an object of a class of the user's cannot be taken apart, as the end of a sentence."""
    own = [name for base in kind.__mro__ if is_user_class(base) for name in _RULES if vars(base).get(name)]
    return f", which has {own[0]}" if own else ""


class Reader:
    """Reads values. is_static: whether the Python number found by a path is part of the program. packs:
    whether lists of numbers that are not shorter than `least` are arrays; has_packed, has_short: whether
    there was one, or a shorter one. own: names of arguments
    that nobody else has, see `ArraySpec`. mixed: paths of lists of ints that may become floats, or the other
    way round.

    Attributes:
        values: the object at each place.
        paths: how each place is found, for messages: ("x", 0, ".name").
        number_paths: how each Python number is found.
    """

    def __init__(self, is_static: Callable[[tuple, Any], bool], packs: bool = False,
                 own: Container[str] = (), mixed: frozenset[tuple] = frozenset(), least: int = MIN_PACKED):
        self.is_static, self.packs, self.own, self.mixed = is_static, packs, own, mixed
        self.least, self.has_packed, self.has_short = least, False, False
        self._rows: set[int] = set()
        self._elements: dict[int, tuple[int, int]] = {}  # by the id of an object: its list, and where in it
        self.values: list[Any] = []
        self.paths: list[tuple] = []
        self.number_paths: list[tuple] = []
        self._seen: dict[int, int] = {}
        self._variables: dict[int, int] = {}  # id of a dict of attributes -> place of its object
        self._count = 0

    def renew(self, mixed: frozenset[tuple]) -> Reader:
        """One that reads the same way, but for mixed lists, and has read nothing."""
        return Reader(self.is_static, self.packs, self.own, mixed, self.least)

    def release(self) -> None:
        """Lets go of the values: nothing more is read."""
        self.values, self._seen, self._variables, self._elements = [], {}, {}, {}

    def _add(self, value: Any, path: tuple, *, repeats: bool = True) -> None:
        """Gives a value a place. repeats: whether it is one object wherever it is met."""
        if repeats:
            self._seen[id(value)] = len(self.values)
        self.values.append(value)
        self.paths.append(path)

    def read_all(self, names: Sequence[str], values: Sequence) -> tuple[Spec, ...]:
        """The specs of the arguments of a call. Raises: Unreadable."""
        order = sorted(range(len(values)), key=lambda number: self.is_instance(type(values[number])))
        found = {number: self.read(values[number], (names[number],)) for number in order}
        return tuple([found[number] for number in range(len(values))])

    def can_read(self, names: Sequence[str], values: Sequence) -> bool:
        """Whether `read_all` raises nothing."""
        try:
            self.read_all(names, values)
        except Unreadable:
            return False
        return True

    def read_whole(self, value: Any, path: tuple) -> Spec:
        """As `read`; what was met of a value that is unreadable is forgotten. Raises: Unreadable."""
        return self.undo_unreadable(lambda: self.read(value, path))

    def undo_unreadable(self, read: Callable[[], Spec]) -> Spec:
        """Calls a function that reads; what it has met is forgotten where it raises `Unreadable`."""
        count, n_read, n_numbers = len(self.values), self._count, len(self.number_paths)
        try:
            return read()
        except Unreadable:
            self._count = n_read
            del self.number_paths[n_numbers:]
            for lists in (self.values, self.paths):
                del lists[count:]
            self._seen, self._variables = ({key: place for key, place in known.items() if place < count}
                                           for known in (self._seen, self._variables))
            self._elements = {key: found for key, found in self._elements.items() if found[0] < count}
            raise

    def read(self, value: Any, path: tuple) -> Spec:
        """Raises: Unreadable."""
        self._count += 1
        if self._count > MAX_VALUES:
            raise Unreadable(f"more than {MAX_VALUES} values are passed")
        kind = type(value)
        if is_user_class(kind) and isinstance(find_in_class(kind, "__getattribute__")[1], types.FunctionType):
            raise Unreadable(f"{describe_path(path)} is of type {kind.__module__}.{kind.__qualname__}")
        if id(value) in self._seen:
            return RepeatSpec(self._seen[id(value)])
        if id(value) in self._elements:
            return ElementSpec(*self._elements[id(value)])
        if kind is np.ndarray:
            return self._read_array(value, path)
        if kind in NUMBER_DTYPES:
            return self._read_number(value, path)
        if isinstance(value, np.generic):
            return self._read_scalar(value, path)
        if kind is functools.partial:
            self._add(value, path)
            return PartsSpec(kind, self._read_parts(value, path, "func", "args", "keywords"))
        of_user = kind is types.MethodType and is_user_function(value.__func__)
        if of_user or kind in BOUND_METHODS and not isinstance(value.__self__, _UNCHANGING_OWNERS):
            return self._read_method(value, path)
        if value is ABSENT or isinstance(value, (*_IDENTITIES, enum.Enum)) or _is_wrapper(value):
            return IdentitySpec(value)
        if kind is slice and not is_constant_key((value.start, value.stop, value.step)):
            raise Unreadable(f"{describe_path(path)} is a slice of objects")
        if kind is str and self.packs and len(value) >= MIN_LETTERS and not self.is_static(path, value):
            self._add(value, path, repeats=False)
            self._add(None, path, repeats=False)  # the array
            return TextSpec(len(value))
        if kind in _STATICS or isinstance(value, np.dtype):
            return StaticSpec(kind, value, repr(value) if kind in (slice, range) else "")
        if is_generator(value):
            return self._read_generator(value, path)
        if self.packs and kind is list:
            packed = self._pack(value, path)
            if packed is not None:
                return packed
        if kind in (list, dict) or self.is_instance(kind):
            self._add_container(value, kind, path)
        return self._read_container(value, kind, path)

    def _pack(self, value: list, path: tuple) -> Spec | None:
        """Raises: Unreadable for a row that was met, or is met, as a list of its own."""
        if id(value) in self._rows:
            raise Unreadable(f"{describe_path(path)} is a row of a list")
        if len(value) < 2 or self.is_static(path, value):
            return None
        found = describe_list(value)
        if found is None and not self.is_instance(type(value[0])):
            return None
        if len(value) < (self.least if found else min(self.least, MIN_OBJECTS)):
            self.has_short = True
            return None
        return self.add_numbers(value, *found, path) if found else read_objects(self, value, path)

    def was_met(self, value: Any) -> bool:
        """Whether an object has a place, or stands in a list that has one."""
        known = self._seen, self._elements, self._variables, self._rows
        return any(id(value) in found for found in known)

    def add_numbers(self, value: list, kind: Any, shape: tuple[int, ...], path: tuple) -> NumbersSpec:
        """The places of a list of numbers, or of rows of them. Raises: as `_pack`."""
        if path in self.mixed and kind in MIXED:
            kind = MIXED
        rows = {*map(id, value)} if len(shape) > 1 else set()
        if any(map(self.was_met, value if rows else ())):
            raise Unreadable(f"{describe_path(path)} has a row that is met elsewhere")
        self._rows |= rows
        self.has_packed = True
        self._add(value, path)
        self._add(None, path, repeats=False)  # the array
        return NumbersSpec(kind, shape)

    def add_objects(self, values: list, variables: list[dict], path: tuple) -> None:
        """The place of a list of objects."""
        place = len(self.values)
        self.has_packed = True
        self._count += len(values)
        self._add(values, path)
        self._elements |= {id(value): (place, index) for index, value in enumerate(values)}
        self._variables |= {id(own): place for own in variables}

    def add_arrays(self, values: list, path: tuple) -> None:
        """The places of arrays that are stacked."""
        self._rows |= {*map(id, values)}
        self._add(values, path)
        self._add(None, path, repeats=False)  # the array

    def _add_container(self, value: Any, kind: type, path: tuple) -> None:
        """Raises: Unreadable for a dict of attributes that was met already in another way."""
        if kind is not list:
            key = id(value if kind is dict else value.__dict__)
            other = self._variables.get(key)
            if other is not None:
                shown = describe_path(self.paths[other])
                raise Unreadable(f"{describe_path(path)} has the same __dict__ as {shown}")
            self._variables[key] = len(self.values)
        self._add(value, path)

    def _read_parts(self, value: Any, path: tuple, *names: str) -> tuple[Spec, ...]:
        return tuple([self.read(getattr(value, name), (*path, f".{name}")) for name in names])

    def _read_method(self, value: Any, path: tuple) -> Spec:
        self._add(value, path)
        function = getattr(value, "__func__", None)
        is_made_of_c = not isinstance(function, types.FunctionType)
        known = () if is_made_of_c else self._read_parts(value, path, "__func__")
        try:
            owner = self._read_parts(value, path, "__self__")
        except Unreadable:
            if is_user_function(function):
                raise
            kind, name = type(value.__self__), describe_path(path)
            text = f"{name} is a method of an object of type {kind.__module__}.{kind.__qualname__}"
            raise Unreadable(text) from None
        return PartsSpec(type(value), known + owner, "" if known else value.__name__)

    def _read_array(self, value: np.ndarray, path: tuple) -> Spec:
        if id(value) in self._rows:
            raise Unreadable(f"{describe_path(path)} is an array of an object in a list")
        if value.dtype not in dtypes.SHORT_NAMES:
            raise Unreadable(f"{describe_path(path)} is an array of dtype {value.dtype}")
        self._add(value, path)
        is_own = len(path) == 1 and path[0] in self.own
        order, is_dense = describe_order(value)
        return ArraySpec(value.dtype, value.shape, value.flags.num & FLAGS, is_own, order, is_dense)

    def _read_generator(self, value: Any, path: tuple) -> Spec:
        form = describe_generator(value)
        if form is None:
            kind = type(value).__name__
            raise Unreadable(f"{describe_path(path)} is a generator of an unknown kind, a {kind}")
        self._add(value, path)
        self._add(None, path, repeats=False)  # its words
        return GeneratorSpec(form)

    def _read_scalar(self, value: np.generic, path: tuple) -> Spec:
        kind = type(value)
        if value.dtype not in dtypes.SHORT_NAMES or kind is not value.dtype.type:
            raise Unreadable(f"{describe_path(path)} is of type {kind.__name__}")
        if self.is_static(path, value):
            return StaticSpec(kind, value, repr(value))
        self._add(value, path, repeats=False)
        return ScalarSpec(kind)

    def _read_number(self, value: Any, path: tuple) -> Spec:
        kind = type(value)
        self.number_paths.append(path)
        if kind is bool or self.is_static(path, value) or kind is int and value not in TRACED_INTS:
            return StaticSpec(kind, value, repr(value) if kind in (float, complex) else "")
        self._add(value, path, repeats=False)
        return ScalarSpec(kind)

    def _read_container(self, value: Any, kind: type, path: tuple) -> Spec:
        if kind is list or isinstance(value, tuple):
            if kind not in (list, tuple) and not hasattr(kind, "_fields") or getattr(value, "__dict__", None):
                raise Unreadable(f"{describe_path(path)} is of type {kind.__name__}")
            if kind is not list:
                self._add(value, path, repeats=False)
            return SequenceSpec(kind, tuple([self.read(item, (*path, i)) for i, item in enumerate(value)]))
        if kind is dict:
            if not all(key.__class__ in (str, int, tuple) and is_constant_key(key) for key in value):
                raise Unreadable(f"{describe_path(path)} is a dict with keys that are no strings")
            children = tuple([self.read(value[key], (*path, key)) for key in value])
            return DictSpec(tuple(value), children, list_key_types(value))
        if self.is_instance(kind):
            names = tuple(value.__dict__)
            children = tuple([self._read_attribute(value.__dict__[name], (*path, f".{name}"))
                              for name in names])
            return InstanceSpec(kind, names, children)
        shown = f"{describe_path(path)} is of type {kind.__module__}.{kind.__qualname__}"
        raise Unreadable(shown + _describe_rule(kind))

    def _read_attribute(self, value: Any, path: tuple) -> Spec:
        """One that can be no input only matters where it is read."""
        try:
            return self.read_whole(value, path)
        except Unreadable as error:
            return UnreadSpec(str(error))

    @staticmethod
    def is_instance(kind: type) -> bool:
        """Whether objects of a class are what their `__dict__` says."""
        if not is_changeable(kind):
            return False
        parameters = getattr(kind, "__dataclass_params__", None)
        may_set = kind.__setattr__ is object.__setattr__ or parameters is not None and parameters.frozen
        plain = kind.__getattribute__ is object.__getattribute__ and may_set
        bases = kind.__mro__[:-1]
        is_plain = not hasattr(kind, "__getattr__") and not hasattr(kind, "__del__")
        return (plain and kind.__new__ is object.__new__ and is_plain
                and all("__dict__" in vars(base) or base.__dictoffset__ for base in bases[:1])
                and all(not vars(base).get("__slots__") for base in bases))


def describe_path(path: tuple) -> str:
    """`x[0].name` for ("x", 0, ".name")."""
    text = str(path[0])
    for part in path[1:]:
        text += part if isinstance(part, str) and part.startswith(".") else f"[{part!r}]"
    return text
