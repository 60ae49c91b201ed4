"""A call with traced arguments: the function becomes a part of what is being traced.

In: a call in a function under `autojit`, or under `jit`, `grad`, `vmap` and so on. Out: its result, recorded
in the current trace. Under the transformations arrays come in as Arrays and leave as Arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitcore import tree_util
from jitcore.array import Array
from jitcore.core.trace import Tracer, context, eval_trace
from jitcore.lax.control_flow.raise_if import raise_if
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.mode import NumpyMode
from jitcore.numpy_semantics.values.ndarray import NDArray
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.numpy_semantics.values.storage import Storage
from jitcore.rewriter import rewrite_function
from jitcore.rewriter.handles import Handle, current

_DEPTH = 4


def is_traced_call(values: tuple) -> bool:
    """Whether some argument is traced."""
    if current.mode is None and context.trace is eval_trace:
        return False
    return any(_has_traced(value, _DEPTH) for value in values)


def _has_traced(value: Any, depth: int) -> bool:
    if isinstance(value, (Tracer, Handle)):
        return True
    if not depth:
        return False
    if isinstance(value, (list, tuple)):
        return any(_has_traced(item, depth - 1) for item in value)
    if isinstance(value, dict):
        return any(_has_traced(item, depth - 1) for item in value.values())
    return hasattr(value, "__dict__") and not isinstance(value, type) and any(
        _has_traced(item, depth - 1) for item in vars(value).values())


def call_inline(owner: Any, values: tuple) -> Any:
    """Runs the function's traced form on these values."""
    if current.mode is not None:
        found = current.mode.redirects.get(owner.function, owner.function)
        return owner.parameters.call(found, values)
    return _call_under_transform(owner, rewrite_function(owner.function), values)


def _call_under_transform(owner: Any, function: Callable, values: tuple) -> Any:
    storages: list[tuple[Storage, Array]] = []

    def enter(leaf: Any) -> Any:
        if not isinstance(leaf, Array):
            return leaf
        if not leaf.shape and leaf.weak_type:
            return Number(leaf.dtype.type(0).item().__class__, leaf)
        if not leaf.shape:
            return Scalar(leaf)
        storage = Storage(leaf)
        storages.append((storage, leaf))
        return NDArray(storage)

    mode = NumpyMode()
    current.mode = mode
    try:
        arguments = [tree_util.tree_map(enter, value) for value in values]
        result = owner.parameters.call(function, arguments)
        found = tree_util.tree_map(lambda leaf: leaf.read() if isinstance(leaf, Handle) else leaf, result)
        if mode.can_fail:
            raise_if(mode.failed, _join_errors(mode.failures))
    finally:
        current.mode = None
    for storage, before in storages:
        if storage.value is not before:
            name = owner.function.__qualname__
            raise not_traceable(f"{name} writes to an array that is traced by a transformation: pass a copy")
    return found


def _join_errors(errors: list[BaseException]) -> BaseException:
    """What is raised where plain Python would raise one of several errors."""
    kinds = {type(error): error for error in errors}
    if len(kinds) == 1:
        return errors[0]
    return RuntimeError("; ".join(dict.fromkeys(f"{type(error).__name__}: {error}" for error in errors)))
