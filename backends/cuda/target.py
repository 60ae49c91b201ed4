"""What the CUDA backend can do: the answers that scheduling needs.

In: an equation. Out: whether its scalar operation has code; the routine that computes it on whole buffers.
"""

from __future__ import annotations

import functools
from typing import Any

from jitcore import dtypes
from jitcore.core.jaxpr import Equation


def can_render(eqn: Equation) -> bool:
    """Whether there is code for an equation's scalar operation and dtypes."""
    op = eqn.primitive.traits.get("scalar_op")
    if op in (None, "integer_pow"):
        return True
    return op in _list_operations()[dtypes.kind_of(eqn.invars[0].aval.dtype)]


@functools.cache
def _list_operations() -> dict[str, set[str]]:
    from jitcore.backends.llvm.scalar_ops import list_operations

    return list_operations()


class CudaTarget:
    """The `schedule.lower.Target` of this backend."""

    can_render = staticmethod(can_render)

    @staticmethod
    def find_routine(eqn: Equation) -> Any:
        """What neither loops nor a routine compute runs on the host."""
        if eqn.primitive.name in ("sort", "top_k"):
            from jitcore.backends.cuda.sorting import find_sort

            return find_sort(eqn)
        return None
