"""What a piece of a script works on, told to another process: types and sizes, not contents.

In: values of variables, and functions with what they read of their modules. Out: bytes; from them, in the
other process, values of the same types, arrays of the same dtype, shape and layout, and functions of the same
code. Both sides number the functions, modules and arrays of the script alike, so that what the other process
says about one of them is understood here (`Described.find`).

What cannot be told (objects of the script's own classes, open files, figures, long lists) arrives as an
`Opaque`.
"""

from __future__ import annotations

import enum
import io
import marshal
import pickle
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jitcore.process import lists, streams, versions
from jitcore.process.lazy import LazyModule
from jitcore.rewriter.bytecode.instructions import read_raw

np = LazyModule("numpy")  # a script without NumPy need not load it

__all__ = ["Described", "Opaque", "Rebuilt", "SYSTEM", "describe", "find_opaque", "load"]

#: Modules that the other process imports.
KNOWN = frozenset("numpy scipy math cmath operator itertools functools builtins random time collections "
                  "fractions decimal typing".split())
#: What `sys` is for the other process: what is the same in all.
SYSTEM = types.ModuleType("sys")
SYSTEM.__dict__.update({name: getattr(sys, name) for name in (
    "byteorder", "exit", "float_info", "maxsize", "platform", "version_info")})
#: Gives the code of a function as the script has it.
Restore = Callable[[types.CodeType], types.CodeType]
#: Items of a list, dict or set that are told.
MAX_ITEMS = 1000
#: Values that are told: no program takes more.
MAX_VALUES = 10_000
_CONTAINERS = (list, dict, set, frozenset, tuple)
_TOLD = (types.BuiltinFunctionType, range, slice, types.EllipsisType, property, staticmethod, classmethod)


class Opaque:
    """Something that is not known here."""

    __slots__ = ("what",)

    def __init__(self, what: str):
        self.what = what

    def __repr__(self) -> str:
        return f"<{self.what}>"


class ArrayForm(NamedTuple):
    """An ndarray without its contents."""

    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writeable: bool

    def make(self) -> np.ndarray:
        low = sum(min(0, (n - 1) * stride) for n, stride in zip(self.shape, self.strides) if n)
        high = sum(max(0, (n - 1) * stride) for n, stride in zip(self.shape, self.strides) if n)
        if 0 in self.shape:
            low = high = 0
        memory = np.zeros(high - low + self.dtype.itemsize, np.uint8)
        made = np.ndarray(self.shape, self.dtype, memory, -low, self.strides)
        made.flags.writeable = self.writeable
        return made


def is_long(items: list) -> bool:
    """Whether the numbers of a list, or of its rows, are many: only their type and number are told then."""
    row = items[0] if items and type(items[0]) is list else [None]
    return len(items) * len(row) > MAX_ITEMS


def make_list(kind: Any, shape: tuple[int, ...]) -> list:
    """A list in place of one that was not told."""
    if len(shape) > 1:
        return [make_list(kind, shape[1:]) for _ in range(shape[0])]
    numbers = [one(0) for one in (kind if kind == lists.MIXED else (kind,))]
    return (numbers * shape[0])[: shape[0]]


def is_known(module: str | None) -> bool:
    return (module or "").partition(".")[0] in KNOWN


def is_own(module: str) -> bool:
    """Whether a module is the script's own, see `sessions.imports`."""
    spec = None if module == "__main__" else getattr(sys.modules.get(module), "__spec__", None)
    return module == "__main__" or getattr(getattr(spec, "loader", None), "is_of_script", False)


class _Table(list):
    """Objects by number."""

    def __init__(self):
        super().__init__()
        self._places: dict[int, int] = {}

    def number(self, value: Any) -> int:
        place = self._places.setdefault(id(value), len(self))
        if place == len(self):
            self.append(value)
        return place


class _Loader(pickle.Unpickler):
    def __init__(self, data: bytes, find: Callable[[tuple], Any]):
        super().__init__(io.BytesIO(data))
        self._find = find

    def persistent_load(self, found: tuple) -> Any:
        return self._find(found)


def load(data: bytes, find: Callable[[tuple], Any]) -> Any:
    """What was pickled. find: gives what stands for an object of another process."""
    return _Loader(data, find).load()


