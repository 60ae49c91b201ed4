"""Rendering of kernels: one fused loop nest group becomes one LLVM function, with explicit lanes.

In: a `loopir.Kernel`. Out: internal functions `void(i8** buffers, i64* dims, i64 start, i64 stop)` over a
range of the outermost loop, which the entry point calls directly or hands to the thread pool.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from llvmlite import ir

from jitcore.backends.cpu.mapping.balance import Share, find_divisions, share_roots
from jitcore.backends.cpu.render.column_sweeps import emit_row_by_row
from jitcore.backends.cpu.render.extremes import search_extreme
from jitcore.backends.cpu.render.function import FunctionEmitter
from jitcore.backends.cpu.render.jammed_rows import emit_loop_rows, emit_row_groups, sweep_rows
from jitcore.backends.cpu.render.prefetched_rows import ask_ahead, sweep_halves
from jitcore.backends.cpu.render.rows_in_lanes import emit_rows_in_lanes
from jitcore.backends.cpu.render.scan import emit_blocks, emit_scan
from jitcore.backends.cpu.render.scatter import emit_alone, emit_scattered
from jitcore.backends.cpu.render.stores import emit_stores, emit_streamed, group_stores
from jitcore.backends.cpu.render.tiles import emit_tiles
from jitcore.backends.cpu.render.vector_loops import emit_aligned, emit_wide, vector_loop
from jitcore.backends.llvm.accumulator import Accumulator, Partials, Runs, count_blocks, find_blocks
from jitcore.backends.llvm.options import RenderOptions, SizeTable, is_static
from jitcore.backends.llvm.registers import I64, SIZES, TABLE
from jitcore.backends.llvm.scalar_ops import DIVISIONS
from jitcore.backends.llvm.statements import Packing, StatementRenderer, emit_store
from jitcore.loopir.expr import Axis, Buffer, walk
from jitcore.loopir.program import Choice, Kernel, Loop, Reduce, Repeat, Scan, Store
from jitcore.loopir.traversal import block_totals, find_split, flatten, list_roots
from jitcore.loopir.ways import Jam

#: Emitters of a loop in lanes over columns or rows, by the kernel's way.
_ROWS = {"interchange": emit_row_by_row, "transpose": emit_rows_in_lanes}
RANGE_TYPE = ir.FunctionType(ir.VoidType(), [TABLE, SIZES, I64, I64])
WINDOW_TYPE = ir.FunctionType(ir.VoidType(), [TABLE, SIZES, I64, I64, I64, I64])


def outermost_loop(kernel: Kernel) -> Loop | None:
    """The loop that is all of a kernel."""
    first = kernel.body[0]
    loop = first.body[0] if isinstance(first, Choice) else first
    return loop if len(kernel.body) == 1 and isinstance(loop, Loop) else None


def list_counts(kernel: Kernel) -> list[Callable]:
    """For each function of a kernel, what emits the number of iterations of its range."""
    first, loop, split = kernel.body[0], outermost_loop(kernel), find_split(kernel)
    if split is not None:
        sweep = split[1]
        last = count_blocks if isinstance(sweep, Scan) else _once
        return [lambda e: count_blocks(e, sweep), lambda e: last(e, sweep)]
    return [lambda e: _once(e, first) if loop is None else e.count_positions(loop, loop.axis)]


def _once(e, statement) -> ir.Value:
    return I64(1)


def is_little(kernel: Kernel, count: ir.Value) -> bool:
    """Whether a kernel is too little work to share, whatever its strides: all of its extents are few."""
    if not isinstance(count, ir.Constant):
        return False
    inside = flatten([kernel])
    axes = [axis for s in inside for axis in s.axes]
    is_known = all(is_static(axis.extent) for axis in axes) and not any(isinstance(s, Repeat) for s in inside)
    return count.constant == 1 or is_known and count.constant <= int(kernel.grain)


class KernelRenderer(StatementRenderer):
    """Renders one kernel into a module. table: slot of each buffer in the table of pointers."""

    def __init__(self, module: ir.Module, name: str, kernel: Kernel, table: dict[Buffer, int],
                 sizes: SizeTable, first_size: int, options: RenderOptions):
        super().__init__(module, name, kernel, options)
        self.table, self.sizes, self.first_size = table, sizes, first_size
        nodes = [*walk(list_roots(kernel.body))]
        self.divides = any(node.op in DIVISIONS for node in nodes)
        self.reads_places = any(node.op == "load" and node.attr[1].exprs for node in nodes)
        self.told: dict[tuple[int, int], int] = {}  # see `FunctionEmitter`

    @functools.cached_property
    def root_share(self) -> Share:
        return share_roots(self.kernel, self.options.tuning)

    def render(self) -> list[ir.Function]:
        """Functions in the order in which they run: one over the outermost loop; for a split reduction one
        per block and the rest; for a split scan two per block. `list_counts`: over how many iterations."""
        body, split = self.kernel.body, find_split(self.kernel)
        first, make = body[0], self._range_function
        if split is not None and isinstance(split[1], Scan):
            return self._render_scan(*split)
        if split is not None:
            return [make("blocks", lambda e, lo, hi: self._blocks(e, first, lo, hi)),
                    make("finish", lambda e, lo, hi: self._finish(e, body))]
        if outermost_loop(self.kernel) is not None:
            return [make("", lambda e, lo, hi: self._part_of_loop(e, first, lo, hi))]
        return [make("", lambda e, lo, hi: self.emit_statements(e, body))]

    def _render_scan(self, columns: list[Axis], scan: Scan) -> list[ir.Function]:
        """A split scan. columns: the axes of the loops around it, which each block runs by itself."""
        totals = block_totals(scan, columns)
        if "totals" in scan.ways:
            totals.ways["vectors"] = scan.ways["totals"]

        def around(e: FunctionEmitter, emit: Callable[[], None], statement=self.kernel.body[0]) -> None:
            if statement is scan:
                return emit()
            self.hoist(e, statement.body, {statement.axis})
            self._run_axis(e, statement.axis, *e.range_of(statement, statement.axis), statement,
                           lambda: around(e, emit, statement.body[0]))

        parts, make = Partials(columns, around), self._range_function
        return [make("blocks", lambda e, lo, hi: self._blocks(e, totals, lo, hi, parts)),
                make("scan", lambda e, lo, hi: emit_blocks(self, e, scan, lo, hi, parts))]

    def render_window(self) -> ir.Function:
        """The function of an epilogue, on ranges of rows and of columns."""
        (rows,) = self.kernel.body
        (columns,) = rows.body

        def emit(e, *ends):
            self.hoist(e, rows.body, {rows.axis})
            self._run_axis(e, rows.axis, *ends[:2], rows, lambda: self.emit_loop(e, columns, *ends[2:]))

        return self._range_function("", emit, WINDOW_TYPE)

    def _range_function(self, suffix: str, emit: Callable, kind: ir.FunctionType = RANGE_TYPE) -> ir.Function:
        function = ir.Function(self.module, kind, f"{self.name}{'_' if suffix else ''}{suffix}")
        function.linkage = "internal"
        buffers, dims, *ends = function.args
        emitter = FunctionEmitter(function, dims, self.sizes, self.first_size, self.options, self.contraction)
        emitter.inlines_math, emitter.told = self.inlines_math, self.told
        emitter.find_root_share = lambda: self.root_share
        emitter.may_branch = self.reads_places
        emitter.vector_bytes, emitter.written = self.vector_bytes, self.written
        emitter.far = self.kernel.far
        emitter.load_address = lambda buffer: emitter.prologue.load(
            emitter.prologue.gep(buffers, [I64(self.table[buffer])]))
        emit(emitter, *ends)
        emitter.b.ret_void()
        emitter.finish()
        return function

    def lanes_of(self, statement: Loop | Reduce | Scan) -> int:
        return statement.ways["vectors"].lanes

    # -- statements ---------------------------------------------------------------------------------------
    def emit_statements(self, e: FunctionEmitter, body: list) -> None:
        stores = group_stores(e, body)
        for number, statement in enumerate(body):
            if isinstance(statement, Store):
                emit_stores(e, stores.get(number, []))
            else:
                self.emit_statement(e, statement)

    def emit_scan(self, e: FunctionEmitter, scan: Scan) -> None:
        emit_scan(self, e, scan)

    def _part_of_loop(self, e: FunctionEmitter, loop, start: ir.Value, stop: ir.Value) -> None:
        """Iterations of the outermost loop, counted from its first one."""
        if isinstance(loop, Choice):
            self.emit_choice(e, loop, lambda body: self._part_of_loop(e, body[0], start, stop))
            return
        if loop.low is not None:
            low = e.expr(loop.low)
            start, stop = e.b.add(low, start), e.b.add(low, stop)
        self.emit_loop(e, loop, start, stop)

    def emit_loop(self, e: FunctionEmitter, loop: Loop, start: ir.Value, stop: ir.Value) -> None:
        if self.kernel.tile and loop.axis is self.kernel.tile[0]:
            emit_tiles(self, e, loop, start, stop)
            return
        self.hoist(e, loop.body, {loop.axis})
        if "list" in loop.ways:
            emit_scattered(e, loop, start, stop, self.lanes_of(loop), loop.body[0].buffer in self.kernel.far)
            return
        if "unroll" in loop.ways:
            emit_alone(e, loop.axis, start, stop, lambda: self.emit_statements(e, loop.body))
            return
        own = _ROWS.keys() & self.kernel.ways.keys()
        if own and loop.axis is self.kernel.vector:
            _ROWS[own.pop()](self, e, loop, start, stop)
            return
        jam = loop.body[0].ways.get("jam")
        for rows in jam.counts if jam is not None and jam.axis is loop.axis else ():
            start = emit_loop_rows(self, e, loop, start, stop, rows)
        self._run_axis(e, loop.axis, start, stop, loop, lambda: self.emit_statements(e, loop.body))

    def _run_axis(self, e: FunctionEmitter, axis, start, stop, statement: Loop | Reduce,
                  body: Callable[[], None], loop: Callable | None = None) -> None:
        """loop: what emits loops, if not `e.loop`."""
        if axis is self.kernel.vector or axis in self.kernel.others:
            self._run_lanes(e, axis, start, stop, statement, body, loop)
            return
        if e.can_unroll(axis, statement):
            e.unroll(axis, range(axis.extent), body)
            return

        def run(i):
            e.axis_values[axis] = i
            body()

        (loop or e.loop)(start, stop, I64(1), run)

    def _run_lanes(self, e: FunctionEmitter, axis, start, stop, sweep: Loop | Reduce, body: Callable,
                   loop: Callable | None) -> None:
        lanes, ways = self.lanes_of(sweep), sweep.ways
        if "nontemporal" in self.kernel.ways:
            emit_streamed(e, sweep, start, stop, lanes, self.kernel.ways["nontemporal"], body)
            return
        body = self._ask_ahead(e, sweep, body)
        if "peel" in ways:
            emit_aligned(e, axis, ways["peel"], start, stop, lanes, body)
            return
        if "strip" in ways:
            start = emit_wide(e, axis, start, stop, ways["strip"] * lanes, lanes, body)
        vector_loop(e, axis, start, stop, [lanes], body, [loop])

    def _ask_ahead(self, e: FunctionEmitter, sweep: Loop | Reduce, body: Callable) -> Callable[[], None]:
        """The body of a vector loop; whole vectors of the sweep that does ask for what comes later too."""
        ahead = sweep.ways.get("prefetch")
        if ahead is None:
            return body

        def run():
            if e.mask is None:
                ask_ahead(e, ahead)
            body()

        return run

    def hoist(self, e: FunctionEmitter, body: list, inside: set) -> dict[int, bool]:
        ready = super().hoist(e, body, inside)
        if self.divides:
            for node in find_divisions(list_roots(body), self.kernel.vector, self.options.tuning):
                if ready[id(node.args[1])]:
                    e.invert_ahead(node)
        return ready

    # -- reductions ---------------------------------------------------------------------------------------
    def emit_reduce(self, e: FunctionEmitter, reduce: Reduce) -> None:
        accumulators = [Accumulator(self, e, reduce, part) for part in reduce.parts]
        accumulators = self._sweep(e, reduce, accumulators, *e.range_of(reduce, reduce.axes[0]))
        for accumulator in accumulators:
            e.results[accumulator.result] = accumulator.read()

    def _sweep(self, e, reduce: Reduce, accumulators: list[Accumulator], start, stop) -> list[Accumulator]:
        """All iterations with the first axis in [start, stop), combined into the accumulators. Returns: those
        that hold all of it then."""
        if "search" in reduce.ways:
            return [search_extreme(self, e, reduce, start, stop, accumulators[0].start)]
        if "rest" in reduce.ways:
            return self._sweep_range(e, reduce, accumulators, reduce.ways["rest"].lanes, start, stop)
        if "halves" in reduce.ways:
            return sweep_halves(self, e, reduce, start, stop)
        jam = reduce.ways.get("jam")
        body, runs = [*reduce.stores], Runs(e, accumulators)
        packing = Packing(e, body, emit_store)
        roots = reduce.values

        def iterate(axes):
            if not axes:
                for accumulator in accumulators:
                    accumulator.update()
                if len(reduce.axes) > 1:
                    runs.count(1)
                packing.emit()
                return
            low, high = (start, stop) if axes[0] is reduce.axes[0] else e.range_of(reduce, axes[0])
            self.hoist_roots(e, roots, body, set(axes))
            if len(axes) == 2 and jam is not None:
                low = self._sweep_groups(e, reduce, jam, accumulators, low, high)
            loop = runs.loop if len(reduce.axes) == 1 else None
            self._run_axis(e, axes[0], low, high, reduce, lambda: iterate(axes[1:]), loop)

        iterate(reduce.axes)
        return accumulators

    def _sweep_range(self, e, reduce: Reduce, wide: list[Accumulator], narrow: int, start, stop) -> list:
        """A range of the lanes' axis: groups of registers, then single ones, and the rest under a mask."""
        vector, lanes = self.kernel.vector, self.lanes_of(reduce)
        last = [Accumulator(self, e, reduce, part, lanes=narrow) for part in reduce.parts]
        packing, loops = Packing(e, reduce.stores, emit_store), [Runs(e, wide).loop, Runs(e, last).loop]

        def update():
            for accumulator in wide if e.lanes == lanes else last:
                accumulator.update()
            packing.emit()

        self.hoist_roots(e, reduce.values, reduce.stores, {vector})
        vector_loop(e, vector, start, stop, [lanes, narrow], update, loops)

        def absorb():
            for accumulator, other in zip(last, wide):
                accumulator.absorb_wide(other)

        e.when(e.b.icmp_signed(">=", e.b.sub(stop, start), I64(lanes)), absorb)
        return last

    def _sweep_groups(self, e, reduce: Reduce, jam: Jam, accumulators: list[Accumulator],
                      start, stop) -> ir.Value:
        """Whole groups of rows of the two innermost axes. Returns: the first row that is left."""
        axis, (rows,) = jam.axis, jam.counts
        others = [[Accumulator(self, e, reduce, part, is_part=True) for part in reduce.parts]
                  for _ in range(rows - 1)]
        groups = [accumulators, *others]

        def absorb():
            for group in others:
                for accumulator, other in zip(accumulators, group):
                    accumulator.absorb(other)

        def end_run(settle):
            absorb()
            settle()

        runs = Runs(e, accumulators, end_run)
        left = emit_row_groups(e, start, stop, rows, lambda numbers: sweep_rows(
            self, e, reduce, axis, numbers, groups, runs))
        absorb()
        return left

    def _blocks(self, e: FunctionEmitter, reduce: Reduce, start, stop, parts: Partials = Partials()) -> None:
        """Partial results of the blocks [start, stop) of a split reduction."""
        find = find_blocks(e, reduce)

        def run(number):
            low, high = find(number)

            def combine():
                accumulators = [Accumulator(self, e, reduce, part, start=low) for part in reduce.parts]
                accumulators = self._sweep(e, reduce, accumulators, low, high)
                for accumulator, buffer in zip(accumulators, reduce.block_results):
                    parts.write(e, buffer, number, accumulator.read())

            parts.around(e, combine)

        e.loop(start, stop, I64(1), run)

    def _finish(self, e: FunctionEmitter, body: list) -> None:
        """Combines the partial results in order, then runs the statements after the reduction."""
        reduce = body[0]
        blocks = count_blocks(e, reduce)
        for part, buffer in zip(reduce.parts, reduce.block_results):
            accumulator = Accumulator(self, e, reduce, part, scalar=True)

            def run(i, accumulator=accumulator, buffer=buffer):
                accumulator.combine(e.read_element(buffer, i))

            e.loop(I64(0), blocks, I64(1), run)
            e.results[accumulator.result] = accumulator.read()
        self.emit_statements(e, body[1:])


def has_rounds(kernel: Kernel) -> bool:
    """Whether a kernel has loops in registers, which poll."""
    return any(isinstance(statement, Repeat) for statement in flatten(kernel.body))
