"""Arrays that are joined where they are read, and loops split so that each part reads one of the pieces.

In: a base that windows at known places overwrite (a pad, a concatenation, an update), which is not stored;
later the stores of a kernel that read it. Out: a value whose elements are choices by index; then kernels in
whose ranges the choices are known. A stencil on a padded array becomes one loop over the interior that reads
the array itself, with short loops for its edges.
"""

from __future__ import annotations

from itertools import pairwise

from jitcore import dtypes
from jitcore.core.algebra import compare
from jitcore.lax.indexing.windows import MAX_EDGE, has_short_edges
from jitcore.loopir.builder import Builder
from jitcore.loopir.expr import ZERO, Axis, Buffer, Dynamic, Expr, FloorDiv, Graph, Index, constant, walk
from jitcore.loopir.program import Kernel, Loop, Store
from jitcore.loopir.traversal import list_roots
from jitcore.loopir.values import Computed, Regions, Value
from jitcore.schedule.nest import shape_kernel
from jitcore.schedule.unrolling import Rewrite, fold


# -- values -------------------------------------------------------------------------------------------------
def join_where_read(builder: Builder, joined: Regions, var, uses) -> Value:
    """Arrays that are joined, chosen where they are read if the variable's uses allow it; else what it is."""
    if uses.reads_columns(var):
        columns = join_columns(builder, joined)
        if columns is not None:
            return columns
    found = join_on_read(builder, joined) if uses.can_join(var) else None
    return found if found is not None and uses.can_join(var, found.work) else joined


def join_on_read(builder: Builder, joined: Regions) -> Computed | None:
    """The same elements, each a choice between what the regions and the base say about it; None where the
    regions are not a few windows at known places, with short edges around."""
    shape, regions = joined.shape, [r for r in joined.regions if 0 not in r.value.shape]
    if not all(isinstance(n, int) for n in shape) or 0 in shape or len(regions) > builder.tuning.max_pieces:
        return None
    starts = [region.find_known_start() for region in regions]
    if not regions or None in starts or not all(
            has_short_edges([(start[d], region.value.shape[d]) for start, region in zip(starts, regions)], n)
            for d, n in enumerate(shape)):
        return None
    windows = list(zip(regions, starts))
    value, pieces = joined.base, [region.value for region in regions]
    pieces += [value] if value is not None else []
    if value is None:  # the regions cover everything: where the others are not, there is the first
        (region, start), *windows = windows
        value = _shift(builder, region.value, start, shape)
    for region, start in windows:
        value = _overwrite(builder, value, region.value, start)
    value.work = max(piece.work for piece in pieces)  # inside of a piece nothing is chosen
    return value if value.choices <= builder.tuning.max_nested else None


def join_columns(builder: Builder, joined: Regions) -> Computed | None:
    """The same elements where the regions are columns: who reads at a known place reads that region. None for
    others."""
    columns = joined.list_columns()
    if columns is None:
        return None

    def reads(index):
        *rest, last = index
        chosen = columns if last.terms else [columns[last.const]]
        return [(column, (*rest, ZERO)) for column in chosen]

    def combine(index, element, *others):
        for number, other in enumerate(others, 1):
            hit = builder.graph.op("ge", builder.graph.index(index[-1]), builder.graph.const(
                number, dtypes.int64), dtype=dtypes.bool_)
            element = builder.graph.op("select", hit, other, element, dtype=element.dtype)
        return element

    value = builder.compute(joined.shape, joined.dtype, reads, combine, 0, columns)
    value.work = max(column.work for column in columns)
    return value


def join_on_write(builder: Builder, joined: Regions, buffer: Buffer) -> Computed | None:
    """The same elements for one sweep that stores all of them, where it would be split for the pieces anyway;
    else None. buffer: what they are stored in, which none of them may read."""
    return None if any(buffer in piece.buffers for piece in joined.pieces) else join_on_read(builder, joined)


