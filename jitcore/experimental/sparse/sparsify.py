"""Functions of dense arrays, applied to sparse ones (`sparsify`), and derivatives by sparse arguments.

In: a function that was written for dense arrays. Out: one that takes `BCOO`s too: it is traced with a dense
array in the place of each, and its jaxpr run with rules for sparse operands.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jitcore.numpy as jnp
from jitcore import lax
from jitcore.core import source
from jitcore.core.jaxpr import ClosedJaxpr, Equation, aval_of, eval_jaxpr
from jitcore.experimental.sparse import operations
from jitcore.experimental.sparse.operations import is_sparse
from jitcore.experimental.sparse.products import bcoo_dot_general
from jitcore.experimental.sparse.structure import JAXSparse
from jitcore.lax.control_flow import control
from jitcore.lax.control_flow.loops import Loop
from jitcore.lax.define import define
from jitcore.transforms.autodiff import (jacfwd as jacfwd_dense, jacrev as jacrev_dense,
                                         value_and_grad as value_and_grad_dense)
from jitcore.transforms.batch_rules import rebind
from jitcore.transforms.derivative_rules import jvp_linear, transpose_unary
from jitcore.tree_util import tree_flatten, tree_leaves, tree_map

__all__ = ["grad", "jacfwd", "jacobian", "jacrev", "sparsify", "todense", "value_and_grad"]


@define("todense", impl=lambda x: x, aval=lambda x: x, jvp=jvp_linear(), batch=rebind(), same_elements=True,
        keeps_order=True, transpose=transpose_unary(lambda ct, x: ct), lower=lambda builder, x: x,
        hlo=lambda b, x: x)
def todense(arr: Any) -> Any:
    """A sparse array as a dense one, also inside of `sparsify`; others as they are.

    Source: `jax.experimental.sparse.todense`.

    Example:
        >>> from jitcore.experimental import sparse
        >>> sparse.todense(sparse.eye(2)).shape
        (2, 2)"""
    return arr.todense() if isinstance(arr, JAXSparse) else todense.primitive.bind(arr)


# -- rules --------------------------------------------------------------------------------------------------
def _on_values(primitive, x, **params):
    """Linear in values, so that entries of one place may stay apart."""
    return x.with_data(primitive.bind(x.data, **params))


def _on_unique_values(primitive, x, **params):
    if primitive.name == "integer_pow" and params["y"] <= 0:
        raise NotImplementedError("sparse rule for integer_pow with negative exponent")
    unique = x if x.unique_indices else operations.bcoo_sum_duplicates(x)
    return _on_values(primitive, unique, **params)


def _multiply(primitive, x, y, **params):
    if is_sparse(x) and is_sparse(y):
        return operations.bcoo_multiply_sparse(x, y)
    return operations.bcoo_multiply_dense(*((x, y) if is_sparse(x) else (y, x)))


def _multiply_along(primitive, x, y, *, dimension_numbers, preferred_element_type, **_):
    return bcoo_dot_general(x, y, dimension_numbers=dimension_numbers,
                            preferred_element_type=preferred_element_type)


def _divide(primitive, x, y):
    if is_sparse(y):
        raise NotImplementedError("sparse rule for div: by a sparse array, most of whose elements are zero")
    return operations.bcoo_multiply_dense(x, jnp.reciprocal(y))


def _broadcast(primitive, x, *, shape, broadcast_dimensions, **_):
    return operations.bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=broadcast_dimensions)


def _concatenate(primitive, *operands, dimension):
    if not all(map(is_sparse, operands)):
        raise NotImplementedError("concatenation of mixed sparse and dense arrays.")
    return operations.bcoo_concatenate(operands, dimension=dimension)


_RULES: dict[str, Callable] = {
    **dict.fromkeys(("neg", "convert_element_type", "real", "imag", "conj", "copy", "stop_gradient"),
                    _on_values),
    **dict.fromkeys(("abs", "sign", "sqrt", "cbrt", "square", "integer_pow", "sin", "sinh", "tan", "tanh",
                     "asin", "asinh", "atan", "atanh", "expm1", "log1p", "floor", "ceil", "trunc",
                     "round_half_even", "round_half_away", "erf", "erf_inv"), _on_unique_values),
    **dict.fromkeys(("add", "add_any"), lambda primitive, x, y: operations.bcoo_add(x, y)),
    "sub": lambda primitive, x, y: operations.bcoo_add(x, -y),
    "mul": _multiply, "div": _divide,
    "dot_general": _multiply_along,
    "transpose": lambda primitive, x, *, permutation: operations.bcoo_transpose(x, permutation=permutation),
    "reduce_sum": lambda primitive, x, *, axes, **_: x.sum(axes),
    "reshape": lambda primitive, x, *, new_sizes, **_: operations.bcoo_reshape(x, new_sizes=new_sizes),
    "squeeze": lambda primitive, x, *, dimensions: operations.bcoo_squeeze(x, dimensions=dimensions),
    "broadcast_in_dim": _broadcast, "concatenate": _concatenate,
    "slice": lambda primitive, x, **params: operations.bcoo_slice(x, **params),
    "rev": lambda primitive, x, *, dimensions: operations.bcoo_rev(x, dimensions),
    "todense": lambda primitive, x: x.todense(),
}


# -- jaxprs -------------------------------------------------------------------------------------------------
def _evaluate(closed: ClosedJaxpr, operands: Sequence) -> list:
    """Runs a jaxpr on sparse and dense arrays. Raises: NotImplementedError for a primitive without rule."""
    return eval_jaxpr(closed.jaxpr, closed.consts, operands, _apply)


def _apply(eqn: Equation, operands: list) -> list:
    primitive, params = eqn.primitive, eqn.params
    if not any(map(is_sparse, operands)):
        return primitive.bind_all(*operands, **params)
    if primitive.name in _CALLS:
        return _CALLS[primitive.name](operands, **params)
    if primitive.name in _RULES:
        return [_RULES[primitive.name](primitive, *operands, **params)]
    inline = primitive.traits.get("inline")
    if inline is None:
        raise NotImplementedError(f"sparse rule for {primitive} is not implemented.\nTo fix: apply it to "
                                  "sparse.todense(x).")
    return _evaluate(inline(params, [])[0], operands)


def _cond(operands: list, *, branches) -> list:
    index, *rest = operands
    return lax.switch(index, [lambda *values, branch=branch: _evaluate(branch, values)
                              for branch in branches], *rest)


def _scan(operands: list, *, jaxpr, length, reverse, num_consts, num_carry, unroll) -> list:
    """Sparse arrays among the elements need a batch axis, along which the loop goes."""
    consts, init, xs = control.split_operands(operands, num_consts, num_carry)
    if any(is_sparse(x) and not x.n_batch for x in xs):
        raise NotImplementedError("scan over a sparse array without batch axis.\nTo fix: make it with "
                                  "n_batch=1.")

    def step(carry, elements):
        outs = _evaluate(jaxpr, [*consts, *carry, *elements])
        return outs[:num_carry], outs[num_carry:]

    carry, ys = lax.scan(step, list(init), list(xs), length=length, reverse=reverse, unroll=unroll)
    return [*carry, *ys]


def _while(operands: list, **params) -> list:
    loop = Loop(**params)
    cond_consts, body_consts, init = loop.split(operands)
    if loop.batch_shape:
        raise NotImplementedError("sparse rule for a while_loop under vmap")
    return lax.while_loop(lambda carry: _evaluate(loop.cond_jaxpr, [*cond_consts, *carry])[0],
                          lambda carry: _evaluate(loop.body_jaxpr, [*body_consts, *carry]), list(init))


_CALLS: dict[str, Callable] = {"jit": lambda operands, *, jaxpr, **_: _evaluate(jaxpr, operands),
                               "cond": _cond, "scan": _scan, "while": _while}


# -- public -------------------------------------------------------------------------------------------------
@source.api_boundary
def sparsify(f: Callable, use_tracer: bool = False) -> Callable:
    """A function of dense arrays, which takes sparse ones too.

    Args:
        f: a function of pytrees of arrays. There are rules for sums, products, division by dense arrays,
            functions that keep zeros, `dot_general` and what is made of it, sums along axes, changes of
            shape, static slices, joining, and control flow.
        use_tracer: accepted; f is always traced.

    Returns: a function of the same arguments, any array of which may be a `BCOO`; results are sparse where
        rules give such.
    Raises: when called, NotImplementedError for an operation that has no rule.
    Source: `jax.experimental.sparse.sparsify`.

    Example:
        >>> import jitcore.numpy as jnp
        >>> from jitcore.experimental import sparse
        >>> sparse.sparsify(lambda m, v: jnp.sin(m) @ v)(sparse.eye(2), jnp.zeros(2))
        Array([0., 0.], dtype=float32)"""
    if not callable(f):
        raise TypeError(f"Expected a callable value, got {f}")

    @functools.wraps(f)
    def call(args, kwargs):
        return f(*args, **kwargs)

    @functools.wraps(f)
    @source.api_boundary
    def sparsified(*args, **kwargs):
        leaves, in_tree = tree_flatten((args, kwargs), is_leaf=is_sparse)
        avals = [leaf.aval if is_sparse(leaf) else aval_of(leaf) for leaf in leaves]
        traced = control.trace_function(call, in_tree, avals, "sparsify")
        return traced.out_tree.unflatten(_evaluate(ClosedJaxpr(traced.jaxpr, traced.consts), leaves))

    return sparsified


@source.api_boundary
def value_and_grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False,
                   **options: Any) -> Callable:
    """`jitcore.value_and_grad`, whose arguments may be sparse: the gradient by one is sparse, with entries at
    its places.

    Args, Returns, Raises: as for `jitcore.value_and_grad`.
    Source: `jax.experimental.sparse.value_and_grad`.

    Example:
        >>> import jitcore.numpy as jnp
        >>> from jitcore.experimental import sparse
        >>> sparse.value_and_grad(lambda m: (m @ jnp.ones(2)).sum())(sparse.eye(2))[1]
        BCOO(float32[2, 2], nse=2)"""
    @functools.wraps(fun)
    @source.api_boundary
    def differentiated(*args, **kwargs):
        call, given, restore = _by_values(fun, argnums, args)
        value, found = value_and_grad_dense(call, argnums, has_aux, **options)(*given, **kwargs)
        return value, restore(found)

    return differentiated


def _by_values(fun: Callable, argnums: int | Sequence[int], args: tuple) -> tuple[Callable, list, Callable]:
    """A function of the values of sparse arguments; those values; and what makes sparse arrays of derivatives
    by them, whose axes in front are those of the function's result."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    chosen = {n % len(args) for n in numbers}
    given = [tree_map(lambda x: x.data if is_sparse(x) else x, arg, is_leaf=is_sparse) if n in chosen else arg
             for n, arg in enumerate(args)]

    def put_back(x, values):
        if not is_sparse(x):
            return values
        in_front = jnp.shape(values)[: jnp.ndim(values) - x.data.ndim]
        if not in_front:
            return x.with_data(values)
        indices = jnp.broadcast_to(x.indices, (*in_front, *x.indices.shape))
        return x.with_entries(values, indices, x.sparse_shape, x.indices_sorted, x.unique_indices)

    def restore_one(arg, values):
        return tree_map(put_back, arg, values, is_leaf=is_sparse)

    def call(*values, **keywords):
        return fun(*(restore_one(arg, value) if n in chosen else arg
                     for n, (arg, value) in enumerate(zip(args, values))), **keywords)

    def restore(found):
        if isinstance(argnums, int):
            return restore_one(args[argnums], found)
        return tuple(restore_one(args[n], ct) for n, ct in zip(numbers, found))

    return call, given, restore


