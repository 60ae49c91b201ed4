"""What lowering asks of a backend: the protocols that its answers follow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from jitcore.core.jaxpr import Equation
from jitcore.schedule.tuning import Tuning


class Target(Protocol):
    """What lowering asks of a backend. Each equation is asked about once, before lowering begins."""

    tuning: Tuning

    def find_routine(self, eqn: Equation) -> Routine | None:
        """What computes an equation without effects on whole buffers better than loops would."""

    def can_render(self, eqn: Equation) -> bool:
        """Whether there is scalar code for an equation; those in jaxprs inside are asked about separately."""


class Routine(Protocol):
    """Native code of a backend for one equation. Its text names it with all parameters but sizes.

    A routine may have `sizes`, a tuple of `RunTimeSize`s that its machine code is told at each call, and
    `result_columns`: then it runs an epilogue on ranges of rows of so many elements, see `epilogue_fusion`.
    With `prepare(builder, *operands)` it says what it reads instead of the equation's operands, and with
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
