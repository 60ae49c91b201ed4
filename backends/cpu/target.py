"""What the CPU backend can do: the answers that scheduling needs before any code is made.

In: an equation. Out: whether its scalar operation has code; the routine that computes it on whole buffers.
"""

from __future__ import annotations

import functools

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.routines import find_routine
from jitcore.backends.llvm.options import has_code
from jitcore.core.jaxpr import Equation
from jitcore.schedule.tuning import Tuning


@functools.cache
def _list_operations() -> dict[str, frozenset[str]]:
    """`scalar_ops.list_operations`, whose module is code for a compiler that need not be loaded."""
    lines = host.recall("operations", _describe_operations).splitlines()
    return {kind: frozenset(names) for kind, *names in map(str.split, lines)}


def _describe_operations() -> str:
    from jitcore.backends.llvm import scalar_ops

    return "\n".join(" ".join((kind, *sorted(names))) for kind, names in scalar_ops.list_operations().items())


class CpuTarget:
    """The `schedule.target.Target` of this backend."""

    tuning = Tuning()
    find_routine = staticmethod(find_routine)

    @staticmethod
    def can_render(eqn: Equation) -> bool:
        return has_code(eqn, _list_operations)
