"""What lowering asks of a backend: the protocols that its answers follow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from jitcore.core.jaxpr import Equation
from jitcore.schedule.rules import Rule


class Target(Protocol):
    """What lowering asks of a backend.

    rules: how its loops run, decided at the end. machine: what they know of it."""

    rules: Sequence[Rule] = ()
    machine: Any = None

    def can_render(self, eqn: Equation) -> bool:
        """Whether there is scalar code for an equation (its sub-jaxprs are asked separately)."""

    def find_routine(self, eqn: Equation) -> Routine | None:
        """The routine that computes an equation on whole buffers better than loops would, or None."""


class Routine(Protocol):
    """Native code of a backend for one equation. Its text names it with all parameters but sizes.

    A routine may have `sizes`, a tuple of `RunTimeSize`s that its machine code is told at each call, and
    `result_columns`: then it runs an epilogue on ranges of rows of so many elements, see `epilogues`. With
    `prepare(builder, *operands)` it says what it reads instead of the equation's operands, and with
    `reference(*arrays)` what it computes of that."""

    def scratch(self) -> Sequence[tuple[tuple, np.dtype]]:
        """Shapes and dtypes of the temporaries it works with."""


def find_function(routine: Routine, eqn: Equation) -> Callable:
    """What a routine computes of ndarrays: its equation's implementation, on operands that lie in memory as
    the equation's do."""
    if hasattr(routine, "reference"):
        return routine.reference
    impl = functools.partial(eqn.primitive.impl, **eqn.params)
    shapes = [atom.aval.shape for atom in eqn.invars]
    return lambda *arrays: impl(*[array.reshape(shape) for array, shape in zip(arrays, shapes)])
