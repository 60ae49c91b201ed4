"""Which functions of Python and of libraries traced code may call, and what it calls instead of others.

In: what the user's code is about to call. Out: nothing for functions whose result depends on their arguments
alone; the traced form of the user's own functions; for all else a function that raises `NotTraceable`,
because a program that is compiled once would print, read a clock or draw a random number once.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import os
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jitcore import tree_util
from jitcore.autojitted.captures import Captures, Namespace, is_library_file
from jitcore.functionalize.errors import not_traceable
from jitcore.functionalize.functions_mapping import find_vectorized
from jitcore.functionalize.numbers import Number
from jitcore.rewriter.handles import Handle, current

#: Attribute of the function that `autojit` returns: the function that it was given.
ORIGINAL = "__jitcore_autojit__"

#: Packages and modules whose functions have no effect but their result.
_PURE = frozenset(
    """_abc _bisect _collections _collections_abc _functools _heapq _operator _statistics abc array bisect
    builtins cmath collections copy dataclasses enum fractions functools heapq itertools jitcore math
    numbers numba numpy operator re scipy statistics string types typing""".split()
)
_IMPURE_BUILTINS = frozenset(
    """breakpoint compile delattr eval exec exit globals help id input locals memoryview open print quit
    __import__""".split()
)
#: Modules of jitcore whose functions take traced arrays of NumPy's semantics.
_OWN = ("jitcore.functionalize.", "jitcore.rewriter.", "jitcore.autojitted.")
_IMPURE_MODULES = ("numpy.random", "scipy.io", "numpy.ctypeslib")
_IMPURE_NUMPY = frozenset(
    """fromfile fromregex genfromtxt load loadtxt memmap save savetxt savez savez_compressed set_printoptions
    seterr seterrcall setbufsize""".split()
)


#: Functions whose result depends on what was set before.
_STATE_READERS = frozenset((np.get_printoptions, np.geterr, np.getbufsize, os.getenv))


def find_original(function: types.FunctionType) -> types.FunctionType:
    """The function that `autojit` was given, for one that it returned."""
    state = function.__dict__.get("__jitcore_autojit_state__")
    if state is None or all(function.__code__ is not code for code in state.wrapper_codes):
        return function  # its code was exchanged
    return state.function


class Callables(Mapping):
    """What traced code calls instead of a function; asked by `get`.

    Args:
        redirects: of NumPy's semantics.
        captures: where functions of the user are entered.
        rewrite: gives the form of a function whose control flow is traced.
    """

    def __init__(self, redirects: Mapping, captures: Captures, rewrite: Callable):
        self._redirects, self._captures, self._rewrite = redirects, captures, rewrite

    def get(self, callee: Any, default: Any = None) -> Any:
        try:
            found = self._redirects.get(callee)
        except TypeError:  # not hashable
            found = None
        if found is not None:
            return found
        kind = type(callee)
        if kind is types.FunctionType:
            if isinstance(callee.__globals__, Namespace):
                return default
            original = find_original(callee)
            if callee in _STATE_READERS:
                return functools.partial(self._captures.call, callee)
            if not is_library_file(original.__code__.co_filename):
                return self._rewrite(self._captures.enter(original, callee))
        elif kind is type and _has_own_initializer(callee):
            return functools.partial(self._construct, callee)
        elif kind is functools._lru_cache_wrapper and not is_library_module(callee.__module__):
            return functools.partial(self._captures.call, callee)
        elif kind is np.vectorize:
            return find_vectorized(callee)
        elif kind.__module__.startswith("numba.") and hasattr(callee, "py_func"):
            return self.get(callee.py_func, default)
        module = getattr(callee, "__module__", None) if kind is types.FunctionType else kind.__module__
        if isinstance(module, str) and module.startswith("jitcore.") and not module.startswith(_OWN):
            return functools.partial(_call_on_arrays, callee)
        problem = find_effect(callee)
        if problem:
            return functools.partial(_refuse, problem)
        return default

    def _construct(self, kind: type, /, *args: Any, **kwargs: Any) -> Any:
        made = kind.__new__(kind)
        self.get(kind.__init__)(made, *args, **kwargs)
        return made

    def __getitem__(self, callee: Any) -> Any:
        found = self.get(callee)
        if found is None:
            raise KeyError(callee)
        return found

    def __iter__(self):
        return iter(self._redirects)

    def __len__(self) -> int:
        return len(self._redirects)


def _has_own_initializer(kind: type) -> bool:
    """Whether making an object runs Python code of the user and nothing else."""
    initializer = kind.__init__
    return (kind.__new__ is object.__new__ and isinstance(initializer, types.FunctionType)
            and not is_library_file(initializer.__code__.co_filename))  # fmt: skip


def _call_on_arrays(callee: Callable, *args: Any, **kwargs: Any) -> Any:
    """Calls a function of jitcore's, which takes Arrays where NumPy's arrays are traced."""

    def enter(leaf: Any) -> Any:
        if isinstance(leaf, Number):
            raise not_traceable("a function of jitcore is called with a traced Python number")
        return leaf.read() if isinstance(leaf, Handle) else leaf

    with plain_semantics():
        return callee(*tree_util.tree_map(enter, args), **tree_util.tree_map(enter, kwargs))


@contextlib.contextmanager
def plain_semantics():
    """No mode: what runs now is not code of the user with NumPy's semantics."""
    previous, current.mode = current.mode, None
    try:
        yield
    finally:
        current.mode = previous


def find_effect(callee: Any) -> str:
    """Why a call may do more than give a result, as the middle of a sentence; "" if it does not."""
    if isinstance(callee, types.MethodType):
        callee = callee.__func__
    owner = getattr(callee, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType):
        owner, module = None, getattr(callee, "__module__", None)
    else:
        module = type(owner).__module__
    if not isinstance(module, str):
        module = type(callee).__module__
    name = getattr(callee, "__name__", type(callee).__name__)
    if getattr(builtins, name, None) is callee:
        module = "builtins"  # `open` names the module that defines it, in its own way in each version
    if module == "builtins":
        return f"{name}() is called" if owner is None and name in _IMPURE_BUILTINS else ""
    root = module.partition(".")[0]
    if module.startswith(_IMPURE_MODULES) or root == "numpy" and owner is None and name in _IMPURE_NUMPY:
        return f"{module}.{name}() is called"
    if root in _PURE or not is_library_module(module):
        return ""
    return f"{module}.{name}() is called, which may do more than give a result"


def is_library_module(name: str) -> bool:
    """Whether a module is no code of the user."""
    found = sys.modules.get(name)
    return found is None or name != "__main__" and is_library_file(getattr(found, "__file__", None))


def _refuse(problem: str, *args: Any, **kwargs: Any) -> Any:
    raise not_traceable(problem)
