"""Programs as files: `export` writes what `jax.export` writes, `deserialize` reads it.

In: a jitted function and example arguments, or bytes. Out: an `Exported`: StableHLO with the types and
structure of arguments and results, for one or several platforms. A process with JAX alone runs it,
`jax.export.deserialize(blob).call(x)`, and what JAX exported is called from here, also inside of jitted
functions. Nothing is unpickled. JAX does the work: `pip install "jitcore[xla]"`.

Where extents are symbols, `symbolic_shape("b, 2*n")`, the `Exported` is called with arrays of all sizes that
fit, without JAX; to write it to a file JAX is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore import tree_util
from jitcore.core.jaxpr import ShapeDtypeStruct, aval_of, eval_jaxpr
from jitcore.core.source import api_boundary
from jitcore.core.symbolic import Dim, DimExpr, evaluate, free_variables
from jitcore.core.symbolic_text import SymbolicScope, parse_shape, solve_sizes
from jitcore.dispatch.backend import find_lowering
from jitcore.dispatch.options import DEFAULT_OPTIONS
from jitcore.dispatch.program import Program
from jitcore.dispatch.tracing import has_symbolic_shapes, specialize_jaxpr
from jitcore.docstrings import document
from jitcore.dtypes import float0, is_inexact, is_key
from jitcore.jitted.wrapper import JitWrapped
from jitcore.lax.exported import call_exported
from jitcore.numpy import asarray
from jitcore.process.concurrency import cached_attribute
from jitcore.transforms.custom_derivatives import custom_vjp
from jitcore.transforms.reverse import vjp

__all__ = ["Exported", "SymbolicScope", "deserialize", "export", "is_symbolic_dim", "symbolic_args_specs",
           "symbolic_shape"]

#: The backend whose lowering serves a platform of JAX.
_BACKENDS = {"cpu": "xla", "tpu": "tpu", "cuda": "xla", "rocm": "xla"}


def export(fun: JitWrapped, *, platforms: Sequence[str] | None = None) -> Callable[..., Exported]:
    """What `jax.export.export` gives, of a function that `jitcore.jit` made.

    Args:
        platforms: any of "cpu", "tpu", "cuda", "rocm", on which the program shall run; "cpu" if not given.
            None has to be here.

    Returns: a function of the arguments, which may be `ShapeDtypeStruct`s, also of symbolic shapes, giving an
        `Exported`. Static arguments are fixed, and left out when it is called.
    Raises: ValueError for what is not jitted. Of the function: TypeError for float64 on TPUs,
        NotImplementedError for callbacks; InconclusiveDimensionOperation where it depends on how large a
        symbol is."""
    if not isinstance(fun, JitWrapped):
        raise ValueError(f"export takes a function that jitcore.jit made, got {fun!r}: export(jit(f))(...)")
    names = ("cpu",) if platforms is None else tuple(platforms)
    unknown = [name for name in names if name not in _BACKENDS]
    if unknown or not names:
        raise ValueError(f"platforms must be among {', '.join(_BACKENDS)}, got {platforms!r}")

    @api_boundary
    def export_for(*args: Any, **kwargs: Any) -> Exported:
        traced = fun.trace(*args, **kwargs)
        kind = OpenExported if has_symbolic_shapes(traced.jaxpr.jaxpr) else TracedExported
        return kind(traced, names)

    return export_for


def _export_traced(traced: Any, names: Sequence[str]) -> Any:
    lowered = traced.lower()
    programs = {name: lowered.make_program(find_lowering(_BACKENDS[name])) for name in names}
    return _export_programs(programs, lowered.in_tree)


def _export_programs(programs: dict[str, Program], in_tree: Any) -> Any:
    first = next(iter(programs.values()))
    traced, backend = first.traced, first.backend
    if any(is_key(aval.dtype) for aval in (*traced.jaxpr.in_avals, *traced.jaxpr.out_avals)):
        raise NotImplementedError("exported programs take and give no keys: pass random.key_data(key), and "
                                  "call random.wrap_key_data inside")
    n_leaves = len(traced.jaxpr.invars)
    return backend.export(programs, traced.fun_name, in_tree.unflatten(range(n_leaves)),
                          traced.jaxpr.in_avals, traced.unflatten)


@api_boundary
def deserialize(blob: bytes | bytearray) -> Exported:
    """What `Exported.serialize`, here or in JAX, wrote.

    Raises: ValueError for other bytes, and for versions that the JAX of this process does not read."""
    return Exported(find_lowering("xla").load_exported(blob))


class Exported:
    """An exported program. `call` runs it, or records it where a function is traced.

    Attributes:
        fun_name, in_tree, out_tree, platforms, calling_convention_version, mlir_module_serialized: as in JAX.
        in_avals, out_avals: the types of the leaves, as JAX orders them."""

    def __init__(self, artifact: Any):
        self._artifact, exported = artifact, artifact.exported
        self.fun_name, self.platforms = exported.fun_name, tuple(exported.platforms)
        self.in_tree, self.out_tree = exported.in_tree, exported.out_tree
        self.in_avals, self.out_avals = (tuple(artifact.list_types(which))
                                         for which in ("in_avals", "out_avals"))
        self.calling_convention_version = exported.calling_convention_version
        self.mlir_module_serialized: bytes = exported.mlir_module_serialized

    @api_boundary
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The result. XLA computes it on every backend: on "xla" and "tpu" as part of the program, on the
        others on the host.

        Raises: ValueError where structure, shapes or dtypes are not those of the export, and on a platform
            that it was not exported for."""
        leaves = self._artifact.flatten(args, kwargs)
        operands = [leaf if not isinstance(leaf, (bool, int, float, complex))
                    else asarray(leaf, getattr(aval, "dtype", None))
                    for leaf, aval in zip(leaves, self.in_avals)]
        return self._artifact.unflatten(self._call_flat(*operands))

    @cached_attribute
    def _call_flat(self) -> Callable[..., list]:
        """The leaves of the result, of the leaves of the arguments."""
        def run(*leaves: Any) -> list:
            return _fill_float0(call_exported(self._artifact, *_drop_float0(leaves)), self.out_avals)

        if not self.has_vjp():
            return run
        call = custom_vjp(run)
        call.defvjp(lambda *leaves: (call(*leaves), leaves),
                    lambda leaves, cotangents: tuple(self._pull_back(leaves, cotangents)))
        return call

    def _pull_back(self, leaves: Sequence[Any], cotangents: Sequence[Any]) -> list:
        derivative = self.vjp()
        wanted = derivative.in_avals[len(leaves):]
        floats = [value for value, aval in zip(cotangents, wanted) if aval.dtype != float0]
        return derivative._call_flat(*leaves, *_fill_float0(floats, wanted))

    def mlir_module(self) -> str:
        """The program as StableHLO."""
        return self._artifact.exported.mlir_module()

    def has_vjp(self) -> bool:
        """Whether there is a `vjp`: of what was exported here, where all arguments and results are floats,
        and of what was written with one."""
        return self._artifact.exported.has_vjp()

    def vjp(self) -> Exported:
        """The derivative in reverse mode: a program of the leaves of the arguments, then of a cotangent for
        each leaf of the result, giving a cotangent for each leaf of the arguments. Those of integers are of
        the dtype float0.

        Raises: ValueError where there is none, as of what was written without one."""
        if not self.has_vjp():
            raise ValueError("No VJP is available")
        return Exported(self._artifact.derive())

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """Bytes for `deserialize`, here or of `jax.export`. vjp_order: how often what is read can be
        differentiated in reverse mode.

        Raises: ValueError where it cannot be differentiated as often."""
        return self._artifact.exported.serialize(vjp_order=vjp_order)

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(str, avals)) for avals in (self.in_avals, self.out_avals))
        return f"Exported({self.fun_name}: ({ins}) -> ({outs}), platforms={self.platforms})"


