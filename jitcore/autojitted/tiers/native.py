"""The tier below tracing: the whole function compiled by Numba, if it gives what plain Python gives.

In: a function whose calls take long in plain Python. Out: the compiled function, tried on copies of the
arguments of one call, whose writes nobody may see, and compared with plain Python: types and values of the
result and of everything that was written.
"""

from __future__ import annotations

import builtins
import dis
import functools
import types
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from jitcore.autojitted.recording.purity import find_effect
from jitcore.core.source import raise_interruption
from jitcore.process.lazy import LazyModule
from jitcore.rewriter.objects import BOUND_METHODS, is_user_class, is_user_function, list_children, walk

numba = LazyModule("numba")

#: Relative difference of floating-point results that another order of operations explains.
_TOLERANCE = {"f": 1e-7, "c": 1e-7}
_SHARED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodType, np.ufunc,
           np.vectorize)


def copy_values(values: Sequence[Any]) -> list[Any] | None:
    """The values with arrays and containers of their own; what was one object is one object. None where
    functions or methods among them know what would be copied: they would change it, and not the copy."""
    known: dict[int, Any] = {}
    found = [_copy(value, known) for value in values]
    return None if any(_knows(value, known) for value in values) else found


def _knows(value: Any, copied: Mapping[int, Any]) -> bool:
    """Whether a function or method that can be reached from a value knows an object that was copied."""
    waiting, seen = [(value, False)], set()
    while waiting:
        value, is_known = waiting.pop()
        if is_known and id(value) in copied:
            return True
        if (id(value), is_known) in seen:
            continue
        seen.add((id(value), is_known))
        if isinstance(value, types.FunctionType):
            inner, is_known = [*(value.__closure__ or ()), *(value.__defaults__ or ())], True
        else:
            inner = [] if isinstance(value, np.ndarray) else list_children(value) or ()
            is_known |= isinstance(value, (*BOUND_METHODS, functools.partial))
        waiting += [(one, is_known) for one in inner]
    return False


def _copy(value: Any, known: dict[int, Any]) -> Any:
    if id(value) in known:
        return known[id(value)]
    made: Any
    if isinstance(value, np.ndarray):
        made = known[id(value)] = np.copy(value, order="K", subok=True)
        return made
    kind = type(value)
    if kind is list:
        made = known[id(value)] = []
        made.extend([_copy(item, known) for item in value])
        return made
    if kind is dict:
        made = known[id(value)] = {}
        made.update({key: _copy(item, known) for key, item in value.items()})
        return made
    if isinstance(value, tuple):
        items = [_copy(item, known) for item in value]
        return tuple(items) if kind is tuple else kind(*items)
    if isinstance(value, _SHARED) or not hasattr(value, "__dict__") or kind.__new__ is not object.__new__:
        return value
    made = known[id(value)] = object.__new__(kind)
    made.__dict__.update({name: _copy(item, known) for name, item in vars(value).items()})
    return made