class Described:
    """Values on their way to another process.

    Attributes:
        functions, modules, arrays, classes, generators, lists: of the script, as they were met. A module is
            its dict; lists: long ones, of numbers.
        reached: by their numbers, modules that are values themselves.
    """

    def __init__(self):
        self.functions, self.modules, self.arrays, self.classes = _Table(), _Table(), _Table(), _Table()
        self.generators, self.lists = _Table(), _Table()
        self.reached: dict[int, types.ModuleType] = {}

    def reach(self, module: types.ModuleType) -> int:
        number = self.modules.number(module.__dict__)
        self.reached[number] = module
        return number

    def find(self, kind: str, number: int) -> Any:
        """What `kind` and `number` stand for here."""
        if kind == "code":
            return self.functions[number].__code__
        if kind == "stream":
            return streams.share(number)
        if kind == "member":
            return find_member(self.classes, number)
        if kind == "module object":
            return self.reached[number]
        return {"function": self.functions, "module": self.modules, "array": self.arrays,
                "class": self.classes, "generator": self.generators}[kind][number]


class _Pickler(pickle.Pickler):
    def __init__(self, file, described: Described):
        super().__init__(file, protocol=5)
        self.described, self._left = described, MAX_VALUES

    def persistent_id(self, value: Any) -> tuple | None:
        kind = type(value)
        self._left -= 1
        if not self._left:
            raise ValueError(f"it works on more than {MAX_VALUES} values")
        if kind in (int, float, complex, str, bool, types.NoneType, bytes):
            return None
        np = sys.modules.get("numpy")  # scripts that do without it need not load it
        if np is not None and kind is np.ndarray:
            if value.dtype.hasobject:
                return "opaque", "array of objects"
            form = ArrayForm(value.dtype, value.shape, value.strides, value.flags.writeable)
            return "array", self.described.arrays.number(value), tuple(form)
        if streams.is_generator(value):
            return self._find_generator(value)
        if streams.is_method(value):
            return None
        if kind is types.ModuleType:
            name = value.__name__
            if is_known(name) or value is sys:
                return "known", name
            if is_own(name) and sys.modules.get(name) is value:
                return "module", self.described.reach(value)
            return "opaque", f"module {name}"
        if kind is types.FunctionType:
            if is_known(value.__module__) and value.__module__ in sys.modules:
                return None
            return "function", self.described.functions.number(value)
        if kind in _CONTAINERS:
            found = lists.guess(value) if kind is list and is_long(value) else None
            if found is not None:
                return "list", self.described.lists.number(value), *found
            return ("opaque", f"long {kind.__name__}") if len(value) > MAX_ITEMS else None
        if isinstance(value, type):
            if is_known(value.__module__):
                return None
            if not is_plain_class(value) and not is_plain_enum(value):
                return "opaque", f"class {value.__name__}"
            return "class", self.described.classes.number(value)
        if is_plain_enum(kind):
            return "member", (self.described.classes.number(kind), value.value)
        if kind in _TOLD:
            return None
        if np is not None and isinstance(value, (np.generic, np.dtype, np.ufunc)):
            return None
        return None if is_plain_class(kind) else ("opaque", kind.__name__)

    def _find_generator(self, value: Any) -> tuple:
        form, shared = streams.describe(value), streams.find_shared(value)
        if form is None:
            return "opaque", type(value).__name__
        if shared is not None:
            return "stream", shared
        return "generator", self.described.generators.number(value), form

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind is property:
            return property, (value.fget, value.fset, value.fdel)
        if kind in (staticmethod, classmethod):
            return kind, (value.__func__,)
        if is_plain_class(kind):
            return object.__new__, (kind,), read_state(value)
        return NotImplemented


def read_state(value: Any) -> dict[str, Any]:
    """The variables of an object that functions of its class assign. Its `__dict__` is not asked for: up to
    3.12 it would be made by that, and all that reads the object be slower from then on."""
    kind = type(value)
    version = versions.read_version(kind).value if versions.HAS_VERSIONS else 0
    then, names = _own_names.get(kind, (0, []))
    if not version or version != then:
        _, names = _own_names[kind] = version, _list_own_names(kind)
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


#: What `read_state` looks for in objects of a class, and the version that the class had.
_own_names: weakref.WeakKeyDictionary[type, tuple[int, list[str]]] = weakref.WeakKeyDictionary()


def _list_own_names(kind: type) -> list[str]:
    names = [name for base in reversed(kind.__mro__) for name in _list_stored_attributes(base)]
    of_class = {name for base in kind.__mro__ for name in vars(base)}
    return [name for name in dict.fromkeys(names) if name not in of_class]


def _list_stored_attributes(kind: type) -> list[str]:
    """In the order of the text, those that a property sets where it is set."""
    found = []
    for function in list_methods(kind):
        for name in list_stored_names(function.__code__):
            setter = getattr(getattr(kind, name, None), "fset", None)
            is_rule = type(setter) is types.FunctionType
            found += list_stored_names(setter.__code__) if is_rule else [name]
    return found


