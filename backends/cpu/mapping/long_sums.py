"""Which sums are long.

In: a kernel. Out: its long sums; shorter ones keep the usual code. A sum of many numbers loses a digit
whenever it grows by a factor of ten, so long ones are made in short runs, which `totals` adds up.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitcore.loopir.index import Axis
from jitcore.loopir.monoids import is_summed, part_size
from jitcore.loopir.program import Reduce, Scan
from jitcore.schedule.rules import Decisions, Nest

# Additions to one register of lanes, and of columns, from which on a sum of numbers of so many bytes is long.
MIN_ALONG, MIN_DOWN = {4: 64, 8: 1024}, {4: 128, 8: 1024}


def find(nest: Nest) -> Decisions:
    """Reductions and scans that are long sums; see `Reduce.is_long`."""
    found = []
    for s in nest.sweeps:
        if isinstance(s, Reduce):
            found.append((s, _is_long(nest, s.axes, [(op, expr.dtype) for _, op, expr in s.parts])))
        elif isinstance(s, Scan):
            found.append((s, _is_long(nest, (s.axis,), [(s.op, s.value.dtype)])))
    return found


def _is_long(nest: Nest, axes: Sequence[Axis], parts: list[tuple]) -> bool:
    sizes = [part_size(dtype) for op, dtype in parts if is_summed(op, dtype)]
    if not sizes:
        return False
    size, count = min(sizes), 1.0
    for axis in axes:
        if not isinstance(axis.extent, int):
            return True
        lanes = nest.machine.vector_bytes / size if axis is nest.kernel.vector else 1
        count *= max(axis.extent / lanes, 1)
    return count > (MIN_ALONG if nest.kernel.vector in axes else MIN_DOWN)[size]
