"""`vjp`, `grad`, `value_and_grad` and `linear_transpose`: derivatives of results by all arguments at once.

In: a function of pytrees and its arguments. Out: values and cotangents as pytrees. A function is linearized
(`linearize_flat`) and the linear part transposed; here trees are taken apart, checked and put together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import numpy as np

from jitcore import dtypes
from jitcore.core import source
from jitcore.core.jaxpr import DebugInfo, Jaxpr, ShapedArray, aval_of, is_array_like
from jitcore.core.primitive import registry
from jitcore.core.trace import to_array, trace_to_jaxpr
from jitcore.errors import derivatives
from jitcore.transforms.flat_function import (FlatFunction, check_callable, check_outputs,
                                              check_reverse_inputs, choose_arguments, describe_function,
                                              document, read_argnums, read_derivative, read_leaves)
from jitcore.transforms.forward import Linearization, finish
from jitcore.transforms.linearize import linearize_flat
from jitcore.transforms.tangents import Zero, fill, has_tangent, tangent_aval
from jitcore.transforms.transpose import Linear, transpose
from jitcore.tree_util import tree_flatten
from jitcore.tree_util.nodes import LEAF, Partial, find_difference

if TYPE_CHECKING:
    from jitcore.array import Array
    from jitcore.typing import ArrayLike

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
A = TypeVar("A", bound=np.ndarray | np.number | complex)


# -- vjp ----------------------------------------------------------------------------------------------------
class PullBack(Linearization):
    """What the function that `vjp` returns needs besides residuals: the function part of a `Partial`."""

    debug_info: DebugInfo

    @source.api_boundary
    def __call__(self, residuals: Sequence, /, *cotangents):
        if len(cotangents) != 1:
            raise derivatives.vjp_count_error(self.debug_info.fun_name, len(cotangents))
        leaves, tree = tree_flatten(cotangents[0])
        if tree != self.out_tree:
            raise self._structure_error(cotangents[0])
        given = list(map(_read_cotangent, self.out_avals, leaves))
        return self.in_tree.unflatten(self.pull(residuals, given))

    def pull(self, residuals: Sequence, cotangents: Sequence) -> list:
        """The cotangents of all leaves of the arguments. cotangents: one for each output."""
        found = iter(self.restore(residuals).transpose(cotangents))
        return [_finish_like(next(found) if flag else Zero(tangent_aval(aval)), aval)
                for flag, aval in zip(self.in_linear, self.in_avals)]

    def _structure_error(self, cotangent) -> Exception:
        expected = self.out_tree.unflatten([LEAF] * self.out_tree.num_leaves)
        difference = find_difference(expected, cotangent)
        if difference is None:
            difference = f"expected {self.out_tree}, found a {type(cotangent).__name__} where a leaf stood."
        info = self.debug_info
        function = f"{info.fun_name} at {info.location}" if info.location else info.fun_name
        return derivatives.vjp_structure_error(function, difference)

    def __repr__(self) -> str:
        return f"PullBack({self.jaxpr})"


def _read_cotangent(aval: ShapedArray, cotangent):
    expected = tangent_aval(aval)
    if expected.dtype == dtypes.float0 and np.shape(cotangent) == aval.shape:
        return None  # of integers: there is nothing to pull back
    return read_derivative(cotangent, expected, lambda given: derivatives.vjp_type_error(
        aval.long(), expected.long(), given))


def _finish_like(cotangent, aval: ShapedArray):
    """A cotangent as a user gets it, weakly typed where the argument is."""
    value = finish(cotangent)
    if getattr(value, "weak_type", aval.weak_type) == aval.weak_type or aval_of(value).dtype != aval.dtype:
        return value
    return registry["convert_element_type"].bind(value, new_dtype=aval.dtype, weak_type=aval.weak_type)


class LinearizedCall:
    """A function linearized at a point: what `vjp`, `grad` and `jacrev` share."""

    __slots__ = ("flat", "outs", "linear", "pull_back")

    def __init__(self, fun: Callable, leaves: Sequence, in_tree, has_aux: bool, info: DebugInfo):
        self.flat = FlatFunction(fun, in_tree, has_aux)
        self.outs, self.linear = linearize_flat(self.flat, leaves, list(map(has_tangent, leaves)), info)
        trees = in_tree, self.flat.out_tree
        self.pull_back = PullBack(self.linear, trees, map(aval_of, leaves), map(aval_of, self.outs))
        self.pull_back.debug_info = info


@source.api_boundary
def vjp(fun: Callable, *primals, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of `fun` at a point, and a function from a cotangent of it to cotangents of the arguments.

    Args:
        fun: a function of pytrees of arrays. It is called once; Python control flow may read values.
        primals: its positional arguments.
        has_aux: whether `fun` returns a pair of which the second part is handed on without derivative.

    Returns: (value, f_vjp), or (value, f_vjp, aux). `f_vjp(cotangent)` takes one argument like the value and
        returns a tuple with one entry like each of the primals; it is a pytree (`Partial`) of the
        intermediate values that it needs and may be an argument or a result of jitted functions. The
        derivative of integers and bools is an ndarray of dtype `float0`, whose elements hold nothing.
    Raises: TypeError for arguments and results that are no arrays; NotImplementedError for a primitive
        without derivative. `f_vjp` raises ValueError for a cotangent of another structure, shape or dtype.
    Cost: a few times that of `fun`, whatever the number of arguments; memory grows with the number of
        operations.

    >>> value, f_vjp = vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> f_vjp(1.0)    # (3.0, 2.0)"""
    check_callable(fun)
    given, in_tree = tree_flatten(primals)
    call = LinearizedCall(fun, read_leaves(given), in_tree, has_aux, describe_function(fun, "vjp"))
    out_tree = call.flat.out_tree
    result = out_tree.unflatten(call.outs), Partial(call.pull_back, list(call.linear.residuals))
    return (*result, call.flat.aux) if has_aux else result