class TracedExported(Exported):
    """A program that was exported here: its jaxpr is known, so that it can be differentiated."""

    def __init__(self, traced: Any, platforms: tuple[str, ...]):
        self._closed_jaxpr = traced.jaxpr
        super().__init__(_export_traced(traced, platforms))

    def has_vjp(self) -> bool:
        return all(is_inexact(aval.dtype) for aval in (*self.in_avals, *self.out_avals))

    def vjp(self) -> Exported:
        if not self.has_vjp():
            raise ValueError("No VJP is available: an argument or a result is no float")
        return self._vjp

    @cached_attribute
    def _vjp(self) -> Exported:
        return _export_vjp(self._closed_jaxpr, self.fun_name, self.platforms)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        orders = [self]
        for _ in range(vjp_order):
            orders.append(orders[-1].vjp())
        return self._artifact.serialize([one._artifact for one in orders[1:]])


def _export_vjp(closed_jaxpr: Any, name: str, platforms: tuple[str, ...]) -> Exported:
    primals = closed_jaxpr.in_avals

    def pull_back(*values: Any) -> tuple:
        run = lambda *leaves: eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, leaves)  # noqa: E731
        return vjp(run, *values[:len(primals)])[1](list(values[len(primals):]))

    pull_back.__name__ = pull_back.__qualname__ = f"{name}_vjp"
    structs = [ShapeDtypeStruct(aval.shape, aval.dtype) for aval in (*primals, *closed_jaxpr.out_avals)]
    return export(JitWrapped(pull_back, DEFAULT_OPTIONS), platforms=platforms)(*structs)


