"""Rendering of reductions and scans down columns that go row by row.

In: the loop over columns of a kernel that is interchanged, and a range of it. Out: instructions. All
columns of the range, as long as their running values fit the first cache, take one row before the next, so
that memory is read in long runs. The running values of a block of columns are an array on the stack, with a
vector at each place; what is combined, and in which order, is as without the mark.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from jitcore.backends.cpu.machine.tuning import Loops
from jitcore.backends.cpu.mapping.memory_order import row_axis_of
from jitcore.backends.cpu.render.jammed_rows import emit_row_groups
from jitcore.backends.cpu.render.prefetched_rows import ask_ahead
from jitcore.backends.cpu.render.scan import RunningTotal
from jitcore.backends.cpu.render.vector_loops import emit_vectors, vector_loop
from jitcore.backends.llvm.accumulator import Accumulator, Runs
from jitcore.backends.llvm.registers import I64
from jitcore.backends.llvm.statements import count_calls
from jitcore.loopir.expr import walk
from jitcore.loopir.program import Loop, Reduce, Scan


def emit_row_by_row(kernel, e, loop: Loop, start: ir.Value, stop: ir.Value) -> None:
    """The columns [start, stop). kernel: the `KernelRenderer`. e: the `FunctionEmitter`."""
    b, lanes = e.b, kernel.lanes_of(loop)
    itemsize = max(root.dtype.itemsize for root in loop.body[0].roots)
    places = max(1, e.tuning.column_bytes // (itemsize * lanes))
    width = I64(places * lanes)

    def run(first):
        past = b.add(first, width)
        end = b.select(b.icmp_signed("<", past, stop), past, stop)
        _emit_block(kernel, e, loop, places, first, end)

    e.loop(start, stop, width, run)


def _emit_block(kernel, e, loop: Loop, places: int, first: ir.Value, end: ir.Value) -> None:
    b, columns, lanes = e.b, loop.axis, kernel.lanes_of(loop)
    sweep, *rest = loop.body
    rows, roots = row_axis_of(sweep), sweep.roots
    running: list[Accumulator | RunningTotal] = []

    def at_place(body: Callable[[], None]) -> Callable[[], None]:
        def run():
            e.place = b.udiv(b.sub(e.axis_values[columns], first), I64(lanes))
            body()

        return run

    def begin():
        running[:] = ([RunningTotal(kernel, e, sweep)] if isinstance(sweep, Scan)
                      else [Accumulator(kernel, e, sweep, part) for part in sweep.parts])

    def run_rows(numbers):
        def update():
            shared = e.values
            for number, values in own:
                e.axis_values[rows], e.values = number, shared | values
                if "prefetch" in sweep.ways and e.mask is None:
                    ask_ahead(e, sweep.ways["prefetch"])
                for value in running:
                    value.gather() if value in sums else value.update()
            e.values = shared
            for value in sums:
                value.add_gathered()

        own, shared = [], e.values
        for row in numbers:
            e.values = dict(shared)
            e.axis_values[rows] = b.sub(b.sub(extent, row), I64(1)) if is_reversed else row
            kernel.hoist_roots(e, roots, [], {columns})
            own.append((e.axis_values[rows], e.values))
        e.values = shared
        vector_loop(e, columns, first, end, [lanes], at_place(update))
        runs.count(1 if sums else len(numbers))

    def finish():  # a scan has stored its results by itself
        for value in running:
            e.results[value.result] = value.read()
        kernel.emit_statements(e, rest)

    e.places = places
    emit_vectors(e, columns, first, end, lanes, at_place(begin))  # the last one too: slots hold whole vectors
    e.places = None
    is_reversed, extent = isinstance(sweep, Scan) and sweep.reverse, e.size(rows.extent)
    runs = Runs(e, running, lambda settle: vector_loop(
        e, columns, first, end, [lanes], at_place(settle)))
    sums = [] if isinstance(sweep, Scan) else runs.sums
    left = emit_row_groups(e, I64(0), extent, _count_rows(sweep, e.tuning), run_rows)
    e.loop(left, extent, I64(1), lambda row: run_rows([row]))
    if rest:
        vector_loop(e, columns, first, end, [lanes], at_place(finish))


def _count_rows(sweep: Reduce | Scan, tuning: Loops) -> int:
    """How many rows at a time."""
    nodes = walk(sweep.roots)
    if count_calls(nodes):
        return 1
    most = tuning.scanned_rows if isinstance(sweep, Scan) else tuning.combined_rows
    return max(1, min(most, tuning.max_combined_nodes // len(nodes)))