def list_stored_names(code: types.CodeType) -> list[str]:
    """Names of attributes that code assigns, in the order of the text."""
    return [code.co_names[one.arg] for one in read_raw(code) if one.name == "STORE_ATTR"]


def list_methods(kind: type) -> list[types.FunctionType]:
    """The functions among a class's own variables, those of properties too."""
    found: list = []
    for one in vars(kind).values():
        found += (one.fget, one.fset, one.fdel) if type(one) is property else (getattr(one, "__func__", one),)
    return [one for one in found if type(one) is types.FunctionType]


def find_opaque(value: Any) -> str:
    """What cannot be told, in words; "" for what can."""
    found = _Pickler(io.BytesIO(), Described()).persistent_id(value)
    return found[1] if found is not None and found[0] == "opaque" else ""


def is_plain_class(kind: type) -> bool:
    """Whether objects of a class are what their variables are: one of the script, made as most are."""
    bases = [base for base in kind.__mro__ if base is not object]
    return bool(bases) and all(type(base) is type and is_own(base.__module__)
                               and not _SPECIAL & vars(base).keys() for base in bases)


def is_plain_enum(kind: type) -> bool:
    """Whether a class is an enumeration of the script, of numbers and texts, that has nothing but members."""
    if type(kind) is not enum.EnumMeta or not is_own(kind.__module__) or len(kind.__bases__) != 1:
        return False
    members = kind.__members__
    return kind.__base__.__module__ == enum.__name__ and all(
        type(one.value) in (int, float, str) and one.value == one.value and one.name and _is_hidden(vars(one))
        for one in members.values()) and all(
        name in members or _is_hidden([name]) and
        getattr(getattr(one, "__func__", one), "__module__", None) != kind.__module__
        for name, one in vars(kind).items())


def _is_hidden(names: Iterable[str]) -> bool:
    """Whether `enum` has made variables of these names."""
    return all(name[0] == name[-1] == "_" for name in names)


def tell_enum(kind: enum.EnumMeta) -> tuple[str, list[tuple[str, Any]], dict[str, Any]]:
    """What a plain enumeration is made of: the name of its base, its members and their other names, and what
    its base is given besides."""
    members = [(name, one.value) for name, one in kind.__members__.items()]
    boundary = getattr(kind, "_boundary_", None)
    return kind.__base__.__name__, members, {} if boundary is None else {"boundary": boundary}


def find_member(classes: Mapping[int, type] | Sequence[type], told: tuple[int, Any]) -> enum.Enum:
    """The member of an enumeration that a persistent id tells, by its value: flags together have no name."""
    number, value = told
    return classes[number](value)


_SPECIAL = frozenset("__new__ __getattr__ __getattribute__ __setattr__ __delattr__ __reduce__ __reduce_ex__ "
                     "__getstate__ __setstate__ __init_subclass__ __set_name__ __get__ __slots__".split())
#: Variables of a class that `type` makes.
_MADE = frozenset("__dict__ __weakref__ __doc__ __module__ __qualname__ __static_attributes__ "
                  "__firstlineno__ __annotations__ __annotate_func__ __annotations_cache__".split())


def describe(values: Mapping[str, Any], functions: Iterable[types.FunctionType] = (),
             hidden: frozenset[str] = frozenset(), restore: Restore = lambda code: code
             ) -> tuple[bytes, Described]:
    """The bytes of values by name, and of functions, with all that these read.

    hidden: names of `__main__` that count as not defined. restore: gives the code as the script has it.
    """
    described = Described()
    walker = _Pickler(io.BytesIO(), described)  # numbers what it meets, and goes through nothing twice
    for function in functions:
        described.functions.number(function)
    walker.dump(dict(values))
    told: dict[int, tuple] = {}
    names: dict[int, dict[str, Any]] = {}
    contents_of: dict[int, dict[str, Any]] = {}
    read: set[str] = set()

    def add_names(module: int, wanted: Iterable[str]) -> None:
        own, names_of = names.setdefault(module, {}), described.modules[module]
        is_main = names_of.get("__name__") == "__main__"
        new = {name: names_of[name] for name in wanted
               if name in names_of and name not in own and not (is_main and name in hidden)}
        own.update(new)
        walker.dump(new)

    n_told = -1
    while n_told < (n_told := len(told) + len(contents_of) + sum(map(len, names.values()))):
        for number in range(len(contents_of), len(described.classes)):
            kind = described.classes[number]
            contents_of[number] = {} if is_plain_enum(kind) else {
                name: value for name, value in vars(kind).items() if name not in _MADE}
            walker.dump((kind.__bases__, contents_of[number]))
        for number in range(len(told), len(described.functions)):
            function = described.functions[number]
            module = described.modules.number(function.__globals__)
            wanted = list_names(restore(function.__code__))
            read |= wanted
            add_names(module, wanted)
            cells = [_read_cell(cell) for cell in function.__closure__ or ()]
            told[number] = (function.__defaults__, function.__kwdefaults__, cells)
            walker.dump(told[number])
        for number in list(described.reached):  # of which functions elsewhere read something
            add_names(number, read)
    contents = {number: names.get(number, {}) for number in range(len(described.modules))}
    body = io.BytesIO()  # in which what is one object stays one
    _Pickler(body, described).dump((dict(values), told, contents, contents_of))
    shells = [(marshal.dumps(restore(one.__code__)), described.modules.number(one.__globals__), one.__name__,
               one.__qualname__, one.__module__, len(one.__closure__ or ())) for one in described.functions]
    modules = [names.get("__name__", "?") for names in described.modules]
    classes = [(one.__name__, one.__qualname__, one.__module__,
                tell_enum(one) if is_plain_enum(one) else
                [described.classes.number(base) for base in one.__bases__ if base is not object])
               for one in described.classes]
    return pickle.dumps((modules, shells, classes, body.getvalue()), 5), described


