"""Reductions and scans in blocks: where results, or columns, are too few for threads to share, each thread
combines a part of what is swept.

In: the loops of a kernel with one reduction. Out: those of two kernels. The first one reduces blocks of the
swept axis, whose number and order depend on sizes alone; the second one combines what the blocks gave, and
goes on with the statements behind the sweep. A scan stays one kernel (`nest.split_sweep`).
"""

from __future__ import annotations

import math

from jitcore import dtypes
from jitcore.loopir.builder import is_few
from jitcore.loopir.expr import Axis, Buffer, Dynamic, Expr, Index, Result, constant, linearize, walk
from jitcore.loopir.program import Reduce, Store
from jitcore.loopir.traversal import list_roots, peel
from jitcore.schedule.nest import Loops
from jitcore.schedule.tuning import Tuning
from jitcore.schedule.unrolling import Rewrite


def goes_in_blocks(layout: tuple, kept: tuple[int, ...], tuning: Tuning) -> bool:
    """Whether a reduction of an array of that shape, to the dimensions `kept`, is made in blocks: it sweeps
    down a few columns, or along fewer long rows."""
    if not kept or len(kept) == len(layout) or not all(isinstance(extent, int) for extent in layout):
        return False
    results = math.prod(layout[d] for d in kept)
    length = math.prod(layout) // max(1, results)
    if results * length < 2 * tuning.block_work:
        return False
    if kept[-1] == len(layout) - 1:
        stacks = _count_stacks(layout, kept)
        # few columns become parts of one sweep
        is_whole = is_few([results // max(1, stacks)]) and (stacks > 1 or not tuning.cuts_totals)
        return stacks <= tuning.max_stacks and not is_whole and _are_tall(results, length, tuning)
    is_long = results <= tuning.max_long_rows and length >= tuning.min_long_row
    return kept[-1] == len(kept) - 1 and is_long


def _are_tall(results: int, length: int, tuning: Tuning) -> bool:
    """Whether columns are few, and rows enough for several blocks."""
    return results <= tuning.max_columns and length >= 4 * tuning.min_block_rows


def scans_in_blocks(layout: tuple, kept: tuple[int, ...], tuning: Tuning) -> bool:
    """Whether a scan is made in blocks: down a few columns, or along fewer long rows. kept: the dimensions of
    columns, or of rows."""
    if not kept or not all(isinstance(extent, int) for extent in layout):
        return False
    results = math.prod(layout[d] for d in kept)
    if kept[-1] < len(kept):
        return results <= tuning.max_scan_rows and layout[-1] >= tuning.min_scan_row
    return kept[0] == len(layout) - len(kept) and results < 2 * tuning.grain_columns


def _count_stacks(layout: tuple, kept: tuple[int, ...]) -> int:
    """How often there are columns: the extent of dimensions that are kept before one that is swept."""
    last = max(d for d in range(len(layout)) if d not in kept)
    return math.prod(layout[d] for d in kept if d < last)


def cut_into_blocks(lowering, group, loops: Loops) -> list[Loops] | None:
    """The loops over blocks and those that combine their results; the loops themselves where there is no one
    sweep along one axis that comes first. None for a group whose results are many."""
    outer, inner, (sweep, *rest) = loops
    if not group.in_blocks:
        if not _goes_down(loops, lowering.tuning):
            return None
        return [part for one in _distribute(lowering, loops) for part in _cut_down(lowering, one)]
    if not outer and not _cuts_total(inner, lowering.tuning):
        return None
    if outer and len(inner) > 1 or not isinstance(sweep, Reduce) or any(s.packed for s in sweep.stores):
        return [loops]
    is_short = not outer or group.kept[-1] == len(group.layout) - 1
    return _Blocks(lowering, outer, inner, sweep, is_short).cut(rest)


def _cut_down(lowering, loops: Loops) -> list[Loops]:
    outer, inner, (sweep, *rest) = loops
    if not _goes_down(loops, lowering.tuning):
        return [loops]
    return _Blocks(lowering, outer, inner, sweep, True).cut(rest)


def _distribute(lowering, loops: Loops) -> list[Loops]:
    """Loops for each sweep, and the stores behind it; what later ones need of results goes through memory."""
    outer, inner, body = loops
    graph, shape = lowering.graph, tuple(axis.extent for axis in outer)
    offset, groups = linearize(tuple(map(Index.of, outer)), shape), []
    for statement in body:
        if statement.axes or not groups:
            groups.append([])
        groups[-1].append(statement)
    results, stored, found = {r: r for s in body for r in s.results}, {}, []
    for number, group in enumerate(groups, 1):
        rewrite = Rewrite(graph, {})
        rewrite.results, rewrite.nodes = results, dict(stored)
        statements = list(map(rewrite.statement, group))
        later = walk(list_roots([s for others in groups[number:] for s in others]))
        used = {node.attr for node in later if node.op == "result"}
        for result in [r for s in group for r in s.results if r in used]:
            buffer = lowering.new_temp(shape, result.dtype)
            statements.append(Store(buffer, offset, graph.result(result)))
            stored[id(graph.result(result))] = graph.load(buffer, offset)
        nested, stores = peel(statements)
        around = [*outer, *(loop.axis for loop in nested)]
        found.append(Loops(around, [] if nested else inner, stores if nested else statements))
    return found


def _goes_down(loops: Loops, tuning: Tuning) -> bool:
    """Whether a sweep goes down columns as elements lie in memory, which that of a vector by a matrix does;
    what tiles of matrices take does not."""
    outer, inner, (sweep, *_) = loops
    extents = [axis.extent for axis in (*outer, *inner)]
    is_plain = isinstance(sweep, Reduce) and len(inner) == 1 and not any(s.packed for s in sweep.stores)
    if not (tuning.cuts_totals and outer and is_plain and all(isinstance(extent, int) for extent in extents)):
        return False
    *kept, length = extents
    if math.prod(extents) < 2 * tuning.block_work or not _are_tall(math.prod(kept), length, tuning):
        return False
    indexes = [node.attr[1] for node in walk(sweep.values) if node.op == "load"]
    indexes = [index for index in indexes if outer[-1] in index.axes()]
    many = {axis for axis in outer if not is_few([axis.extent])}
    return outer[-1] in many and bool(indexes) and all(
        many <= index.axes() and index.coefficient(outer[-1]) == 1 and index.coefficient(inner[0]) != 1
        for index in indexes)


def _cuts_total(inner: list[Axis], tuning: Tuning) -> bool:
    """Whether a sweep of all there is goes in blocks."""
    extents = [axis.extent for axis in inner]
    is_known = tuning.cuts_totals and bool(inner) and all(isinstance(extent, int) for extent in extents)
    return is_known and math.prod(extents) >= 2 * tuning.block_work


class _Blocks:
    """Blocks of `length` places of a sweep along its first axis. is_short: whether many are short, as those
    down columns are."""

    def __init__(self, lowering, outer: list[Axis], inner: list[Axis], sweep: Reduce, is_short: bool):
        self.graph, self.new_temp = lowering.graph, lowering.new_temp
        self.outer, (self.swept, *self.others), self.sweep = outer, inner, sweep
        results, around = (math.prod(axis.extent for axis in axes) for axes in (outer, self.others))
        tuning, extent = lowering.tuning, self.swept.extent
        self.length = max(1, tuning.block_work // results)
        if is_short:
            blocks = min(tuning.max_blocks, max(1, tuning.max_block_results // results))
            least = max(1, tuning.min_block_rows // around)
            most = -(-extent // (blocks * least)) * least
            self.length = max(most, tuning.short_block_work // (results * around))
        self.block, self.place = Axis(-(-extent // self.length)), Axis(self.length)
        self.start = Index.of(self.block) * self.length
        self.shape = (self.block.extent, *(axis.extent for axis in outer))
        self.offset = linearize(tuple(map(Index.of, (self.block, *outer))), self.shape)

    def cut(self, rest: list) -> list[Loops]:
        graph, block, sweep, shape, offset = self.graph, self.block, self.sweep, self.shape, self.offset
        inside, after = self._fix_place(self.start + Index.of(self.place)), Rewrite(graph, {})
        after.results = {result: result for result in sweep.results}
        parts, stores, combined = [], [], []
        for number, (result, op, expr) in enumerate(sweep.parts):
            own = Result(result.dtype, frozenset((block, *self.outer)), number)
            buffer = self.new_temp(shape, result.dtype)
            found = graph.load(buffer, offset)
            is_place = op.startswith("arg")
            parts.append((own, op, inside.expr(expr)))
            stores.append(Store(buffer, offset, self._find_value(own, is_place)))
            if is_place:  # blocks are compared by the elements at the places that they found
                combined.append((result, op, self._fix_place(self._as_place(found)).expr(expr)))
                after.nodes[id(graph.result(result))] = self._read_chosen(buffer, shape, result)
            else:
                combined.append((result, op, found))
        bounds = {self.place: (None, self._find_end())}
        first = Reduce((self.place, *self.others), parts, list(map(inside.statement, sweep.stores)), bounds)
        last = Reduce((block,), combined, [])
        return [Loops([block, *self.outer], [self.place, *self.others], [first, *stores]),
                Loops(self.outer, [block], [last, *map(after.statement, rest)])]

    def _find_end(self) -> Expr:
        """How many places of a block there are."""
        left = self.graph.index(constant(self.swept.extent) - self.start)
        return self.graph.op("min", left, self.graph.index(constant(self.length)))

    def _fix_place(self, place: Index) -> Rewrite:
        """Copies of what the sweep evaluates, at a place."""
        return Rewrite(self.graph, {self.swept: place})

    def _find_value(self, result: Result, is_place: bool) -> Expr:
        """What a block tells: a place among all that are swept, or its result."""
        value = self.graph.result(result)
        return self.graph.op("add", value, self.graph.index(self.start, result.dtype)) if is_place else value

    def _read_chosen(self, buffer: Buffer, shape: tuple, result: Result) -> Expr:
        """The place that the block found whose number is the result."""
        number = self._as_place(self.graph.result(result))
        return self.graph.load(buffer, linearize((number, *map(Index.of, self.outer)), shape))

    def _as_place(self, number: Expr) -> Index:
        return Index.of(Dynamic(self.graph.convert(number, dtypes.int64)))
