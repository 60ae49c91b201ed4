"""What a loop program computes: operations on floating-point numbers.

In: a program. Out: how many of them run in a call, by the extents of its loops. A `while` counts as one
round, a choice as both of its sides; of routines of a backend products and convolutions are counted, and what
runs on the host is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from jitcore import dtypes
from jitcore.core.jaxpr import Equation
from jitcore.loopir.expr import Buffer, Expr, walk
from jitcore.loopir.program import Call, Program, Statement
from jitcore.loopir.traversal import count_runs

#: Nodes that compute nothing.
_FREE = frozenset("const load index result select convert bitcast real imag complex".split())


def count_flops(program: Program) -> int:
    """Operations of one call."""
    return count_flops_of(program.steps, program.origins)


def count_flops_of(body: Iterable[Statement], origins: Mapping[Buffer | Call, Equation]) -> int:
    """Those of some statements. origins: of the program."""
    return count_runs(body, lambda statement: _count_own(statement, origins))


def _count_own(statement: Statement, origins: Mapping[Buffer | Call, Equation]) -> int:
    """What an iteration computes, and combines."""
    if isinstance(statement, Call):
        return _count_products(origins.get(statement))
    return len(statement.values) + sum(map(_is_arithmetic, walk(statement.roots)))


def _count_products(eqn: Equation | None) -> int:
    """Multiplications and additions of a product of arrays."""
    if eqn is None or eqn.primitive.name not in ("dot_general", "conv_general_dilated"):
        return 0
    left, right = (atom.aval for atom in eqn.invars[:2])
    if eqn.primitive.name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        terms = math.prod(int(left.shape[axis]) for axis in contracted)
    else:
        features = eqn.params["dimension_numbers"].rhs_spec[0]
        terms = math.prod(map(int, right.shape)) // int(right.shape[features])
    return 2 * terms * math.prod(map(int, eqn.outvars[0].aval.shape))


def _is_arithmetic(node: Expr) -> bool:
    return node.op not in _FREE and any(dtypes.kind_of(x.dtype) in "fc" for x in (node, *node.args))
