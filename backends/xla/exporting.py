"""Programs as portable artifacts: what `jax.export` makes of functions, and what it wrote.

In: jaxprs, or bytes. Out: StableHLO as text; `Artifact`, which another process, or another version of JAX,
loads. """

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitcore.backends.xla.bridge import make_function
from jitcore.backends.xla.client import allow_64_bits, is_64_bits, list_avals, load_jax, put
from jitcore.backends.xla.equations import calls_host, has_long
from jitcore.backends.xla.open_shapes import translate_dims
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray
from jitcore.dispatch.tracing import replace_dims
from jitcore.dtypes import float0


def lower_text(closed_jaxpr: ClosedJaxpr, platform: str) -> str:
    """The module of a program. No device of the platform is asked for."""
    with allow_64_bits(has_long(closed_jaxpr)):
        run = load_jax().jit(make_function(closed_jaxpr, platform), keep_unused=True)
        lowered = run.trace(*list_avals(closed_jaxpr.in_avals)).lower(lowering_platforms=(platform,))
        return lowered.as_text("stablehlo")


def export_programs(programs: Mapping[str, Any], name: str, leaves: Any, avals: Sequence[ShapedArray],
                    unflatten: Callable[[Sequence], Any]) -> Artifact:
    """A function for platforms. programs: the `Program` of each, of the same function. leaves: (args, kwargs)
    with the number of a leaf in place of each. unflatten: makes the result of flat outputs.

    Raises: TypeError for containers that JAX does not know, and what the backends of the programs refuse."""
    jax = load_jax()
    order = jax.tree.leaves(leaves)
    if sorted(map(str, order)) != sorted(map(str, range(len(avals)))):
        raise TypeError("an argument is a container that JAX does not know: register its class with "
                        "jax.tree_util too, or pass tuples, lists and dicts")
    is_long = any(is_64_bits(aval.dtype) for aval in avals)
    is_long = is_long or any(has_long(program.compiled_jaxpr) for program in programs.values())
    with allow_64_bits(is_long):
        platforms = tuple(programs) if len(programs) > 1 else ()
        translate = translate_dims([aval.shape for aval in avals])
        functions = {name: _make_function(program, name, platforms, translate)
                     for name, program in programs.items()}

        def run(*args, **kwargs):
            by_number = dict(zip(order, jax.tree.leaves((args, kwargs))))
            values = [by_number[number] for number in range(len(avals))]
            first, *others = functions.values()
            return unflatten(jax.lax.platform_dependent(*values, **functions) if others else first(*values))

        run.__name__ = run.__qualname__ = name
        structs = list_avals([aval.update(shape=tuple(map(translate, aval.shape))) for aval in avals])
        args, kwargs = jax.tree.map(lambda number: structs[number], leaves)
        return Artifact(jax.export.export(jax.jit(run), platforms=tuple(functions))(*args, **kwargs))


def _make_function(program: Any, platform: str, platforms: Sequence[str],
                   translate: Callable[[Any], Any]) -> Callable[..., tuple]:
    """A program as a function of all leaves of a call. translate: symbols to JAX's.

    Raises: what the platform cannot do."""
    closed_jaxpr = replace_dims(program.compiled_jaxpr, translate)
    program.check()
    if calls_host(closed_jaxpr):
        name = program.traced.fun_name
        raise NotImplementedError(f"{name} calls Python while it runs: it cannot be exported")
    n_consts = len(program.traced.consts)
    consts = [program.const_values[i] for i in program.kept if i < n_consts]
    kept = [i - n_consts for i in program.kept if i >= n_consts]
    function = make_function(closed_jaxpr, "tpu" if platform == "tpu" else "cpu", platforms or (platform,))
    return lambda *leaves: tuple(function(*consts, *(leaves[i] for i in kept)))


def load_artifact(blob: bytes | bytearray) -> Artifact:
    """Raises: ValueError for what `jax.export` did not write, or wrote in a version that this one does not
    read."""
    jax = load_jax()
    try:
        loaded = jax.export.deserialize(bytearray(blob))
        loaded.mlir_module()
    except Exception as error:  # whatever goes wrong in reading bytes that anybody may have written
        raise ValueError(f"these {len(blob)} bytes are no program that JAX {jax.__version__} reads: "
                         f"{type(error).__name__}: {error}") from None
    lowest, highest = (getattr(jax.export, f"{end}_supported_calling_convention_version")
                       for end in ("minimum", "maximum"))
    version = loaded.calling_convention_version
    if not lowest <= version <= highest:
        raise ValueError(f"the program {loaded.fun_name} has version {version} of the calling convention, "
                         f"and JAX {jax.__version__} knows {lowest} to {highest}: export it by an older "
                         "version, or install a newer one here")
    return Artifact(loaded)


class Artifact:
    """A `jax.export.Exported` as programs call it: flat operands, flat results."""

    def __init__(self, exported: Any):
        self.exported = exported

    def __repr__(self) -> str:
        return f"<{self.exported.fun_name}>"

    def flatten(self, args: tuple, kwargs: dict) -> list:
        """The leaves of a call. Raises: ValueError when the structure is another one."""
        leaves, tree = load_jax().tree.flatten((args, kwargs))
        if tree != self.exported.in_tree:
            raise ValueError(f"{self.exported.fun_name} was exported for arguments of the structure "
                             f"{self.exported.in_tree}, and is called with {tree}")
        return leaves

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        return load_jax().tree.unflatten(self.exported.out_tree, leaves)

    def call_flat(self, *values: Any) -> list:
        """Traces or runs it by JAX. What has the dtype float0 is among neither operands nor results."""
        jax = load_jax()
        given = iter(values)
        leaves = [np.zeros(aval.shape, float0) if aval.dtype == float0 else next(given)
                  for aval in self.exported.in_avals]
        args, kwargs = jax.tree.unflatten(self.exported.in_tree, leaves)
        outs = jax.tree.leaves(self.exported.call(*args, **kwargs))
        return [out for out in outs if out.dtype != float0]

    def derive(self) -> Artifact:
        """The derivative that was written beside it."""
        return Artifact(self.exported.vjp())

    def serialize(self, derivatives: Sequence[Artifact]) -> bytearray:
        """Its bytes, with those of its derivative, of the derivative of that, and so on."""
        chain = None
        for one in (self, *derivatives)[::-1]:
            get_vjp = None if chain is None else lambda _, following=chain: following
            chain = dataclasses.replace(one.exported, _get_vjp=get_vjp)
        return chain.serialize(vjp_order=len(derivatives))

    def infer(self, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
        with allow_64_bits():
            outs = load_jax().eval_shape(self.call_flat, *list_avals(avals))
        return [ShapedArray(out.shape, np.dtype(out.dtype)) for out in outs]

    def run(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        device = load_jax().devices("cpu")[0]
        with allow_64_bits():
            return [np.asarray(out) for out in self.call_flat(*(put(value, device) for value in values))]

    def list_types(self, which: str) -> list[Any]:
        """Of "in_avals" or "out_avals"; JAX's own where extents are symbols."""
        avals = getattr(self.exported, which)
        is_known = [all(isinstance(n, int) for n in aval.shape) for aval in avals]
        return [ShapedArray(aval.shape, np.dtype(aval.dtype)) if known else aval
                for aval, known in zip(avals, is_known)]
