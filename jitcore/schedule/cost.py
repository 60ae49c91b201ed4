"""What a loop program computes: operations on floating-point numbers.

In: a program. Out: how many of them run in a call, by the extents of its loops. A `while` counts as one
round, a choice as both of its sides; routines of a backend, and what runs on the host, are not counted.
"""

from __future__ import annotations

from jitcore import dtypes
from jitcore.loopir.expr import Expr, walk
from jitcore.loopir.program import Program, Statement
from jitcore.loopir.traversal import count_runs

#: Nodes that compute nothing.
_FREE = frozenset("const load index result select convert bitcast real imag complex".split())


def count_flops(program: Program) -> int:
    """Operations of one call."""
    return count_runs(program.steps, _count_own)


def _count_own(statement: Statement) -> int:
    """What an iteration computes, and combines."""
    return len(statement.values) + sum(map(_is_arithmetic, walk(statement.roots)))


def _is_arithmetic(node: Expr) -> bool:
    return node.op not in _FREE and any(dtypes.kind_of(x.dtype) in "fc" for x in (node, *node.args))
