"""Statements of kernels as scalar code, one iteration after the other.

In: statements of the loop program and the emitter of the function around them. Out: instructions. A backend
runs those in lanes or threads that it knows how to, and takes this for the rest.

Packed stores put the elements where a mask holds side by side. Each mask has a register that counts how often
it held; lanes are moved together register by register, and the whole register is written: what lies behind
the elements that count may take any value, as far as the place of the iteration itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from llvmlite import ir

from jitcore.backends.llvm.accumulator import Accumulator, Runs
from jitcore.backends.llvm.complex_ops import interleave
from jitcore.backends.llvm.function import Contraction, ExpressionEmitter
from jitcore.backends.llvm.options import RenderOptions
from jitcore.backends.llvm.registers import (I32, I64, Pair, call_intrinsic, count_lanes, element_constant,
                                             from_words, map_parts, mask_first, memory_type, part_dtype,
                                             split_registers, to_words)
from jitcore.backends.llvm.repeat import emit_repeat
from jitcore.backends.llvm.scalar_ops import count_math_calls, emit_operation
from jitcore.loopir.expr import Buffer, Expr, walk
from jitcore.loopir.monoids import scan_start_of
from jitcore.loopir.program import Choice, Kernel, Loop, Reduce, Repeat, Roots, Scan, Store
from jitcore.loopir.traversal import flatten, list_roots, list_writes

# Bytes of the elements of which a register of lanes is moved together at a time.
_WORD = 8


class Packing:
    """The counts of a sweep's masks. emit_store: what emits the stores that are not packed."""

    def __init__(self, e, stores: list[Store], emit_store: Callable):
        self.e, self.stores, self.emit_store = e, stores, emit_store
        self.counts = {store.mask: e.stack_slot(I64(0)) for store in stores if store.packed}

    def emit(self) -> None:
        """The stores of one iteration, or of the iterations of all lanes."""
        moved: dict = {}  # mask -> where each of its registers goes, and the count afterwards
        for store in self.stores:
            if not store.packed:
                self.emit_store(self.e, store)
            elif self.e.lanes == 1:
                self._append_one(store, moved)
            else:
                self._append_lanes(store, moved)
        for mask, (_, _, count) in moved.items():
            self.e.b.store(count, self.counts[mask])

    def _append_one(self, store: Store, moved: dict) -> None:
        """The element is written in any case; the end moves where its mask holds."""
        e, b = self.e, self.e.b
        if store.mask not in moved:
            held, count = e.expr(store.mask), b.load(self.counts[store.mask])
            moved[store.mask] = (held, [count], b.add(count, b.zext(held, I64)))
        value = e.expr(store.value)
        place = b.add(e.index(store.offset), moved[store.mask][1][0])
        e.write_element(store.buffer, place, value)

    def _append_lanes(self, store: Store, moved: dict) -> None:
        e, b = self.e, self.e.b
        width = min(e.lanes, max(2, e.vector_bytes // _WORD))
        if store.mask not in moved:
            moved[store.mask] = self._count_lanes(store.mask, width)
        masks, starts, _ = moved[store.mask]
        value, start = e.expr_in_lanes(store.value), e.index(store.offset)
        parts = [to_words(b, part) for part in (value if isinstance(value, Pair) else [value])]
        pieces = zip(*(split_registers(b, part, width) for part in parts))
        for piece, own, first in zip(pieces, masks, starts):
            together = [_move_together(b, part, own) for part in piece]
            whole = interleave(b, *together) if len(together) == 2 else together[0]
            self._write(store.buffer, b.add(start, first), whole, own)

    def _count_lanes(self, mask, width: int) -> tuple[list, list, ir.Value]:
        """The mask in registers, how many elements lie before each of them, and after all of them."""
        e, b = self.e, self.e.b
        held = e.expr_in_lanes(mask)
        masks = split_registers(b, held if e.mask is None else b.and_(held, e.mask), width)
        starts = [b.load(self.counts[mask])]
        for own in masks:
            starts.append(b.add(starts[-1], count_lanes(b, own)))
        return masks, starts[:-1], starts[-1]

    def _write(self, buffer, place: ir.Value, whole: ir.Value, own: ir.Value) -> None:
        """Writes a register from a place on; at the end of a row only the elements that count."""
        e, b = self.e, self.e.b
        parts = 2 if buffer.dtype.kind == "c" else 1
        element = memory_type(part_dtype(buffer.dtype))
        align = part_dtype(buffer.dtype).itemsize
        first = b.gep(b.bitcast(e.pointer_of(buffer), element.as_pointer()), [b.mul(place, I64(parts))])
        whole = from_words(b, whole, element)
        if e.mask is None:
            b.store(whole, b.bitcast(first, whole.type.as_pointer()), align=align)
            return
        lanes = whole.type.count
        written = b.mul(count_lanes(b, own), I64(parts))
        e.call_masked("store", [whole, first, I32(align), mask_first(b, written, lanes)])


def _move_together(b: ir.IRBuilder, value: ir.Value, mask: ir.Value) -> ir.Value:
    """The lanes where a mask holds, first."""
    rest = ir.Constant(value.type, ir.Undefined)
    return call_intrinsic(b, "experimental.vector.compress", [value, mask, rest])


class StatementRenderer:
    """Renders the statements of one kernel.

    Attributes:
        math_calls: of mathematical functions. inlines_math: whether each gets a copy of the function.
        written: buffers that the kernel changes."""

    def __init__(self, module: ir.Module, name: str, kernel: Kernel, options: RenderOptions):
        self.module, self.name, self.kernel, self.options = module, name, kernel, options
        self.vector_bytes = options.vector_bytes
        self.written = list_writes(kernel.body)
        fuses = options.contract and not options.fastmath
        self.contraction = Contraction(_list_uses(kernel.body), kernel.vector) if fuses else Contraction()
        self.math_calls = count_calls(walk(list_roots(kernel.body)))
        self.inlines_math = True

    def lanes_of(self, statement: Loop | Reduce | Scan) -> int:
        """Lanes of the vector axis in one statement."""
        return 1

    def emit_statements(self, e: ExpressionEmitter, body: list) -> None:
        for statement in body:
            self.emit_statement(e, statement)

    def emit_statement(self, e: ExpressionEmitter, statement) -> None:
        if isinstance(statement, Store):
            emit_store(e, statement)
        elif isinstance(statement, Loop):
            self.emit_loop(e, statement, *e.range_of(statement, statement.axis))
        elif isinstance(statement, Reduce):
            self.emit_reduce(e, statement)
        elif isinstance(statement, Repeat):
            emit_repeat(self, e, statement)
        elif isinstance(statement, Choice):
            self.emit_choice(e, statement, lambda body: self.emit_statements(e, body))
        else:
            self.emit_scan(e, statement)

    # -- control flow -------------------------------------------------------------------------------------
    def emit_loop(self, e: ExpressionEmitter, loop: Loop, start: ir.Value, stop: ir.Value) -> None:
        self.hoist(e, loop.body, {loop.axis})
        with e.for_range(start, stop) as i:
            e.axis_values[loop.axis] = i
            self.emit_statements(e, loop.body)

    def emit_choice(self, e: ExpressionEmitter, choice: Choice, emit: Callable[[list], None]) -> None:
        """One of two bodies, of whose reductions the results are in memory afterwards."""
        results = choice.results
        slots: dict = {}
        first, other, after = (e.function.append_basic_block(name) for name in ("chosen", "other", "either"))
        e.b.cbranch(e.expr(choice.condition), first, other)
        for block, body in ((first, choice.body), (other, choice.other)):
            e.b.position_at_end(block)
            saved, e.values = e.values, dict(e.values)
            emit(body)
            e.values = saved
            for result in results:
                value = e.results[result]
                if result not in slots:
                    slots[result] = map_parts(lambda part: e.prologue.alloca(part.type), value)
                e.write_slot(slots[result], value)
            e.b.branch(after)
        e.b.position_at_end(after)
        for result in results:
            e.results[result] = e.read_slot(slots[result])

    def hoist(self, e: ExpressionEmitter, body: list, inside: set) -> dict[int, bool]:
        """Emits, before a loop, what its body needs but does not depend on it. inside: the loop's axes; those
        of the loops in its body may have values that earlier sweeps along them left. Returns: by the id of an
        expression, whether it is known now."""
        ready: dict[int, bool] = {}
        inside = inside.union(*(statement.axes for statement in flatten(body)))
        for root in list_roots(body):
            for node in walk([root]):
                if id(node) in ready:
                    continue
                ready[id(node)] = (
                    id(node) in e.values
                    or (all(axis in e.axis_values and axis not in inside for axis in node.axes)
                        and (node.op != "result" or node.attr in e.results)
                        and not (node.op == "load" and self._must_stay(node.attr[0]))
                        and all(ready[id(child)] for child in node.inner)))
                if ready[id(node)]:
                    e.expr(node)
        return ready

    def _must_stay(self, buffer: Buffer) -> bool:
        """Whether elements are not read before a loop: they change, or there are none."""
        return buffer in self.written or buffer.known_bytes == 0

    def hoist_roots(self, e: ExpressionEmitter, roots: Sequence[Expr], body: list, inside: set) -> None:
        self.hoist(e, [*body, Roots(*roots)], inside)

    # -- reductions and scans -----------------------------------------------------------------------------
    def emit_reduce(self, e: ExpressionEmitter, reduce: Reduce) -> None:
        accumulators = [Accumulator(self, e, reduce, part) for part in reduce.parts]
        self.sweep_reduce(e, reduce, accumulators, *e.range_of(reduce, reduce.axes[0]), I64(1))
        for accumulator in accumulators:
            e.results[accumulator.result] = accumulator.read()

    def sweep_reduce(self, e: ExpressionEmitter, reduce: Reduce, accumulators: Sequence[Accumulator],
                     start: ir.Value, stop: ir.Value, step: ir.Value) -> None:
        """Each `step`th iteration of the first axis in [start, stop), with all of the axes inside of it."""
        runs, roots = Runs(e, accumulators), reduce.values
        packing = Packing(e, reduce.stores, emit_store)

        def sweep(axes, start, stop, step):
            def run(i):
                e.axis_values[axes[0]] = i
                if len(axes) > 1:
                    return sweep(axes[1:], *e.range_of(reduce, axes[1]), I64(1))
                for accumulator in accumulators:
                    accumulator.update()
                if len(reduce.axes) > 1:
                    runs.count(1)
                packing.emit()

            self.hoist_roots(e, roots, reduce.stores, set(axes))
            (runs.loop if len(reduce.axes) == 1 else e.loop)(start, stop, step, run)

        sweep(reduce.axes, start, stop, step)

    def emit_scan(self, e: ExpressionEmitter, scan: Scan) -> None:
        self.hoist(e, [scan], {scan.axis})
        dtype, extent = scan.value.dtype, e.size(scan.axis.extent)
        slot = e.stack_slot(element_constant(dtype, scan_start_of(scan.op, dtype)))
        with e.for_range(I64(0), extent) as i:
            e.axis_values[scan.axis] = e.b.sub(e.b.sub(extent, i), I64(1)) if scan.reverse else i
            operands = [e.read_slot(slot), e.expr(scan.value)]
            total = emit_operation(e.b, scan.op, [dtype, dtype], dtype, operands, inline=False)
            e.write_slot(slot, total)
            e.store(scan.buffer, scan.offset, total)


def emit_store(e: ExpressionEmitter, store: Store) -> None:
    """Writes one element (or lanes of them), merged with the old one or guarded where the statement says
    so."""

    def write():
        in_lanes = e.is_vector(store.offset.axes())
        value = e.expr_in_lanes(store.value) if in_lanes else e.expr(store.value)
        if store.combine is not None:
            dtype, old = store.buffer.dtype, e.load(store.buffer, store.offset)
            value = emit_operation(e.b, store.combine, [dtype, dtype], dtype, [old, value])
        e.store(store.buffer, store.offset, value)

    if store.mask is None:
        write()
    elif e.lanes == 1 or not e.is_vector(store.mask.axes):
        e.when(e.expr(store.mask), write)
    else:
        outer = e.mask
        own = e.expr_in_lanes(store.mask)
        e.mask = own if outer is None else e.b.and_(outer, own)
        write()
        e.mask = outer


# -- questions about statements ---------------------------------------------------------------------------
def count_calls(nodes: Iterable[Expr]) -> int:
    """How many of some expressions call mathematical functions."""
    return sum(count_math_calls(node.op, node.args[0].dtype) for node in nodes if node.args)


def _list_uses(body: list) -> list[Expr]:
    """What a body computes, each expression as often as it is used; of two versions of a loop one counts."""
    uses: list[Expr] = []
    for statement in body:
        uses += [*statement.ends, *statement.roots]
        if isinstance(statement, Choice):
            first, other = map(_list_uses, statement.bodies)
            uses += [*first, *(root for root in other if root not in first)]
        else:
            uses += [root for inner in statement.bodies for root in _list_uses(inner)]
    return uses
