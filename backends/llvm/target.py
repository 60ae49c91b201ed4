"""What backends that write LLVM IR can do: an answer that scheduling needs before any code is made.

In: an equation, and the operations that have code. Out: whether its own is one of them. Loads no compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from jitcore import dtypes
from jitcore.core.jaxpr import Equation


def has_code(eqn: Equation, list_operations: Callable[[], Mapping[str, Collection[str]]]) -> bool:
    """Whether there is code for an equation's scalar operation and dtypes. list_operations: see
    `scalar_ops.list_operations`; asked where the answer depends on it."""
    op = eqn.primitive.traits.get("scalar_op")
    if op in (None, "integer_pow"):
        return True
    return op in list_operations()[dtypes.kind_of(eqn.invars[0].aval.dtype)]
