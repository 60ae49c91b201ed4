"""Linearization of flat functions: partial evaluation of the jvp, primals known and tangents unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jitcore.core.jaxpr import DebugInfo, Jaxpr, aval_of, eval_jaxpr
from jitcore.transforms.jvp import Flags, run_jvp
from jitcore.transforms.partial_eval import open_partial_trace
from jitcore.transforms.tangents import Zero, is_zero, tangent_aval, zero_like
from jitcore.transforms.transpose import Linear, transpose


class LinearMap:
    """The derivative of a function at a point.

    Attributes:
        jaxpr, residuals: of the outputs that are not zero, by the inputs that are differentiated.
        in_linear: which inputs of the function these are.
        out_tangents: for each output of the function a `Zero`, or None for the next output of the jaxpr."""

    def __init__(self, jaxpr: Jaxpr, residuals: Sequence, in_linear: Flags, out_tangents: Sequence):
        self.jaxpr, self.residuals = jaxpr, residuals
        self.in_linear, self.out_tangents = tuple(in_linear), tuple(out_tangents)

    def apply(self, tangents: Sequence) -> list:
        """The outputs' tangents. tangents: arrays, one for each linear input."""
        outs = iter(eval_jaxpr(self.jaxpr, self.residuals, tangents))
        return [next(outs) if zero is None else zero for zero in self.out_tangents]

    def transpose(self, cotangents: Sequence) -> list:
        """The cotangents of the linear inputs, some may be `Zero`. cotangents: one for each output."""
        given = [ct for ct, zero in zip(cotangents, self.out_tangents) if zero is None]
        operands = [Linear(var.aval) for var in self.jaxpr.invars]
        return transpose(self.jaxpr, self.residuals, operands, given)


def linearize_flat(fun: Callable[..., Sequence], primals: Sequence, in_linear: Flags,
                   debug_info: DebugInfo | None = None) -> tuple[list, LinearMap]:
    """Calls `fun(*primals) -> outputs` once; returns the outputs and the derivative by the linear inputs."""
    with open_partial_trace(debug_info) as trace:
        tangents = [trace.new_arg(tangent_aval(aval_of(x))) if flag else zero_like(x)
                    for x, flag in zip(primals, in_linear)]
        outs, found = run_jvp(fun, primals, tangents, debug_info)
        jaxpr, residuals = trace.close([t for t in found if not is_zero(t)])
    zeros: list[Zero | None] = [t if isinstance(t, Zero) else None for t in found]
    return outs, LinearMap(jaxpr, residuals, in_linear, zeros)
