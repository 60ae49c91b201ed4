"""What the CUDA backend can do: the answers that scheduling needs.

In: an equation. Out: whether its scalar operation has code; the routine that computes it on whole buffers.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from jitcore.backends.llvm.options import has_code
from jitcore.core.jaxpr import Equation
from jitcore.schedule.target import Answer, answer_each


def can_render(eqn: Equation) -> bool:
    return has_code(eqn, _list_operations)


@functools.cache
def _list_operations() -> dict[str, set[str]]:
    from jitcore.backends.llvm.scalar_ops import list_operations

    return list_operations()


class CudaTarget:
    """The `schedule.target.Target` of this backend. Which threads run what is decided by `render.mapping`."""

    @staticmethod
    def answer(equations: Sequence[Equation]) -> dict[int, Answer]:
        return answer_each(equations, CudaTarget.find_routine, can_render)

    @staticmethod
    def find_routine(eqn: Equation) -> Any:
        """What neither loops nor a routine compute runs on the host."""
        if eqn.primitive.name in ("sort", "top_k"):
            from jitcore.backends.cuda.sorting.merge import find_sort

            return find_sort(eqn)
        return None
