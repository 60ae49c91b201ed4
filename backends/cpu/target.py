"""What the CPU backend can do: the answers that scheduling needs before any code is made.

In: an equation. Out: whether its scalar operation has code; the routine that computes it on whole buffers.
"""

from __future__ import annotations

import functools

from jitcore import dtypes
from jitcore.backends.cpu import host
from jitcore.backends.cpu.routines import find_routine
from jitcore.core.jaxpr import Equation


def can_render(eqn: Equation) -> bool:
    """Whether there is code for an equation's scalar operation and dtypes."""
    avals = [atom.aval for atom in eqn.invars] + [var.aval for var in eqn.outvars]
    op = eqn.primitive.traits.get("scalar_op")
    if op in (None, "integer_pow"):
        has_complex = any(aval.dtype.kind == "c" for aval in avals)
        return not has_complex or eqn.primitive.name in _COMPLEX_SAFE
    return op in _list_operations()[dtypes.kind_of(eqn.invars[0].aval.dtype)]


@functools.cache
def _list_operations() -> dict[str, frozenset[str]]:
    """`scalar_ops.list_operations`, whose module is code for a compiler that need not be loaded."""
    lines = host.recall("operations", _describe_operations).splitlines()
    return {kind: frozenset(names) for kind, *names in map(str.split, lines)}


def _describe_operations() -> str:
    from jitcore.backends.cpu import scalar_ops

    return "\n".join(" ".join((kind, *sorted(names))) for kind, names in scalar_ops.list_operations().items())


# Structured primitives that only move complex numbers, or combine them with operations that exist.
_COMPLEX_SAFE = {
    "broadcast_in_dim",
    "reshape",
    "transpose",
    "squeeze",
    "expand_dims",
    "slice",
    "rev",
    "pad",
    "concatenate",
    "dynamic_slice",
    "dynamic_update_slice",
    "gather",
    "select_n",
    "convert_element_type",
    "integer_pow",
    "while",
    "scan",
    "cond",
    "iota",
    "copy",
    "split",
}


class CpuTarget:
    """The `schedule.lower.Target` of this backend."""

    can_render = staticmethod(can_render)
    find_routine = staticmethod(find_routine)
