"""Objects of the user's as they are: whose code they are of, what they hold, how far iterators have come.

In: a file, a code object, a class, any object. Out: whether it lies outside of jitcore, the standard library
and installed packages; what can be reached from it. None of the user's code is run to find that out.
"""

from __future__ import annotations

import array
import functools
import gc
import itertools
import operator
import os
import sys
import sysconfig
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from copy import copy as copy_object
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from jitcore.core.source import SourcePosition, format_place, format_snippet
from jitcore.rewriter.handles import UNDEFINED, Compound, Handle

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_FOLDERS = {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
#: Where transformations are, and what keeps our frames out of tracebacks.
_WRAPPERS = (_PACKAGE + "transforms" + os.sep, _PACKAGE + os.path.join("core", "source.py"))
_OF_OTHERS = (_PACKAGE, *_FOLDERS, "<frozen", "<jitcore")
_HEAP_TYPE = 1 << 9
#: Modules without a file, whose classes are not the user's.
_OF_C = ("builtins", "_cython_")


def is_library_file(path: str | None) -> bool:
    """Whether a file belongs to Python, to jitcore or to an installed package; so do builtins."""
    return not path or path.startswith(_OF_OTHERS)


def is_wrapper(function: FunctionType) -> bool:
    """Whether this is what a transformation of ours made of a function, which is in its closure."""
    return bool(function.__closure__) and function.__code__.co_filename.startswith(_WRAPPERS)


def is_user_code(code: CodeType) -> bool:
    return not code.co_filename.startswith(_OF_OTHERS)


def is_user_function(value: Any) -> bool:
    """Whether it is a Python function of the user's. Asks its type: `__class__` may be the code of a user."""
    return issubclass(type(value), FunctionType) and is_user_code(value.__code__)


#: Classes of libraries that somebody asked about.
LIBRARY_CLASSES: set[type] = set()


def module_of(kind: type) -> str:
    """The name of the module that a class is of; "" for classes in C whose instances have a variable of that
    name."""
    module = kind.__module__
    return module if isinstance(module, str) else ""


def is_user_class(kind: type) -> bool:
    """Whether a class was made by code of the user."""
    if kind in LIBRARY_CLASSES:
        return False
    module = module_of(kind)
    if kind.__flags__ & _HEAP_TYPE and module and not module.startswith(_OF_C):
        path = getattr(sys.modules.get(module), "__file__", None)
        if path is None or module == "__main__" or not is_library_file(path):
            return True
    LIBRARY_CLASSES.add(kind)
    return False


def find_in_class(kind: type, name: str) -> tuple[type | None, Any]:
    """(the class that has a variable, what is there), as Python looks for it; (None, None) if none has it."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base, base.__dict__[name]
    return None, None


def is_compiled_by_numba(callee: Any) -> bool:
    """Whether Numba made this of a Python function: with `njit`, or for kernels."""
    return (module_of(type(callee)).startswith("numba.")
            and isinstance(getattr(callee, "py_func", None), FunctionType))


def find_owner(callee: Any) -> tuple[Any, str]:
    """The object whose method a function is, or None; and the module of that object's class, or its own."""
    owner = getattr(callee, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
        owner, module = None, getattr(callee, "__module__", None)
    else:
        module = type(owner).__module__
    return owner, module if isinstance(module, str) else module_of(type(callee))


def find_special(value: Any, name: str) -> Callable | None:
    """The special method of an object if it is code of the user's, bound to it; else None."""
    kind = type(value)
    if kind in LIBRARY_CLASSES or not is_user_class(kind):
        return None
    found = find_in_class(kind, name)[1]
    return MethodType(found, value) if is_user_function(found) else None


def is_changeable(kind: type) -> bool:
    """Whether a class was made by a class statement."""
    return bool(kind.__flags__ & _HEAP_TYPE)


class Place:
    """A line of the user's where a traced value decides.

    columns: (last line, first column, column behind the last) of the expression that decides, where known."""

    def __init__(self, code: CodeType, line: int, columns: tuple[int | None, ...] = (None, None, None)):
        self.position = SourcePosition(code.co_filename, line, *columns, code.co_qualname)

    def resolve(self) -> SourcePosition:
        return self.position

    @property
    def lines(self) -> list[str]:
        return format_snippet(self)

    def __str__(self) -> str:
        text = self.lines[1].strip() if len(self.lines) > 1 else ""
        place = f"{format_place(self.position.file, self.position.line)} in {self.position.function}()"
        return f"{place}: `{text}`" if text else place


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
    if module_of(kind).startswith("jitcore."):
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


#: Each with the methods of its own, so that those of subclasses are not called.
_CHANGING = (OrderedDict, dict, list, set, deque, bytearray, array.array)


def kind_of(value: Any) -> type | None:
    """Which container it is, or is a subclass of."""
    return next((kind for kind in _CHANGING if is_a(value, kind)), None)


def copy_contents(container: Any) -> Any:
    """A copy as a plain dict, list or set; of a buffer as a buffer."""
    kind = kind_of(container)
    if kind in (dict, OrderedDict):
        return dict(kind.items(container))
    if kind in (list, deque):
        return list(container)
    return set(container) if kind is set else container[:]


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
    nested = [find_position(value) for value in list_sources(iterator)]
    return _Items([operator.length_hint(iterator, -1), *nested])


_SEQUENCES = tuple(type(iter(kind())) for kind in (list, tuple, str, bytes))
#: Those that can be put back, and those that are where they were when what they take from is.
REWOUND = (Compound, SharedIterator, *_SEQUENCES, zip, map, filter)


def save_position(iterator: Any) -> Any:
    """What `restore_position` needs; None for iterators that only go on."""
    if is_a(iterator, Compound):
        return dict(vars(iterator))
    if is_a(iterator, SharedIterator):
        return iterator.position
    if is_a(iterator, _SEQUENCES):
        place = iterator.__reduce__()[2:]
        return place[0] if place else None  # nothing: it has ended
    return None


def restore_position(iterator: Any, saved: Any) -> None:
    if is_a(iterator, Compound):
        vars(iterator).update(saved)
    elif is_a(iterator, SharedIterator):
        iterator.position = saved
    else:
        iterator.__setstate__(saved)  # of no effect behind its end


def list_sources(iterator: Any) -> list:
    """The iterators that an iterator takes from."""
    found: list[Any] = []
    for value in gc.get_referents(iterator):
        found += value if type(value) is tuple else [value]
    return [value for value in found if hasattr(type(value), "__next__")]