def _drop_float0(values: Sequence[Any]) -> list:
    return [value for value in values if value.dtype != float0]


def _fill_float0(values: Sequence[Any], avals: Sequence[Any]) -> list:
    """Values for avals, with zeros in place of those of float0, the tangents of integers."""
    given = iter(values)
    return [np.zeros(aval.shape, float0) if aval.dtype == float0 else next(given) for aval in avals]


class OpenExported(TracedExported):
    """A program whose arguments have symbolic shapes. Each shape that it is called with is compiled when it
    comes, and it may be differentiated and mapped as jitted functions are. JAX writes it, when asked to."""

    def __init__(self, traced: Any, platforms: tuple[str, ...]):
        self._traced, self._closed_jaxpr = traced, traced.jaxpr
        self.fun_name, self.platforms = traced.fun_name, platforms
        self.in_tree, self.out_tree = traced.in_tree, traced.out_tree
        self.in_avals = tuple(self._closed_jaxpr.in_avals)
        self.out_avals = tuple(self._closed_jaxpr.out_avals)
        self._run = JitWrapped(self._evaluate, DEFAULT_OPTIONS)

    @cached_attribute
    def _artifact(self) -> Any:
        return _export_traced(self._traced, self.platforms)

    @property
    def calling_convention_version(self) -> int:
        return self._artifact.exported.calling_convention_version

    @property
    def mlir_module_serialized(self) -> bytes:
        return self._artifact.exported.mlir_module_serialized

    @api_boundary
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The result, for arguments whose sizes fit the symbols.

        Raises: ValueError where structure, dtypes, sizes or their bounds are not those of the export."""
        paths, tree = tree_util.tree_flatten_with_path((args, kwargs))
        if tree != self.in_tree:
            raise ValueError("The invocation args and kwargs must have the same pytree structure as when the "
                             f"function {self.fun_name!r} was exported, {self.in_tree}, got {tree}")
        places = [("args", "kwargs")[path[0].idx] + tree_util.keystr(path[1:]) for path, _ in paths]
        leaves = [asarray(leaf, aval.dtype) if isinstance(leaf, (bool, int, float, complex)) else leaf
                  for (_, leaf), aval in zip(paths, self.in_avals)]
        _check_sizes(places, self.in_avals, list(map(aval_of, leaves)))
        return self.out_tree.unflatten(self._run(*leaves))

    def _evaluate(self, *leaves: Any) -> list:
        closed = specialize_jaxpr(self._closed_jaxpr, list(map(aval_of, leaves)))
        return eval_jaxpr(closed.jaxpr, closed.consts, leaves)


def _check_sizes(places: Sequence[str], wanted: Sequence[Any], given: Sequence[Any]) -> None:
    """Raises: ValueError where the shapes or dtypes that are given are none of those wanted."""
    pairs = []
    for place, aval, own in zip(places, wanted, given):
        if len(aval.shape) != len(own.shape):
            raise ValueError(f"Rank mismatch for {place}: expected {aval.shape} and called with {own.shape}")
        if aval.dtype != own.dtype:
            raise ValueError(f"Dtype mismatch for {place}: expected {aval.dtype} and called with "
                             f"{own.dtype}")
        pairs += [(f"{place}.shape[{i}]", *sizes) for i, sizes in enumerate(zip(aval.shape, own.shape))]
    sizes = solve_sizes((dim, size) for _, dim, size in pairs)
    head = "Input shapes do not match the polymorphic shapes specification."
    symbols = [dim for _, dim, _ in pairs if isinstance(dim, DimExpr)]
    for variable in sorted({v for dim in symbols for v in free_variables(dim)}, key=str):
        for bound, sign, fails in ((variable.lower, ">=", lambda a, b: a < b),
                                   (variable.upper, "<=", lambda a, b: a > b)):
            if bound is not None and fails(sizes[variable.name], bound):
                raise ValueError(f"{head} Expected value {sign} {bound} for dimension variable "
                                 f"'{variable}', got {sizes[variable.name]}.")
    for place, dim, size in pairs:
        expected = evaluate(dim, sizes) if isinstance(dim, DimExpr) else dim
        if expected != size:
            raise ValueError(f"{head} Found inconsistency between dimension size {place} (= {size}) and the "
                             f"specification '{dim}' (= {expected}).")


# -- symbolic shapes -----------------------------------------------------------------------------------------
def symbolic_shape(shape_spec: str, *, constraints: Sequence[str] = (), scope: SymbolicScope | None = None,
                   like: Sequence[Dim] | None = None) -> tuple[Dim, ...]:
    """A shape with names in place of sizes, for the `ShapeDtypeStruct`s of an export.

    Args:
        shape_spec: dimensions separated by commas: sums, products, `floordiv`, `mod`, `max` and `min` of
            names and ints; "_" and a last "..." stand for what `like` has there.
        constraints, scope: what is known of the names: constraints of a new scope, or a scope.
        like: a shape of the same rank.

    Raises: ValueError for text that cannot be read."""
    if scope is not None and constraints:
        raise ValueError("symbolic_shape takes constraints or a scope, not both")
    return parse_shape(shape_spec, (scope or SymbolicScope(constraints)).find, like)


def symbolic_args_specs(args: Any, shapes_specs: Any, constraints: Sequence[str] = (),
                        scope: SymbolicScope | None = None) -> Any:
    """The arguments as `ShapeDtypeStruct`s of symbolic shapes.

    Args:
        args: a pytree of arrays. shapes_specs: a prefix of it with texts for `symbolic_shape` in one scope;
            None for the shapes of the arrays. constraints, scope: as `symbolic_shape` takes them.

    Raises: ValueError for text that cannot be read, and where it is no prefix."""
    if scope is not None and constraints:
        raise ValueError("symbolic_args_specs takes constraints or a scope, not both")
    scope = scope or SymbolicScope(constraints)
    leaves, tree = tree_util.tree_flatten(args)
    specs = tree_util.broadcast_prefix(shapes_specs, args, is_leaf=lambda node: node is None)
    avals = map(aval_of, leaves)
    return tree.unflatten([ShapeDtypeStruct(parse_shape(spec, scope.find, aval.shape), aval.dtype)
                           for spec, aval in zip(specs, avals)])


def is_symbolic_dim(dim: Any) -> bool:
    """Whether an extent is a symbol or made of symbols."""
    return isinstance(dim, DimExpr)


document(sys.modules[__name__], __all__)
