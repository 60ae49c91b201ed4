"""From a callable to its autojitted form: functions, methods, partials, and what cannot be compiled."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, signature
from typing import Any

import numpy as np

from jitcore.autojitted.exporting import export_function
from jitcore.autojitted.function import AutojitFunction
from jitcore.autojitted.loops import outline_loops
from jitcore.autojitted.options import Options
from jitcore.autojitted.recording.purity import ORIGINAL
from jitcore.autojitted.tiers.report import Reason, Report, Tier, make_report, warn_of
from jitcore.process.effort import CacheInfo
from jitcore.stages import show_stages


def decorate(fun: Callable, options: Options) -> Callable:
    """Raises: TypeError for what is no function; with `strict` NotTraceable for what cannot be compiled."""
    if isinstance(fun, types.FunctionType) and ORIGINAL in fun.__dict__:
        return fun
    if is_plain_function(fun):
        return _decorate_function(fun, options)
    if isinstance(fun, (staticmethod, classmethod)):
        return type(fun)(decorate(fun.__func__, options))
    if isinstance(fun, types.MethodType):
        return types.MethodType(decorate(fun.__func__, options), fun.__self__)
    if isinstance(fun, functools.partial):
        made = functools.partial(decorate(fun.func, options))
        made.__setstate__((made.func, fun.args, fun.keywords, vars(fun)))  # the same dicts, not copies
        return made
    if type(fun) is np.vectorize and hasattr(fun, "pyfunc"):
        return _decorate_function(_make_caller(fun, fun.pyfunc), options)
    if isinstance(fun, type) or not callable(fun):
        raise TypeError(f"autojit: expected a function, got {fun!r}")
    if not isinstance(fun, types.FunctionType) and isinstance(type(fun).__call__, types.FunctionType):
        if options.static_argnames:
            return types.MethodType(decorate(type(fun).__call__, options), fun)
        return _decorate_function(_make_caller(fun, type(fun).__call__), options)
    name = getattr(fun, "__qualname__", type(fun).__name__)
    code = getattr(fun, "__code__", None)
    text = "is a generator or coroutine" if code else "has no Python code"
    file, line = (code.co_filename, code.co_firstlineno) if code else ("<built-in>", 0)
    reason = Reason(file, line, f"{name} {text}")
    if options.strict:
        raise reason.as_error()
    warn_of(reason, name, Tier.PYTHON)
    return fun


def is_plain_function(function: Any) -> bool:
    """Whether a function runs from its call to its return: no generator, no coroutine."""
    flags = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
    return isinstance(function, types.FunctionType) and not function.__code__.co_flags & flags


def _make_caller(called: Callable, named: Any) -> types.FunctionType:
    """The function that calls an object, with its attributes. named: whose name and place reports show."""

    def call(*args, **kwargs):
        return called(*args, **kwargs)

    call.__name__ = getattr(named, "__name__", "call")
    call.__qualname__ = getattr(named, "__qualname__", call.__name__)
    call.__doc__ = called.__doc__
    code = getattr(named, "__code__", None)
    if code is not None:
        place = {"co_filename": code.co_filename, "co_firstlineno": code.co_firstlineno}
        call.__code__ = call.__code__.replace(**place)
    for name in ("pyfunc", "otypes", "excluded", "signature") if type(called) is np.vectorize else ():
        setattr(call, name, getattr(called, name))
    return call


def _decorate_function(fun: types.FunctionType, options: Options) -> Callable:
    """The wrapper of a function, with what it can be asked."""
    owner = AutojitFunction(fun, options, outline_loops)
    made: Any = owner.wrapper
    made.__dict__[ORIGINAL] = made.__dict__["__jitcore_original__"] = fun  # the second: for the rewriter
    made.__dict__["__jitcore_autojit_state__"] = owner

    def report() -> Report:
        """The tier of the function and of each of its loops, and what stood in the way of a better one."""
        return make_report(owner)

    def cache_info() -> CacheInfo:
        """(hits, misses, traces, compiles), those of loops that are compiled for themselves among them; calls
        that a recent signature served are not counted."""
        return owner.info()

    def clear_cache() -> None:
        """Forgets every signature."""
        owner.clear()

    def inspect(stage: str | None = None) -> Any:
        """Stages of the signature that was compiled last, as text, like `jit(f).inspect`; of a function that
        cannot be traced as a whole those of its last loop that is compiled.

        Raises: ValueError before the first compiled call, or for a stage that the backend does not have."""
        entry = owner.last_entry
        if entry is None and owner.loops is not None:
            entry = owner.loops.last_entry
        if entry is None:
            raise ValueError(f"{fun.__qualname__} has not been compiled: call it, and see its report()")
        return show_stages(entry.program, stage)

    def as_njit(*args: Any, **kwargs: Any) -> Callable:
        """The function as one that Numba's nopython code may call, for arguments of these types and shapes.

        Args: examples. Arrays may have any layout; ints whose values are needed while tracing, bools and
            strings are constants, which the function checks.
        Returns: an `njit` function of the same parameters. It writes into the caller's arrays, and returns
            numbers, arrays of its own, arguments, and tuples of these.
        Raises: NotTraceable; NotImplementedError for other arguments, results and effects. The function
            raises ValueError for other shapes and constants, and for arrays that share memory with one that
            is written; before it writes, the error that Python would raise, or RuntimeError where there are
            several."""
        bound = signature(fun).bind(*args, **kwargs)
        bound.apply_defaults()
        return export_function(owner, [bound.arguments[name] for name in owner.parameters.names])

    made.report, made.cache_info, made.clear_cache, made.inspect = report, cache_info, clear_cache, inspect
    made.as_njit = as_njit
    return made