def _find_jacobian(find: Callable, fun: Callable, argnums: int | Sequence[int], has_aux: bool,
                   options: dict) -> Callable:
    @functools.wraps(fun)
    @source.api_boundary
    def differentiated(*args, **kwargs):
        call, given, restore = _by_values(fun, argnums, args)
        structures = []

        def call_flat(*values, **keywords):
            out = call(*values, **keywords)
            out, aux = out if has_aux else (out, None)
            if any(map(is_sparse, tree_leaves(out, is_leaf=is_sparse))):
                raise NotImplementedError("Jacobians of functions whose results are sparse.\nTo fix: return "
                                          "todense() of them.")
            leaves, structure = tree_flatten(out)
            structures.append(structure)
            return (leaves, aux) if has_aux else leaves

        found = find(call_flat, argnums, has_aux, **options)(*given, **kwargs)
        found, aux = found if has_aux else (found, None)
        out = structures[-1].unflatten(map(restore, found))
        return (out, aux) if has_aux else out

    return differentiated


def jacfwd(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False,
           **options: Any) -> Callable:
    """`jitcore.jacfwd`, whose arguments may be sparse: the Jacobian by one has entries at its places, and the
    axes of the result, which is dense, in front as batch axes.

    Args, Returns, Raises: as for `jitcore.jacfwd`. Source: `jax.experimental.sparse.jacfwd`.

    Example:
        >>> import jitcore.numpy as jnp
        >>> from jitcore.experimental import sparse
        >>> sparse.jacfwd(lambda m: m @ jnp.ones(2))(sparse.eye(2))
        BCOO(float32[2, 2, 2], nse=2, n_batch=1)"""
    return _find_jacobian(jacfwd_dense, fun, argnums, has_aux, options)


