"""Which sums are long.

In: a scheduled program. Out: marks on its reductions. Stage: before a program's text is made, as the mark is
part of it; shorter sums keep the usual code. A sum of many numbers loses a digit whenever it grows by a
factor of ten, so long ones are made in short runs, which `totals` adds up.
"""

from __future__ import annotations

from jitcore.backends.cpu import cpuinfo
from jitcore.loopir.program import Kernel, Native, Program, Reduce
from jitcore.schedule.buffers import statements_of

# Additions to one register from which on a sum is long.
MIN_ADDITIONS = 64


def mark_sums(program: Program) -> Program:
    """Tells reductions which are long sums; see `Reduce.is_long`."""
    for step in program.steps:
        for kernel in statements_of(step.body) if isinstance(step, Native) else ():
            if isinstance(kernel, Kernel):
                for statement in statements_of([kernel]):
                    if isinstance(statement, Reduce):
                        statement.is_long = _is_long(kernel, statement)
    return program


def is_summed(op: str, dtype) -> bool:
    """Whether a reduction is a sum that rounds."""
    return op == "add" and dtype.kind in "fc"


def _is_long(kernel: Kernel, reduce: Reduce) -> bool:
    sizes = [expr.dtype.itemsize for _, op, expr in reduce.parts if is_summed(op, expr.dtype)]
    if not sizes:
        return False
    count = 1.0
    for axis in reduce.axes:
        if not isinstance(axis.extent, int):
            return True
        lanes = cpuinfo.native_vector_bytes() / max(sizes) if axis is kernel.vector else 1
        count *= max(axis.extent / lanes, 1)
    return count > MIN_ADDITIONS
