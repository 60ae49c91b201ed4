"""Equations that JAX runs: what has no rule in StableHLO.

In: an equation. Out: a function of JAX's arrays, to be traced. Decompositions and a few special functions are
JAX's own; what is left, Python functions among it, runs through its NumPy implementation on the host, on the
CPU client alone. Loops and branches that hold such equations are loops and branches of JAX.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore import dtypes
from jitcore.backends.xla.client import allow_64_bits, is_64_bits, load_jax
from jitcore.backends.xla.devices import to_jax_mesh, to_jax_sharding, to_sharding
from jitcore.backends.xla.lower import TPU_FUNCTIONS, has_rule
from jitcore.backends.xla.open_shapes import find_open_rule, is_open
from jitcore.core.jaxpr import ClosedJaxpr, Equation, list_equations, sub_jaxprs
from jitcore.core.primitive import registry
from jitcore.lax.control_flow.control import split_operands


def find_rule(eqn: Equation, make_function: Callable) -> Callable[..., Sequence]:
    """A function of the operands, giving the results. make_function: of a jaxpr."""
    name = eqn.primitive.name
    if sub_jaxprs(eqn.params) and name in _CONTROL_FLOW:
        return functools.partial(_CONTROL_FLOW[name], make_function, **eqn.params)
    rule = _find_function(eqn)
    if rule is None:
        return functools.partial(_call_host, eqn)
    is_long = any(is_64_bits(atom.aval.dtype) for atom in (*eqn.invars, *eqn.outvars))

    def run(*values: Any) -> list:
        with allow_64_bits(is_long):  # indices of 64 bits may crash the compiler for TPUs
            return _as_list(rule(*values, **eqn.params))

    return run


def is_library(eqn: Equation) -> bool:
    """Whether JAX has a function for an equation."""
    return _find_function(eqn) is not None


def _find_function(eqn: Equation) -> Callable | None:
    found = find_open_rule(eqn) if is_open(eqn) else None
    return found or _LIBRARY.get(eqn.primitive.name)


def needs_host(eqn: Equation, target: str = "cpu") -> bool:
    """Whether an equation is done by its NumPy implementation, on the host."""
    return not sub_jaxprs(eqn.params) and not has_rule(eqn, target) and not is_library(eqn)


def calls_host(closed_jaxpr: ClosedJaxpr) -> bool:
    """Whether a program calls Python functions."""
    return any(map(needs_host, list_equations(closed_jaxpr.jaxpr)))


def has_long(closed_jaxpr: ClosedJaxpr) -> bool:
    """Whether an input or a result of an equation has 64 bits."""
    made = (var.aval for eqn in list_equations(closed_jaxpr.jaxpr) for var in eqn.outvars)
    return any(is_64_bits(aval.dtype) for aval in (*closed_jaxpr.in_avals, *made))


def _as_list(outs: Any) -> list:
    return list(outs) if isinstance(outs, (tuple, list)) else [outs]


# -- loops and branches -------------------------------------------------------------------------------------
def _cond(make_function, index, *operands, branches, **_):
    return load_jax().lax.switch(index, [make_function(branch) for branch in branches], *operands)


def _while(make_function, *operands, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    jax = load_jax()
    cond_consts, body_consts, init = split_operands(operands, cond_nconsts, body_nconsts)
    holds, step = make_function(cond_jaxpr), make_function(body_jaxpr)
    lanes = cond_jaxpr.out_avals[0].ndim

    def test(carry):
        return holds(*cond_consts, *carry)[0]

    def keep_stopped(active, stepped, carry):
        masks = [active.reshape(active.shape + (1,) * (old.ndim - lanes)) for old in carry]
        return tuple([jax.numpy.where(mask, new, old) for mask, new, old in zip(masks, stepped, carry)])

    def step_lanes(state):
        active, carry = state
        carry = keep_stopped(active, step(*body_consts, *carry), carry)
        return active & test(carry), carry

    if not lanes:
        return jax.lax.while_loop(test, lambda carry: step(*body_consts, *carry), tuple(init))
    return jax.lax.while_loop(lambda state: state[0].any(), step_lanes, (test(init), tuple(init)))[1]


def _scan(make_function, *operands, jaxpr, length, reverse, num_consts, num_carry, unroll):
    consts, init, xs = split_operands(operands, num_consts, num_carry)
    step = make_function(jaxpr)

    def run(carry, elements):
        outs = step(*consts, *carry, *elements)
        return tuple(outs[:num_carry]), tuple(outs[num_carry:])

    carry, ys = load_jax().lax.scan(run, tuple(init), tuple(xs), None if xs else length, reverse)
    return [*carry, *ys]


def _shard_map(make_function, *operands, jaxpr, frame, in_specs, out_specs):
    """JAX checks nothing: what varies where is known already."""
    run, spec = make_function(jaxpr), load_jax().sharding.PartitionSpec
    ins, outs = (tuple([spec(*entries) for entries in specs]) for specs in (in_specs, out_specs))
    return load_jax().shard_map(run, mesh=to_jax_mesh(frame.mesh), in_specs=ins, out_specs=outs,
                                axis_names=set(frame.axes), check_vma=False)(*operands)


def _jit(make_function, *operands, jaxpr, **_):
    return make_function(jaxpr)(*operands)


_CONTROL_FLOW = {"jit": _jit, "cond": _cond, "while": _while, "scan": _scan, "shard_map": _shard_map}


# -- what JAX has -------------------------------------------------------------------------------------------
def _linalg() -> Any:
    return load_jax().lax.linalg


def _svd(x, *, full_matrices, compute_uv):
    outs = _linalg().svd(x, full_matrices=full_matrices, compute_uv=compute_uv)
    return outs if not compute_uv else (outs[1], outs[0], outs[2])


def _eigh(x, *, lower, sort_eigenvalues, subset_by_index):
    vectors, values = _linalg().eigh(x, lower=lower, symmetrize_input=False, sort_eigenvalues=True)
    start, stop = subset_by_index or (0, x.shape[-1])
    return [vectors[..., start:stop], values[..., start:stop]]


def _in_float32(name: str) -> Callable:
    """A function of JAX's of this name, of arrays and scalars; half precision is computed in float32."""

    def run(*values):
        jax, dtype = load_jax(), values[0].dtype
        shape = np.broadcast_shapes(*(value.shape for value in values))
        kind = "float32" if dtype.itemsize == 2 else dtype
        wide = [jax.numpy.broadcast_to(value, shape).astype(kind) for value in values]
        homes = (jax.lax, jax.numpy, jax.scipy.special)
        return next(getattr(home, name) for home in homes if hasattr(home, name))(*wide).astype(dtype)

    return run


