"""The shape of a kernel's loops: which axes collapse into one, which runs in lanes, what is split over
threads.

In: outer and inner axes and a body. Out: a `Kernel`. Adjacent axes collapse when every access walks them
as one; the vector axis is the one with the most unit-stride accesses.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from jitcore.loopir.builder import is_few
from jitcore.loopir.expr import OP_COST, Axis, Buffer, Expr, Index, RunTimeSize, walk
from jitcore.loopir.program import Kernel, Loop, Reduce, Repeat, Scan, Store
from jitcore.loopir.traversal import flatten, list_features, list_indexes, list_roots, nest, peel
from jitcore.schedule.tuning import Tuning
from jitcore.schedule.unrolling import Rewrite


class Loops(NamedTuple):
    """What `shape_kernel` makes a kernel of."""

    outer: list[Axis]
    inner: list[Axis]
    body: list


def find_features(loops: Loops) -> set[str]:
    """What transformations of loops ask for: features of the body, "nest" where several axes follow each
    other, "few" where an axis around other loops has few positions."""
    found = list_features(loops.body)
    if max(len(loops.outer), len(loops.inner)) > 1:
        found.add("nest")
    if (len(loops.outer) > 1 or "Reduce" in found) and any(is_few([axis.extent]) for axis in loops.outer):
        found.add("few")
    return found


def transform(lowering, loops: Loops) -> tuple[Loops, set[str]]:
    """(the loops after the transformations of kernels that are about what they have, what they have then)"""
    features = find_features(loops)
    for stage in lowering.stages["kernel"]:
        if stage.applies_to(features):
            before, loops = loops, stage.run(lowering, loops)
            features = features if loops is before else find_features(loops)
    return loops, features


def shape_kernel(lowering, outer: list[Axis], inner: list[Axis], body: list, serial: bool = False) -> Kernel:
    """Transforms the loops, chooses the vector axis, and marks what may be split.

    serial: the body is one store whose iterations keep their order, as several may write one element."""
    tuning, loops = lowering.tuning, Loops(outer, inner, body)
    if serial:
        features = find_features(loops := collapse_axes(lowering, loops))
    else:
        loops, features = transform(lowering, loops)
    lowering.features |= features
    outer, inner, body = loops
    tile = None if serial or inner else _choose_tile(outer, body, tuning.short)
    if tile is not None:
        vector, outer = tile[1], [axis for axis in outer if axis not in tile] + [tile[0]]
    elif serial:
        vector = _choose_ordered(outer, body[0], tuning.short)
    else:
        vector = _choose_vector(outer, inner, body, tuning)
    if tile is None and vector is not None and _waits_for_elements(body, vector, tuning):
        vector = None
    if tile is not None or vector in outer and not _contains(body, (Reduce, Scan, Loop)):
        outer = [axis for axis in outer if axis is not vector] + [vector]
    if vector in inner:
        body = [_innermost(statement, vector) for statement in body]
    if any(store.packed for statement in body for store in statement.stores):
        vector = vector if vector in inner else None  # elements of one row go side by side
    work = work_of(body, vector, tuning.cache_line)
    for axis in outer[1:]:
        work = work * axis.extent
    parallel, grain = bool(outer) and not serial, max(1, tuning.grain_work // max(work, 1))
    if outer and vector is outer[0]:
        is_swept = _contains(body, (Reduce, Scan))
        grain = max(grain, tuning.grain_columns if is_swept else tuning.grain_lanes)
    if tile is not None and tile[0] is outer[0]:
        grain = max(grain, tuning.grain_tiled_rows)
    grain = RunTimeSize(grain)
    far = find_far(body, tuning.far_bytes)
    body = nest(outer, body)
    if not serial or all(isinstance(s, (Loop, Store)) for s in body):
        for stage in lowering.choose("body", features):
            body = stage.run(lowering, body, [vector, *(tile or ())], serial or tile is not None)
            lowering.features |= list_features(body)
    kernel = Kernel(body, vector, parallel, grain, tile, far)
    if not outer and len(body) > 0 and isinstance(body[0], (Reduce, Scan)) and not serial:
        split_sweep(lowering, kernel)
    return kernel


def find_far(body: list, far_bytes: int) -> tuple[Buffer, ...]:
    """Large arrays whose elements are read, or updated, at places that other elements tell."""
    found: dict[Buffer, None] = {}
    for statement in body:
        for buffer, offset in statement.targets + statement.loads:
            if _is_computed(offset) and (buffer.known_bytes or 0) > far_bytes:
                found[buffer] = None
    return tuple(found)


def _is_computed(offset: Index) -> bool:
    """Whether places are told by other elements."""
    return any(expr.axes for expr in offset.exprs)


def split_sweep(lowering, kernel: Kernel) -> None:
    """Gives a large full reduction or a long scan results for each block of its first axis; threads share
    the blocks. Loops around a scan have such results for each of their iterations."""
    loops, (statement, *_) = peel(kernel.body)
    if isinstance(statement, Scan):
        kinds = [statement.value.dtype] * 2
        if OP_COST.get(statement.op, 0) > lowering.tuning.max_scan_cost:
            return  # so dear that the totals alone would take half the time of the scan
    else:
        kinds = [result.dtype for result in statement.results]
        if lowering.tuning.cuts_totals:
            return
        if statement.stores or statement.bounds and statement.finds_places:
            return
    extent, *others = [axis.extent for axis in statement.axes]
    columns = [loop.axis.extent for loop in loops]
    inner = math.prod([*columns, *others])
    if extent * inner < 2 * lowering.tuning.block_work:
        return
    block = max(1, lowering.tuning.block_work // max(inner, 1))
    statement.block, blocks = RunTimeSize(block), RunTimeSize(-(-extent // block))
    statement.block_results = [lowering.new_temp((blocks, *columns), kind) for kind in kinds]
    kernel.parallel, kernel.grain = True, RunTimeSize(lowering.tuning.grain_blocks)


# -- collapsing -------------------------------------------------------------------------------------------


def collapse_axes(lowering, loops: Loops) -> Loops:
    """Neighbours among the axes made one where every access walks them as one."""
    outer, inner, body = loops
    if len(outer) < 2 and len(inner) < 2:
        return loops
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
        return loops
    rewrite = Rewrite(lowering.graph, merged)
    return Loops(*new_lists, [rewrite.statement(statement) for statement in body])


def _walks_as_one(first: Axis, second: Axis, indexes: list[Index]) -> bool:
    for index in indexes:
        terms = {atom: c for atom, c in index.terms if isinstance(atom, Axis)}
        if terms.get(first, 0) != terms.get(second, 0) * second.extent:
            return False
    return True


# -- vector axis ------------------------------------------------------------------------------------------


def _choose_vector(outer: list[Axis], inner: list[Axis], body: list, tuning: Tuning) -> Axis | None:
    """The axis with the best score of accesses, or None when lanes would not pay."""
    if any(isinstance(axis.extent, int) and axis.extent == 0 for axis in (*outer, *inner)):
        return None  # strides of an empty array tell nothing
    flat = not inner or not _contains(body, (Reduce, Scan, Loop))
    if flat:
        scores = {axis: _score(axis, body, tuning) for axis in outer}
    else:
        sweeps = [s for s in body if isinstance(s, (Reduce, Scan, Loop))]
        scores = {axis: _score(axis, body, tuning, inner) for axis in outer[-1:]}
        scores |= {axis: _score(axis, sweeps, tuning) + (0 if _is_short(axis, tuning.short) else 0.5)
                   for axis in inner}
    usable = {axis: score for axis, score in scores.items()
              if not isinstance(axis.extent, int) or axis.extent >= tuning.min_vector_extent}
    if not usable:
        return None
    if _contains(body, Repeat):  # many rounds of arithmetic on what is read once
        return max(usable, key=lambda axis: usable[axis])
    best = max(usable, key=lambda axis: usable[axis])
    # Lanes whose accesses lie apart win nothing there; enough arithmetic pays for them all the same.
    return best if usable[best] > -4 or _count_operations(body) > -8 * usable[best] else None


def _choose_tile(outer: list[Axis], body: list, short: int) -> tuple[Axis, Axis] | None:
    """(rows, columns) of a kernel of stores along the columns that reads something along the rows: there
    registers of neighbours are transposed. None for other kernels."""
    if not all(isinstance(s, Store) and not s.in_order and s.combine is None for s in body):
        return None
    loads = [node.attr[1] for node in walk(list_roots(body)) if node.op == "load"]
    for columns in reversed(outer):
        if _is_short(columns, short) or any(s.offset.coefficient(columns) != 1 for s in body):
            continue
        for rows in outer:
            if not _is_short(rows, short) and any(is_across(index, rows, columns, short) for index in loads):
                return rows, columns
    return None


def is_across(index: Index, rows: Axis, columns: Axis, short: int) -> bool:
    """Whether neighbours in memory lie along the rows of a tile, far from each other along its columns."""
    stride = index.coefficient(columns)
    is_near = stride is None or isinstance(stride, int) and abs(stride) <= short
    return index.coefficient(rows) == 1 and not is_near and rows is not columns


def _choose_ordered(outer: list[Axis], store: Store, short: int) -> Axis | None:
    """The vector axis of a store that keeps its order: one along which elements differ, or else the
    innermost, for all but the updates themselves; these must not read what they change."""
    for axis in outer:
        if store.offset.coefficient(axis) == 1 and not _is_short(axis, short):
            return axis
    if not outer or _is_short(outer[-1], short) or store.buffer in _buffers_read(store):
        return None
    store.in_order = True
    return outer[-1]


def _waits_for_elements(body: list, vector: Axis, tuning: Tuning) -> bool:
    """Whether a kernel does little else than update elements at computed places, in an array that one core's
    caches do not hold."""
    store = body[0]
    if len(body) > 1 or not isinstance(store, Store) or not _is_computed(store.offset):
        return False
    nbytes = store.buffer.known_bytes
    is_between = nbytes is not None and tuning.shared_bytes < nbytes <= tuning.far_bytes
    is_found = store.offset.coefficient(vector) != 1 and vector in store.value.axes
    return is_between and is_found and work_of(body) <= tuning.max_lone_work


def _buffers_read(store: Store) -> set[Buffer]:
    return {node.attr[0] for node in walk(store.roots) if node.op == "load"}


def _count_operations(body: list) -> int:
    return sum(len(walk(s.roots)) for s in flatten(body))


def _score(axis: Axis, body: list, tuning: Tuning, swept: list[Axis] | None = None) -> float:
    """swept: the axes of sweeps inside, where there are any: what does not lie along them counts little."""
    score = 0.0
    for statement in flatten(body):
        loads = [node.attr for node in walk(statement.roots) if node.op == "load"]
        for _, offset in statement.targets + loads:
            stride = offset.coefficient(axis)
            is_often = swept is None or any(offset.coefficient(inner) != 0 for inner in swept)
            weight = 1 if is_often else tuning.seldom
            if stride == 1:
                score += weight * (-0.25 if _is_short(axis, tuning.short) else 1)
            elif not (isinstance(stride, int) and abs(stride) <= tuning.short):
                score -= weight * 2
            elif stride != 0:
                score -= weight * 0.25
    return score


def _is_short(axis: Axis, short: int) -> bool:
    """Whether an axis is known to fill a vector in part only."""
    return isinstance(axis.extent, int) and axis.extent <= short


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


def work_of(body: list, vector: Axis | None = None, line: int = 0):
    """Scalar operations of one run of a body. vector: the axis that runs in lanes, along which reading what
    does not lie side by side counts as often as its elements fill a cache line of so many bytes, at most."""
    work = 0
    for statement in body:
        if isinstance(statement, Loop):
            work = work + work_of(statement.body, vector, line) * statement.axis.extent
            continue
        own = 1 + sum(_cost(node, vector, line) for node in walk(statement.roots))
        for axis in statement.axes:
            own = own * axis.extent
        if isinstance(statement, Repeat):
            own = (own + work_of(statement.body, vector, line)) * statement.trips
        work = work + own
    return work


def _cost(node: Expr, vector: Axis | None, line: int) -> int:
    if node.op != "load" or vector is None or vector not in node.axes:
        return OP_COST.get(node.op, 1)
    buffer, offset = node.attr
    most, stride = line // buffer.dtype.itemsize, offset.coefficient(vector)
    return max(1, min(abs(stride), most) if isinstance(stride, int) else most)
