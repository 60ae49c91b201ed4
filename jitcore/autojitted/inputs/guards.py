"""What classes and functions were when a program was made: it serves only while they are that.

In: the classes and functions that traced code has met. Out: specs that are checked at each call.

Code (`Guards`): methods, operators and properties of classes, code of functions. A class costs one
comparison, of CPython's version of it, which is another one as soon as the class or one of its bases has
changed; only then its variables are compared.

Data (`Watch`): attributes that traced code reaches by their names, as `C.variable`; NotTraceable where the
traced code has changed one. That is taken back, and plain Python runs the call. Objects of a class find its
variables through their stand-ins (`captures`).
"""

from __future__ import annotations

import abc
import collections
import enum
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from jitcore.autojitted.inputs.reading import Reader, Unreadable
from jitcore.autojitted.inputs.specs import IdentitySpec, Spec, StaticSpec
from jitcore.dispatch.call_facts import ABSENT
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.process.versions import VersionGuard
from jitcore.rewriter.bytecode.instructions import read_raw
from jitcore.rewriter.bytecode.versions import NAME_SHIFTS
from jitcore.rewriter.handles import Handle
from jitcore.rewriter.journal import ContainerLocation
from jitcore.rewriter.objects import (copy_contents, has_changed, is_changeable, is_user_class,
                                      is_user_function)

#: Types of variables of classes and functions that are data, whatever has their names.
DATA = (type(None), bool, int, float, complex, str, bytes, list, dict, tuple, set, np.ndarray)
#: Variables that tell people about a class.
_DESCRIPTIONS = frozenset(("__doc__", "__annotations__", "__firstlineno__", "__static_attributes__"))
#: Those of them that come when somebody asks, and what makes them.
_ANNOTATIONS = frozenset(("__annotate_func__", "__annotations_cache__"))


class ClassGuard(VersionGuard):
    """Whether a class finds what it found when this was made."""

    def __init__(self, kind: type):
        super().__init__(kind)
        self.found = [(base, *_read_variables(base)) for base in self.mro if is_changeable(base)]
        self.check()

    def is_same(self) -> bool:
        for base, names, parts in self.found:
            names_now, parts_now = _read_variables(base)
            if names_now != names or len(parts_now) != len(parts):
                return False
            if any(parts_now.get(name) is not part for name, part in parts.items()):
                return False
        return True

    def list_functions(self, names: set[str]) -> Iterator[types.FunctionType]:
        """The user's functions behind what code with these names, or an operator, finds.

        An initializer that is called from traced code is traced itself."""
        for _, _, parts in self.found:
            for name, part in parts.items():
                if name in names or name.startswith("__") and name != "__init__":
                    yield from filter(is_user_function, _list_functions(part))

    def list_values(self, names: set[str]) -> list[Any]:
        """What code with these names finds."""
        return [part for _, _, parts in self.found for name, part in parts.items() if name in names]


def _read_variables(kind: type) -> tuple[frozenset[str], dict[str, Any]]:
    """Names of a class's variables, and those that are no data."""
    variables = {name: value for name, value in kind.__dict__.items() if name not in _ANNOTATIONS}
    parts = {name: value for name, value in variables.items()
             if type(value) not in DATA or name.startswith("__") and name not in _DESCRIPTIONS}
    return frozenset(variables), parts


def _list_functions(part: Any) -> Iterator[types.FunctionType]:
    if isinstance(part, types.FunctionType):
        yield part
    elif isinstance(part, (staticmethod, classmethod, types.MethodType)):
        yield from _list_functions(part.__func__)
    elif isinstance(part, property):
        for accessor in (part.fget, part.fset, part.fdel):
            yield from _list_functions(accessor)


class ContentGuard:
    """Whether an object holds what it held when this was made: containers and objects in it too, not the
    elements of arrays, which are read in each call."""

    def __init__(self, value: Any):
        self.value, self.found = value, _flatten(value, [])

    def check(self) -> bool:
        """Compares the contents."""
        now = _flatten(self.value, [])
        return len(now) == len(self.found) and all(map(_is_alike, self.found, now))


#: Containers, and the types of values that are what their texts say.
_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
_TEXTS = (int, float, complex, str, bytes)
#: Values that one object holds; objects that hold more are left to Python.
_MAX_CONTENT = 1000


def _flatten(value: Any, found: list, seen: set[int] | None = None) -> list:
    """An object and what it holds, in order; what holds itself, once."""
    seen = set() if seen is None else seen
    found.append(value)
    if len(found) > _MAX_CONTENT:
        raise not_traceable(f"an attribute of a class or function holds more than {_MAX_CONTENT} values")
    if id(value) in seen:
        return found
    seen.add(id(value))
    parts: Any = ()
    if holds_variables(value):
        parts = vars(value).items()
    elif isinstance(value, _CONTAINERS):
        parts = value.items() if isinstance(value, dict) else value
    for part in parts:
        _flatten(part, found, seen)
    return found


