"""The shape of a kernel's loops: which axes collapse into one, which runs in lanes, what is split over
threads.

In: outer and inner axes and a body. Out: a `Kernel`. Adjacent axes collapse when every access walks them
as one; the vector axis is the one with the most unit-stride accesses.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from jitcore.loopir.expr import OP_COST, Buffer, Expr, Graph, walk
from jitcore.loopir.index import Axis, Index, RunTimeSize
from jitcore.loopir.program import Kernel, Loop, Reduce, Repeat, Scan, Store
from jitcore.loopir.traversal import flatten, list_indexes, list_roots, nest, peel
from jitcore.schedule.bounds import tighten
from jitcore.schedule.unrolling import Rewrite, split_axes, unroll_rows, unroll_stores

# Iterations of one block of a split reduction.
BLOCK_WORK = 32768
# Blocks that a thread should have at least.
GRAIN_BLOCKS = 2
# Scalar operations that a thread should have before another one is woken up: a sleeping one takes 50 us.
GRAIN_WORK = 262144
# Columns that a thread which walks down rows should have beside each other.
GRAIN_COLUMNS = 128
# Iterations in lanes that a thread should have at least: what several registers hold.
GRAIN_LANES = 64
# Rows of tiles that a thread should have at least: whole cache lines of what is read across them.
GRAIN_TILED_ROWS = 32
MIN_VECTOR_EXTENT = 6
# Bytes of an array above which elements at computed places are fetched ahead: where caches end.
FAR_BYTES = 16 << 20
# Bytes from which on elements at computed places are updated without lanes, and operations of such an update:
# a core waits for the cache that several share, and for more elements at a time when nothing comes between
# them. From FAR_BYTES on lists of places that lanes compute are faster, as what they name is fetched ahead.
SHARED_BYTES = 512 << 10
MAX_LONE_WORK = 16
CACHE_LINE = 64
# What an access counts that a sweep does not repeat, compared to one for each of its elements.
SELDOM = 1 / 16
# Strides up to this cost shuffles instead of gathers; axes up to this are better not the ones in lanes.
SHORT = 8


def shape_kernel(graph: Graph, outer: list[Axis], inner: list[Axis], body: list,
                 new_temp: Callable[..., Buffer], serial: bool = False) -> Kernel:
    """Collapses axes, chooses the vector axis, and marks what may be split.

    serial: the body is one store whose iterations keep their order, as several may write one element."""
    if not serial:
        outer, inner, body = split_axes(graph, outer, inner, body)
    outer, inner, body = collapse_axes(graph, outer, inner, body)
    if not serial:
        outer, body = unroll_rows(graph, outer, body)
        outer, body = unroll_stores(graph, outer, body)
    tile = None if serial or inner else _choose_tile(outer, body)
    if tile is not None:
        vector, outer = tile[1], [axis for axis in outer if axis not in tile] + [tile[0]]
    else:
        vector = _choose_ordered(outer, body[0]) if serial else _choose_vector(outer, inner, body)
        if vector is not None and _waits_for_elements(body, vector):
            vector = None
    if tile is not None or vector in outer and not _contains(body, (Reduce, Scan, Loop)):
        outer = [axis for axis in outer if axis is not vector] + [vector]
    if vector in inner:
        body = [_innermost(statement, vector) for statement in body]
    if any(store.packed for statement in body for store in statement.stores):
        vector = vector if vector in inner else None  # elements of one row go side by side
    work = work_of(body, vector)
    for axis in outer[1:]:
        work = work * axis.extent
    parallel, grain = bool(outer) and not serial, max(1, GRAIN_WORK // max(work, 1))
    if outer and vector is outer[0]:
        grain = max(grain, GRAIN_COLUMNS if _contains(body, (Reduce, Scan)) else GRAIN_LANES)
    if tile is not None and tile[0] is outer[0]:
        grain = max(grain, GRAIN_TILED_ROWS)
    grain = RunTimeSize(grain)
    far = find_far(body)
    body = nest(outer, body)
    if not serial:
        body = tighten(graph, body, [vector, *(tile or ())], tile is not None)
    elif all(isinstance(s, (Loop, Store)) for s in body):
        body = tighten(graph, body, [vector], True)
    kernel = Kernel(body, vector, parallel, grain, tile, far)
    if not outer and len(body) > 0 and isinstance(body[0], (Reduce, Scan)) and not serial:
        split_sweep(kernel, new_temp)
    return kernel


def find_far(body: list) -> tuple[Buffer, ...]:
    """Large arrays whose elements are read, or updated, at places that other elements tell."""
    found: dict[Buffer, None] = {}
    for statement in body:
        for buffer, offset in statement.targets + statement.loads:
            if _is_computed(offset) and (buffer.known_bytes or 0) > FAR_BYTES:
                found[buffer] = None
    return tuple(found)


def _is_computed(offset: Index) -> bool:
    """Whether places are told by other elements."""
    return any(expr.axes for expr in offset.exprs)


def split_sweep(kernel: Kernel, new_temp) -> None:
    """Gives a large full reduction or a long scan partial results per block of its first axis; threads share
    the blocks. Loops around a scan have such results for each of their iterations."""
    loops, (statement, *_) = peel(kernel.body)
    if isinstance(statement, Scan):
        kinds = [statement.value.dtype] * 2
        if statement.op in OP_COST:  # so dear that the totals alone would take half the time of the scan
            return
    else:
        kinds = [result.dtype for result in statement.results]
        if statement.stores or statement.bounds and statement.finds_places:
            return
    extent, *others = [axis.extent for axis in statement.axes]
    columns = [loop.axis.extent for loop in loops]
    inner = math.prod([*columns, *others])
    if extent * inner < 2 * BLOCK_WORK:
        return
    block = max(1, BLOCK_WORK // max(inner, 1))
    statement.block, blocks = RunTimeSize(block), RunTimeSize(-(-extent // block))
    statement.partials = [new_temp((blocks, *columns), kind) for kind in kinds]
    kernel.parallel, kernel.grain = True, RunTimeSize(GRAIN_BLOCKS)


# -- collapsing -------------------------------------------------------------------------------------------


def collapse_axes(graph: Graph, outer: list[Axis], inner: list[Axis], body: list) -> tuple:
    """(outer, inner, body) with neighbours among the axes made one where every access walks them as one."""
    indexes = list_indexes(body)
    kept_apart = {s.axis for s in body if isinstance(s, Scan)}
    kept_apart |= {axis for s in body if isinstance(s, Reduce) and s.finds_places for axis in s.axes}
    # old axis -> its collapsed axis, or None where it vanishes into the next
    merged: dict[Axis, Axis | None] = {}
    new_lists = []
    for axes in (outer, inner):
        runs: list[list[Axis]] = []
        for axis in axes:
            if runs and axis not in kept_apart and runs[-1][-1] not in kept_apart and _walks_as_one(
                    runs[-1][-1], axis, indexes):
                runs[-1].append(axis)
            else:
                runs.append([axis])
        new_axes = []
        for run in runs:
            if len(run) > 1:
                whole = Axis(math.prod(axis.extent for axis in run))
                merged.update({axis: None for axis in run[:-1]} | {run[-1]: whole})
                new_axes.append(whole)
            else:
                new_axes.append(run[0])
        new_lists.append(new_axes)
    if not merged:
        return outer, inner, body
    rewrite = Rewrite(graph, merged)
    body = [rewrite.statement(statement) for statement in body]
    return new_lists[0], new_lists[1], body


def _walks_as_one(first: Axis, second: Axis, indexes: list[Index]) -> bool:
    for index in indexes:
        terms = {atom: c for atom, c in index.terms if isinstance(atom, Axis)}
        if terms.get(first, 0) != terms.get(second, 0) * second.extent:
            return False
    return True


# -- vector axis ------------------------------------------------------------------------------------------


def _choose_vector(outer: list[Axis], inner: list[Axis], body: list) -> Axis | None:
    """The axis with the best score of accesses, or None when lanes would not pay."""
    if any(isinstance(axis.extent, int) and axis.extent == 0 for axis in (*outer, *inner)):
        return None  # strides of an empty array tell nothing
    flat = not inner or not _contains(body, (Reduce, Scan, Loop))
    if flat:
        scores = {axis: _score(axis, body) for axis in outer}
    else:
        sweeps = [s for s in body if isinstance(s, (Reduce, Scan, Loop))]
        scores = {axis: _score(axis, body, inner) for axis in outer[-1:]}
        scores |= {axis: _score(axis, sweeps) + (0 if _is_short(axis) else 0.5) for axis in inner}
    usable = {axis: score for axis, score in scores.items()
              if not isinstance(axis.extent, int) or axis.extent >= MIN_VECTOR_EXTENT}
    if not usable:
        return None
    if _contains(body, Repeat):  # many rounds of arithmetic on what is read once
        return max(usable, key=lambda axis: usable[axis])
    best = max(usable, key=lambda axis: usable[axis])
    # Lanes whose accesses lie apart win nothing there; enough arithmetic pays for them all the same.
    return best if usable[best] > -4 or _count_operations(body) > -8 * usable[best] else None


def _choose_tile(outer: list[Axis], body: list) -> tuple[Axis, Axis] | None:
    """(rows, columns) of a kernel of stores along the columns that reads something along the rows: there
    registers of neighbours are transposed. None for other kernels."""
    if not all(isinstance(s, Store) and not s.in_order and s.combine is None for s in body):
        return None
    loads = [node.attr[1] for node in walk(list_roots(body)) if node.op == "load"]
    for columns in reversed(outer):
        if _is_short(columns) or any(s.offset.coefficient(columns) != 1 for s in body):
            continue
        for rows in outer:
            if not _is_short(rows) and any(is_across(index, rows, columns) for index in loads):
                return rows, columns
    return None


def is_across(index: Index, rows: Axis, columns: Axis) -> bool:
    """Whether neighbours in memory lie along the rows of a tile, far from each other along its columns."""
    stride = index.coefficient(columns)
    is_near = stride is None or isinstance(stride, int) and abs(stride) <= SHORT
    return index.coefficient(rows) == 1 and not is_near and rows is not columns


def _choose_ordered(outer: list[Axis], store: Store) -> Axis | None:
    """The vector axis of a store that keeps its order: one along which elements differ, or else the
    innermost, for all but the updates themselves; these must not read what they change."""
    for axis in outer:
        if store.offset.coefficient(axis) == 1 and not _is_short(axis):
            return axis
    if not outer or _is_short(outer[-1]) or store.buffer in _buffers_read(store):
        return None
    store.in_order = True
    return outer[-1]


def _waits_for_elements(body: list, vector: Axis) -> bool:
    """Whether a kernel does little else than update elements at computed places, in an array that one core's
    caches do not hold."""
    store = body[0]
    if len(body) > 1 or not isinstance(store, Store) or not _is_computed(store.offset):
        return False
    nbytes = store.buffer.known_bytes
    is_between = nbytes is not None and SHARED_BYTES < nbytes <= FAR_BYTES
    is_found = store.offset.coefficient(vector) != 1 and vector in store.value.axes
    return is_between and is_found and work_of(body) <= MAX_LONE_WORK


def _buffers_read(store: Store) -> set[Buffer]:
    return {node.attr[0] for node in walk(store.roots) if node.op == "load"}


def _count_operations(body: list) -> int:
    return sum(len(walk(s.roots)) for s in flatten(body))


def _score(axis: Axis, body: list, swept: list[Axis] | None = None) -> float:
    """swept: the axes of sweeps inside, where there are any: what does not lie along them counts little."""
    score = 0.0
    for statement in flatten(body):
        loads = [node.attr for node in walk(statement.roots) if node.op == "load"]
        for _, offset in statement.targets + loads:
            stride = offset.coefficient(axis)
            is_often = swept is None or any(offset.coefficient(inner) != 0 for inner in swept)
            weight = 1 if is_often else SELDOM
            if stride == 1:
                score += weight * (-0.25 if _is_short(axis) else 1)
            elif not (isinstance(stride, int) and abs(stride) <= SHORT):
                score -= weight * 2
            elif stride != 0:
                score -= weight * 0.25
    return score


def _is_short(axis: Axis) -> bool:
    """Whether an axis is known to fill a vector in part only."""
    return isinstance(axis.extent, int) and axis.extent <= SHORT


def _contains(body: list, kinds) -> bool:
    return any(isinstance(statement, kinds) for statement in body)


def _innermost(statement, vector: Axis):
    """Moves the vector axis to the innermost place of a nest or reduction."""
    if isinstance(statement, Reduce) and vector in statement.axes:
        statement.axes = tuple(axis for axis in statement.axes if axis is not vector) + (vector,)
    elif isinstance(statement, Loop):
        loops, body = peel([statement])
        axes = [loop.axis for loop in loops]
        if vector in axes:
            return nest([*(axis for axis in axes if axis is not vector), vector], body)[0]
    return statement


def work_of(body: list, vector: Axis | None = None):
    """Scalar operations of one run of a body. vector: the axis that runs in lanes, along which reading what
    does not lie side by side counts as often as its elements fill a cache line, at most."""
    work = 0
    for statement in body:
        if isinstance(statement, Loop):
            work = work + work_of(statement.body, vector) * statement.axis.extent
            continue
        own = 1 + sum(_cost(node, vector) for node in walk(statement.roots))
        for axis in statement.axes:
            own = own * axis.extent
        if isinstance(statement, Repeat):
            own = (own + work_of(statement.body, vector)) * statement.trips
        work = work + own
    return work


def _cost(node: Expr, vector: Axis | None) -> int:
    if node.op != "load" or vector is None or vector not in node.axes:
        return OP_COST.get(node.op, 1)
    buffer, offset = node.attr
    line, stride = CACHE_LINE // buffer.dtype.itemsize, offset.coefficient(vector)
    return max(1, min(abs(stride), line) if isinstance(stride, int) else line)