def _shift(builder: Builder, window: Value, start: tuple, shape: tuple) -> Value:
    """The window's elements at their places in the whole; next to it, any of them."""
    graph = builder.graph

    def place(index):
        return tuple(_clamp(graph, *each) for each in zip(index, start, window.shape, shape))

    return builder.view(window, shape, place)


def _clamp(graph: Graph, index: Index, start: int, size: int, extent: int) -> Index:
    if size == 1:
        return ZERO
    if size == extent:
        return index
    inner = graph.index(index + -start)
    if start > 0:
        inner = graph.op("max", inner, graph.index(ZERO))
    if start + size < extent:
        inner = graph.op("min", inner, graph.index(constant(size - 1)))
    return Index.of(Dynamic(inner))


def _overwrite(builder: Builder, base: Value, window: Value, start: tuple) -> Value:
    """`base` with a window in it."""
    graph, shape = builder.graph, base.shape
    inner = _shift(builder, window, start, shape)

    def is_inside(index):
        tests = []
        for i, low, size, extent in zip(index, start, window.shape, shape):
            if low > 0:
                tests.append(_compare(graph, "ge", i, low))
            if low + size < extent:
                tests.append(_compare(graph, "lt", i, low + size))
        return builder.all_of(tests)

    def combine(index, outside, inside):
        chosen = is_inside(index)
        return inside if chosen is None else graph.op("select", chosen, inside, outside, dtype=base.dtype)

    value = builder.compute(shape, base.dtype, lambda index: [(base, index), (inner, index)], combine, 1,
                            [base, inner])
    value.choices += 1
    return value


def _compare(graph: Graph, op: str, index: Index, limit: int) -> Expr:
    return graph.op(op, graph.index(index), graph.index(constant(limit)), dtype=dtypes.bool_)


# -- kernels ------------------------------------------------------------------------------------------------
def split_kernels(lowering, axes: list[Axis], stores: list[Store]) -> list[Kernel]:
    """The kernels of stores over all of the axes, split where their choices by index change.

    Along the last axis every choice is made. Along the others, edges of several rows keep theirs: these are
    the same for a whole row."""
    ranges = {axis: _list_ranges(axis, places) for axis, places in _find_places(axes, stores).items()}
    if not ranges:
        return [shape_kernel(lowering, axes, [], stores)]
    *outer, last = axes
    kernels = []
    for box in _list_boxes(outer, ranges):
        kernels += _narrow(lowering, axes, stores, box, _cut_edges(ranges, last, lowering.tuning.max_ranges))
    return kernels