# -- grad ---------------------------------------------------------------------------------------------------
# By an array or a number, gradients are Arrays, by a pytree they have its type. The last signature of each is
# for lambdas, which fit all of them: mypy then makes Any of the result.
@overload
def value_and_grad(fun: Callable[Concatenate[Array, P], R], argnums: Literal[0] = 0, has_aux: bool = False,
                   holomorphic: bool = False,
                   allow_int: bool = False) -> Callable[Concatenate[ArrayLike, P], tuple[R, Array]]: ...
@overload
def value_and_grad(fun: Callable[Concatenate[A, P], R], argnums: Literal[0] = 0, has_aux: bool = False,
                   holomorphic: bool = False,
                   allow_int: bool = False) -> Callable[Concatenate[ArrayLike, P], tuple[R, Array]]: ...
@overload
def value_and_grad(fun: Callable[Concatenate[T, P], R], argnums: Literal[0] = 0, has_aux: bool = False,
                   holomorphic: bool = False,
                   allow_int: bool = False) -> Callable[Concatenate[T, P], tuple[R, T]]: ...
@overload
def value_and_grad(fun: Callable[P, R], argnums: int | Sequence[int] = 0, has_aux: bool = False,
                   holomorphic: bool = False, allow_int: bool = False) -> Callable[P, tuple[R, Any]]: ...
@overload
def value_and_grad(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
                   holomorphic: bool = False, allow_int: bool = False) -> Any: ...
