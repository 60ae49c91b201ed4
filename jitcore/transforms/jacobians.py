"""`jacfwd`, `jacrev` and `hessian`: all derivatives of all elements.

In: a function of pytrees. Out: a function that returns the pytree of the result, with a pytree of the
arguments at each leaf, whose arrays have the axes of that result followed by those of that argument. One run
of the function; its derivative is applied to a whole standard basis at once, by `run_batched`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec

from jitcore import dtypes
from jitcore.core import source
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.primitive import registry
from jitcore.core.trace import to_array
from jitcore.transforms.batching import BatchAxis, batch_values, move_axis, run_batched
from jitcore.transforms.flat_function import (FlatFunction, check_callable, check_forward_inputs,
                                              check_outputs, check_reverse_inputs, choose_arguments,
                                              describe_function, document, read_argnums, read_leaves)
from jitcore.transforms.jvp import run_jvp
from jitcore.transforms.reverse import LinearizedCall
from jitcore.transforms.tangents import fill, has_tangent, instantiate, tangent_aval
from jitcore.tree_util import PyTreeDef, tree_flatten

P = ParamSpec("P")


@source.api_boundary
def jacfwd(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           holomorphic: bool = False) -> Callable[P, Any]:
    """A function that gives the Jacobian of `fun`, column by column (forward mode).

    Args:
        fun: a function of pytrees of arrays.
        argnums: position of the argument to differentiate by, or several.
        has_aux: whether `fun` returns (value, aux), of which aux is handed on without derivative.
        holomorphic: whether arguments and values are complex and `fun` is holomorphic.

    Returns: a function of the same arguments that returns the Jacobian, or (jacobian, aux). For an array of
        shape (m,) and a value of shape (n,) it is an array of shape (n, m).
    Raises: when called, TypeError for arguments that are not real, or not complex where holomorphic.
    Cost: `fun` on as many tangents as the arguments have elements: right for tall Jacobians.

    >>> jacfwd(lambda x: x**2)(jnp.array([1.0, 2.0]))    # [[2, 0], [0, 4]]"""

    def find_rows(partial: Callable, leaves: list, in_tree: PyTreeDef) -> tuple[FlatFunction, list]:
        check_forward_inputs("jacfwd", leaves, holomorphic=holomorphic)
        flat = FlatFunction(partial, in_tree, has_aux)
        outs, columns = _push_basis(flat, leaves, describe_function(fun, "jacfwd"))
        check_outputs("jacfwd", outs, holomorphic=holomorphic, real=False)
        return flat, [_split_columns(column, out, leaves) for column, out in zip(columns, outs)]

    return _make_jacobian(fun, argnums, has_aux, find_rows)


@source.api_boundary
def jacrev(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           holomorphic: bool = False, allow_int: bool = False) -> Callable[P, Any]:
    """A function that gives the Jacobian of `fun`, row by row (reverse mode).

    Args: as `jacfwd`.
        allow_int: whether arguments may be integers; derivatives by them are zeros of their dtype.

    Returns: as `jacfwd`.
    Raises: when called, TypeError for arguments of integers and for values that are not real, or not complex
        where holomorphic.
    Cost: pulls back as many cotangents as the value has elements: right for wide Jacobians.

    >>> jacrev(lambda x: x**2)(jnp.array([1.0, 2.0]))    # [[2, 0], [0, 4]]"""

    def find_rows(partial: Callable, leaves: list, in_tree: PyTreeDef) -> tuple[FlatFunction, list]:
        check_reverse_inputs("jacrev", leaves, holomorphic=holomorphic, allow_int=allow_int)
        call = LinearizedCall(partial, leaves, in_tree, has_aux, describe_function(fun, "jacrev"))
        check_outputs("jacrev", call.outs, holomorphic=holomorphic)
        return call.flat, _pull_basis(call, leaves)

    return _make_jacobian(fun, argnums, has_aux, find_rows)


@source.api_boundary
def jacobian(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
             holomorphic: bool = False, allow_int: bool = False) -> Callable[P, Any]:
    """Another name of `jacrev`."""
    return jacrev(fun, argnums, has_aux, holomorphic, allow_int)


@source.api_boundary
def hessian(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
            holomorphic: bool = False) -> Callable[P, Any]:
    """A function that gives all second derivatives of `fun`.

    Same as:
        return jacfwd(jacrev(fun, argnums), argnums)

    Args: as `jacfwd`.

    Returns: a function of the same arguments. For an argument of shape (n,) and a scalar value the result has
        shape (n, n); for pytrees it is the tree of the value with, at each leaf, the tree of the arguments
        with, at each leaf, such a tree again.

    >>> hessian(lambda x: x[0] ** 2 * x[1])(jnp.array([1.0, 2.0]))    # [[4, 2], [2, 0]]"""
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def _make_jacobian(fun: Callable[P, Any], argnums: int | Sequence[int], has_aux: bool,
                   find_rows: Callable[..., tuple[FlatFunction, list]]) -> Callable[P, Any]:
    """The function of the user's arguments around `find_rows(partial, leaves, in_tree)`, which gives, for the
    function of the chosen arguments and these, the derivatives of each leaf of the value."""
    check_callable(fun)
    numbers, name = read_argnums(argnums), source.locate_function(fun)[0]

    @document(fun, _describe(name, argnums))
    @source.api_boundary
    def compute_jacobian(*args: P.args, **kwargs: P.kwargs) -> Any:
        partial, chosen = choose_arguments(fun, numbers, args, kwargs)
        given, in_tree = tree_flatten(chosen)
        flat, rows = find_rows(partial, read_leaves(given), in_tree)
        jacobian = _build_tree(flat.out_tree, _read_in_tree(in_tree, numbers), rows)
        return (jacobian, flat.aux) if has_aux else jacobian

    return compute_jacobian


