"""Functions of a session with another library in jitcore's place: NumPy, JAX, or NumPy compiled by Numba.

In: a value of the session. Out: the same with functions made anew, whose global variables and cells name the
modules and functions of the other library.
"""

from __future__ import annotations

import builtins
import copy
import importlib
import importlib.util
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from jitcore.array import ConcreteArray
from jitcore.autojitted import Options, decorate
from jitcore.autojitted.recording.purity import ORIGINAL
from jitcore.dispatch.options import JitOptions
from jitcore.jitted.wrapper import JitWrapped
from jitcore.process.lazy import LazyModule
from jitcore.rewriter.objects import is_user_function

jax = LazyModule("jax")
numba = LazyModule("numba")

__all__ = ["JaxVariant", "NoCounterpart", "NumbaVariant", "NumpyVariant", "copy_arrays", "find_plain",
           "is_installed", "list_names", "renew"]

#: Modules where a function of jitcore is looked for by its name.
_PUBLIC = ("jitcore", "jitcore.numpy", "jitcore.lax", "jitcore.nn", "jitcore.random")


class NoCounterpart(Exception):
    """What a library has nothing like."""


def is_installed(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def find_plain(value: Any) -> types.FunctionType | None:
    """The function that `jit` or `autojit` decorated; None for anything else."""
    found = value.__wrapped__ if isinstance(value, JitWrapped) else None
    if isinstance(value, types.FunctionType):
        found = value.__dict__.get(ORIGINAL)
    return found if isinstance(found, types.FunctionType) else None


def renew(value: Any) -> Any:
    """A decorated function decorated anew, of which nothing is known yet."""
    plain = find_plain(value)
    if plain is None:
        return value
    made = _copy(plain, plain.__globals__, plain.__closure__)
    if isinstance(value, JitWrapped):
        return JitWrapped(made, value._function.options)
    options: Options = value.__dict__["__jitcore_autojit_state__"].options
    return decorate(made, options)


def _copy(function: types.FunctionType, variables: dict, cells: tuple | None) -> types.FunctionType:
    made = types.FunctionType(function.__code__, variables, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__, made.__qualname__ = function.__kwdefaults__, function.__qualname__
    return made


def list_names(code: types.CodeType) -> Iterator[str]:
    """The names that code may look up, that of functions inside of it among them."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from list_names(const)


class NumpyVariant:
    """Values with NumPy in jitcore's place, undecorated.

    Attributes:
        label: in tables."""

    label = "NumPy"

    def __init__(self):
        self._made: dict[types.FunctionType, types.FunctionType] = {}

    def find_module(self, name: str) -> Any:
        """What stands for a module of jitcore's. Raises: NoCounterpart."""
        if name != "jitcore.numpy":
            raise NoCounterpart(f"{self.label} has nothing like {name}")
        return np

    def decorate(self, function: types.FunctionType, options: JitOptions | None) -> Callable:
        """What becomes of a function; options: those of `jit`, if that decorated it."""
        return function

    def read(self, value: Any) -> Any:
        """A value with the library in jitcore's place. Raises: NoCounterpart."""
        plain = find_plain(value)
        if plain is not None:
            options = value._function.options if isinstance(value, JitWrapped) else None
            return self.decorate(self._make(plain), options)
        if is_user_function(value):
            return self.decorate(self._make(value), None)
        if isinstance(value, types.ModuleType):
            return self.find_module(value.__name__) if value.__name__.partition(".")[0] == "jitcore" else value
        if isinstance(value, ConcreteArray):
            return np.asarray(value)
        if callable(value) and str(getattr(value, "__module__", "")).partition(".")[0] == "jitcore":
            return self._find_function(value)
        return value

    def _find_function(self, value: Callable) -> Any:
        name = getattr(value, "__name__", type(value).__name__)
        module = next((one for one in _PUBLIC
                       if getattr(importlib.import_module(one), name, None) is value), value.__module__)
        try:
            return getattr(self.find_module(module), name)
        except (NoCounterpart, AttributeError):
            raise NoCounterpart(f"{self.label} has nothing like {module}.{name}") from None

    def _make(self, function: types.FunctionType) -> types.FunctionType:
        if function in self._made:
            return self._made[function]
        if not is_user_function(function):
            raise NoCounterpart("not for what a transformation gives: call it inside of the jitted function")
        variables = {"__builtins__": builtins, "__name__": function.__globals__.get("__name__")}
        cells = function.__closure__ and tuple([types.CellType() for _ in function.__closure__])
        made = self._made[function] = _copy(function, variables, cells)
        for name in list_names(function.__code__):
            if name in function.__globals__:
                variables[name] = self.read(function.__globals__[name])
        for new, old in zip(cells or (), function.__closure__ or ()):
            new.cell_contents = self.read(old.cell_contents)
        return made


class NumbaVariant(NumpyVariant):
    """The same, compiled by Numba."""

    label = "Numba"

    def decorate(self, function: types.FunctionType, options: JitOptions | None) -> Callable:
        return numba.njit(function)


class JaxVariant(NumpyVariant):
    """Values with JAX in jitcore's place."""

    label = "JAX"

    def find_module(self, name: str) -> Any:
        try:
            return importlib.import_module(name.replace("jitcore", "jax", 1))
        except ImportError:
            raise NoCounterpart(f"{self.label} has nothing like {name}") from None

    def decorate(self, function: types.FunctionType, options: JitOptions | None) -> Callable:
        if options is None:
            return function
        return jax.jit(function, static_argnums=options.static_argnums, static_argnames=options.static_argnames)


def copy_arrays(names: Iterable[str], values: dict) -> dict:
    """Variables by name, with arrays and containers of their own, which calls may write to."""
    kinds = (np.ndarray, list, dict, set)
    return {name: copy.deepcopy(values[name]) if isinstance(values[name], kinds) else values[name]
            for name in names if name in values}