def _pick(name: str, part: int) -> Callable:
    """One of several results of a function of `jax.scipy.special`."""

    def run(x):
        wide = x.astype("float32") if x.dtype.itemsize == 2 else x
        return getattr(load_jax().scipy.special, name)(wide)[part].astype(x.dtype)

    return run


def _call_host(name: str) -> Callable:
    """A primitive of which XLA has nothing: its implementation, called back."""

    def run(*values):
        jax = load_jax()
        shape = np.broadcast_shapes(*(value.shape for value in values))
        values = [jax.numpy.broadcast_to(value, shape) for value in values]
        return jax.pure_callback(registry[name].impl, jax.ShapeDtypeStruct(shape, values[0].dtype), *values)

    return run


def _collective(name: str) -> Callable:
    return lambda x, *, axes: getattr(load_jax().lax, name)(x, axes)


def _inspect_sharding(x, *, callback):
    load_jax().debug.inspect_array_sharding(x, callback=lambda sharding: callback(to_sharding(sharding)))
    return ()


_LIBRARY: dict[str, Callable] = {
    "cholesky": lambda x: _linalg().cholesky(x, symmetrize_input=False),
    "triangular_solve": lambda a, b, **params: _linalg().triangular_solve(a, b, **params),
    "top_k": lambda x, *, k, axis: load_jax().lax.top_k(x, k, axis=axis),
    "lu": lambda x: _linalg().lu(x), "qr": lambda x, **params: _linalg().qr(x, **params),
    "eigh": _eigh, "svd": _svd,
    "lu_pivots_to_permutation": lambda pivots, *, permutation_size: _linalg().lu_pivots_to_permutation(
        pivots, permutation_size),
    **{name: _in_float32(name) for name in (
        "igamma", "igammac", "igamma_grad_a", "dawsn", "exp1", "expi", "expn", "hyp1f1", "hyp2f1",
        "owens_t",
        "spence", "wofz", *TPU_FUNCTIONS)},
    "complex_loggamma": _in_float32("loggamma"),
    **{name: _pick(function, part) for name, function, part in (
        ("sine_integral", "sici", 0), ("cosine_integral", "sici", 1), ("fresnel_sine", "fresnel", 0),
        ("fresnel_cosine", "fresnel", 1))},
    "jv": _call_host("jv"),
    "call_exported": lambda *values, exported: exported.call_flat(*values),
    "regularized_incomplete_beta": _in_float32("betainc"),
    **{name: _collective(name) for name in ("psum", "pmax", "pmin")}, "psum_invariant": _collective("psum"),
    "all_gather": lambda x, *, axes, dimension, size, tiled: load_jax().lax.all_gather(
        x, axes, axis=dimension, tiled=tiled),
    "reduce_scatter": lambda x, *, axes, dimension, size, tiled: load_jax().lax.psum_scatter(
        x, axes, scatter_dimension=dimension, tiled=tiled),
    "ppermute": lambda x, *, axes, perm: load_jax().lax.ppermute(x, axes, perm),
    "all_to_all": lambda x, *, axes, split_axis, concat_axis, size: load_jax().lax.all_to_all(
        x, axes, split_axis, concat_axis, tiled=True),
    "axis_index": lambda *, axes: load_jax().lax.axis_index(axes),
    "sharding_constraint": lambda x, *, sharding: load_jax().lax.with_sharding_constraint(
        x, to_jax_sharding(sharding)),
    "inspect_sharding": _inspect_sharding,
}


