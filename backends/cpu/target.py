"""What the CPU backend can do: the answers that scheduling needs before any code is made.

In: an equation. Out: whether its scalar operation has code; the routine that computes it on whole buffers.
"""

from __future__ import annotations

from jitcore import dtypes
from jitcore.backends.cpu import scalar_ops
from jitcore.backends.cpu.routines import find_routine
from jitcore.core.jaxpr import Equation


def can_render(eqn: Equation) -> bool:
    """Whether there is code for an equation's scalar operation and dtypes."""
    avals = [atom.aval for atom in eqn.invars] + [var.aval for var in eqn.outvars]
    op = eqn.primitive.traits.get("scalar_op")
    if op in (None, "integer_pow"):
        has_complex = any(aval.dtype.kind == "c" for aval in avals)
        return not has_complex or eqn.primitive.name in _COMPLEX_SAFE
    operand = eqn.invars[0].aval.dtype
    return scalar_ops.can_emit(op, dtypes.float32 if operand in _HALF else operand)


_HALF = (dtypes.float16, dtypes.bfloat16)
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