def jacrev(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False,
           **options: Any) -> Callable:
    """`jitcore.jacrev`, whose arguments may be sparse: see `jacfwd`.

    Source: `jax.experimental.sparse.jacrev`.

    Example:
        >>> import jitcore.numpy as jnp
        >>> from jitcore.experimental import sparse
        >>> sparse.jacrev(lambda m: m @ jnp.ones(2))(sparse.eye(2)).data.shape
        (2, 2)"""
    return _find_jacobian(jacrev_dense, fun, argnums, has_aux, options)


def jacobian(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False,
             **options: Any) -> Callable:
    """Another name of `jacrev`. Source: `jax.experimental.sparse.jacobian`."""
    return jacrev(fun, argnums, has_aux, **options)


def grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **options: Any) -> Callable:
    """`jitcore.grad`, whose arguments may be sparse: see `value_and_grad`.

    Source: `jax.experimental.sparse.grad`.

    Example:
        >>> import jitcore.numpy as jnp
        >>> from jitcore.experimental import sparse
        >>> sparse.grad(lambda m: (m @ jnp.ones(2)).sum())(sparse.eye(2)).data
        Array([1., 1.], dtype=float32)"""
    find = value_and_grad(fun, argnums, has_aux, **options)

    @functools.wraps(fun)
    def differentiated(*args, **kwargs):
        value, found = find(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return differentiated
