"""Updates of few elements at computed places, such as sums and counts, in tables of threads.

In: a kernel that is loops around one such update. Out: one `__global__` function, or two. Blocks are few, and
each thread makes many updates, of several elements of what it reads in one access.

Whole numbers may be updated in any order: each block has the elements once more in shared memory, and what it
has found is then combined with the elements themselves. Else each warp has them once more, its lanes of which
several have the same place update it one after the other, and the tables are combined in order: so results
have the same bits in each run.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from llvmlite import ir

from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.cuda.render.team import Slots
from jitcore.backends.gpu.mapping import (WARP, Mapping, can_add_atomically, find_lone_store, is_aligned,
                                          is_ordered)
from jitcore.backends.gpu.tuning import Tuning
from jitcore.backends.llvm.registers import I32, I64, Pair, call_intrinsic, element_constant, element_type
from jitcore.backends.llvm.scalar_ops import emit_operation
from jitcore.loopir.expr import Axis, Buffer, Expr, Graph, Index, Result, walk
from jitcore.loopir.monoids import identity_of
from jitcore.loopir.program import Kernel, Loop, Reduce, Store

#: How an update combines with others, before these are combined with an element.
_WITHIN = {"add": "add", "sub": "add", "mul": "mul", "max": "max", "min": "min", "and": "and", "or": "or",
           "xor": "xor"}


class PrivateUpdates(NamedTuple):
    """loops: around the update. size: of what is updated, in elements. count: of updates. loads: what is read
    of `lanes` updates, neighbours along the last loop, in one access. threads: of a block, of which there are
    `grid`. is_atomic: whether they share a table, else their warps have one each."""

    loops: tuple[Loop, ...]
    store: Store
    size: int
    count: int
    loads: list[Expr]
    lanes: int
    threads: int
    grid: int
    is_atomic: bool


def find_private_updates(kernel: Kernel, access_bytes: int, tuning: Tuning) -> PrivateUpdates | None:
    """The updates that a kernel is, if tables pay for them."""
    loops, store = find_lone_store(kernel) or ((), None)
    if not is_ordered(kernel) or not loops or any(loop.bounds for loop in loops):
        return None
    nbytes, count = store.buffer.nbytes, Mapping("flat", tuple(loops), []).items
    if store.combine not in _WITHIN or store.turns or not 0 < nbytes <= tuning.private_bytes:
        return None
    is_atomic, size = can_add_atomically(kernel), nbytes // store.buffer.dtype.itemsize
    warps = tuning.private_block // WARP if is_atomic else min(tuning.private_warps,
                                                              tuning.private_bytes // nbytes)
    # each block clears its tables, and combines all of them with the elements
    grid = min(tuning.private_blocks, count // max(warps * WARP, tuning.private_updates * size))
    if grid < 2:
        return None
    axis = loops[-1].axis
    loads = [node for node in walk(store.roots)
             if node.op == "load" and node.attr[1].coefficient(axis) == 1]
    lanes = min(access_bytes // max([load.dtype.itemsize for load in loads], default=access_bytes + 1),
                tuning.most_elements)
    while lanes > 1 and not ((len(loops) == 1 or int(axis.extent) % lanes == 0)
                             and all(is_aligned(load.attr[1], axis, lanes) for load in loads)):
        lanes //= 2
    return PrivateUpdates(tuple(loops), store, size, count, loads, max(lanes, 1), warps * WARP, grid,
                          is_atomic)


def render_private_updates(renderer, suffix: str, updates: PrivateUpdates) -> None:
    """renderer: the `KernelRenderer`, which begins functions, and knows what comes before loops."""
    mapping = Mapping("private", (), [], 1, updates.lanes, updates.threads)
    if updates.is_atomic:
        e = renderer.begin(suffix, mapping, updates.grid)
        _AtomicTable(renderer, e, updates).emit()
        return e.finish()
    size, store = updates.size, updates.store
    found = Buffer(f"{renderer.name}{suffix}_found", (updates.grid, size), store.buffer.dtype, "temp")
    renderer.scratch.append(found)
    renderer.buffers = [*renderer.buffers, found]
    renderer.sizes += [extent for extent in found.shape if extent not in renderer.sizes]
    e = renderer.begin(suffix, mapping, updates.grid)
    _OrderedTables(renderer, e, updates, found).emit()
    e.finish()
    renderer.render_items(f"{suffix}_finish", _combine_blocks(store, found), None)


def _combine_blocks(store: Store, found: Buffer) -> Kernel:
    """What blocks have found, and the elements."""
    graph, (block, element) = Graph(), map(Axis, found.shape)
    result, place = Result(found.dtype, frozenset((element,)), 0), Index.of(element)
    value = graph.load(found, Index.of(block) * found.shape[1] + place)
    reduce = Reduce((block,), [(result, _WITHIN[store.combine], value)], [])
    last = Store(store.buffer, place, graph.result(result), None, store.combine)
    return Kernel([Loop(element, [reduce, last])], element, True)


class _Tables:
    """The body of the function."""

    def __init__(self, renderer, e: KernelEmitter, updates: PrivateUpdates):
        self.renderer, self.e, self.updates, self.tuning = renderer, e, updates, renderer.tuning
        self.dtype, self.op = updates.store.buffer.dtype, _WITHIN[updates.store.combine]
        self.identity = element_constant(self.dtype, identity_of(self.op, self.dtype))
        self.axes = [loop.axis for loop in updates.loops]
        self.thread = e.read_register("tid.x")
        self.lane, self.warp = e.b.urem(self.thread, I64(WARP)), e.b.udiv(self.thread, I64(WARP))

    def emit(self) -> None:
        e, b, u = self.e, self.e.b, self.updates
        self.clear()
        e.synchronize_block()
        self.renderer.hoist(e, [u.store], set(self.axes))
        e.skips_gathers = True
        block, stride = e.read_register("ctaid.x"), u.threads * u.grid
        first = b.add(b.mul(block, I64(u.threads)), b.mul(self.warp, I64(WARP)))  # a warp stays together
        batch, whole = 1 if self.renderer.math_calls else self.tuning.private_batch, u.count // u.lanes
        e.for_batches(first, I64(whole), stride, batch,
                      lambda items: self._update(items, I64(whole), u.lanes))
        if u.count % u.lanes:
            e.for_batches(b.add(first, I64(whole * u.lanes)), I64(u.count), stride, 1,
                          lambda items: self._update(items, I64(u.count), 1))
        e.synchronize_block()
        with e.for_range(self.thread, I64(u.size), I64(u.threads)) as place:
            self.combine(place)

    def _update(self, items: list[ir.Value], end: ir.Value, lanes: int) -> None:
        """The updates of a warp from some items on, of so many each. All reads of memory in order come
        first; lanes past the end read what the last one reads."""
        e, b, u, known, found = self.e, self.e.b, self.updates, self.e.values, []
        axis, counts = self.axes[-1], e.count_iterations(self.axes)
        counts[-1] = e.divide_up(counts[-1], lanes)
        for item in items:
            item = b.add(item, self.lane)
            e.axis_values, e.values = dict(e.axis_values), dict(known)
            e.place_axes(self.axes, e.least(item, b.sub(end, I64(1))), u.count, counts)
            e.axis_values[axis] = b.mul(e.axis_values[axis], I64(lanes))
            with e.in_lanes(axis, lanes):
                values = [e.load(*load.attr) for load in u.loads]
            found.append((b.icmp_signed("<", item, end), e.axis_values, values))
        for exists, places, values in found:
            parts = list(map(e.split_lanes, values))
            for lane in range(lanes):
                e.axis_values = places | {axis: b.add(places[axis], I64(lane))}
                e.values = known | {id(load): part[lane] for load, part in zip(u.loads, parts)}
                self.update(exists)
        e.values = known

    @contextlib.contextmanager
    def if_updated(self, exists: ir.Value):
        """Code for where there is an update, which its mask does not leave out."""
        e, mask = self.e, self.updates.store.mask
        with e.if_then(exists), contextlib.nullcontext() if mask is None else e.if_then(e.expr(mask)):
            yield

    def merge(self, x: ir.Value | Pair, y: ir.Value | Pair) -> ir.Value | Pair:
        return emit_operation(self.e.b, self.op, [self.dtype] * 2, self.dtype, [x, y])


class _AtomicTable(_Tables):
    """One table of a block."""

    def clear(self) -> None:
        e, u = self.e, self.updates
        self.table = e.share(element_type(self.dtype), u.size)
        with e.for_range(self.thread, I64(u.size), I64(u.threads)) as place:
            e.b.store(self.identity, self._find(place))

    def update(self, exists: ir.Value) -> None:
        e, store = self.e, self.updates.store
        with self.if_updated(exists):
            e.update_atomically(store, self._find(e.index(store.offset)), e.expr(store.value))

    def combine(self, place: ir.Value) -> None:
        e, b, store = self.e, self.e.b, self.updates.store
        total = b.load(self._find(place))
        with e.if_then(b.icmp_signed("!=", total, self.identity)):
            e.update_atomically(store, b.gep(e.element_pointer(store.buffer), [place]), total)

    def _find(self, place: ir.Value) -> ir.Value:
        return self.e.b.gep(self.table, [I64(0), place])


class _OrderedTables(_Tables):
    """A table of each warp. found: where what blocks have found goes."""

    def __init__(self, renderer, e: KernelEmitter, updates: PrivateUpdates, found: Buffer):
        super().__init__(renderer, e, updates)
        self.found = found

    def clear(self) -> None:
        e, u = self.e, self.updates
        count = u.size * u.threads // WARP
        self.tables = Slots(e, self.dtype, count)
        with e.for_range(self.thread, I64(count), I64(u.threads)) as place:
            self.tables.write(e.b, place, self.identity)

    def update(self, exists: ir.Value) -> None:
        """One update of each lane; those of the same place take turns."""
        e, b, u, everyone = self.e, self.e.b, self.updates, I32(-1)
        places, values = e.stack_slot(I32(-1)), e.stack_slot(self.identity)
        with self.if_updated(exists):
            e.write_slot(places, b.trunc(e.index(u.store.offset), I32))
            e.write_slot(values, e.expr(u.store.value))
        place, value = e.read_slot(places), e.read_slot(values)
        equal = e.call("llvm.nvvm.match.any.sync.i32", I32, everyone, place)
        before = b.sub(b.shl(I32(1), b.trunc(self.lane, I32)), I32(1))
        rank = call_intrinsic(b, "ctpop", [b.and_(equal, before)])
        rank = b.select(b.icmp_signed("<", place, I32(0)), I32(-1), rank)
        turn, own = e.stack_slot(I32(0)), b.add(b.mul(self.warp, I64(u.size)), b.sext(place, I64))

        def goes_on() -> ir.Value:
            waits = b.icmp_signed(">=", rank, e.read_slot(turn))
            votes = e.call("llvm.nvvm.vote.ballot.sync", I32, everyone, waits)
            return b.icmp_unsigned("!=", votes, I32(0))

        def take_turn() -> None:
            number = e.read_slot(turn)
            with e.if_then(b.icmp_signed("==", rank, number)):
                self.tables.write(b, own, self.merge(self.tables.read(b, own), value))
            e.synchronize_warp(everyone)
            e.write_slot(turn, b.add(number, I32(1)))

        e.repeat(goes_on, take_turn)

    def combine(self, place: ir.Value) -> None:
        e, b, u = self.e, self.e.b, self.updates
        total = self.tables.read(b, place)
        for warp in range(1, u.threads // WARP):
            total = self.merge(total, self.tables.read(b, b.add(place, I64(warp * u.size))))
        block = e.read_register("ctaid.x")
        e.write_element(self.found, b.add(b.mul(block, I64(u.size)), place), total)