def holds_variables(value: Any) -> bool:
    """Whether it is an object of a class of the user. Rules as that of `value` of enumerations are none."""
    return (is_changeable(type(value))
            and not isinstance(value, (type, enum.Enum, types.DynamicClassAttribute, Handle))
            and hasattr(value, "__dict__"))


def _is_alike(one: Any, other: Any) -> bool:
    """Of two things that were found at one place, whose contents follow them."""
    if one is other:
        return True
    kind = type(one)
    return kind is type(other) and (kind is tuple or kind in _TEXTS and repr(one) == repr(other))


class CheckSpec(IdentitySpec):
    """What a guard looks at is what it was."""

    __slots__ = ()

    def write(self, matcher, value):
        matcher.check(f"{matcher.constants.add(self.value.check)}()")


class ClassSpec(CheckSpec):
    """A class that does what it did."""

    __slots__ = ()

    def write(self, matcher, value):
        add, guard = matcher.constants.add, self.value
        matcher.check(f"{add(guard.version)}.value == {add(guard.known)}[0] or {add(guard.check)}()")


#: What the code of a guard reads: (owner, expression with {owner}, spec).
Guarded = tuple[Any, str, Spec]
_TESTS = {"isinstance", "issubclass"}
#: What functions and classes say of themselves, beside their variables.
_TITLES = ("__name__", "__qualname__", "__doc__", "__module__")
_LOOKUPS = {"hasattr", "getattr", "vars", "__dict__"}


class Guards:
    """The classes and functions that one trace has met."""

    def __init__(self):
        self._classes: dict[int, ClassGuard] = {}
        self._functions: dict[types.FunctionType, dict[str, Any]] = {}
        self._codes: dict[types.FunctionType, types.CodeType] = {}
        self._token = abc.get_cache_token()

    def add(self, value: Any) -> None:
        """What traced code can name: a class, a function; others are left out."""
        if isinstance(value, type):
            self.add_class(value)
        elif isinstance(value, types.MethodType):
            self.add(value.__func__)
        elif is_user_function(value):
            self._functions.setdefault(value, dict(vars(value)))

    def add_class(self, kind: type) -> None:
        """A class, or that of an object."""
        if id(kind) not in self._classes and any(map(is_changeable, kind.__mro__)):
            self._classes[id(kind)] = ClassGuard(kind)
        if type(kind) is not type and type(kind) is not kind:
            self.add_class(type(kind))

    def knows_class(self, kind: type) -> bool:
        return id(kind) in self._classes

    def add_code(self, function: types.FunctionType) -> None:
        """A function whose code is traced."""
        self._codes.setdefault(function, function.__code__)

    def settle(self, names: set[str]) -> list[Guarded]:
        """What has to be checked at each call. names: in the traced code."""
        found: list[Guarded] = []
        for value in self._reach(names):
            if holds_variables(value) or isinstance(value, _CONTAINERS):
                found.append((value, "{owner}", CheckSpec(ContentGuard(value))))
        for guard in self._classes.values():
            found.append((guard.kind, "{owner}", ClassSpec(guard)))
            for function in guard.list_functions(names):
                self.add_code(function)
        for function, code in self._codes.items():
            found.append((function, "{owner}.__code__", IdentitySpec(code)))
        for owner in (*self._functions, *(guard.kind for guard in self._classes.values())):
            for name in names.intersection(_TITLES):
                found.append((owner, f"{{owner}}.{name}", IdentitySpec(getattr(owner, name))))
        for function, variables in self._functions.items():
            found += _list_attributes(function, variables, names)
        if names & _TESTS and any(isinstance(guard.kind, abc.ABCMeta) for guard in self._classes.values()):
            found.append((abc.get_cache_token, "{owner}()", StaticSpec(type(self._token), self._token)))
        return found

    def _reach(self, names: set[str]) -> list[Any]:
        """What traced code with these names may have found: classes and functions, and what these hold."""
        values: list[Any] = [*self._functions, *(guard.kind for guard in self._classes.values())]
        known = set(map(id, values))
        for value in values:  # to which more are added
            self.add(value)
            if isinstance(value, types.FunctionType):
                variables = self._functions.get(value, {}).items()
                held = [one for name, one in variables if name in names and type(one) not in DATA]
            elif isinstance(value, type):
                held = self._classes[id(value)].list_values(names) if id(value) in self._classes else ()
            else:
                held = [type(value)] if holds_variables(value) else ()
            for one in held:
                if id(one) not in known:
                    known.add(id(one))
                    values.append(one)
        return values


def _list_attributes(function: types.FunctionType, variables: dict, names: set[str]) -> Iterator[Guarded]:
    """The attributes of a function that are no data, and those that it does not have."""
    for name, value in variables.items():
        if name in names and type(value) not in DATA:
            yield function, f"{{owner}}.__dict__.get({name!r})", IdentitySpec(value)
    if names & _LOOKUPS:
        missing = tuple(sorted(names - variables.keys()))
        yield function, f"{{owner}}.__dict__.keys().isdisjoint({missing!r})", IdentitySpec(True)