@source.api_boundary
def value_and_grad(fun: Callable[P, R], argnums: int | Sequence[int] = 0, has_aux: bool = False,
                   holomorphic: bool = False,
                   allow_int: bool = False) -> Callable[P, tuple[R, Any]]:
    """A function that gives the value of the scalar function `fun` and its gradient.

    Args:
        fun: returns one number, an array of shape ().
        argnums: position of the argument to differentiate by, or several; negative ones count from the end.
            Those arguments are pytrees of floating or complex arrays, the others may be anything.
        has_aux: whether `fun` returns (value, aux), of which aux is handed on without derivative.
        holomorphic: whether arguments and value are complex and `fun` is holomorphic.
        allow_int: whether arguments may be integers; their gradient has dtype `float0`.

    Returns: a function of the same arguments that returns (value, gradient), or ((value, aux), gradient). The
        gradient has structure, shapes and dtypes of the argument; for several arguments it is a tuple. By a
        complex argument of a real function it is the conjugate of the direction of steepest ascent.
    Raises: when called, TypeError for a value that is no scalar, for arguments or values of other dtypes, and
        for too few arguments."""
    check_callable(fun)
    numbers, name = read_argnums(argnums), source.locate_function(fun)[0]

    @document(fun, f"Value and gradient of {name} with respect to positional argument(s) {argnums}. Takes "
              f"the same arguments as {name} but returns a two-element tuple where the first element is the "
              f"value of {name} and the second element is the gradient, which has the same shape as the "
              f"arguments at positions {argnums}.")
    @source.api_boundary
    def compute_both(*args: P.args, **kwargs: P.kwargs) -> tuple[R, Any]:
        return _differentiate(fun, numbers, args, kwargs, has_aux, holomorphic, allow_int)

    return compute_both


@overload
def grad(fun: Callable[Concatenate[Array, P], Any], argnums: Literal[0] = 0, has_aux: Literal[False] = False,
         holomorphic: bool = False,
         allow_int: bool = False) -> Callable[Concatenate[ArrayLike, P], Array]: ...
@overload
def grad(fun: Callable[Concatenate[A, P], Any], argnums: Literal[0] = 0, has_aux: Literal[False] = False,
         holomorphic: bool = False,
         allow_int: bool = False) -> Callable[Concatenate[ArrayLike, P], Array]: ...
@overload
def grad(fun: Callable[Concatenate[T, P], Any], argnums: Literal[0] = 0, has_aux: Literal[False] = False,
         holomorphic: bool = False, allow_int: bool = False) -> Callable[Concatenate[T, P], T]: ...
@overload
def grad(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
         holomorphic: bool = False, allow_int: bool = False) -> Callable[P, Any]: ...
@overload
def grad(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
         holomorphic: bool = False, allow_int: bool = False) -> Any: ...
@source.api_boundary
def grad(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
         holomorphic: bool = False, allow_int: bool = False) -> Callable[P, Any]:
    """A function that gives the gradient of the scalar function `fun`.

    Args: as `value_and_grad`.

    Returns: a function of the same arguments that returns the gradient, or (gradient, aux) with `has_aux`.
    Raises: as `value_and_grad`.

    >>> grad(lambda x: x**3)(2.0)    # 12.0"""
    check_callable(fun)
    numbers, name = read_argnums(argnums), source.locate_function(fun)[0]

    @document(fun, f"Gradient of {name} with respect to positional argument(s) {argnums}. Takes the same "
              f"arguments as {name} but returns the gradient, which has the same shape as the arguments at "
              f"positions {argnums}.")
    @source.api_boundary
    def compute_gradient(*args: P.args, **kwargs: P.kwargs) -> Any:
        value, gradient = _differentiate(fun, numbers, args, kwargs, has_aux, holomorphic, allow_int)
        return (gradient, value[1]) if has_aux else gradient

    return compute_gradient


