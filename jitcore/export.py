"""Programs as files: `export` writes what `jax.export` writes, `deserialize` reads it.

In: a jitted function and example arguments, or bytes. Out: an `Exported`: StableHLO with the types and
structure of arguments and results, for one or several platforms. A process with JAX alone runs it,
`jax.export.deserialize(blob).call(x)`, and what JAX exported is called from here, also inside of jitted
functions. Nothing is unpickled. JAX does the work: `pip install "jitcore[xla]"`. """

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from jitcore.core.source import api_boundary
from jitcore.dispatch.backend import find_lowering
from jitcore.dispatch.program import Program
from jitcore.docstrings import document
from jitcore.dtypes import is_key
from jitcore.jitted.wrapper import JitWrapped
from jitcore.lax.exported import call_exported
from jitcore.numpy import asarray

__all__ = ["Exported", "deserialize", "export"]

#: The backend whose lowering serves a platform of JAX.
_BACKENDS = {"cpu": "xla", "tpu": "tpu", "cuda": "xla", "rocm": "xla"}


def export(fun: JitWrapped, *, platforms: Sequence[str] | None = None) -> Callable[..., Exported]:
    """What `jax.export.export` gives, of a function that `jitcore.jit` made.

    Args:
        platforms: any of "cpu", "tpu", "cuda", "rocm", on which the program shall run; "cpu" if not given.
        None
            has to be here.

    Returns: a function of the arguments, which may be `ShapeDtypeStruct`s, giving an `Exported`. Static
    arguments
        are fixed, and left out when it is called.
    Raises: TypeError for what is not jitted. Of the function: TypeError for float64 on TPUs,
    NotImplementedError
        for callbacks."""
    if not isinstance(fun, JitWrapped):
        raise TypeError(f"export takes a function that jitcore.jit made, got {fun!r}: export(jit(f))(...)")
    names = ("cpu",) if platforms is None else tuple(platforms)
    unknown = [name for name in names if name not in _BACKENDS]
    if unknown or not names:
        raise ValueError(f"platforms must be among {', '.join(_BACKENDS)}, got {platforms!r}")

    @api_boundary
    def export_for(*args: Any, **kwargs: Any) -> Exported:
        lowered = fun.lower(*args, **kwargs)
        programs = {name: lowered.make_program(find_lowering(_BACKENDS[name])) for name in names}
        return Exported(_export_programs(programs, lowered.in_tree))

    return export_for


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
        return self._artifact.unflatten(call_exported(self._artifact, *operands))

    def mlir_module(self) -> str:
        """The program as StableHLO."""
        return self._artifact.exported.mlir_module()

    def serialize(self) -> bytearray:
        """Bytes for `deserialize`, here or of `jax.export`."""
        return self._artifact.exported.serialize()

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(str, avals)) for avals in (self.in_avals, self.out_avals))
        return f"Exported({self.fun_name}: ({ins}) -> ({outs}), platforms={self.platforms})"


document(sys.modules[__name__], __all__)
