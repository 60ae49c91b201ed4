"""What lowering asks of a backend: the protocols that its answers follow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from jitcore.core.jaxpr import Equation


class Answer(NamedTuple):
    """routine: that computes an equation on whole buffers better than loops would, or None. has_code: whether
    there is scalar code for it; the jaxprs inside are asked about separately."""

    routine: Routine | None
    has_code: bool


class Target(Protocol):
    """What lowering asks of a backend, once, before it begins."""

    def answer(self, equations: Sequence[Equation]) -> dict[int, Answer]:
        """An answer for each equation, by its `id`."""


def answer_each(equations: Sequence[Equation], find_routine: Callable[[Equation], Routine | None],
                can_render: Callable[[Equation], bool]) -> dict[int, Answer]:
    """`Target.answer` of a backend that looks at one equation at a time."""
    return {id(eqn): Answer(None if eqn.effects else find_routine(eqn), can_render(eqn)) for eqn in equations}


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
