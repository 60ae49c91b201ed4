"""Python functions called from a program: `pure_callback`, `io_callback`, and what `jitcore.debug` binds.

In: a Python function, the types of what it returns, operands. Out: its results, as arrays. What a callback
does besides is an `Effect`: equations with effects are never removed or merged; ordered ones stay in order.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from jitcore import dtypes, errors
from jitcore.array import Array, ConcreteArray
from jitcore.core import source
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray, aval_of
from jitcore.core.primitive import Effect
from jitcore.lax.control_flow.control import flatten_operands
from jitcore.lax.control_flow.scan import scan
from jitcore.lax.define import define
from jitcore.lax.shape import expand_dims
from jitcore.transforms.batching import BatchAxis, Flags, batch_values
from jitcore.tree_util import PyTreeDef, tree_flatten, tree_leaves

IO = Effect("IO", ordered=False)
ORDERED_IO = Effect("OrderedIO", ordered=True)
DEBUG = Effect("Debug", ordered=False)
ORDERED_DEBUG = Effect("OrderedDebug", ordered=True)

VMAP_METHODS = (None, "sequential", "sequential_unrolled", "expand_dims", "broadcast_all",
                "legacy_vectorized")


class FlatCallback:
    """A Python function of pytrees as a function of ndarrays.

    Args:
        callback: called as `callback(*args, **kwargs)` with `Array`s as leaves.
        in_tree: structure of `(args, kwargs)`.
        statics: `(position, value)` of leaves that are no operands but fixed Python objects."""

    __slots__ = ("callback", "in_tree", "statics", "__weakref__")

    def __init__(self, callback: Callable, in_tree: PyTreeDef, statics: tuple[tuple[int, Any], ...] = ()):
        self.callback, self.in_tree, self.statics = callback, in_tree, statics

    def __call__(self, *values: np.ndarray) -> list:
        """The leaves of the result. The function gets copies, so that it may keep them."""
        leaves: list = [ConcreteArray(np.array(value, order="C")) for value in values]
        for position, value in self.statics:
            leaves.insert(position, value)
        args, kwargs = self.in_tree.unflatten(leaves)
        return tree_leaves(self.callback(*args, **kwargs))

    def __repr__(self) -> str:
        return f"FlatCallback(callback={self.callback!r}, in_tree={self.in_tree})"


_callbacks: weakref.WeakValueDictionary[Hashable, FlatCallback] = weakref.WeakValueDictionary()


def flatten_callback(callback: Callable, in_tree: PyTreeDef, statics=()) -> FlatCallback:
    """One `FlatCallback` for equal arguments, so that tracing again gives a program with the same key."""
    created = FlatCallback(callback, in_tree, tuple(statics))
    # Of other types, equal values may be told apart: 0.0 and -0.0.
    if any(type(value) not in (str, int, bool) for _, value in statics):
        return created
    key = (callback, in_tree, tuple((position, type(value), value) for position, value in statics))
    try:
        return _callbacks.setdefault(key, created)
    except TypeError:  # the callback is not hashable
        return created


# -- results ------------------------------------------------------------------------------------------------
def _run(*values: np.ndarray, callback: FlatCallback, result_avals: Sequence[ShapedArray], **_) -> list:
    results = callback(*values)
    if len(results) != len(result_avals):
        headline = "Mismatched number of outputs from callback."
        raise _result_error(callback, headline, len(result_avals), len(results))
    return [_check_result(callback, i, *pair) for i, pair in enumerate(zip(results, result_avals))]


def _check_result(callback: FlatCallback, position: int, result, aval: ShapedArray) -> np.ndarray:
    value = np.asarray(result)
    if value.shape != aval.shape:
        headline = f"Incorrect output shape for return value #{position}:"
        raise _result_error(callback, headline, aval.shape, value.shape)
    if value.dtype != aval.dtype and not _may_convert(result, value.dtype, aval.dtype):
        headline = f"Incorrect output dtype for return value #{position}:"
        raise _result_error(callback, headline, aval.dtype.name, value.dtype.name)
    return value.astype(aval.dtype, copy=False)


# The 64-bit dtypes in which NumPy computes unless told otherwise, and what may be declared for them.
_NARROWED = {dtypes.int64: dtypes.int32, dtypes.uint64: dtypes.uint32, dtypes.float64: dtypes.float32,
             dtypes.complex128: dtypes.complex64}


def _may_convert(result, found: np.dtype, declared: np.dtype) -> bool:
    if type(result) in dtypes.PYTHON_SCALARS:
        return dtypes.join_types((found, True), (declared, False))[0] == declared
    return _NARROWED.get(found) == declared


def _result_error(callback: FlatCallback, headline: str, expected, actual) -> Exception:
    place = " at ".join(filter(None, source.locate_function(callback.callback)))
    return errors.build_error(
        errors.JitcoreRuntimeError, f"{headline} Expected: {expected}, Actual: {actual}",
        detail=f"The callback is {place}.",
        fix="return from the callback what result_shape_dtypes says, or correct result_shape_dtypes.")


def _result_avals(*avals, callback, result_avals, **_) -> list[ShapedArray]:
    return list(result_avals)


def _flatten_results(result_shape_dtypes) -> tuple[tuple[ShapedArray, ...], PyTreeDef]:
    leaves, tree = tree_flatten(result_shape_dtypes)
    for leaf in leaves:
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            raise TypeError(f"the leaves of result_shape_dtypes need a shape and a dtype, got {leaf!r}")
        if dtypes.is_key(leaf.dtype):
            raise TypeError(f"callbacks give no keys, got {leaf!r}: give words, for random.wrap_key_data")
    return tuple(ShapedArray(leaf.shape, dtypes.canonicalize(leaf.dtype)) for leaf in leaves), tree


# -- batches ------------------------------------------------------------------------------------------------
def reject_io(primitive: str, *jaxprs: ClosedJaxpr) -> None:
    """Raises: NotImplementedError when elements of a batch that go other ways would all do the input or
    output of one of these branches or bodies."""
    if any(effect in (IO, ORDERED_IO) for jaxpr in jaxprs for effect in jaxpr.effects):
        raise NotImplementedError(f"IO effect not supported in vmap-of-{primitive}.")


def call_for_each(primitive, axis: BatchAxis, values: Sequence, batched: Flags, **params) -> list:
    """One call for each element of a batch, in their order."""

    def call(_, elements):
        parts = iter(elements)
        operands = [next(parts) if flag else value for value, flag in zip(values, batched)]
        return (), primitive.bind(*operands, **params)

    return scan(call, (), list(itertools.compress(values, batched)), length=axis.size)[1]


def _batch_pure_callback(primitive, axis, values, batched, *, callback, result_avals, vmap_method):
    params = {"callback": callback, "vmap_method": vmap_method}
    if vmap_method is None:
        methods = ", ".join(map(repr, VMAP_METHODS[1:-1]))
        raise NotImplementedError(
            "vmap is only supported for the pure_callback primitive when vmap_method is one of "
            f"{methods}, or {VMAP_METHODS[-1]!r}. Got vmap_method=None.")
    if vmap_method.startswith("sequential"):
        return call_for_each(primitive, axis, values, batched, result_avals=result_avals, **params)
    if vmap_method == "broadcast_all":
        values = batch_values(axis, values, batched)
    elif vmap_method == "expand_dims":
        values = [x if flag else expand_dims(x, (0,)) for x, flag in zip(values, batched)]
    result_avals = tuple(aval.update(shape=(axis.size, *aval.shape)) for aval in result_avals)
    return primitive.bind(*values, result_avals=result_avals, **params)


def _batch_io_callback(primitive, axis, values, batched, *, ordered, **params):
    if ordered:
        raise ValueError("Cannot `vmap` ordered IO callback.")
    return call_for_each(primitive, axis, values, batched, ordered=ordered, **params)


# -- derivatives --------------------------------------------------------------------------------------------
def _reject_derivative(message: str) -> Callable:
    def rule(primitive, primals, tangents, **params):
        raise ValueError(message)

    return rule


def _jvp_debug(primitive, primals, tangents, **params):
    """The function sees the primals, once."""
    return primitive.bind(*primals, **params), []


# -- public -------------------------------------------------------------------------------------------------
@define("pure_callback", impl=_run, aval=_result_avals, batch=_batch_pure_callback, multiple_results=True,
        takes_words=True,
        jvp=_reject_derivative("Pure callbacks do not support JVP. Please use `jitcore.custom_jvp` to use "
                               "callbacks while taking gradients."))
def pure_callback(callback: Callable, result_shape_dtypes: Any, *args: Any, sharding=None,
                  vmap_method: str | None = None, **kwargs: Any):
    """Calls a Python function without side effects from a program.

    Same as:
        return callback(*args, **kwargs)

    Args:
        callback: gets Arrays; may be called any number of times, also none when its result is not needed.
        result_shape_dtypes: pytree of objects with shape and dtype: what the callback returns.
        args, kwargs: pytrees of arrays.
        sharding: accepted for compatibility; there is one device.
        vmap_method: how `vmap` shall call it; one of `VMAP_METHODS`.

    Returns: pytree of arrays. A 64-bit result may stand for a declared 32-bit dtype and is converted.
    Raises: JitcoreRuntimeError when the callback returns other shapes or dtypes than declared; whatever the
        callback raises."""
    if vmap_method not in VMAP_METHODS:
        raise ValueError(f"vmap_method must be one of {VMAP_METHODS}, got {vmap_method!r}")
    result_avals, out_tree = _flatten_results(result_shape_dtypes)
    leaves, in_tree, _ = flatten_operands((args, kwargs))
    outs = pure_callback.primitive.bind(*leaves, callback=flatten_callback(callback, in_tree),
                                        result_avals=result_avals, vmap_method=vmap_method)
    return out_tree.unflatten(outs)


@define("io_callback", impl=_run, aval=_result_avals, batch=_batch_io_callback, multiple_results=True,
        takes_words=True,
        jvp=_reject_derivative("IO callbacks do not support JVP."),
        effects=lambda *, ordered, **_: frozenset((ORDERED_IO if ordered else IO,)))
def io_callback(callback: Callable, result_shape_dtypes: Any, *args: Any, sharding=None,
                ordered: bool = False, **kwargs: Any):
    """Calls a Python function that may have side effects from a program, once for each time it is reached.

    Args:
        callback, result_shape_dtypes, args, kwargs, sharding: as for `pure_callback`.
        ordered: ordered callbacks happen in the order of the program.

    Raises: as `pure_callback`."""
    result_avals, out_tree = _flatten_results(result_shape_dtypes)
    leaves, in_tree, _ = flatten_operands((args, kwargs))
    outs = io_callback.primitive.bind(*leaves, callback=flatten_callback(callback, in_tree),
                                      result_avals=result_avals, ordered=bool(ordered))
    return out_tree.unflatten(outs)


def _run_debug(*values: np.ndarray, callback: FlatCallback, effect: Effect) -> list:
    callback(*values)
    return []


@define("debug_callback", impl=_run_debug, aval=lambda *avals, callback, effect: [], jvp=_jvp_debug,
        batch=call_for_each, multiple_results=True, takes_words=True,
        effects=lambda *, effect, **_: frozenset((effect,)))
def debug_callback(callback: Callable, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Calls a Python function for its side effect and ignores what it returns.

    Args:
        callback: gets an Array for each array among the leaves of args and kwargs, other leaves as they are.
        ordered: ordered callbacks happen in the order of the program."""
    leaves, in_tree = tree_flatten((args, kwargs))
    operands, statics = [], []
    for position, leaf in enumerate(leaves):
        if isinstance(leaf, (Array, np.ndarray, np.generic)):
            aval_of(leaf)  # raises for a dtype without arrays
            operands.append(leaf)
        else:
            statics.append((position, leaf))
    debug_callback.primitive.bind(*operands, callback=flatten_callback(callback, in_tree, statics),
                                  effect=ORDERED_DEBUG if ordered else DEBUG)
