"""`raise_if`: an exception of Python's, raised when a program runs.

In: a predicate and an exception instance. Out: nothing; a program in which the predicate holds ends there,
and the call of it raises. What rewritten functions make of `raise` and `assert` under a traced condition.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from jitcore import dtypes
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray, aval_of
from jitcore.core.trace import trace_to_jaxpr
from jitcore.lax.control_flow.callback import IO, FlatCallback, debug_callback, flatten_callback
from jitcore.lax.control_flow.cond import cond
from jitcore.lax.define import cast, define
from jitcore.lax.reduce import reduce_or
from jitcore.tree_util import tree_flatten

_PREDICATE = ShapedArray((), dtypes.bool_)
_NOTHING = tree_flatten(((), {}))[1]


class Raiser:
    """Raises copies of an exception. Equal ones raise the same, so that tracing again gives an equal
    program."""

    __slots__ = ("error", "_key")

    def __init__(self, error: BaseException):
        self.error = _copy(error)
        self._key = type(error), repr(error.args), tuple(getattr(error, "__notes__", ()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Raiser) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"raise {self.error!r}"

    def __call__(self) -> None:
        raise _copy(self.error)


def _copy(error: BaseException) -> BaseException:
    """The exception without its traceback, whose frames hold tracers."""
    try:
        return copy.copy(error)
    except Exception:  # a class whose instances cannot be made from their `args`
        error.__context__ = error.__cause__ = None
        return error.with_traceback(None)


def _run(predicate: np.ndarray, *, callback: FlatCallback) -> list:
    if predicate:
        callback()
    return []


def _batch(primitive, axis, values, batched, **params) -> list:
    """One element that raises is enough."""
    return primitive.bind(reduce_or(values[0], (0,)) if batched[0] else values[0], **params)


def _inline(params: dict, operands: list) -> tuple[ClosedJaxpr, list]:
    def run(predicate):
        index = cast(predicate, aval_of(predicate), dtypes.int32, False)
        return cond.primitive.bind(index, branches=(_trace_call(None), _trace_call(params["callback"])))

    jaxpr, _ = trace_to_jaxpr(run, [_PREDICATE])
    return ClosedJaxpr(jaxpr), operands


def _trace_call(callback: FlatCallback | None) -> ClosedJaxpr:
    def run() -> list:
        return [] if callback is None else debug_callback.primitive.bind(callback=callback, effect=IO)

    return ClosedJaxpr(trace_to_jaxpr(run, [])[0])


def _jvp(primitive, primals, tangents, **params) -> list:
    """The primal function raises, and there is nothing to differentiate."""
    return primitive.bind(*primals, **params), []


@define("raise_if", impl=_run, aval=lambda *avals, callback: [], batch=_batch, jvp=_jvp, inline=_inline,
        effects=lambda *, callback: frozenset((IO,)), multiple_results=True)
def raise_if(predicate: Any, error: BaseException) -> None:
    """Raises a copy of an exception where a predicate holds when the program runs.

    Args:
        predicate: bool scalar; of a batch, one element is enough.
        error: its traceback and context are dropped.

    Raises: NotImplementedError by `vmap` of a `cond` that chooses for each element and has it in a branch."""
    raise_if.primitive.bind(predicate, callback=flatten_callback(Raiser(error), _NOTHING))
