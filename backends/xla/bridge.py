"""From a jaxpr to a function of JAX's arrays.

In: a `ClosedJaxpr`. Out: a function that `jax.jit` compiles. Stretches of equations that can be written as
StableHLO are modules of ours, called as `jax.export` calls what was exported. The others are done by JAX:
decompositions, for which each platform has routines of its own, Python functions that a program calls, and
control flow that holds such.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from jitcore.backends.xla.client import allow_64_bits, load_jax, load_mlir
from jitcore.backends.xla.equations import find_rule
from jitcore.backends.xla.lower import has_rule, lower_module
from jitcore.core.jaxpr import Atom, ClosedJaxpr, DropVar, Equation, Jaxpr, Literal, Var
from jitcore.core.trace import to_numpy


def make_function(closed_jaxpr: ClosedJaxpr, target: str, platforms: Sequence[str] = ()) -> Callable:
    """A function of one JAX array for each input, giving a tuple of the outputs. platforms: of the program
    that it is a branch of, where those are several."""
    stretches = _split(closed_jaxpr.jaxpr, target)
    if len(stretches) == 1 and isinstance(stretches[0], ClosedJaxpr) and not closed_jaxpr.consts:
        return make_module_call(closed_jaxpr, target, platforms)
    return _Evaluation(closed_jaxpr, target, platforms)


class _Evaluation:
    """The equations of a jaxpr one after the other, and modules of many of them."""

    def __init__(self, closed_jaxpr: ClosedJaxpr, target: str, platforms: Sequence[str]):
        self.jaxpr, self.consts = closed_jaxpr.jaxpr, list(map(to_numpy, closed_jaxpr.consts))
        self._steps: list[tuple[Callable, Sequence, Sequence]] = []
        for part in _split(self.jaxpr, target):
            if isinstance(part, Equation):
                run = find_rule(part, functools.partial(make_function, target=target, platforms=platforms))
            else:
                run, part = make_module_call(part, target, platforms), part.jaxpr
            self._steps.append((run, part.invars, part.outvars))

    def __call__(self, *values: Any) -> tuple:
        jnp = load_jax().numpy
        env = dict(zip(self.jaxpr.invars, values)) | dict(zip(self.jaxpr.constvars, self.consts))

        def read(atom: Any) -> Any:
            return jnp.asarray(atom.to_numpy()) if isinstance(atom, Literal) else env[atom]

        for run, invars, outvars in self._steps:
            outs = run(*map(read, invars))
            env.update((var, out) for var, out in zip(outvars, outs) if not isinstance(var, DropVar))
        return tuple(map(read, self.jaxpr.outvars))


def _split(jaxpr: Jaxpr, target: str) -> list[Equation | ClosedJaxpr]:
    """The equations without a rule, and the stretches between them as jaxprs."""
    if not jaxpr.eqns:
        return []
    parts: list[Equation | list[Equation]] = []
    for eqn in jaxpr.eqns:
        if not has_rule(eqn, target):
            parts.append(eqn)
        elif parts and isinstance(parts[-1], list):
            parts[-1].append(eqn)
        else:
            parts.append([eqn])
    if len(parts) <= 1 and not jaxpr.constvars and not any(isinstance(part, Equation) for part in parts):
        return [ClosedJaxpr(jaxpr, [])]
    read, found = set(jaxpr.outvars), []
    for part in reversed(parts):
        found.append(_extract(part, read) if isinstance(part, list) else part)
        read = read.union(*(eqn.invars for eqn in (part if isinstance(part, list) else [part])))
    return found[::-1]


def _extract(eqns: list[Equation], read: set[Atom]) -> ClosedJaxpr:
    """The jaxpr of a stretch. read: variables that are read behind it."""
    made = dict.fromkeys(var for eqn in eqns for var in eqn.outvars)
    given = dict.fromkeys(atom for eqn in eqns for atom in eqn.invars
                          if isinstance(atom, Var) and atom not in made)
    return ClosedJaxpr(Jaxpr([], list(given), eqns, [var for var in made if var in read]), [])


# -- modules ------------------------------------------------------------------------------------------------
def make_module_call(closed_jaxpr: ClosedJaxpr, target: str, platforms: Sequence[str] = ()) -> Callable:
    """A jaxpr as a module, and a function that calls it. Raises: RuntimeError where XLA refuses the text."""
    platforms = tuple(platforms) or (target,)
    text = lower_module(closed_jaxpr, target, takes_platform=len(platforms) > 1)
    return make_exported(text, closed_jaxpr.in_avals, closed_jaxpr.out_avals, platforms).call


def make_exported(text: str, in_avals: Sequence, out_avals: Sequence, platforms: tuple[str, ...]) -> Any:
    """A module as a `jax.export.Exported`. One for several platforms is told first which one it runs on.

    Raises: RuntimeError with XLA's words and the text's line."""
    jax = load_jax()
    stablehlo = jax.extend.mlir.dialects.stablehlo
    check_module(text)
    artifact = stablehlo.serialize_portable_artifact_str(text, stablehlo.get_current_version())
    skeleton = _make_skeleton(len(in_avals), len(out_avals))
    with allow_64_bits():
        ins, outs = ([jax.core.ShapedArray(aval.shape, aval.dtype) for aval in avals]
                     for avals in (in_avals, out_avals))
    return dataclasses.replace(skeleton, fun_name="jitcore", platforms=platforms, in_avals=tuple(ins),
                               out_avals=tuple(outs), mlir_module_serialized=artifact,
                               module_kept_var_idx=tuple(range(len(ins))), _get_vjp=None)


@functools.lru_cache(maxsize=256)
def _make_skeleton(n_ins: int, n_outs: int) -> Any:
    """An exported function with these numbers of arguments and results: what is replaced in it is a
    module."""
    jax = load_jax()
    scalar = jax.ShapeDtypeStruct((), "float32")

    def run(*values):
        return tuple([jax.numpy.float32(0)] * n_outs)

    return jax.export.export(jax.jit(run, keep_unused=True), platforms=("cpu",))(*[scalar] * n_ins)


def check_module(text: str) -> None:
    """Parses and verifies a text by MLIR, whose message names the operation and the line.

    Raises: RuntimeError for one that is no valid module: a mistake of a rule."""
    ir, stablehlo, registry = load_mlir()
    with ir.Context() as context:
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
        stablehlo.register_dialect(context)
        try:
            ir.Module.parse(text)
        except Exception as error:
            raise RuntimeError(f"a rule wrote a module that XLA does not accept: {error}") from None

