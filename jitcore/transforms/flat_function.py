"""Functions of pytrees as functions of leaves, for the transformations that differentiate.

In: the user's function, the call's arguments and `argnums`. Out: a `FlatFunction` of the leaves to
differentiate, which remembers the structure of what it returned; the checks of what users gave and got.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core import source
from jitcore.core.jaxpr import DebugInfo, ShapedArray, aval_of, is_array_like
from jitcore.core.primitive import registry
from jitcore.core.trace import context, to_array
from jitcore.errors import derivatives
from jitcore.transforms.jvp import JvpTracer
from jitcore.tree_util import PyTreeDef, tree_flatten, tree_map


class FlatFunction:
    """A function of leaves, made of one of pytrees and called under a `JvpTrace`.

    Attributes, after a call:
        out_tree: structure of the result.
        aux: what the function returned besides, with values in place of tracers."""

    __slots__ = ("fun", "in_tree", "has_aux", "out_tree", "aux")

    def __init__(self, fun: Callable, in_tree: PyTreeDef, has_aux: bool = False):
        self.fun, self.in_tree, self.has_aux = fun, in_tree, has_aux
        self.out_tree: Any = None
        self.aux: Any = None

    def __call__(self, *leaves) -> list:
        out = self.fun(*self.in_tree.unflatten(leaves))
        if self.has_aux:
            out, aux = _split_aux(out)
            self.aux = tree_map(_read_primal, aux)
        outs, self.out_tree = tree_flatten(out)
        for leaf in outs:
            if not (is_array_like(leaf) or is_float0(leaf)):
                raise TypeError(f"Output {leaf!r} of type {type(leaf)} is not a valid jitcore type")
        return outs


def _split_aux(out) -> tuple:
    if not (isinstance(out, (tuple, list)) and len(out) == 2):
        raise derivatives.aux_pair_error(repr(out), str(type(out)))
    return tuple(out)


def _read_primal(leaf):
    """A leaf of the auxiliary result without its tangent; it may be anything."""
    return leaf.primal if isinstance(leaf, JvpTracer) and leaf.owner is context.trace else leaf


def describe_function(fun: Callable, transform: str) -> DebugInfo:
    return DebugInfo(*source.locate_function(fun), transform, None)


def document(fun: Callable, text: str) -> Callable[[Callable], Callable]:
    """Decorator: name and signature of `fun`, and a docstring that says what became of it."""

    def decorate(wrapper: Callable) -> Callable:
        wrapper = functools.wraps(fun, updated=())(wrapper)
        original = getattr(fun, "__doc__", None)
        wrapper.__doc__ = f"{text}\n\nOriginal documentation:\n\n{original}" if original else text
        return wrapper

    return decorate


def check_callable(fun: Any) -> None:
    """Raises: TypeError."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")


# -- argnums ------------------------------------------------------------------------------------------------
Argnums = int | tuple[int, ...]


def read_argnums(argnums: Any) -> Argnums:
    """An integer, or a tuple for a sequence. Raises: TypeError for anything else."""
    try:
        return operator.index(argnums)
    except TypeError:
        return tuple(map(operator.index, argnums))


def choose_arguments(fun: Callable, argnums: Argnums, args: Sequence, kwargs: dict) -> tuple[Callable, tuple]:
    """`fun` as a function of the chosen arguments, all others fixed to what they are; and their values.

    Raises: TypeError, ValueError for positions that the call does not have."""
    if argnums == 0 and args:
        rest = args[1:]
        return (lambda first: fun(first, *rest, **kwargs)), (args[0],)
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if max(numbers, default=0) >= len(args):
        raise derivatives.argnums_count_error(argnums, max(numbers, default=0) + 1, len(args))
    for number in numbers:
        if number < -len(args):
            raise derivatives.argnums_bounds_error(number, len(args))
    places = [number % len(args) for number in numbers]

    def call_chosen(*chosen):
        merged = list(args)
        for place, value in zip(places, chosen):
            merged[place] = value
        return fun(*merged, **kwargs)

    return call_chosen, tuple(args[place] for place in places)


# -- leaves -------------------------------------------------------------------------------------------------
def read_leaves(leaves: Iterable) -> list[Array]:
    """The arguments to differentiate, as arrays. Raises: TypeError for what is no array."""
    return [leaf if isinstance(leaf, Array) else _read_leaf(leaf) for leaf in leaves]


def _read_leaf(leaf) -> Array:
    if not is_array_like(leaf):
        raise derivatives.argument_not_array_error(repr(leaf), str(type(leaf)))
    return to_array(leaf)


def read_derivative(value, expected: ShapedArray, fail: Callable[[str], Exception]) -> Any:
    """A tangent or cotangent that a user gave, of the expected type; None where that is `float0`.

    A Python scalar is of single or double precision, as it is needed.
    Raises: `fail(text of its type)` where it does not fit."""
    if not (is_array_like(value) or is_float0(value)):
        raise fail(str(type(value)))
    given = aval_of(value)
    if given.shape != expected.shape:
        raise fail(given.long())
    if given.dtype == expected.dtype:
        return None if expected.dtype == dtypes.float0 else to_array(value)
    kind = {dtypes.float64: float, dtypes.complex128: complex}.get(expected.dtype)
    if kind is not None and type(value) in (float, kind):
        return to_array(expected.dtype.type(value))
    if dtypes.differ_in_width(given.dtype, expected.dtype):
        return registry["convert_element_type"].bind(value, new_dtype=expected.dtype, weak_type=False)
    raise fail(given.long())


def is_float0(value) -> bool:
    return getattr(value, "dtype", None) == dtypes.float0


# -- dtypes -------------------------------------------------------------------------------------------------
def check_reverse_inputs(name: str, leaves: Iterable[Array], *, holomorphic: bool, allow_int: bool) -> None:
    """Raises: TypeError unless these arguments may be differentiated in reverse mode."""
    for leaf in leaves:
        dtype = leaf.dtype
        if holomorphic and not dtypes.is_complex(dtype):
            raise derivatives.input_dtype_error(name, dtypes.name_of(dtype), holomorphic=True)
        if not (allow_int or dtypes.has_derivatives(dtype)):
            raise derivatives.input_dtype_error(name, dtypes.name_of(dtype))


def check_forward_inputs(name: str, leaves: Iterable[Array], *, holomorphic: bool) -> None:
    """Raises: TypeError unless forward mode by these arguments gives a Jacobian."""
    for leaf in leaves:
        if holomorphic:
            check_reverse_inputs(name, (leaf,), holomorphic=True, allow_int=True)
        elif not dtypes.is_floating(leaf.dtype):
            raise derivatives.forward_input_dtype_error(name, dtypes.name_of(leaf.dtype))


def check_outputs(name: str, outs: Iterable, *, holomorphic: bool, real: bool = True) -> None:
    """real: whether results must be real where they are not holomorphic. Raises: TypeError."""
    for out in outs:
        dtype = aval_of(out).dtype
        is_complex = dtypes.is_complex(dtype)
        if not (is_complex if holomorphic else not real or dtypes.is_floating(dtype)):
            raise derivatives.output_dtype_error(name, dtypes.name_of(dtype), holomorphic=holomorphic,
                                                 is_complex=is_complex)
