"""Prospects: what bytecode and arguments say about whether compiling can pay, before anything is traced.

In: a function and the specs of its arguments. Out: whether arrays occur in it; and what speaks against a
trace: functions that call themselves would be written out call by call, and what Python does with texts,
large ints, heaps and generators would be done once, by code that takes many times as long, for this one call.
"""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitcore.autojitted.purity import ORIGINAL
from jitcore.autojitted.specs import (
    ArraySpec,
    DictSpec,
    InstanceSpec,
    ScalarSpec,
    SequenceSpec,
    Spec,
    StaticSpec,
)
from jitcore.rewriter.user_code import is_library_file, is_user_class

#: Packages whose functions work on arrays.
_ARRAYS = frozenset({"numpy", "scipy", "jitcore", "numba"})
#: Modules whose functions work on Python's own objects.
_OBJECTS = frozenset(
    "heapq _heapq collections _collections bisect _bisect re string json csv decimal fractions queue".split()
)
#: Values in arguments, letters of texts: more say that it is they what the function works on.
MAX_VALUES, MAX_LETTERS = 128, 64


def uses_arrays(function: types.FunctionType, specs: Sequence[Spec]) -> bool:
    """Whether arrays or NumPy's numbers are passed, or a function of NumPy is named."""
    if any(isinstance(spec, ArraySpec) or isinstance(spec, ScalarSpec) and not spec.is_number
           for spec in _walk_specs(specs)):
        return True
    methods = [method for spec in _walk_specs(specs) if isinstance(spec, InstanceSpec)
               for method in _list_methods(spec.kind)]
    return any(isinstance(value, np.ndarray) or _find_package(value) in _ARRAYS
               for one in _walk_functions([function, *methods]) for value in _list_named(one))


def find_hindrance(function: types.FunctionType, specs: Sequence[Spec]) -> str:
    """What speaks against a trace of a function without arrays, in words; "" if nothing does."""
    values = list(_walk_specs(specs))
    if len(values) > MAX_VALUES:
        return "it works on many Python values"
    for spec in values:
        if isinstance(spec, StaticSpec) and spec.kind in (str, bytes) and len(spec.value) > MAX_LETTERS:
            return "it works on a text"
        if isinstance(spec, StaticSpec) and spec.kind is int and abs(spec.value) >= 1 << 62:
            return "it works on ints of more than 64 bits"
    for one in _walk_functions([function]):
        if one in _walk_functions(_list_called(one), _list_called):
            return f"{one.__name__} calls itself"
        if one.__code__.co_flags & inspect.CO_GENERATOR:
            return f"{one.__name__} is a generator"
        for value in _list_named(one):
            if _find_package(value) in _OBJECTS:
                return f"it calls {_find_package(value)}, which works on Python's own objects"
    return ""


def may_vary(function: types.FunctionType) -> bool:
    """Whether the work of a call may depend on its arguments: it loops, or calls what may do so."""
    code = function.__code__
    known = {"LOAD_GLOBAL", "LOAD_DEREF"}
    before = ""
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if "JUMP_BACKWARD" in name or name == "LOAD_METHOD":
            return True
        if name in known:
            before = instruction.argval
            value = function.__globals__.get(before)
            if isinstance(value, (types.FunctionType, types.MethodType)):
                return True
    return any(isinstance(const, types.CodeType) for const in code.co_consts)


def _walk_specs(specs: Sequence[Spec]) -> Iterator[Spec]:
    waiting = list(specs)
    while waiting:
        spec = waiting.pop()
        yield spec
        if isinstance(spec, (SequenceSpec, DictSpec, InstanceSpec)):
            waiting += spec.children


def _walk_functions(functions: Sequence[types.FunctionType],
                    list_functions: Callable | None = None) -> Iterator[types.FunctionType]:
    """Functions of the user, and those that they name, each once."""
    list_functions = list_functions or _list_functions
    waiting, seen = list(functions), set()
    while waiting:
        function = waiting.pop()
        if function not in seen:
            seen.add(function)
            yield function
            waiting += list_functions(function)