# -- calls of the host --------------------------------------------------------------------------------------
#: What Python functions raised that a program called: what XLA makes of it is a text.
failures: list[BaseException] = []


def _call_host(eqn: Equation, *values: Any) -> list:
    """The implementation of a primitive, called with ndarrays. Complex numbers travel as pairs, and 64 bits
    as two words: where JAX calls Python, its own configuration holds."""
    jax = load_jax()
    avals = [var.aval for var in eqn.outvars]
    kinds = [(value.shape, np.dtype(value.dtype)) for value in values]
    words = [_list_words(aval.shape, aval.dtype) for aval in avals]

    def run(*parts):
        arrays = [np.ascontiguousarray(part).reshape(-1).view(dtype).reshape(shape)
                  for part, (shape, dtype) in zip(parts, kinds)]
        outs = eqn.primitive.impl(*arrays, **eqn.params)
        flat = [np.asarray(out, aval.dtype, order="C").reshape(-1)
                for out, aval in zip(outs if eqn.primitive.multiple_results else [outs], avals)]
        return [out.view(dtype).reshape(shape) for out, (shape, dtype) in zip(flat, words)]

    def call(*parts):
        try:
            return run(*parts)
        except BaseException as error:
            failures.append(error)
            raise

    results = [jax.ShapeDtypeStruct(*kind) for kind in words]
    operands = [_split_words(jax, value) for value in values]
    if eqn.effects:
        outs = jax.experimental.io_callback(call, results, *operands, ordered=True)
    else:
        outs = jax.pure_callback(call, results, *operands)
    return [_join_words(jax, out, aval.dtype) for out, aval in zip(outs, avals)]


def _list_words(shape: tuple[int, ...], dtype: np.dtype) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and dtype in which an array travels."""
    if dtypes.is_complex(dtype):
        return _list_words((*shape, 2), dtypes.real_dtype(dtype))
    return ((*shape, 2), dtypes.uint32) if is_64_bits(dtype) else (shape, dtype)


def _split_words(jax: Any, value: Any) -> Any:
    if dtypes.is_complex(value.dtype):
        value = jax.numpy.stack([value.real, value.imag], -1)
    return jax.lax.bitcast_convert_type(value, np.uint32) if is_64_bits(value.dtype) else value


def _join_words(jax: Any, words: Any, dtype: np.dtype) -> Any:
    if dtypes.is_complex(dtype):
        parts = _join_words(jax, words, dtypes.real_dtype(dtype))
        return jax.lax.complex(parts[..., 0], parts[..., 1])
    return jax.lax.bitcast_convert_type(words, dtype) if is_64_bits(dtype) else words
