"""Rows side by side: what all of them read is loaded and shuffled once.

In: a reduction or stores in lanes, and an axis around them on which loads in lanes do not depend, as where
all pairs of points are compared, or some do not, as where a matrix is multiplied with a vector. Out:
instructions for several values of that axis at a time, each with accumulators of its own where there are any.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from jitcore.backends.cpu.mapping.vectors import find_row_values
from jitcore.backends.cpu.render.vector_loops import vector_loop
from jitcore.backends.llvm.accumulator import Accumulator, Runs
from jitcore.backends.llvm.registers import I64
from jitcore.loopir.expr import Axis, walk
from jitcore.loopir.program import Loop, Reduce


def emit_row_groups(e, start: ir.Value, stop: ir.Value, rows: int, body: Callable) -> ir.Value:
    """`body(numbers)` for whole groups of rows from `start` on. Returns: the first row that is left."""
    b = e.b
    count = b.select(b.icmp_signed(">", stop, start), b.sub(stop, start), I64(0))
    left = b.add(start, b.mul(b.sdiv(count, I64(rows)), I64(rows)))
    e.loop(start, left, I64(rows), lambda i: body([e.b.add(i, I64(k)) for k in range(rows)]))
    return left


def emit_loop_rows(kernel, e, loop: Loop, start: ir.Value, stop: ir.Value, rows: int) -> ir.Value:
    """The iterations [start, stop) of a loop, but for those that are left over, whose first is returned."""
    inner, *rest = loop.body
    if isinstance(inner, Loop):
        def store(row):
            kernel.emit_statements(e, inner.body)

        return emit_row_groups(e, start, stop, rows, lambda numbers: _sweep_side_by_side(
            kernel, e, inner, loop.axis, numbers, store))

    def run(numbers):
        groups = [[Accumulator(kernel, e, inner, part) for part in inner.parts] for _ in numbers]
        runs = Runs(e, [accumulator for group in groups for accumulator in group])
        sweep_rows(kernel, e, inner, loop.axis, numbers, groups, runs)
        for number, accumulators in zip(numbers, groups):
            saved, e.values = e.values, dict(e.values)
            e.axis_values[loop.axis] = number
            for accumulator in accumulators:
                e.results[accumulator.result] = accumulator.read()
            kernel.emit_statements(e, rest)
            e.values = saved

    return emit_row_groups(e, start, stop, rows, run)


def sweep_rows(kernel, e, reduce: Reduce, axis: Axis, numbers: list, groups: list[list[Accumulator]],
               runs: Runs) -> None:
    """The iterations of the innermost axis for each row, combined into the accumulators of that row."""

    def update(row):
        for accumulator in groups[row]:
            accumulator.update()
        if row == len(groups) - 1 and len(reduce.axes) > 1:
            runs.count(1)

    loop = runs.loop if len(reduce.axes) == 1 else None
    _sweep_side_by_side(kernel, e, reduce, axis, numbers, update, loop)


def _sweep_side_by_side(kernel, e, sweep: Loop | Reduce, axis: Axis, numbers: list,
                        body: Callable[[int], None], loop: Callable | None = None) -> None:
    """`body(row)` for each row in turn, in every iteration of a sweep in lanes."""
    vector, lanes = kernel.kernel.vector, kernel.lanes_of(sweep)
    statements = sweep.body if isinstance(sweep, Loop) else [sweep]
    roots = [root for statement in statements for root in statement.roots]
    nodes = walk(roots)
    row_values = find_row_values(nodes, axis, vector)
    common = {id(node) for node in nodes if axis not in node.axes}
    shared, own = e.values, []
    for number in numbers:
        e.values, e.axis_values[axis] = dict(shared), number
        kernel.hoist_roots(e, roots, [], {vector})
        for node in row_values:
            e.spread_ahead(node, lanes)
        own.append(e.values)
    e.values = shared

    def iterate():
        known = e.values
        for row, (number, values) in enumerate(zip(numbers, own)):
            e.values, e.axis_values[axis], e.row = values | known, number, row
            body(row)
            known |= {key: value for key, value in e.values.items() if _is_common(key, common, axis)}
        e.values, e.row = known, 0

    vector_loop(e, vector, *e.range_of(sweep, vector), [lanes], iterate, [loop])


def _is_common(key, common: set[int], axis: Axis) -> bool:
    """Whether a value that was emitted for one row is every row's: an expression, or a register of a load."""
    if isinstance(key, tuple):
        return len(key) == 3 and axis not in key[1].axes()
    return key in common