def _list_functions(function: types.FunctionType) -> list[types.FunctionType]:
    """The functions of the user that a function names, and the methods of classes that it names."""
    found: list[types.FunctionType] = []
    for value in _list_named(function):
        if isinstance(value, type):
            found += _list_methods(value)
        elif isinstance(value, types.FunctionType):
            found.append(value.__dict__.get(ORIGINAL, value))
    return [one for one in found if not is_library_file(one.__code__.co_filename)]


def _list_called(function: types.FunctionType) -> list[types.FunctionType]:
    """Those of `_list_functions` that the function may call: methods of a class of which it mentions the
    names, and the initializer, where it makes objects of the class; else what it names as `Class.method`."""
    names, found = _list_names(function.__code__), []
    for name, value in _find_named(function):
        if isinstance(value, types.FunctionType):
            found.append(value.__dict__.get(ORIGINAL, value))
        elif isinstance(value, type):
            attributes = names.attributes | _MAKERS if name in names.used else names.owned.get(name, ())
            found += [method for method in _list_methods(value) if method.__name__ in attributes]
    return [one for one in found if not is_library_file(one.__code__.co_filename)]


#: Methods that run where an object is made.
_MAKERS = frozenset(("__init__", "__new__", "__post_init__"))


def _list_methods(kind: type) -> list[types.FunctionType]:
    return [value for value in vars(kind).values() if isinstance(value, types.FunctionType)]


def _list_named(function: types.FunctionType) -> list[Any]:
    return [value for _, value in _find_named(function)]


def _find_named(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function finds under the global names and in the cells that its code mentions, without objects
    of the user's classes: looking at one may run code of the user's."""
    variables, found = function.__globals__, []
    names = _list_names(function.__code__).variables
    found += [(name, variables[name]) for name in names if name in variables]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:
            pass  # not assigned yet
    for name, value in found:  # `super()` calls what other classes define
        if name != "__class__" and not is_user_class(type(value)):
            yield name, value


class _Names(NamedTuple):
    """What code mentions: variables that are not its own; those of them that are more than the owner of an
    attribute; attributes, and of which variables."""

    variables: tuple[str, ...]
    used: frozenset[str]
    attributes: frozenset[str]
    owned: dict[str, set[str]]


@functools.lru_cache(maxsize=1000)
def _list_names(code: types.CodeType) -> _Names:
    variables: list[str] = []
    used: set[str] = set()
    attributes: set[str] = set()
    owned: dict[str, set[str]] = {}
    before = ""
    for instruction in dis.get_instructions(code):
        name, is_attribute = instruction.argval, instruction.opname in _ATTRIBUTES
        if before and instruction.opname == "COPY":  # `owner.name += 1`
            continue
        if before and is_attribute:
            owned.setdefault(before, set()).add(name)
        elif before:
            used.add(before)
        before = name if instruction.opname in _VARIABLES else ""
        variables += [before] if before else []
        attributes |= {name} if is_attribute else set()
    for inner in [_list_names(const) for const in code.co_consts if isinstance(const, types.CodeType)]:
        variables += inner.variables
        used |= inner.used
        attributes |= inner.attributes
        for name, found in inner.owned.items():
            owned.setdefault(name, set()).update(found)
    return _Names(tuple(dict.fromkeys(variables)), frozenset(used), frozenset(attributes), owned)


_VARIABLES = frozenset("LOAD_GLOBAL LOAD_NAME LOAD_DEREF LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF".split())
_ATTRIBUTES = frozenset("LOAD_ATTR LOAD_METHOD STORE_ATTR DELETE_ATTR".split())


def _find_package(value: Any) -> str:
    """The package that a module, function or class belongs to; "" for other values."""
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0]
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)) or callable(value):
        name = getattr(value, "__module__", None)
        return name.partition(".")[0] if isinstance(name, str) else ""
    return ""
