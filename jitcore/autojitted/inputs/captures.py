"""Captures: global, closure and module variables, read as further arguments and set as further results.

In: the functions that a trace enters. Out: the same functions over namespaces that note each variable when it
is read first. A captured variable has a spec, as an argument has: later calls check it, and read its arrays
anew.
"""

from __future__ import annotations

import builtins
import enum
import functools
import sys
import types
from collections.abc import Callable, MutableMapping, MutableSequence, MutableSet
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jitcore.array import ConcreteArray
from jitcore.autojitted.inputs.guards import Guards, Watch, list_names
from jitcore.autojitted.inputs.reading import Unreadable
from jitcore.autojitted.inputs.specs import IdentitySpec, Spec
from jitcore.dispatch.call_facts import ABSENT
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.joining import has_part, join_parts
from jitcore.numpy_semantics.values.ndarray import new_array
from jitcore.rewriter.handles import Handle
from jitcore.rewriter.journal import note_captured
from jitcore.rewriter.objects import is_changeable, is_library_file

if TYPE_CHECKING:
    from jitcore.autojitted.recording.purity import EffectGuard


class Source(NamedTuple):
    """Where a variable is found: code with {owner} for the object that holds it.

    Attributes:
        assign: code that sets it to {value}; "" where that cannot be done.
    """

    owner: Any
    read: str
    assign: str = ""


class Capture(NamedTuple):
    source: Source
    spec: Spec


