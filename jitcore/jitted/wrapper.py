"""`JitWrapped`: the callable that `jit` returns.

In: calls of the user. Out: results, from the fast path where the signature is known. Name, docstring,
signature and attributes are those of the wrapped function.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, overload

from jitcore.core.source import api_boundary
from jitcore.dispatch import function as functions
from jitcore.dispatch.backend import find_lowering
from jitcore.dispatch.fast_call import FastCallable
from jitcore.dispatch.options import JitOptions
from jitcore.dispatch.program import Program
from jitcore.dispatch.signature import CallSignature, read_call
from jitcore.jitted.numba_export import export, export_device
from jitcore.process.effort import CacheInfo
from jitcore.process.lazy import LazyModule
from jitcore.process.pickling import find_global_name, hash_contents
from jitcore.stages import Lowered, Traced, make_out_info, show_stages

graph = LazyModule("jitcore.chunked.graph")

P = ParamSpec("P")
Q = ParamSpec("Q")  # without `self`
R = TypeVar("R", covariant=True)


class JitWrapped(FastCallable[P, R]):
    """A function that is compiled when it is called with new argument types, and fast afterwards."""

    def __init__(self, fun: Callable[P, R], options: JitOptions):
        self.__wrapped__ = fun
        self.__doc__ = getattr(fun, "__doc__", None)
        self.__module__ = getattr(fun, "__module__", None)
        if not hasattr(fun, "__annotate__"):  # from Python 3.14 on they are evaluated when somebody asks
            # On the instance: the class has annotations of its own as soon as somebody asks it for them.
            self.__annotations__ = getattr(fun, "__annotations__", {})
        self._function = function = functions.find_function(fun, options)
        super().__init__(function.fast, partial(function.call, fun, _call_on_chunks))

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self: JitWrapped[Concatenate[Any, Q], R], instance: object,
                owner: Any = None) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        # Reached for what the instance lacks: __name__, __qualname__, the user's attributes.
        if name == "__wrapped__":  # an object that is being unpickled
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __repr__(self) -> str:
        return f"<JitWrapped of {self.__wrapped__!r}>"

    def __reduce__(self):
        # A decorated function hides the one that it wraps, so that pickle must look up this object instead.
        return find_global_name(self) or (_restore, (self.__wrapped__, self._function.options))

    def __dask_tokenize__(self) -> str:
        return hash_contents(self)

    # -- ahead of time ---------------------------------------------------------------------------------------
    @api_boundary
    def trace(self, *args: P.args, **kwargs: P.kwargs) -> Traced:
        """Traces for these arguments; `ShapeDtypeStruct`s may stand for arrays."""
        call, program = self._read_program(args, kwargs)
        return Traced(self.__wrapped__, self._function, call, program)

    @api_boundary
    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered:
        """Traces for these arguments and runs the passes."""
        call, program = self._read_program(args, kwargs)
        return Lowered(self.__wrapped__, self._function, call, program)

    @api_boundary
    def eval_shape(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The result's structure with a `ShapeDtypeStruct` in place of each array; computes nothing."""
        return make_out_info(self._read_program(args, kwargs)[1])

    @api_boundary
    def as_njit(self, *args: P.args, **kwargs: P.kwargs) -> Callable:
        """The program for these arguments as a function that Numba's nopython code may call.

        Args: examples, or `ShapeDtypeStruct`s; the function is for exactly their dtypes and shapes.
        Returns: an `njit` function of the leaves of the arguments, in order, which gives the leaves of the
            result, one or a tuple: ndarrays of its own, and scalars.
        Raises: NotImplementedError when the program calls Python while it runs. The function raises
            ValueError for arrays of other shapes; Numba refuses other types."""
        call, program = self._read_program(args, kwargs)
        return export(program, call.avals)

    @api_boundary
    def as_numba_cuda(self, *args: P.args, **kwargs: P.kwargs) -> Callable:
        """The program for these arguments as a device function for kernels of `numba.cuda`: a thread runs it.

        Args: examples, or `ShapeDtypeStruct`s; the function is for exactly their dtypes and shapes.
        Returns: a function made by `cuda.jit(device=True)`: of the leaves of the arguments, in order, and of
            an array for each leaf of the result that is one, into which it is written; it gives the numbers
            among the results. Its `text` is the source.
        Raises: NotImplementedError for what a thread of a GPU cannot do."""
        return export_device(self._read_program(args, kwargs)[1])

    def _read_program(self, args, kwargs) -> tuple[CallSignature, Program]:
        call = read_call(self.__wrapped__, self._function.plan, args, kwargs, abstract=True)
        return call, self._function.make_program(self.__wrapped__, call, find_lowering)

    # -- the cache -------------------------------------------------------------------------------------------
    def clear_cache(self) -> None:
        """Forgets every signature; what was compiled stays in the cache that all functions share."""
        self._function.clear()

    def cache_info(self) -> CacheInfo:
        """(hits, misses, traces, compiles) of this function under these options."""
        return self._function.info()

    def explain_last_miss(self) -> str:
        """Which argument made the last call that was not in the cache differ from earlier ones, and how."""
        return self._function.misses.explain(self.__wrapped__)

    def inspect(self, stage: str | None = None) -> str | dict[str, str]:
        """Stages of the signature that was compiled last, as text: 'jaxpr', 'optimized jaxpr', then those of
        the backend ('loop program', 'numba', 'kernel', 'llvm', 'assembly'); all of them in a dict without a
        name. 'numba', or 'numba.cuda' on GPUs, is a file of Numba that computes the same, to read and to run.

        Raises: ValueError before the first call, or for a stage that the backend does not have."""
        program = self._function.last_program
        if program is None:
            raise ValueError(f"{self.__name__} has not been compiled yet: call it first")
        return show_stages(program, stage)


def _call_on_chunks(fun: Callable, function: functions.JitFunction, args: tuple, kwargs: dict) -> Any:
    return graph.call_on_chunks(JitWrapped(fun, function.options), args, kwargs)


def _restore(fun: Callable, options: JitOptions) -> JitWrapped:
    return JitWrapped(fun, options)
