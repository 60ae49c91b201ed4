"""Which sums are long.

In: a scheduled program. Out: marks on its reductions. Stage: before a program's text is made, as the mark is
part of it; shorter sums keep the usual code. A sum of many numbers loses a digit whenever it grows by a
factor of ten, so long ones are made in short runs, which `totals` adds up.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitcore.backends.cpu.machine import host
from jitcore.loopir.index import Axis
from jitcore.loopir.monoids import is_summed, part_size
from jitcore.loopir.program import Kernel, Native, Program, Reduce, Scan
from jitcore.schedule.buffers import statements_of

# Additions to one register of lanes, and of columns, from which on a sum of numbers of so many bytes is long.
MIN_ALONG, MIN_DOWN = {4: 64, 8: 1024}, {4: 128, 8: 1024}


def mark_sums(program: Program) -> Program:
    """Tells reductions and scans which are long sums; see `Reduce.is_long`."""
    for step in program.steps:
        for kernel in statements_of(step.body) if isinstance(step, Native) else ():
            if isinstance(kernel, Kernel):
                for s in statements_of([kernel]):
                    if isinstance(s, Reduce):
                        s.is_long = _is_long(kernel, s.axes, [(op, expr.dtype) for _, op, expr in s.parts])
                    elif isinstance(s, Scan):
                        s.is_long = _is_long(kernel, (s.axis,), [(s.op, s.value.dtype)])
    return program


def _is_long(kernel: Kernel, axes: Sequence[Axis], parts: list[tuple]) -> bool:
    sizes = [part_size(dtype) for op, dtype in parts if is_summed(op, dtype)]
    if not sizes:
        return False
    size, count = min(sizes), 1.0
    for axis in axes:
        if not isinstance(axis.extent, int):
            return True
        lanes = host.native_vector_bytes() / size if axis is kernel.vector else 1
        count *= max(axis.extent / lanes, 1)
    return count > (MIN_ALONG if kernel.vector in axes else MIN_DOWN)[size]
