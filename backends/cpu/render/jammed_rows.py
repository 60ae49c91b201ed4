"""Rows side by side: what all of them read is loaded and shuffled once.

In: a reduction or stores in lanes, and an axis around them on which loads in lanes do not depend, as where
all pairs of points are compared, or some do not, as where a matrix is multiplied with a vector. Out:
instructions for several values of that axis at a time, each with accumulators of its own where there are any.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from jitcore.backends.cpu.render.vector_loops import vector_loop
from jitcore.backends.llvm.accumulator import Accumulator, Runs
from jitcore.backends.llvm.options import is_static
from jitcore.backends.llvm.registers import I64
from jitcore.backends.llvm.scalar_ops import count_math_calls
from jitcore.loopir.expr import Expr, walk
from jitcore.loopir.index import Axis
from jitcore.loopir.program import Loop, Reduce, Store, bound_exprs
from jitcore.schedule.statements import roots_of

# Rows at a time, the most first; registers for operands that all of them share and for what is in progress.
_COUNTS, WORKING_REGISTERS = (4, 2), 8
# The same where each row is read too: eight would take a tenth less time, and twice as long to compile. Of
# fewer rows than these, each has several registers instead.
_STREAM_COUNTS, _LEAST_STREAMS = (4, 2), 4
# Registers of vectors, by their bytes.
_REGISTERS = {64: 32}
_FEW_REGISTERS = 16


def count_registers(vector_bytes: int) -> int:
    """Registers of vectors of so many bytes."""
    return _REGISTERS.get(vector_bytes, _FEW_REGISTERS)


def count_rows(kernel, e, axis: Axis, reduce: Reduce) -> int:
    """How many rows of `axis` go side by side; 1 where they share nothing that is worth it."""
    return next(iter(_list_counts(kernel, e, axis, reduce)), 1)


def _list_counts(kernel, e, axis: Axis, reduce: Reduce, has_streams: bool = False) -> list[int]:
    """How many rows go side by side: first so many, then so many of those that are left, and so on.

    has_streams: each may be read too."""
    vector = kernel.kernel.vector
    if vector is None or reduce.stores or reduce.axes[-1] is not vector or axis is vector or e.lanes > 1:
        return []
    if any(axis in end.axes for end in bound_exprs(reduce)):
        return []
    nodes = walk([expr for _, _, expr in reduce.parts])
    loads = [node for node in nodes if node.op == "load" and vector in node.axes]
    if not loads or any(node.attr[0] in kernel.written for node in loads) or any(map(_takes_long, nodes)):
        return []
    own, counts = _find_row_values(nodes, axis, vector), _COUNTS
    streams = [node for node in loads if axis in node.axes]
    if streams:
        if not has_streams or len(streams) == len(loads) or kernel.kernel.reading or kernel.kernel.far:
            return []
        if is_static(axis.extent) and axis.extent < _LEAST_STREAMS:
            return []
        own, counts = [*own, *streams], _STREAM_COUNTS
    registers = count_registers(kernel.vector_bytes) - WORKING_REGISTERS
    fitting = [count for count in counts if own and count * (len(own) + len(reduce.parts)) <= registers]
    return fitting if streams else fitting[:1]


def list_rows(kernel, e, loop: Loop) -> list[int]:
    """How many iterations of a loop around a reduction, or around a loop in lanes, go side by side; see
    `_list_counts`."""
    first, *rest = loop.body
    if isinstance(first, Loop) and not rest:
        rows = _count_stored_rows(kernel, e, loop.axis, first)
        return [rows] if rows > 1 else []
    if not isinstance(first, Reduce) or len(first.axes) > 1 or not all(isinstance(s, Store) for s in rest):
        return []
    return _list_counts(kernel, e, loop.axis, first, has_streams=True)


def _count_stored_rows(kernel, e, axis: Axis, loop: Loop) -> int:
    """How many rows of stores go side by side: several where all that they read in lanes is the same."""
    vector = kernel.kernel.vector
    if loop.axis is not vector or is_static(axis.extent) or kernel.kernel.streams or kernel.kernel.far:
        return 1
    if any(axis in end.axes for end in bound_exprs(loop)):
        return 1
    if not all(isinstance(s, Store) and s.mask is None and not s.is_update for s in loop.body):
        return 1
    nodes = walk([root for store in loop.body for root in roots_of(store)])
    loads = [node for node in nodes if node.op == "load"]
    if any(node.attr[0] in kernel.written for node in loads) or any(map(_takes_long, nodes)):
        return 1
    in_lanes = {node.attr: node.axes for node in loads if vector in node.axes}
    if len(in_lanes) < 2 or any(axis in axes for axes in in_lanes.values()):
        return 1
    own = _find_row_values(nodes, axis, vector)
    free = count_registers(kernel.vector_bytes) - WORKING_REGISTERS - len(in_lanes)
    return next((count for count in _COUNTS if count * len(own) <= free), 1)


def _takes_long(node: Expr) -> bool:
    return node.dtype.kind == "c" or bool(node.args and count_math_calls(node.op, node.args[0].dtype))


def _find_row_values(nodes: list[Expr], axis: Axis, vector: Axis) -> list[Expr]:
    """What lanes read of one row: the same number in all of them."""
    used = {id(arg): arg for node in nodes if vector in node.axes for arg in node.args}
    return [arg for arg in used.values() if axis in arg.axes and vector not in arg.axes]


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
    roots = [root for statement in statements for root in roots_of(statement)]
    nodes = walk(roots)
    row_values = _find_row_values(nodes, axis, vector)
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
