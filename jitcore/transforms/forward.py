"""`jvp` and `linearize`: derivatives along tangents.

In: a function of pytrees and its arguments. Out: values and tangents as pytrees. The work is done on leaves
by `run_jvp` and `linearize_flat`; here trees are taken apart, checked and put together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jitcore import dtypes
from jitcore.core import source
from jitcore.core.jaxpr import Jaxpr, ShapedArray, aval_of
from jitcore.core.trace import to_array
from jitcore.errors import derivatives
from jitcore.transforms.flat_function import (FlatFunction, check_callable, describe_function, is_float0,
                                              read_derivative, read_leaves)
from jitcore.transforms.jvp import run_jvp
from jitcore.transforms.linearize import LinearMap, linearize_flat
from jitcore.transforms.tangents import Zero, has_tangent, instantiate, tangent_aval
from jitcore.tree_util import PyTreeDef, tree_flatten
from jitcore.tree_util.nodes import Partial


@source.api_boundary
def jvp(fun: Callable, primals: Sequence, tangents: Sequence, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of `fun` at a point and its derivative there along a direction (forward mode).

    Args:
        fun: a function of pytrees of arrays. It is called once; Python control flow may read values.
        primals: tuple or list of its positional arguments.
        tangents: tuple or list of the same structure, shapes and dtypes. For integers and bools an ndarray of
            dtype `jitcore.dtypes.float0`.
        has_aux: whether `fun` returns a pair of which the second part is handed on without derivative.

    Returns: (value, tangent), or (value, tangent, aux). The tangent has structure, shapes and dtypes of the
        value; `float0` where that is of integers or bools.
    Raises: TypeError for tangents of another structure or dtype, and for results that are no arrays;
        ValueError for other shapes; NotImplementedError for a primitive without derivative.
    Cost: about twice that of `fun`, whatever the number of arguments.

    >>> value, slope = jvp(jnp.sin, (0.0,), (2.0,))    # 0.0, 2.0"""
    check_callable(fun)
    if not (isinstance(primals, (tuple, list)) and isinstance(tangents, (tuple, list))):
        raise derivatives.jvp_containers_error(type(primals).__name__, type(tangents).__name__)
    given, in_tree = tree_flatten(tuple(primals))
    t_leaves, t_tree = tree_flatten(tuple(tangents))
    if in_tree != t_tree:
        raise derivatives.jvp_structure_error(str(in_tree), str(t_tree))
    leaves = read_leaves(given)
    flat = FlatFunction(fun, in_tree, has_aux)
    outs, found = run_jvp(flat, leaves, list(map(_read_tangent, leaves, t_leaves)),
                          describe_function(fun, "jvp"))
    result = flat.out_tree.unflatten(outs), flat.out_tree.unflatten(map(finish, found))
    return (*result, flat.aux) if has_aux else result


def _read_tangent(primal, tangent):
    expected = tangent_aval(aval_of(primal))

    def fail(given: str) -> Exception:
        given_dtype = given.partition("[")[0]
        if given_dtype != dtypes.name_of(expected.dtype):
            names = dtypes.name_of(primal.dtype), dtypes.name_of(expected.dtype), given_dtype
            return derivatives.jvp_dtypes_error(*names)
        return derivatives.jvp_shapes_error(expected.shape, aval_of(tangent).shape)

    value = read_derivative(tangent, expected, fail)
    return Zero(expected) if value is None else value


def finish(derivative):
    """A tangent or cotangent as a user gets it: an Array, or an ndarray of `float0`."""
    value = instantiate(derivative)
    return value if is_float0(value) else to_array(value)


# -- linearize ----------------------------------------------------------------------------------------------
class Linearization:
    """What `linearize` needs besides residuals to map tangents: the function part of a `Partial`.

    Attributes:
        jaxpr: of the tangents that are not zero, by the tangents of inexact inputs; residuals are constvars.
        in_avals, out_avals: of all leaves of arguments and result.
        out_tangents: as `LinearMap.out_tangents`."""

    def __init__(self, linear: LinearMap, trees: tuple[PyTreeDef, PyTreeDef],
                 in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]):
        self.jaxpr: Jaxpr = linear.jaxpr
        self.in_linear, self.out_tangents = linear.in_linear, linear.out_tangents
        self.in_tree, self.out_tree = trees
        self.in_avals, self.out_avals = tuple(in_avals), tuple(out_avals)

    def restore(self, residuals: Sequence) -> LinearMap:
        return LinearMap(self.jaxpr, residuals, self.in_linear, self.out_tangents)

    @source.api_boundary
    def __call__(self, residuals: Sequence, /, *tangents):
        leaves, tree = tree_flatten(tangents)
        if tree != self.in_tree:
            raise derivatives.linearized_structure_error(str(self.in_tree), str(tree))
        given = list(map(_read_linear_tangent, self.in_avals, leaves))
        found = self.restore(residuals).apply([t for t, flag in zip(given, self.in_linear) if flag])
        return self.out_tree.unflatten(map(finish, found))

    def __repr__(self) -> str:
        return f"Linearization({self.jaxpr})"


def _read_linear_tangent(aval: ShapedArray, tangent):
    expected = tangent_aval(aval)
    return read_derivative(tangent, expected, lambda given: derivatives.linearized_type_error(
        aval.long(), expected.long(), given))


@source.api_boundary
def linearize(fun: Callable, *primals, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of `fun` at a point and its derivative there as a function of tangents.

    Same as (where derivatives along several directions are asked for, `fun` runs once):
        return fun(*primals), lambda *tangents: jvp(fun, primals, tangents)[1]

    Args:
        fun: a function of pytrees of arrays. It is called once.
        primals: its positional arguments.
        has_aux: whether `fun` returns a pair of which the second part is handed on without derivative.

    Returns: (value, f_jvp), or (value, f_jvp, aux). `f_jvp` takes one tangent for each argument, as `jvp`
        does, and is a pytree (`Partial`) of the intermediate values that it needs: it may be an argument or
        a result of jitted functions.
    Raises: as `jvp`; `f_jvp` raises TypeError for other containers and ValueError for other shapes or dtypes.
    Cost: memory grows with the number of operations.

    >>> value, f_jvp = linearize(jnp.sin, 0.0)
    >>> f_jvp(2.0)    # 2.0"""
    check_callable(fun)
    given, in_tree = tree_flatten(primals)
    leaves = read_leaves(given)
    flat = FlatFunction(fun, in_tree, has_aux)
    outs, linear = linearize_flat(flat, leaves, list(map(has_tangent, leaves)),
                                  describe_function(fun, "linearize"))
    function = Linearization(linear, (in_tree, flat.out_tree), map(aval_of, leaves), map(aval_of, outs))
    result = flat.out_tree.unflatten(outs), Partial(function, list(linear.residuals))
    return (*result, flat.aux) if has_aux else result
