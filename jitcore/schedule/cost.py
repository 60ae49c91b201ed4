"""What a loop program computes: operations on floating-point numbers.

In: a program. Out: how many of them run in a call, by the extents of its loops. A `while` counts as one
round, a choice as both of its sides; routines of a backend, and what runs on the host, are not counted.
"""

from __future__ import annotations

import math

from jitcore import dtypes
from jitcore.loopir.expr import Expr, walk
from jitcore.loopir.program import (
    Choice,
    Kernel,
    Loop,
    Native,
    Program,
    Reduce,
    Repeat,
    Scan,
    Switch,
    While,
)
from jitcore.schedule.statements import roots_of

#: Nodes that compute nothing.
_FREE = frozenset("const load index result select convert bitcast real imag complex".split())


def count_flops(program: Program) -> int:
    """Operations of one call."""
    return _count([step for step in program.steps if isinstance(step, Native)])


def _count(body: list) -> int:
    return sum(map(_count_statement, body))


def _count_statement(statement) -> int:
    match statement:
        case Native() | Kernel():
            return _count(statement.body)
        case Choice():
            return _count(statement.body) + _count(statement.other)
        case While():
            return _count(statement.cond) + _count(statement.body)
        case Switch():
            return sum(map(_count, statement.branches))
        case Repeat():
            return (_count(statement.body) + _count_own(statement)) * int(statement.trips)
        case Loop():
            each, axes = _count(statement.body), (statement.axis,)
        case Reduce():
            each, axes = _count_own(statement) + len(statement.parts), statement.axes
        case Scan():
            each, axes = _count_own(statement) + 1, (statement.axis,)
        case _:
            return _count_own(statement)
    return each * math.prod(int(axis.extent) for axis in axes)


def _count_own(statement) -> int:
    return sum(map(_is_arithmetic, walk(roots_of(statement))))


def _is_arithmetic(node: Expr) -> bool:
    return node.op not in _FREE and any(dtypes.kind_of(x.dtype) in "fc" for x in (node, *node.args))
