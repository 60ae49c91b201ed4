"""Questions that go through all statements of a body: one traversal for all kinds.

In: statements. Out: those inside of them too, what they evaluate, read and write; nests of loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from jitcore.core.algebra import COMPARISONS
from jitcore.loopir.expr import Axis, Buffer, Expr, FloorDiv, Index, Result, walk
from jitcore.loopir.program import Kernel, Loop, Native, Reduce, Repeat, Scan, Statement


def flatten(body: Iterable[Statement]) -> list[Statement]:
    """Every statement of a body, each before those inside of it."""
    found = []
    for statement in body:
        found.append(statement)
        for inner in statement.bodies:
            found += flatten(inner)
    return found


def list_outermost(steps: Iterable[Statement]) -> list[Statement]:
    """The statements of a program that stand in no other one."""
    return [s for step in steps for s in (step.body if isinstance(step, Native) else [step])]


def outside_kernels(body: Iterable[Statement], closed: frozenset[Statement] = frozenset()) -> list[Statement]:
    """Statements down to kernels, whose insides are left closed, as are those of some others."""
    found = []
    for statement in body:
        found.append(statement)
        if not isinstance(statement, Kernel) and statement not in closed:
            for inner in statement.bodies:
                found += outside_kernels(inner, closed)
    return found


def list_roots(body: Iterable[Statement]) -> list[Expr]:
    """Every expression that a body evaluates, as often as its statements do."""
    return [root for statement in flatten(body) for root in (*statement.ends, *statement.roots)]


def list_reads(body: Iterable[Statement]) -> set[Buffer]:
    """Every buffer that the statements of a body read."""
    return {buffer for statement in flatten(body) for buffer, _ in statement.loads}


def list_writes(body: Iterable[Statement]) -> set[Buffer]:
    """Every buffer that the statements of a body write."""
    statements = flatten(body)
    found = {buffer for statement in statements for buffer, _ in statement.targets}
    return found.union(*(statement.block_results for statement in statements))


def list_buffers(body: Iterable[Statement]) -> set[Buffer]:
    """Every buffer that the statements of a body touch."""
    return list_reads(body) | list_writes(body)


def count_runs(body: Iterable[Statement], own: Callable[[Statement], int]) -> int:
    """What statements count by themselves, as often as they run; of a `while` one round."""
    total = 0
    for statement in body:
        each = own(statement) + sum(count_runs(inner, own) for inner in statement.bodies)
        trips = int(statement.trips) if isinstance(statement, Repeat) else 1
        total += each * trips * math.prod(int(axis.extent) for axis in statement.axes)
    return total


def list_indexes(body: Iterable[Statement]) -> list[Index]:
    """Every index of a body, those inside opaque terms and dynamic expressions included."""
    found, waiting = [], []
    for statement in flatten(body):
        waiting += [offset for _, offset in statement.targets]
        for node in walk(statement.roots):
            waiting += [node.attr[1]] if node.op == "load" else [node.attr] if node.op == "index" else []
        while waiting:
            found.append(index := waiting.pop())
            waiting += [atom.index for atom, _ in index.terms if isinstance(atom, FloorDiv)]
    return found


def list_features(body: list) -> set[str]:
    """What there is in a body, by name: classes of statements and of terms of indexes; "range" where loops
    have bounds, "packed" where elements go side by side, "mask" where places are compared."""
    statements = flatten(body)
    found = {statement.__class__.__name__ for statement in statements}
    found.update("range" for statement in statements if statement.bounds)
    found.update("packed" for statement in statements for store in statement.stores if store.packed)
    found.update(atom.__class__.__name__ for index in list_indexes(body) for atom, _ in index.terms)
    if any(node.op in COMPARISONS and node.axes and node.args[0].dtype.kind in "iu"
           for node in walk(list_roots(body))):
        found.add("mask")
    return found


def nest(axes: Iterable[Axis], body: list) -> list:
    """A body inside of loops, the first axis outermost."""
    for axis in reversed(list(axes)):
        body = [Loop(axis, body)]
    return body


def peel(body: list) -> tuple[list[Loop], list]:
    """(the loops of a perfect nest, what is inside of them)."""
    loops = []
    while len(body) == 1 and isinstance(body[0], Loop):
        loops.append(body[0])
        body = body[0].body
    return loops, body


def find_split(kernel: Kernel) -> tuple[list[Axis], Reduce | Scan] | None:
    """(axes of the loops around it, statement) of the sweep that a kernel does in blocks, if it does."""
    axes, statement = [], kernel.body[0]
    while isinstance(statement, Loop):
        axes.append(statement.axis)
        statement = statement.body[0]
    return (axes, statement) if statement.block_results else None


def block_totals(scan: Scan, columns: Iterable[Axis]) -> Reduce:
    """The first phase of a scan in blocks: their totals, as a reduction in the same blocks. columns: the axes
    around it."""
    result = Result(scan.value.dtype, frozenset(columns), 0)
    reduce = Reduce((scan.axis,), [(result, scan.op, scan.value)], [])
    reduce.block_results, reduce.block, reduce.is_long = scan.block_results[:1], scan.block, scan.is_long
    return reduce
