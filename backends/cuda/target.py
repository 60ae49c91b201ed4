"""What the CUDA backend can do: the answers that scheduling needs.

In: an equation. Out: whether its scalar operation has code; the routine that computes it on whole buffers.
"""

from __future__ import annotations

import functools

from jitcore.backends.cuda.sorting.merge import find_sort
from jitcore.backends.llvm.options import has_code
from jitcore.backends.llvm.scalar_ops import list_operations
from jitcore.core.jaxpr import Equation
from jitcore.schedule.tuning import Tuning

_list_operations = functools.cache(list_operations)


class CudaTarget:
    """The `schedule.target.Target` of this backend. What neither loops nor a routine compute runs on the
    host."""

    tuning = Tuning(scatter_kinds="")
    find_routine = staticmethod(find_sort)

    @staticmethod
    def can_render(eqn: Equation) -> bool:
        return has_code(eqn, _list_operations)
