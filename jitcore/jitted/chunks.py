"""Jitted functions of Dask's arrays: a lazy array, whose chunks are calls.

In: a call with a `dask.array` among its arguments. Out: the result with lazy arrays in it. The function is
traced once for whole arrays, so that what it reads of their shapes is right, and may do to elements only what
needs no other element. That trace is what runs on chunks.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore import numpy as jnp
from jitcore.array import Array
from jitcore.core.jaxpr import ClosedJaxpr, Literal, ShapeDtypeStruct
from jitcore.dispatch.options import DEFAULT_OPTIONS
from jitcore.errors import arguments
from jitcore.passes.inline import inline_calls
from jitcore.process.lazy import LazyModule
from jitcore.tree_util import tree_flatten, tree_unflatten

base = LazyModule("dask.base")


def call_on_chunks(wrapped: Callable, args: tuple, kwargs: dict) -> Any:
    """The result of a jitted function. Raises: JitcoreTypeError for what chunks do not tell."""
    da = sys.modules["dask.array"]
    given, structure = tree_flatten((args, kwargs))
    described, arrays = list(given), {}
    for i, leaf in enumerate(given):
        if isinstance(leaf, (da.Array, np.ndarray, Array)) and leaf.shape:
            if any(map(math.isnan, leaf.shape)):
                raise arguments.unknown_chunks_error(wrapped.__name__)
            described[i] = ShapeDtypeStruct(leaf.shape, leaf.dtype)
            arrays[id(described[i])] = leaf if isinstance(leaf, da.Array) else da.from_array(np.asarray(leaf))
    run = _Chunks(wrapped, structure, described)
    pairs = []
    for leaf in run.leaves:
        value = arrays.get(id(leaf), leaf)
        pairs += value, _number_axes(np.ndim(value)) or None
    outs = [da.blockwise(run, _number_axes(aval.ndim), *pairs, number=i, token=wrapped.__name__,
                         dtype=aval.dtype, meta=np.empty((0,) * aval.ndim, aval.dtype))
            for i, aval in enumerate(run.out_avals)]
    return run.unflatten(outs)


def _number_axes(rank: int) -> tuple[int, ...]:
    """From the last, by which operands of NumPy meet."""
    return tuple(reversed(range(rank)))


class _Chunks:
    """The function of chunks, as it travels to workers: they trace it anew."""

    def __init__(self, wrapped: Callable, structure: Any, described: list):
        self._made_of = wrapped, structure, described
        args, kwargs = tree_unflatten(structure, described)
        call, program = wrapped._read_program(args, kwargs)
        self.leaves, self.unflatten = call.leaves, program.traced.unflatten
        closed = inline_calls(program.closed_jaxpr)
        self.out_avals = [atom.aval for atom in closed.jaxpr.outvars]
        _check(wrapped.__name__, closed)
        self._run = functools.partial(_run_on_chunk, closed)
        self._jitted: dict[int, Callable] = {}

    def __reduce__(self):
        return _Chunks, self._made_of

    def __dask_tokenize__(self) -> Any:
        wrapped, structure, described = self._made_of
        known = [repr(one) if isinstance(one, ShapeDtypeStruct) else one for one in described]
        return base.normalize_token((wrapped, repr(structure), known))

    def __call__(self, *values: Any, number: int) -> np.ndarray:
        if number not in self._jitted:
            chunk = functools.partial(self._run, number)
            self._jitted[number] = type(self._made_of[0])(chunk, DEFAULT_OPTIONS)
        return np.asarray(self._jitted[number](*values))


def _check(name: str, closed: ClosedJaxpr) -> None:
    jaxpr = closed.jaxpr
    for eqn in jaxpr.eqns:
        if not (eqn.primitive.traits.get("family") == "elementwise" or _is_broadcast(eqn)):
            raise arguments.chunks_error(name, eqn.primitive.name)
    if any(np.ndim(const) for const in closed.consts):
        raise arguments.chunks_error(name, "a constant array")
    shape = np.broadcast_shapes(*[var.aval.shape for var in jaxpr.invars])
    if any(atom.aval.shape != shape for atom in jaxpr.outvars):
        raise arguments.chunks_error(name, "a result of another shape")


def _is_broadcast(eqn) -> bool:
    """Whether this is what NumPy's operators do to operands of fewer axes."""
    if eqn.primitive.name != "broadcast_in_dim":
        return False
    dims, rank = eqn.params["broadcast_dimensions"], len(eqn.params["shape"])
    return list(dims) == list(range(rank - len(dims), rank))


def _run_on_chunk(closed: ClosedJaxpr, number: int, *values: Any) -> Any:
    jaxpr, shape = closed.jaxpr, np.broadcast_shapes(*map(np.shape, values))
    env = dict(zip(jaxpr.constvars, closed.consts)) | dict(zip(jaxpr.invars, values))

    def read(atom):
        return atom.to_operand() if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr.eqns:
        operands = list(map(read, eqn.invars))
        if eqn.primitive.name != "broadcast_in_dim":
            common = np.broadcast_shapes(*map(np.shape, operands))
            operands = [jnp.broadcast_to(one, common) if np.ndim(one) else one for one in operands]
            env[eqn.outvars[0]] = eqn.primitive.bind(*operands, **eqn.params)
        else:
            env[eqn.outvars[0]] = operands[0]  # what it meets says how far
    return jnp.broadcast_to(read(jaxpr.outvars[number]), shape)
