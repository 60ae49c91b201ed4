"""Oracles that share no cause: one program at each stage of the compiler, and where it becomes another one.

In: a function and its arguments. Out: the stages that change what it computes, by name:

- "passes": the optimised jaxpr, run by NumPy, differs from the jaxpr as it was recorded;
- "schedule": the loop program, run as Python with checked memory, differs from the optimised jaxpr;
- "emitter": machine code differs from the loop program.

What was recorded is compared with NumPy, JAX and mpmath elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import jitcore
from jitcore import tree_util
from jitcore.backends.cpu.compiler import CpuTarget
from jitcore.backends.python import load_python, write_function
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.schedule import lower_program

#: Relative and, of the largest element, absolute difference, by the bytes of a real number: sums are in other
#: orders, and functions those of other libraries.
TOLERANCES = {2: 2e-2, 4: 3e-5, 8: 1e-11}
STAGES = ("passes", "schedule", "emitter")


class Stages:
    """The results of a program, stage by stage; an exception is one too.

    Args: a function of arrays; its arguments."""

    def __init__(self, function: Callable, args: Sequence):
        self.function, self.args = function, args
        self.program = jitcore.jit(function).trace(*args)._program
        leaves = [np.asarray(leaf, aval.dtype)
                  for leaf, aval in zip(tree_util.tree_leaves(args), self.program.traced.jaxpr.in_avals)]
        values = [*self.program.const_values, *leaves]
        self.inputs = [np.array(values[place], order="C") for place in self.program.kept]

    def run_recorded(self) -> list[np.ndarray]:
        reference = jitcore.jit(self.function, backend="reference")(*self.args)
        return list(map(np.asarray, tree_util.tree_leaves(reference)))

    def run_passes(self) -> list[np.ndarray]:
        return run_jaxpr_numpy(self.program.compiled_jaxpr, self.inputs)

    def run_schedule(self) -> list[np.ndarray]:
        program = lower_program(self.program.compiled_jaxpr, CpuTarget)
        return load_python(write_function(program), program)(*[x.copy() for x in self.inputs])

    def run_emitter(self) -> list[np.ndarray]:
        return list(map(np.asarray, tree_util.tree_leaves(jitcore.jit(self.function)(*self.args))))


def find_faults(function: Callable, args: Sequence, stages: Sequence[str] = STAGES, tolerance: float = 1.0,
                size: float = 0.0) -> dict[str, str]:
    """What each stage changes, in words. tolerance: a factor for `TOLERANCES`; size: of the numbers that a
    program computes with, where its results are small differences.

    A stage is compared with the nearest one before it that gave a result."""
    made, found = Stages(function, args), {}
    known = made.run_recorded()
    for stage in stages:
        try:
            results = getattr(made, f"run_{stage}")()
        except Exception as error:
            found[stage] = f"{type(error).__name__}: {error}"
            continue
        difference = find_difference(results, known, tolerance, size)
        if difference:
            found[stage] = difference
        known = results
    return found


def find_difference(found: Sequence, expected: Sequence, tolerance: float = 1.0, size: float = 0.0) -> str:
    """Where results differ; "" where they agree: integers to the bit, floats to a few units in the last place
    of the largest element, or of `size`."""
    if len(found) != len(expected):
        return f"{len(found)} outputs instead of {len(expected)}"
    for number, (one, other) in enumerate(zip(found, expected)):
        one, other = np.asarray(one), np.asarray(other)
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return f"output {number} is {one.dtype}{one.shape} instead of {other.dtype}{other.shape}"
        if other.dtype.kind in "biu":
            if wrong := np.count_nonzero(one != other):
                return f"{wrong} of {other.size} elements of output {number} differ"
            continue
        wide = np.complex128 if other.dtype.kind == "c" else np.float64
        bound = tolerance * TOLERANCES[other.dtype.itemsize // (2 if other.dtype.kind == "c" else 1)]
        one, other = one.astype(wide), other.astype(wide)
        finite = np.abs(other[np.isfinite(other)])
        scale = max(size, float(finite.max()) if finite.size else 1.0)
        with np.errstate(all="ignore"):
            if not np.allclose(one, other, bound, bound * scale, equal_nan=True):
                return f"output {number} is off by {np.nanmax(np.abs(one - other)):.2g} of {scale:.2g}"
    return ""