def _read_cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return Opaque("unbound variable")


def list_names(code: types.CodeType) -> set[str]:
    """Names that code may read from its module, those of functions inside it among them."""
    found = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found |= list_names(const)
    return found


# -- the other process --------------------------------------------------------------------------------------
class Rebuilt:
    """Values of another process.

    Attributes:
        values: by name.
        functions, modules, arrays, classes, generators, lists: by their numbers.
    """

    def __init__(self, data: bytes):
        modules, shells, classes, body = pickle.loads(data)
        self.modules = [types.ModuleType(name) for name in modules]
        for module in self.modules:
            module.__dict__["__builtins__"] = __builtins__
        self.functions = [self._make_shell(*shell) for shell in shells]
        self.arrays: dict[int, np.ndarray] = {}
        self.classes: dict[int, type] = {}
        self.generators: dict[int, Any] = {}
        self.lists: dict[int, list] = {}
        for number in range(len(classes)):
            self._make_class(number, classes)
        self.values: dict[str, Any]
        self.values, told, contents, contents_of = self._load(body)
        for number, variables in contents_of.items():
            for name, value in variables.items():
                setattr(self.classes[number], name, value)
        for number, (defaults, keyword_defaults, cells) in told.items():
            function = self.functions[number]
            function.__defaults__, function.__kwdefaults__ = defaults, keyword_defaults
            for cell, value in zip(function.__closure__ or (), cells):
                cell.cell_contents = value
        for number, names in contents.items():
            self.modules[number].__dict__.update(names)

    def _make_class(self, number: int, told: list[tuple]) -> type:
        if number not in self.classes:
            name, qualname, module, bases = told[number]
            if isinstance(bases, tuple):  # of an enumeration, with its members
                base, members, how = bases
                made = getattr(enum, base)(name, members, module=module, qualname=qualname, **how)
            else:
                made = type(name, tuple(self._make_class(base, told) for base in bases),
                            {"__module__": module})
                made.__qualname__ = qualname
            self.classes[number] = made
        return self.classes[number]

    def _make_shell(self, code: bytes, module: int, name: str, qualname: str, of: str, cells: int):
        closure = tuple(types.CellType() for _ in range(cells)) or None
        made = types.FunctionType(marshal.loads(code), self.modules[module].__dict__, name, None, closure)
        made.__qualname__, made.__module__ = qualname, of
        return made

    def _load(self, data: bytes) -> Any:
        return load(data, self._find)

    def _find(self, found: tuple) -> Any:
        kind, what = found[:2]
        if kind == "known":
            __import__(what)
            return SYSTEM if what == SYSTEM.__name__ else sys.modules[what]
        if kind == "array":
            made = self.arrays.get(what)
            return self.arrays.setdefault(what, ArrayForm(*found[2]).make()) if made is None else made
        if kind == "list":
            made = self.lists.get(what)
            return self.lists.setdefault(what, make_list(*found[2:])) if made is None else made
        if kind == "opaque":
            return Opaque(what)
        if kind == "stream":
            return streams.share(what)
        if kind == "member":
            return find_member(self.classes, what)
        if kind == "generator":
            made = self.generators.get(what)
            return self.generators.setdefault(what, streams.make(found[2])) if made is None else made
        return {"function": self.functions, "module": self.modules, "class": self.classes}[kind][what]
