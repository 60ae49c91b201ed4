"""Equations whose extents are symbols: what JAX's operations of the same names do.

In: an equation whose symbols are JAX's. Out: a function of JAX's arrays, to be traced. Modules of StableHLO
have fixed extents; JAX writes those whose extents follow from the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jitcore.backends.xla.client import load_jax
from jitcore.core.jaxpr import Equation
from jitcore.core.symbolic import Dim, DimExpr, DimVar, free_variables
from jitcore.dtypes import default_dtype


def translate_dims(shapes: Sequence[Sequence[Dim]]) -> Callable[[Dim], Any]:
    """A function that gives JAX's dimension for one of ours, in a scope with all variables of some shapes."""
    found = {var for shape in shapes for dim in shape for var in free_variables(dim)}
    variables = sorted(found, key=str)
    constraints = [text for variable in variables for text in _list_bounds(variable)]
    export = load_jax().export
    scope = export.SymbolicScope(constraints)
    return lambda dim: export.symbolic_shape(str(dim), scope=scope)[0] if isinstance(dim, DimExpr) else dim


def _list_bounds(variable: DimVar) -> list[str]:
    lower = [] if variable.lower in (None, 1) else [f"{variable} >= {variable.lower}"]
    return lower + ([] if variable.upper is None else [f"{variable} <= {variable.upper}"])


def is_open(eqn: Equation) -> bool:
    """Whether an extent of an equation, or of one inside of it, is a symbol."""
    return eqn.primitive.name == "dimension_size" or any(
        not isinstance(extent, int) for atom in (*eqn.invars, *eqn.outvars) for extent in atom.aval.shape)


def find_open_rule(eqn: Equation) -> Callable[..., Any] | None:
    """A function of the operands, or None where JAX has no such operation."""
    name = eqn.primitive.name
    if name in _RULES:
        return _RULES[name]
    function = getattr(load_jax().lax, _NAMES.get(name, name), None)
    if eqn.primitive.traits.get("family") != "elementwise" or function is None:
        return None
    return lambda *values, **params: function(*_broadcast(values), **params)


def _broadcast(values: Sequence[Any]) -> Sequence[Any]:
    """Operands of one shape: scalars take that of the others."""
    wide = next((value.shape for value in values if value.shape), ())
    broadcast = load_jax().numpy.broadcast_to
    return [value if value.shape == wide else broadcast(value, wide) for value in values]


#: Elementwise operations that JAX names otherwise.
_NAMES = {"not": "bitwise_not", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
          "add_any": "add", "mul_sparse": "mul"}


def _call(name: str) -> Callable:
    """The operation of JAX's of this name, with the same params."""
    return lambda *values, **params: getattr(load_jax().lax, name)(*values, **params)


def _bind(name: str, **more: Any) -> Callable:
    """JAX's primitive of this name, with more params."""
    return lambda *values, **params: getattr(load_jax().lax, f"{name}_p").bind(*values, **more, **params)


def _gather(x: Any, indices: Any, *, dimension_numbers: Any, mode: Any, **params: Any) -> Any:
    lax = load_jax().lax
    return lax.gather(x, indices, lax.GatherDimensionNumbers(*dimension_numbers),
                      mode=lax.GatherScatterMode[mode.name], **params)


def _scatter(name: str) -> Callable:
    def run(x: Any, indices: Any, updates: Any, *, dimension_numbers: Any, mode: Any, **params: Any) -> Any:
        lax = load_jax().lax
        return getattr(lax, name)(x, indices, updates, lax.ScatterDimensionNumbers(*dimension_numbers),
                                  mode=lax.GatherScatterMode[mode.name], **params)

    return run


def _select(which: Any, *cases: Any) -> Any:
    return load_jax().lax.select_n(which, *_broadcast(cases))


_RULES: dict[str, Callable] = {
    "dimension_size": lambda *, dim: load_jax().numpy.asarray(dim).astype(default_dtype("i")),
    "empty": lambda *, shape, dtype, number: load_jax().lax.full(shape, 0, dtype),
    "convert_element_type": lambda x, *, new_dtype, weak_type: load_jax().lax.convert_element_type(
        x, new_dtype),
    "cast": lambda x, *, new_dtype: load_jax().lax.convert_element_type(x, new_dtype),
    "trunc": lambda x: load_jax().numpy.trunc(x),
    "round_half_even": lambda x: load_jax().lax.round(x, load_jax().lax.RoundingMethod.TO_NEAREST_EVEN),
    "round_half_away": lambda x: load_jax().lax.round(x),
    **{name: (lambda name: lambda *values: getattr(load_jax().numpy, name)(*_broadcast(values)))(name)
       for name in ("signbit", "copysign", "log2", "log10")},
    "select_n": _select,
    "clamp": lambda low, x, high: load_jax().lax.clamp(low, x, high),
    "stop_gradient": lambda x: x, "copy": lambda x: x, "name": lambda x, *, name: x,
    "reshape": lambda x, *, new_sizes, dimensions: load_jax().lax.reshape(x, new_sizes, dimensions),
    "iota": lambda *, dtype, shape, dimension: load_jax().lax.broadcasted_iota(dtype, shape, dimension),
    **{name: _call(name) for name in (
        "broadcast_in_dim", "transpose", "squeeze", "rev", "reduce_sum", "reduce_prod", "reduce_max",
        "reduce_min", "reduce_and", "reduce_or", "reduce_xor", "reduce_precision", "split", "slice", "pad",
        "tile", "dot_general", "conv_general_dilated", "cumsum", "cumprod", "cummax", "cummin",
        "cumlogsumexp", "optimization_barrier")},
    "argmax": _bind("argmax"), "argmin": _bind("argmin"),
    "concatenate": lambda *values, dimension: load_jax().lax.concatenate(values, dimension),
    "sort": lambda *values, **params: load_jax().lax.sort(values, **params),
    "dynamic_slice": lambda x, *starts, slice_sizes, in_bounds=False: load_jax().lax.dynamic_slice(
        x, starts, slice_sizes),
    "dynamic_update_slice": lambda x, update, *starts, in_bounds=False: load_jax().lax.dynamic_update_slice(
        x, update, starts),
    "gather": _gather,
    "scatter": _scatter("scatter"),
    **{f"scatter-{kind}": _scatter(f"scatter_{kind}") for kind in ("add", "sub", "mul", "min", "max")},
    **{f"reduce_window_{kind}": _bind(f"reduce_window_{kind}") for kind in ("sum", "max", "min")},
}