def _differentiate(fun, argnums, args, kwargs, has_aux, holomorphic, allow_int) -> tuple[Any, Any]:
    """(value or (value, aux), gradient) of one call."""
    partial, chosen = choose_arguments(fun, argnums, args, kwargs)
    given, in_tree = tree_flatten(chosen)
    leaves = read_leaves(given)
    check_reverse_inputs("grad", leaves, holomorphic=holomorphic, allow_int=allow_int)
    call = LinearizedCall(partial, leaves, in_tree, has_aux, describe_function(fun, "grad"))
    value = _read_scalar(call)
    check_outputs("grad", (value,), holomorphic=holomorphic)
    one = fill(tangent_aval(aval_of(value)), 1)
    gradient = in_tree.unflatten(call.pull_back.pull(call.linear.residuals, [one]))
    gradient = gradient[0] if isinstance(argnums, int) else gradient
    return ((value, call.flat.aux) if has_aux else value), gradient


def _read_scalar(call: LinearizedCall):
    """The value of a function that shall return one number. Raises: TypeError when it does not."""
    out_tree = call.flat.out_tree
    if not out_tree.is_leaf():
        raise derivatives.scalar_output_error(None, repr(out_tree.unflatten(call.outs)))
    (value,) = call.outs
    shape = aval_of(value).shape
    if shape:
        raise derivatives.scalar_output_error(shape)
    return value


# -- linear functions ---------------------------------------------------------------------------------------
class TransposedFunction:
    """What a transposed linear function needs besides captured values: the function part of a `Partial`."""

    def __init__(self, jaxpr: Jaxpr, in_tree, out_tree):
        self.jaxpr, self.in_tree, self.out_tree = jaxpr, in_tree, out_tree

    @source.api_boundary
    def __call__(self, consts: Sequence, cotangent, /):
        leaves, tree = tree_flatten(cotangent)
        if tree != self.out_tree:
            raise derivatives.linear_cotangent_error("tree", str(self.out_tree), str(tree))
        cts = [self._read(aval, leaf, leaves) for aval, leaf in zip(self.jaxpr.out_avals, leaves)]
        operands = [Linear(aval) for aval in self.jaxpr.in_avals]
        found = transpose(self.jaxpr, consts, operands, cts)
        return self.in_tree.unflatten(to_array(fill(aval, 0)) if isinstance(ct, Zero) else to_array(ct)
                                      for ct, aval in zip(found, self.jaxpr.in_avals))

    def _read(self, aval: ShapedArray, leaf, leaves):
        return read_derivative(leaf, aval, lambda given: derivatives.linear_cotangent_error(
            "type", str(tuple(self.jaxpr.out_avals)), str(leaves)))

    def __repr__(self) -> str:
        return f"TransposedFunction({self.jaxpr})"


@source.api_boundary
def linear_transpose(fun: Callable, *primals) -> Callable:
    """The transpose of a linear function, without a run of it.

    Same as, for a function that is linear:
        return vjp(fun, *zeros_like_the_primals)[1]

    Args:
        fun: a function of pytrees of arrays, linear in all arguments together.
        primals: values, or `ShapeDtypeStruct`s, that tell the types of its arguments.

    Returns: a function of one argument like the result of `fun` that returns a tuple like the primals.
    Raises: TypeError for functions between floats and integers; the returned function raises TypeError for an
        argument of another structure or type, and NotImplementedError where `fun` is not linear."""
    check_callable(fun)
    leaves, in_tree = tree_flatten(primals)
    flat = FlatFunction(fun, in_tree)
    in_avals = [ShapedArray(leaf.shape, leaf.dtype) if hasattr(leaf, "shape") and hasattr(leaf, "dtype")
                and not is_array_like(leaf) else aval_of(leaf) for leaf in leaves]
    jaxpr, consts = trace_to_jaxpr(flat, in_avals, describe_function(fun, "linear_transpose"))
    kinds = [aval.dtype for aval in in_avals], [aval.dtype for aval in jaxpr.out_avals]
    every = [*kinds[0], *kinds[1]]
    if not (all(map(dtypes.is_inexact, every)) or all(map(dtypes.is_integer, every))):
        raise derivatives.linear_dtypes_error(*map(str, kinds))
    return Partial(TransposedFunction(jaxpr, in_tree, flat.out_tree), list(consts))