class Captures:
    """The captured variables of one trace.

    Args:
        stand_in: gives (spec, stand-in) for a value and its path. Raises: Unreadable.
        effects: looks after code of the user's that runs without being entered.

    Attributes:
        found: in the order in which they were met; stand_ins: of their values.
        owners: dicts of attributes that traced code has, and their objects, by id of the dict.
    """

    def __init__(self, stand_in: Callable[[Any, tuple], tuple[Spec, Any]], effects: EffectGuard):
        self._stand_in = stand_in
        self.found: list[Capture] = []
        self.stand_ins: list[Any] = []
        self.namespaces: dict[int, Namespace] = {}
        self.cells: dict[int, tuple[types.CellType, types.CellType, Any]] = {}
        self._functions: dict[types.FunctionType, types.FunctionType] = {}
        self._modules: dict[types.ModuleType, ModuleView] = {}
        self._builtins: dict[int, BuiltinNamespace] = {}
        self.owners: dict[int, tuple[dict, Any]] = {}
        self._arrays: dict[int, tuple[np.ndarray, Any]] = {}
        self._variables: dict[tuple[int, str], Any] = {}
        self._watch = Watch()
        self.effects = effects
        self._guards = Guards()

    def capture(self, source: Source, value: Any, path: tuple) -> Any:
        """The stand-in of a variable's value."""
        try:
            spec, stand_in = self._stand_in(value, path)
        except Unreadable as reason:
            raise not_traceable(str(reason)) from None
        self.found.append(Capture(source, spec))
        self.stand_ins.append(stand_in)
        note_captured(stand_in)
        return stand_in

    def guard(self, owner: Any, read: str, value: Any) -> None:
        """Programs serve only while code with {owner} gives this object."""
        self.found.append(Capture(Source(owner, read), IdentitySpec(value)))

    def call(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Calls a function whose result depends on more than its arguments: each later call asks it again."""
        if any(isinstance(value, Handle) for value in (*args, *kwargs.values())):
            raise not_traceable(f"{describe_callable(function)}() is called with a traced value")
        asked = functools.partial(function, *args, **kwargs)
        return self.capture(Source(asked, "{owner}()"), asked(), (f"{describe_callable(function)}()",))

    def adopt(self, array: Any) -> Any:
        """The stand-in of an array or generator that came up in another way: as an attribute, as an item."""
        known = self._arrays.get(id(array))
        if known is None:
            stand_in = self.capture(Source(array, "{owner}"), array, ("an array",))
            known = self._arrays[id(array)] = array, stand_in
        return known[1]

    def read_variables(self, owner: Any) -> dict:
        """`owner.__dict__`, for an object of a user's class."""
        variables = owner.__dict__
        self.owners[id(variables)] = variables, owner
        return variables

    # -- variables of classes and functions ------------------------------------------------------------------
    def note_instance(self, stand_in: Any) -> None:
        """An object of a user's class."""
        self._watch.add_class_of(stand_in)
        self.effects.meet_class(type(stand_in))
        self._guards.add_class(type(stand_in))

    def is_old(self, kind: type) -> bool:
        """Whether a class was there before the traced code ran: it was met, or it is found under its name."""
        if self._guards.knows_class(kind) or not is_changeable(kind):
            return True
        found: Any = sys.modules.get(kind.__module__)
        for name in kind.__qualname__.split("."):
            found = vars(found).get(name) if isinstance(found, (type, types.ModuleType)) else None
        return found is kind

    def capture_variable(self, owner: Any, name: str, value: Any) -> Any:
        """The stand-in of what a class or function has under a name; ABSENT where it has nothing."""
        key = id(owner), name
        if key not in self._variables:
            source = Source(owner, f"{{owner}}.__dict__.get({name!r}, ABSENT)")
            self._variables[key] = self.capture(source, value, (f"{owner.__qualname__}.{name}",))
        return self._variables[key]

    def settle_attributes(self) -> None:
        """Captures what traced code may have read of classes and functions by their names.

        Raises: NotTraceable where it has changed that; it is what it was again."""
        functions = [self._first, *self._functions]
        names = {name for function in functions for name in list_names(function.__code__)}
        for owner, name, spec in self._watch.settle(names):
            if (id(owner), name) not in self._variables:
                source = Source(owner, f"{{owner}}.__dict__.get({name!r}, ABSENT)")
                self.found.append(Capture(source, spec))
        for owner, read, spec in self._guards.settle(names):
            self.found.append(Capture(Source(owner, read), spec))

    # -- functions -------------------------------------------------------------------------------------------
    def enter_first(self, function: types.FunctionType) -> types.FunctionType:
        """The function that is compiled, which gets all its arguments, over captured variables."""
        self._first = function
        self._guards.add_code(function)
        return self._make(function)

    def enter(self, function: types.FunctionType, called: types.FunctionType | None = None
              ) -> types.FunctionType:
        """A function that it calls, over captured variables; itself if it was made by traced code.

        called: under which it is called, a wrapper with defaults of its own."""
        if isinstance(function.__globals__, Namespace):
            return function
        called = called or function
        made = self._functions.get(called)
        if made is None:
            self._guards.add_code(function)
            self._guards.add_code(called)
            self._guard_original(function, called)
            made = self._make(function)
            made.__defaults__ = self._enter_defaults(called)
            made.__kwdefaults__ = self._enter_keyword_defaults(called)
            self._functions[called] = made
        return made

    def _make(self, function: types.FunctionType) -> types.FunctionType:
        closure = tuple([self._enter_cell(cell, variable) for cell, variable in
                         zip(function.__closure__ or (), function.__code__.co_freevars)])
        made = types.FunctionType(function.__code__, self.find_namespace(function.__globals__),
                                  function.__name__, None, closure or None)
        made.__qualname__, made.__module__ = function.__qualname__, function.__module__
        return made

    def _guard_original(self, function: types.FunctionType, called: types.FunctionType) -> None:
        """The defaults of a function that an autojitted one, which is called, was made of."""
        if called is not function:
            for name in ("__defaults__", "__kwdefaults__"):
                if getattr(function, name) is not None:
                    self.guard(function, f"{{owner}}.{name}", getattr(function, name))

    def _enter_defaults(self, function: types.FunctionType) -> tuple | None:
        if function.__defaults__ is None:
            return None  # with defaults, a call that is correct now would be the same
        self.guard(function, f"(len({{owner}}.__defaults__) == {len(function.__defaults__)})", True)
        path = f"a default of {function.__qualname__}"
        return tuple([self.capture(Source(function, f"{{owner}}.__defaults__[{i}]"), value, (path, i))
                      for i, value in enumerate(function.__defaults__)])

    def _enter_keyword_defaults(self, function: types.FunctionType) -> dict | None:
        if function.__kwdefaults__ is None:
            return None
        self.guard(function, f"(list({{owner}}.__kwdefaults__) == {list(function.__kwdefaults__)})", True)
        path = f"a default of {function.__qualname__}"
        return {key: self.capture(Source(function, f"{{owner}}.__kwdefaults__[{key!r}]"), value, (path, key))
                for key, value in function.__kwdefaults__.items()}

    def find_namespace(self, variables: dict) -> Namespace:
        if isinstance(variables, Namespace):
            return variables
        found = self.namespaces.get(id(variables))
        if found is None:
            found = self.namespaces[id(variables)] = Namespace(self, variables)
        return found

    def _enter_cell(self, cell: types.CellType, name: str) -> types.CellType:
        if id(cell) not in self.cells:
            made, stand_in = types.CellType(), ABSENT
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet: code that reads it raises
                self.guard(functools.partial(is_empty, cell), "{owner}()", True)
            else:
                source = Source(cell, "{owner}.cell_contents", "{owner}.cell_contents = {value}")
                made.cell_contents = stand_in = self.capture(source, value, (name,))
            self.cells[id(cell)] = (cell, made, stand_in)
        return self.cells[id(cell)][1]

    # -- modules ---------------------------------------------------------------------------------------------
    def view(self, value: Any) -> Any:
        """What stands for an object that is known by its identity."""
        self._watch.add(value)
        self.effects.meet_class(value if isinstance(value, type) else type(value))
        self._guards.add(value)
        if isinstance(value, enum.Enum):
            self._guards.add_class(type(value))
        if type(value) is types.ModuleType:
            if value not in self._modules:
                of_library = is_library_file(getattr(value, "__file__", "?"))
                self._modules[value] = (LibraryView if of_library else ModuleView)(self, value)
            return self._modules[value]
        if any(value is grid for grid in _GRIDS.values()):
            return GridView(value)
        return value

    def read_library(self, module: types.ModuleType, name: str) -> Any:
        """A variable of a module that is no code of the user: numbers are constants."""
        value = getattr(module, name)
        variables = vars(module)
        if variables.get(name, ABSENT) is not value:  # made by the module's `__getattr__`
            self.guard(module, f"{{owner}}.{name}", value)
        elif type(value) in (list, dict, set, np.ndarray):
            return self.find_namespace(variables)[name]
        else:
            self.guard(variables, f"{{owner}}[{name!r}]", value)
        if isinstance(value, _MUTABLE):
            raise not_traceable(f"{module.__name__}.{name} is read, which may change")
        return self.view(value)

    def find_builtins(self, builtins: Any) -> dict:
        """The namespace of builtins, as traced code sees it."""
        variables = vars(builtins) if isinstance(builtins, types.ModuleType) else builtins
        if id(variables) not in self._builtins:
            self._builtins[id(variables)] = BuiltinNamespace(self, variables)
        return self._builtins[id(variables)]


def is_empty(cell: types.CellType) -> bool:
    """Whether a closure variable has no value."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def describe_callable(function: Callable) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)


#: What libraries keep that changes while programs run.
_MUTABLE = (MutableMapping, MutableSequence, MutableSet)
#: Objects of NumPy that make arrays of their items.
_GRIDS = {name: getattr(np, name) for name in ("mgrid", "ogrid", "r_", "c_")}


#: Variables of `sys` that only `print` can use, and reads anew in each call.
_STREAMS = ("stdout", "stderr")


class GridView:
    """`np.mgrid` and its like: their arrays are those of traced code."""

    def __init__(self, grid: Any):
        self.grid = grid

    def __getitem__(self, key: Any) -> Any:
        if isinstance(self.grid, type(np.r_).__mro__[1]) and has_part(key):
            return join_parts(self.grid, key)
        found = self.grid[key]
        if isinstance(found, (tuple, list)):
            return type(found)([_make_array(part) for part in found])
        return _make_array(found)


def _make_array(values: np.ndarray) -> Any:
    return new_array(ConcreteArray(np.array(values, order="C")))


class Namespace(dict):
    """The global variables of a module, as traced code sees them. CPython asks `__getitem__` of a subclass.

    Attributes:
        given: variable -> the stand-in that was handed out, or what traced code assigned.
        initial: the same without assignments.
    """

    def __init__(self, captures: Captures, variables: dict):
        # What CPython and jitcore read past __getitem__.
        super().__init__({name: variables[name] for name in ("__name__", "__file__") if name in variables})
        super().__setitem__("__builtins__", captures.find_builtins(variables.get("__builtins__", builtins)))
        self.captures, self.variables = captures, variables
        self.given: dict[str, Any] = {}
        self.initial: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if dict.__contains__(self, name):
            return dict.__getitem__(self, name)
        if name not in self.given:
            value = self.variables.get(name, ABSENT)
            read = f"{{owner}}.get({name!r}, ABSENT)" if value is ABSENT else f"{{owner}}[{name!r}]"
            source = Source(self.variables, read, f"{{owner}}[{name!r}] = {{value}}")
            self.given[name] = self.initial[name] = self.captures.capture(source, value, (name,))
        if self.given[name] is ABSENT:
            raise KeyError(name)
        return self.given[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.get(name)  # what was there before is known from here on
        self.given[name] = value

    def pop(self, name: str, default: Any = None) -> Any:
        previous = self.get(name, default)
        self.given[name] = ABSENT
        return previous

    __delitem__ = pop

    def __contains__(self, name: object) -> bool:
        return self.get(name, ABSENT) is not ABSENT

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default


class BuiltinNamespace(dict):
    """The builtins, as traced code sees them: which ones it uses is checked at each call."""

    def __init__(self, captures: Captures, variables: dict):
        super().__init__(variables)
        super().__setitem__("__import__", self._import)
        self.captures, self.variables = captures, variables
        self._known: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        if name == "__import__":
            return self._import
        value = self.variables[name]
        if name not in self._known:
            self._known.add(name)
            self.captures.guard(self.variables, f"{{owner}}[{name!r}]", value)
        return value

    def _import(self, *args: Any, **kwargs: Any) -> Any:
        """What an import statement in traced code gives. Loading a module of the user has effects."""
        before = len(sys.modules)
        found = self.variables["__import__"](*args, **kwargs)
        if len(sys.modules) > before and not is_library_file(getattr(found, "__file__", None)):
            raise not_traceable(f"module {args[0]} is loaded")
        for name in (args[0], found.__name__):
            if name in sys.modules:
                self.captures.guard(sys.modules, f"{{owner}}[{name!r}]", sys.modules[name])
        return self.captures.view(found)


class ModuleView(types.ModuleType):
    """A module of the user, as traced code sees it: its variables are captured when they are read."""

    def __init__(self, captures: Captures, module: types.ModuleType):
        super().__init__(module.__name__)
        object.__getattribute__(self, "__dict__")["_jitcore_view"] = (captures, module)

    def __getattribute__(self, name: str) -> Any:
        captures, module = object.__getattribute__(self, "__dict__")["_jitcore_view"]
        if name.startswith("__") or module is sys and name in _STREAMS:
            return getattr(module, name)
        variables = captures.find_namespace(vars(module))
        try:
            return variables[name]
        except KeyError:
            if variables.get("__getattr__") is not None:
                text = f"a variable of module {module.__name__} is made by its __getattr__"
                raise not_traceable(text) from None
            return getattr(module, name)  # the true error

    def __setattr__(self, name: str, value: Any) -> None:
        raise not_traceable(f"a variable of module {self.__name__} is set")

    __hash__ = object.__hash__


class LibraryView(ModuleView):
    """A module of Python or of a package, as traced code sees it."""

    def __getattribute__(self, name: str) -> Any:
        captures, module = object.__getattribute__(self, "__dict__")["_jitcore_view"]
        if name.startswith("__") or module is sys and name in _STREAMS:
            return getattr(module, name)
        return captures.read_library(module, name)
