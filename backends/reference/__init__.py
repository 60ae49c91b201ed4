"""The reference backend: runs a jaxpr equation by equation through each primitive's NumPy implementation.

In: a `ClosedJaxpr`, as it was recorded. Out: an executable that compiles nothing. It is the oracle that
passes, scheduling and the other backends are tested against, and the last one that is tried.
"""

from __future__ import annotations

import numpy as np

from jitcore.core.interpret import build_program
from jitcore.core.jaxpr import ClosedJaxpr
from jitcore.device import Device
from jitcore.dispatch.backend import CompileOptions
from jitcore.dispatch.tracing import specialize_jaxpr

__all__ = ["ReferenceBackend", "ReferenceExecutable"]


class ReferenceBackend:
    name = "reference"
    platform = "cpu"
    #: None but what gives meaning to equations without an implementation.
    passes = ()

    def devices(self) -> list[Device]:
        return [Device("cpu", backend="reference")]

    def compile(self, closed_jaxpr: ClosedJaxpr, options: CompileOptions) -> ReferenceExecutable:
        """The jaxpr itself is the program; options have no effect on it."""
        return ReferenceExecutable(closed_jaxpr)

    def clear(self) -> None:
        """Nothing is shared."""


class ReferenceExecutable:
    """A jaxpr as an executable."""

    def __init__(self, closed_jaxpr: ClosedJaxpr):
        self.closed_jaxpr = closed_jaxpr
        self.compiles = 1  # one program was prepared; tests of caches count these on every backend

    def bind(self, in_avals):
        program = build_program(specialize_jaxpr(self.closed_jaxpr, in_avals))
        out_dtypes = [aval.dtype for aval in self.closed_jaxpr.out_avals]

        def run(*inputs: np.ndarray) -> list[np.ndarray]:
            with np.errstate(all="ignore"):
                outs = program(inputs)
            return _own_memory(outs, out_dtypes, inputs)

        return run

    def texts(self, arguments=()) -> dict:
        return {}

    def cost(self) -> dict[str, float]:
        return {}


def _own_memory(outs, out_dtypes, inputs) -> list[np.ndarray]:
    """Each output in memory of its own: implementations may return views of what they are given."""
    taken = {id(array) for array in inputs}
    owned = []
    for out, dtype in zip(outs, out_dtypes):
        out = np.asarray(out, dtype)
        if out.base is not None or id(out) in taken or not out.flags.c_contiguous:
            out = np.array(out, order="C")
        taken.add(id(out))
        owned.append(out)
    return owned
