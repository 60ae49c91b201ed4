"""What code is rendered for: options of rendering, and sizes that are told at run time.

In: what a backend knows of its target, and `CompileOptions`; the sizes (ints, symbolic dimensions) that a
program's text mentions. Out: the options of rendering; whether an equation is one of the operations that have
code; slots of the array of sizes that an entry point receives. Because large sizes are arguments, programs
that differ in them only share one kernel. No compiler is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.core.jaxpr import Equation

#: Instructions, as LLVM names their groups, of which formulas have another form.
FORMULA_FEATURES = ("avx512f", "sm_80")


class RenderOptions(NamedTuple):
    """What the code is rendered for; part of the key of compiled code.

    vector_bytes: of the widest register, or access. max_threads: of one kernel; None for all, 1 for serial
    code. fastmath, contract: see `CompileOptions`. fused_complex: operations on complex numbers whose
    products may stay unrounded all the same. features: those of `FORMULA_FEATURES` that the target has.
    has_tensor_cores: whether it multiplies small matrices of 16 bits. tuning: the numbers by which loops are
    mapped to the target, a record of the backend's."""

    vector_bytes: int
    fastmath: bool = False
    max_threads: int | None = None
    contract: bool = True
    fused_complex: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    has_tensor_cores: bool = False
    tuning: Any = None


def has_code(eqn: Equation, list_operations: Callable[[], Mapping[str, Collection[str]]]) -> bool:
    """Whether there is code for an equation's scalar operation and dtypes. list_operations: see
    `scalar_ops.list_operations`; asked where the answer depends on it."""
    op = eqn.primitive.traits.get("scalar_op")
    if op in (None, "integer_pow"):
        return True
    return op in list_operations()[dtypes.kind_of(eqn.invars[0].aval.dtype)]


# Sizes up to this are written into the code: loops over 3 coordinates unroll, strides of 2 fold.
MAX_STATIC_SIZE = 8


def is_static(size) -> bool:
    return isinstance(size, (int, np.integer)) and abs(size) <= MAX_STATIC_SIZE


class SizeTable:
    """Numbers sizes in order of first appearance.

    Code that is found by a program's text gets the sizes that stand in the text; once it is written
    (`close`), a size that does not is an error of the renderer."""

    def __init__(self):
        self.slots: dict = {}
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True

    def slot(self, size) -> int:
        if self.is_closed and size not in self.slots:
            raise AssertionError(f"size {size} does not stand in the program's text")
        return self.slots.setdefault(size, len(self.slots))

    def name(self, size) -> str:
        """A size in the canonical text of a program: static sizes as they are, others by slot."""
        return str(size) if is_static(size) else f"n{self.slot(size)}"

    def values(self, environment: dict) -> list[int]:
        """The sizes for one signature. environment: values of the symbolic dimensions by name."""
        from jitcore.core.symbolic import DimExpr, evaluate

        return [evaluate(size, environment) if isinstance(size, DimExpr) else int(size)
                for size in self.slots]
