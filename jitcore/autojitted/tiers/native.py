"""The tier below tracing: the whole function compiled by Numba, if it gives what plain Python gives.

In: a function whose calls take long in plain Python. Out: the compiled function, tried on copies of the
arguments of one call and compared with plain Python: types and values of the result and of everything that
was written.
"""

from __future__ import annotations

import builtins
import dis
import types
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from jitcore.autojitted.inputs.copies import copy_values, is_alike
from jitcore.autojitted.recording.purity import find_effect
from jitcore.core.source import raise_interruption
from jitcore.rewriter.user_code import is_user_class, is_user_code

#: Seconds that calls have taken in plain Python before Numba's compiler, which needs seconds itself, is
#: asked.
PATIENCE = 20.0


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
    seen: set[types.FunctionType] = set()
    waiting = [function]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        if current.__closure__:
            return f"{current.__name__} has closure variables, which Numba would freeze"
        effect = find_called_effect(current)
        if effect:
            return effect
        for name in current.__code__.co_names:
            value = current.__globals__.get(name)
            kind = type(value)  # `isinstance` asks for `__class__`, which may be the user's code
            if issubclass(kind, (np.ndarray, int, float, complex, tuple)) and kind is not bool:
                return f"{current.__name__} reads the global variable {name}, which Numba would freeze"
            is_known = value is None or issubclass(kind, (bool, str, types.ModuleType)) or callable(value)
            if not is_known or is_user_class(kind):
                return f"{current.__name__} reads the global variable {name}, which Numba does not know"
            if kind is types.FunctionType and is_user_code(value.__code__):
                waiting.append(value)
    return ""


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
        is_users = type(found) is types.FunctionType and is_user_code(found.__code__)
        if callable(found) and not is_users and not is_user_class(type(found)):
            effect = find_effect(found)
            if effect:
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
        return Trial(
            result, None, f"Numba: {str(error).strip().splitlines()[0] if str(error).strip() else error!r}"
        )
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
                elif isinstance(value, types.FunctionType) and is_user_code(value.__code__):
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
    import numba

    made: dict[str, Any] = {}
    known: dict[types.FunctionType, Any] = {}

    def convert(current: types.FunctionType) -> Any:
        if current in known:
            return known[current]
        namespace = dict(current.__globals__)
        fresh = types.FunctionType(current.__code__, namespace, current.__name__, current.__defaults__)
        known[current] = dispatcher = numba.njit(boundscheck=True)(fresh)
        for name in current.__code__.co_names:
            value = namespace.get(name)
            if isinstance(value, types.FunctionType) and is_user_code(value.__code__):
                namespace[name] = convert(value)
        return dispatcher

    made[function.__name__] = convert(function)
    return made[function.__name__]
