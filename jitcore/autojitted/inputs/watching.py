"""Attributes of classes and functions that traced code reaches by their names.

In: the classes and functions that are met while a function is traced. Out: what a program checks at each
call, so that it serves only while these attributes are what they were; NotTraceable where the traced code has
changed one. That is taken back, and plain Python runs the call.

Objects of a class find its variables through their stand-ins (`captures`); here is `C.variable`.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from jitcore.autojitted.inputs.reading import Reader, Unreadable
from jitcore.autojitted.inputs.specs import ABSENT, IdentitySpec, Spec, StaticSpec
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.rewriter.user_code import is_user_class


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
                for inner in vars(part).values():
                    if isinstance(inner, type):
                        self.add(inner)

    def add_class_of(self, instance: Any) -> None:
        """The class of an object: traced code can name it by `type(x)` and `x.__class__`."""
        for part in _list_owners(type(instance)):
            if id(part) not in self._watched and id(part) not in self._of_instances:
                self._of_instances[id(part)] = _note(part)
                for inner in vars(part).values():
                    if isinstance(inner, type):
                        self.add(inner)

    def settle(self, functions: Iterable[types.FunctionType]) -> list[tuple[Any, str, Spec]]:
        """What has to be checked at each call: (owner, name, spec). functions: whose code was traced.

        Raises: NotTraceable where that code has changed a variable; it is what it was again."""
        found, changed = [], []
        names = {name for function in functions for name in list_names(function.__code__)}
        watched, of_instances = [*self._watched.values()], [*self._of_instances.values()]
        found += _list_shadows([*watched, *of_instances], names)
        if names & {"type", "__class__"}:
            watched += of_instances
        for one in watched:
            now = _list_variables(one.owner)
            for name in sorted(names & (one.variables.keys() | now.keys())):
                if _take_back(one, name, now.get(name, ABSENT)):
                    changed.append(f"{one.owner.__qualname__}.{name}")
                elif type(now[name]) in _DATA:
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
            inherited = {name for items in known for name, value in items if type(value) in _DATA}
            for name in sorted((inherited & names) - one.variables.keys()):
                yield one.owner, name, IdentitySpec(ABSENT)


#: What a watched variable may be; all else is taken for a part of the program, as functions are.
_DATA = (type(None), bool, int, float, complex, str, bytes, list, dict, tuple, set, np.ndarray)


def _list_owners(owner: Any) -> Iterator[Any]:
    if isinstance(owner, types.FunctionType):
        yield owner
    elif isinstance(owner, type):
        for base in owner.__mro__[:-1]:
            if is_user_class(base):
                yield base


def _note(owner: Any) -> Watched:
    variables = _list_variables(owner)
    contents = {name: value.copy() for name, value in variables.items() if type(value) in (list, dict, set)}
    return Watched(owner, variables, contents)


def _list_variables(owner: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(owner).items() if not name.startswith("__")}


def list_names(code: types.CodeType) -> Iterator[str]:
    """Names of attributes, and texts that may be such, in code and in the functions that it makes."""
    yield from code.co_names
    for const in code.co_consts:
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
    if name not in watched.contents or _is_same(watched.contents[name], now):
        return False
    if type(now) is list:
        now[:] = watched.contents[name]
    else:
        now.clear()
        now.update(watched.contents[name])
    return True


def _is_same(one: Any, other: Any) -> bool:
    if len(one) != len(other):
        return False
    if type(one) is set:
        return one == other
    pairs = zip(one.items(), other.items()) if type(one) is dict else zip(one, other)
    if type(one) is dict:
        return all(a[0] is b[0] and a[1] is b[1] for a, b in pairs)
    return all(a is b for a, b in pairs)


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