def _describe(name: str, argnums) -> str:
    return (f"Jacobian of {name} with respect to positional argument(s) {argnums}. Takes the same arguments "
            f"as {name} but returns the jacobian of the output with respect to the arguments at positions "
            f"{argnums}.")


# -- both modes ---------------------------------------------------------------------------------------------
def _push_basis(flat: FlatFunction, leaves: Sequence, info) -> tuple[list, list]:
    """The outputs of a function, and for each the derivatives along all elements of the arguments, which its
    first axis numbers; None for an output without derivative."""
    basis = list(_make_basis([tangent_aval(aval_of(leaf)) for leaf in leaves]))
    axis = BatchAxis(sum(_size(leaf) for leaf in leaves), None)
    outs: list = []

    def push(*tangents):
        values, found = run_jvp(flat, leaves, tangents, info)
        outs.extend(values)
        return [instantiate(t) for t, out in zip(found, values) if has_tangent(out)]

    found, batched = run_batched(push, axis, basis, [True] * len(basis), info)
    columns = iter(batch_values(axis, found, batched))
    return outs, [next(columns) if has_tangent(out) else None for out in outs]


def _pull_basis(call: LinearizedCall, leaves: Sequence) -> list[list]:
    """For each output and each argument the block of the Jacobian."""
    avals = [tangent_aval(aval_of(out)) for out in call.outs]
    axis = BatchAxis(sum(aval.size for aval in avals), None)
    basis = list(_make_basis(avals))

    def pull(*cotangents):
        return list(map(instantiate, call.linear.transpose(cotangents)))

    found, batched = run_batched(pull, axis, basis, [True] * len(basis))
    pulled = iter(batch_values(axis, found, batched))
    columns = [next(pulled) if has_tangent(leaf) else None for leaf in leaves]
    return [[_make_zeros(aval, aval_of(leaf), leaf) if column is None else
             _reshape(_slice_rows(column, start, aval.size), (*aval.shape, *aval_of(leaf).shape), leaf)
             for column, leaf in zip(columns, leaves)]
            for start, aval in zip(_find_starts(avals), avals)]


def _split_columns(column, out, leaves: Sequence) -> list:
    """The blocks of one output."""
    out_aval = aval_of(out)
    avals = [aval_of(leaf) for leaf in leaves]
    if column is None:
        return [_make_zeros(out_aval, aval, out) for aval in avals]
    parts = [_slice_rows(column, start, aval.size) for start, aval in zip(_find_starts(avals), avals)]
    return [_reshape(move_axis(part, 0, out_aval.ndim), (*out_aval.shape, *aval.shape), out)
            for part, aval in zip(parts, avals)]


def _make_zeros(out_aval: ShapedArray, in_aval: ShapedArray, like):
    """The block where one of the two is of integers: zeros of its dtype."""
    aval = aval_of(like).update(shape=(*out_aval.shape, *in_aval.shape))
    return to_array(fill(aval, 0))


# -- bases --------------------------------------------------------------------------------------------------
def _size(leaf) -> int:
    return math.prod(aval_of(leaf).shape)


def _find_starts(avals: Sequence[ShapedArray]) -> list[int]:
    """Where the elements of each array begin among all elements."""
    return list(itertools.accumulate([aval.size for aval in avals[:-1]], initial=0))[: len(avals)]


def _make_basis(avals: Sequence[ShapedArray]) -> Iterator[Any]:
    """For each array its part of the standard basis of all: of shape (number of all elements, *shape)."""
    total = sum(aval.size for aval in avals)
    for start, aval in zip(_find_starts(avals), avals):
        shape = (total, aval.size)
        rows, columns = (registry["iota"].bind(dtype=dtypes.int32, shape=shape, dimension=dimension)
                         for dimension in (0, 1))
        hits = registry["eq"].bind(rows, registry["add"].bind(columns, dtypes.int32.type(start)))
        ones = registry["convert_element_type"].bind(hits, new_dtype=aval.dtype, weak_type=aval.weak_type)
        yield registry["reshape"].bind(ones, new_sizes=(total, *aval.shape), dimensions=None)


def _slice_rows(x, start: int, count: int):
    shape = aval_of(x).shape
    if count == shape[0]:
        return x
    return registry["slice"].bind(x, start_indices=(start, *[0] * (len(shape) - 1)),
                                  limit_indices=(start + count, *shape[1:]), strides=None)


def _reshape(x, shape: tuple, like):
    """x in this shape, weakly typed where `like` is."""
    if aval_of(x).shape != shape:
        x = registry["reshape"].bind(x, new_sizes=shape, dimensions=None)
    aval, wanted = aval_of(x), aval_of(like)
    if (aval.dtype, aval.weak_type) != (wanted.dtype, wanted.weak_type):
        x = registry["convert_element_type"].bind(x, new_dtype=wanted.dtype, weak_type=wanted.weak_type)
    return to_array(x)


# -- trees --------------------------------------------------------------------------------------------------
def _read_in_tree(in_tree, argnums):
    """The structure of the argument itself where there is but one."""
    return in_tree.children()[0] if isinstance(argnums, int) else in_tree


def _build_tree(out_tree, in_tree, blocks: Sequence[Sequence]):
    return out_tree.unflatten([in_tree.unflatten(row) for row in blocks])
