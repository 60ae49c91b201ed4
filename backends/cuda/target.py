"""What the CUDA backend can do: the answers that scheduling needs.

In: an equation. Out: whether its scalar operation has code; the routine that computes it on whole buffers.
"""

from __future__ import annotations

import functools

from jitcore.backends.cuda.sorting.rows import RowSort, find_sort
from jitcore.backends.gpu import tuning as gpu
from jitcore.backends.llvm.options import has_code
from jitcore.backends.llvm.scalar_ops import list_operations
from jitcore.core.jaxpr import Equation
from jitcore.schedule.tuning import Tuning

_list_operations = functools.cache(list_operations)


class CudaTarget:
    """The `schedule.target.Target` of this backend. What neither loops nor a routine compute runs on the
    host. kernels: numbers of the architecture."""

    tuning = Tuning(scatter_kinds="", max_columns=65535, max_stacks=65535, short_block_work=4096,
                    min_block_rows=64, max_blocks=1024, max_block_results=1 << 18, cuts_totals=True,
                    max_scan_rows=132, max_scan_cost=1 << 10)

    def __init__(self, kernels: gpu.Tuning = gpu.Tuning()):
        self.kernels = kernels

    def find_routine(self, eqn: Equation) -> RowSort | None:
        return find_sort(eqn, self.kernels)

    @staticmethod
    def can_render(eqn: Equation) -> bool:
        return has_code(eqn, _list_operations)