# -- data ----------------------------------------------------------------------------------------------------
class Watched(NamedTuple):
    """variables: of the owner, when it was met; contents: of the lists and dicts among them, by name."""

    owner: Any
    variables: dict[str, Any]
    contents: dict[str, Any]


class Watch:
    """The classes and functions that one trace has met."""

    def __init__(self):
        self._watched: dict[int, Watched] = {}
        self._of_instances: dict[int, Watched] = {}

    def add(self, owner: Any) -> None:
        """A class or function that traced code can name."""
        for part in _list_owners(owner):
            if id(part) not in self._watched:
                self._watched[id(part)] = self._of_instances.pop(id(part), None) or _note(part)
                self._add_inner(part)

    def add_class_of(self, instance: Any) -> None:
        """The class of an object: traced code can name it by `type(x)` and `x.__class__`."""
        for part in _list_owners(type(instance)):
            if id(part) not in self._watched and id(part) not in self._of_instances:
                self._of_instances[id(part)] = _note(part)
                self._add_inner(part)

    def _add_inner(self, owner: Any) -> None:
        for inner in vars(owner).values():
            if isinstance(inner, type):
                self.add(inner)

    def settle(self, names: set[str]) -> list[tuple[Any, str, Spec]]:
        """What has to be checked at each call: (owner, name, spec). names: in the traced code.

        Raises: NotTraceable where that code has changed a variable; it is what it was again."""
        found, changed = [], []
        watched, of_instances = [*self._watched.values()], [*self._of_instances.values()]
        found += _list_shadows([*watched, *of_instances], names)
        if names & {"type", "__class__"}:
            watched += of_instances
        for one in watched:
            now = _list_variables(one.owner)
            for name in sorted(names & (one.variables.keys() | now.keys())):
                if _take_back(one, name, now.get(name, ABSENT)):
                    changed.append(f"{one.owner.__qualname__}.{name}")
                elif type(now[name]) in DATA:
                    found.append((one.owner, name, _make_spec(now[name])))
        if changed:
            raise not_traceable(f"the attribute {changed[0]} is changed")
        return found


def _list_shadows(watched: list[Watched], names: set[str]) -> Iterator[tuple[Any, str, Spec]]:
    """Variables that classes do not have, and their bases have: with one they would have another value."""
    variables = {id(one.owner): one.variables for one in watched}
    for one in watched:
        if isinstance(one.owner, type):
            known = [variables.get(id(base), {}).items() for base in one.owner.__mro__[1:]]
            inherited = {name for items in known for name, value in items if type(value) in DATA}
            for name in sorted((inherited & names) - one.variables.keys()):
                yield one.owner, name, IdentitySpec(ABSENT)


def _list_owners(owner: Any) -> Iterator[Any]:
    if isinstance(owner, types.FunctionType):
        yield owner
    elif isinstance(owner, type):
        for base in owner.__mro__[:-1]:
            if is_user_class(base):
                yield base


def _note(owner: Any) -> Watched:
    variables = _list_variables(owner)
    contents = {name: copy_contents(value) for name, value in variables.items()
                if type(value) in (list, dict, set)}
    return Watched(owner, variables, contents)


def _list_variables(owner: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(owner).items() if not name.startswith("__")}


def list_names(code: types.CodeType) -> Iterator[str]:
    """Names of attributes, and texts that may be such, in code and in the functions that it makes. Code of a
    loop has the names and constants of all that is around it: of these it loads few."""
    read = list(read_raw(code))
    yield from {code.co_names[one.arg >> NAME_SHIFTS[one.name]] for one in read if one.name in NAME_SHIFTS}
    for place in {one.arg for one in read if one.name == "LOAD_CONST"}:
        const = code.co_consts[place]
        if isinstance(const, str):
            yield const
        elif isinstance(const, types.CodeType):
            yield from list_names(const)


def _take_back(watched: Watched, name: str, now: Any) -> bool:
    """Whether a variable has changed; then it is given back what it was."""
    before = watched.variables.get(name, ABSENT)
    if now is not before:
        if before is ABSENT:
            delattr(watched.owner, name)
        else:
            setattr(watched.owner, name, before)
        return True
    if name not in watched.contents or not has_changed(now, watched.contents[name]):
        return False
    ContainerLocation(now).write(watched.contents[name])
    return True


def _make_spec(value: Any) -> Spec:
    """Of a value that is a part of the program; the elements of an array are read in each call."""
    if type(value) in (np.ndarray, set):
        return IdentitySpec(value)
    if value is None:
        return StaticSpec(type(None), None)
    reader = Reader(lambda path, number: True)
    try:
        spec = reader.read(value, ("an attribute",))
    except Unreadable:
        return IdentitySpec(value)
    return IdentitySpec(value) if any(isinstance(part, np.ndarray) for part in reader.values) else spec