def is_alike(one: Any, other: Any) -> bool:
    """Whether two results are of the same types and their values equal but for rounding."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (np.ndarray, np.generic)):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        return _is_close(np.asarray(one), np.asarray(other))
    if isinstance(one, (float, complex)):
        return _is_close(np.asarray(one), np.asarray(other))
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_alike, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(is_alike(one[key], other[key]) for key in one)
    if hasattr(one, "__dict__") and type(one).__eq__ is object.__eq__:
        return is_alike(vars(one), vars(other))
    return bool(one == other)


def _is_close(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype.kind not in _TOLERANCE:
        return bool(np.array_equal(one, other))
    tolerance = max(_TOLERANCE[one.dtype.kind], 50 * float(np.finfo(one.dtype).eps))
    finite = np.isfinite(one)
    if not np.array_equal(finite, np.isfinite(other)):
        return False
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return False
    scale = np.max(np.abs(one[finite]), initial=0.0)
    distances, sizes = np.abs(one[finite] - other[finite]), np.abs(one[finite])
    return bool(np.all(distances <= tolerance * np.maximum(sizes, 1e-3 * scale)))


class Trial(NamedTuple):
    """What plain Python returned, and the compiled function with what it keeps, or None with the reason."""

    result: Any
    compiled: Callable | None
    reason: str
    frozen: Frozen | None = None


def find_obstacle(function: types.FunctionType) -> str:
    """Why a function is not given to Numba, or ""."""
    if not any("JUMP_BACKWARD" in instruction.opname for instruction in dis.get_instructions(function)):
        return "it has no loop"
    # The trial runs the function on copies, which must not be seen.
    for current in walk([function], _list_functions):
        if current.__closure__:
            return f"{current.__name__} has closure variables, which Numba would freeze"
        if effect := find_called_effect(current):
            return effect
        for name in current.__code__.co_names:
            value = current.__globals__.get(name)
            kind = type(value)  # `isinstance` asks for `__class__`, which may be the user's code
            if issubclass(kind, (np.ndarray, int, float, complex, tuple)) and kind is not bool:
                return f"{current.__name__} reads the global variable {name}, which Numba would freeze"
            is_known = value is None or issubclass(kind, (bool, str, types.ModuleType)) or callable(value)
            if not is_known or is_user_class(kind):
                return f"{current.__name__} reads the global variable {name}, which Numba does not know"
    return ""


def _list_functions(function: types.FunctionType) -> list[types.FunctionType]:
    """The functions of the user that a function finds under global names."""
    found = [function.__globals__.get(name) for name in function.__code__.co_names]
    return [value for value in found if is_user_function(value)]


def find_called_effect(function: types.FunctionType) -> str:
    """Why a function that the code names, as a global variable or an attribute of a module, does more than
    give a result; or ""."""
    found: Any = None
    for instruction in dis.get_instructions(function):
        if instruction.opname == "LOAD_GLOBAL":
            name = instruction.argval
            found = function.__globals__.get(name, getattr(builtins, name, None))
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            is_module = issubclass(type(found), types.ModuleType)
            found = vars(found).get(instruction.argval) if is_module else None
        elif instruction.opname in _BETWEEN:
            continue
        else:
            found = None
        is_users = is_user_function(found) or is_user_class(type(found))
        if callable(found) and not is_users and (effect := find_effect(found)):
            return effect
    return ""


#: What may stand between the loads of a module and its attribute.
_BETWEEN = frozenset({"PUSH_NULL", "NOP", "SWAP"})


def try_numba(function: types.FunctionType, call: Callable, values: tuple) -> Trial:
    """Runs the call in plain Python, then Numba's form of the function on copies.

    call: (function, values) -> result."""
    copies, spare = copy_values(values), copy_values(values)
    start = perf_counter()
    result = call(function, values)
    seconds = perf_counter() - start
    if copies is None or spare is None:
        return Trial(result, None, "what its arguments know of each other cannot be copied")
    try:
        frozen, compiled = Frozen(function), compile_by_numba(function)
        found = call(compiled, spare)  # compiles
        start = perf_counter()
        again = call(compiled, copies)
        own = perf_counter() - start
    except Exception as error:  # whatever Numba cannot do, it says in its own ways
        raise_interruption(error)
        text = str(error).strip()
        return Trial(result, None, f"Numba: {text.splitlines()[0] if text else repr(error)}")
    if not (is_alike(result, found) and is_alike(result, again)):
        return Trial(result, None, "Numba's result differs from that of plain Python")
    if not (is_alike(list(values), copies) and is_alike(list(values), spare)):
        return Trial(result, None, "Numba's writes differ from those of plain Python")
    if own > seconds:
        return Trial(result, None, "Numba's code is slower than plain Python")
    return Trial(result, compiled, "", frozen)


class Frozen:
    """What Numba's form of a function keeps as it was: code, defaults, and what code finds by its names."""

    def __init__(self, function: types.FunctionType):
        self.functions: dict[types.FunctionType, tuple] = {}
        self.variables: list[tuple[dict, str, Any]] = []
        waiting = [function]
        while waiting:
            current = waiting.pop()
            if current not in self.functions:
                self.functions[current] = current.__code__, current.__defaults__, current.__kwdefaults__
                waiting += self._add_variables(current)

    def _add_variables(self, function: types.FunctionType) -> list[types.FunctionType]:
        names, waiting = function.__code__.co_names, [function.__globals__]
        found: list[types.FunctionType] = []
        for variables in waiting:
            for name in names:
                value = variables.get(name, _MISSING)
                self.variables.append((variables, name, value))
                if isinstance(value, types.ModuleType):
                    if not any(vars(value) is known for known in waiting):
                        waiting.append(vars(value))
                elif is_user_function(value):
                    found.append(value)
        return found

    def holds(self) -> bool:
        """Whether it still is what it was."""
        for one, parts in self.functions.items():
            if (one.__code__, one.__defaults__, one.__kwdefaults__) != parts:
                return False
        return all(variables.get(name, _MISSING) is value for variables, name, value in self.variables)


_MISSING = object()


def compile_by_numba(function: types.FunctionType) -> Callable:
    """The function and those of the user that it calls, in Numba's nopython mode with checked indices."""
    # An optional package.
    known: dict[types.FunctionType, Any] = {}

    def convert(current: types.FunctionType) -> Any:
        if current in known:
            return known[current]
        namespace = dict(current.__globals__)
        fresh = types.FunctionType(current.__code__, namespace, current.__name__, current.__defaults__)
        known[current] = dispatcher = numba.njit(boundscheck=True)(fresh)
        for name in current.__code__.co_names:
            value = namespace.get(name)
            if is_user_function(value):
                namespace[name] = convert(value)
        return dispatcher

    return convert(function)