def _find_places(axes: list[Axis], stores: list[Store]) -> dict[Axis, set[int]]:
    """Positions along each axis where a comparison with a constant begins to have another result."""
    found: dict[Axis, set[int]] = {}
    for node in walk(list_roots(stores)):
        if node.op not in ("lt", "ge", "min", "max") or node.args[1].op != "index":
            continue
        index, limit = _unclamp(node.args[0]), node.args[1].attr
        if limit.terms or len(index.terms) != 1 or not isinstance(index.const, int):
            continue
        ((axis, step),) = index.terms
        if axis not in axes or not isinstance(axis.extent, int) or not isinstance(step, int):
            continue
        rest = int(limit.const) + (node.op == "min") - index.const  # the first that is not below the limit
        place = -(-rest // step) if step > 0 else rest // step + 1
        if 0 < place < axis.extent:
            found.setdefault(axis, set()).add(place)
    return found


def _unclamp(place: Expr) -> Index:
    """A place as it is where it need not be moved into an array."""
    while place.op in ("min", "max"):
        place = place.args[0]
    if place.op != "index":
        return Index.of(Dynamic(place))
    return place.attr.substitute(
        lambda atom: _unclamp(atom.expr) if isinstance(atom, Dynamic) else Index.of(atom))


def _list_ranges(axis: Axis, places: set[int]) -> list[tuple[int, int]]:
    """(start, size) of the ranges between the places; neighbours are one where all of them are short."""
    joined: list[tuple[int, int]] = []
    was_short = False
    for start, end in pairwise(sorted({0, axis.extent, *places})):
        is_short = end - start <= MAX_EDGE
        if is_short and was_short:
            first, _ = joined.pop()
            joined.append((first, end - first))
        else:
            joined.append((start, end - start))
        was_short = is_short
    return joined


def _cut_edges(ranges: dict, axis: Axis, most: int) -> list[tuple[int, int]]:
    """The ranges of an axis, largest first, with each position of short ones by itself."""
    if axis not in ranges:
        return [(0, axis.extent)]
    cut = []
    for start, size in ranges[axis]:
        cut += [(start + k, 1) for k in range(size)] if size <= MAX_EDGE else [(start, size)]
    return sorted(cut if len(cut) <= most else ranges[axis], key=lambda part: -part[1])


def _list_boxes(axes: list[Axis], ranges: dict) -> list[dict[Axis, tuple[int, int]]]:
    """Boxes of ranges that cover the axes: where a range is short, the axes after it are whole."""
    if not axes:
        return [{}]
    axis, *others = axes
    boxes = []
    for start, size in ranges.get(axis, [(0, axis.extent)]):
        inner = [{}] if axis in ranges and size <= MAX_EDGE else _list_boxes(others, ranges)
        boxes += [{axis: (start, size)} | box for box in inner]
    return boxes


def _narrow(lowering, axes: list[Axis], stores: list[Store], box: dict, columns: list) -> list:
    """The kernels of the stores in one box. columns: ranges of the last axis; single positions are stored by
    the loops over the others that surround the largest range."""
    *outer, last = axes
    whole = {axis: (0, axis.extent) for axis in outer}
    inside = {axis: (start, _fresh(size)) for axis, (start, size) in (whole | box).items()}
    rows = [axis for _, axis in inside.values() if axis is not None]
    kernels, body = [], []
    for number, (start, size) in enumerate(columns):
        column = _fresh(size)
        narrow = _Narrow(lowering.graph, inside | {last: (start, column)})
        part = list(map(narrow.statement, stores))
        if column is None:
            body += part
        elif number == 0 and rows:
            body.append(Loop(column, part))
        else:
            kernels.append(shape_kernel(lowering, [*rows, column], [], part))
    inner = [statement.axis for statement in body if isinstance(statement, Loop)]
    return [*kernels, shape_kernel(lowering, rows, inner, body)] if body else kernels


def _fresh(size) -> Axis | None:
    """An axis for a range, but for a single position."""
    return None if isinstance(size, int) and size == 1 else Axis(size)


class _Narrow(Rewrite):
    """Statements in a box, and without the choices that are known there.

    box: axis -> (start, axis) of the range that it has there; a range of one position has no axis."""

    def __init__(self, graph: Graph, box: dict[Axis, tuple[int, Axis | None]]):
        super().__init__(graph, {axis: inside for axis, (_, inside) in box.items()})
        self.starts = {axis: start for axis, (start, _) in box.items()}

    def atom(self, atom: Axis | Dynamic | FloorDiv) -> Index:
        if isinstance(atom, Dynamic):
            place = self.expr(atom.expr)
            return place.attr if place.op == "index" else Index.of(Dynamic(place))
        return super().atom(atom) + self.starts.get(atom, 0)

    def _rebuild(self, node: Expr) -> Expr:
        new = fold(self.graph, super()._rebuild(node))
        if new.op in ("lt", "ge", "min", "max") and all(arg.op == "index" for arg in new.args):
            return self._decide(new)
        return new

    def _decide(self, node: Expr) -> Expr:
        """What a comparison of places, or the smaller or larger one, is for the whole box, if it is known."""
        first, second = node.args
        (low, high), (least, most) = pair = first.attr.interval(), second.attr.interval()
        if node.op in ("lt", "ge"):
            if (known := compare(node.op, *pair)) is not None:
                return self.graph.const(known, dtypes.bool_)
        elif high <= least or low >= most:
            return first if (high <= least) == (node.op == "min") else second
        return node
