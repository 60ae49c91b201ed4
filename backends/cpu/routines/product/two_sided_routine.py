"""The routine for products of a matrix with vectors on its two sides: one sweep over the matrix.

In: a `two_sided_dot`. Out: the routine. The machine code is in `two_sided`.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitcore.backends.cpu.machine.tuning import Product
from jitcore.backends.cpu.routines.product.routine import ProductRoutine
from jitcore.core.jaxpr import Equation
from jitcore.loopir.expr import Buffer


class ChainRoutine(ProductRoutine):
    """(a @ x, (a @ x) @ a): the left vector is the first result."""

    def list_operands(self, call) -> Sequence[Buffer]:
        return *call.inputs, call.outputs[0]


def cut_rows(rows: int, tuning: Product) -> tuple[int, int]:
    """(rows of a stretch, number of stretches)."""
    groups = -(-max(-(-rows // tuning.most_pair_stretches), tuning.least_pair_rows) // tuning.pair_rows)
    length = groups * tuning.pair_rows
    return length, -(-rows // length)


def find_routine(eqn: Equation, tuning: Product) -> ProductRoutine | None:
    aval = eqn.invars[0].aval
    if 0 in aval.shape or not all(isinstance(extent, int) for extent in aval.shape):
        return None
    (rows, columns), (length, stretches) = aval.shape, cut_rows(aval.shape[0], tuning)
    kind, make = ("pair", ProductRoutine) if len(eqn.invars) == 3 else ("chain", ChainRoutine)
    work = stretches * columns, aval.dtype
    return make(kind, f"{kind}_sweep", aval.dtype, (rows, columns, length), work)
