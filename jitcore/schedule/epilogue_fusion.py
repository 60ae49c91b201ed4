"""Epilogues: elementwise work on what a routine computes, done while it is in the caches.

In: a fusion group that is about to become a kernel, and the statements before it. Out: the kernel as the
epilogue of a `Call`, where the group reads the call's result element by element. A routine says by its
`result_columns` that it takes epilogues: its result is rows of so many neighbours, and it runs the epilogue
on ranges of rows and columns as soon as these are finished.

Once the whole program is known (`place_results`), a result that only its epilogue reads is computed in the
memory of what the epilogue stores.
"""

from __future__ import annotations

import math

from jitcore.loopir.expr import ZERO, Axis, Graph, Index, delinearize, walk
from jitcore.loopir.program import Call, Kernel, Program, Store
from jitcore.loopir.traversal import flatten, list_buffers, list_reads, list_roots, list_writes, nest
from jitcore.schedule.fusion import FusionGroup
from jitcore.schedule.nest import Loops, collapse_axes
from jitcore.schedule.unrolling import Rewrite


def join_epilogue(lowering, group: FusionGroup, body: list) -> bool:
    """Makes a group the epilogue of a call at the end of a body; False where it is none."""
    stores = group.list_stores()
    if not stores:
        return False
    call = _find_call(stores, body)
    if call is None:
        return False
    call.epilogue = _make_kernel(lowering, group.outer, stores, call)
    return call.epilogue is not None


def _find_call(stores: list[Store], body: list) -> Call | None:
    """The latest call whose result the stores read, if nothing after it stands in the way of them."""
    read, written = list_reads(stores), list_writes(stores)
    behind: list = []
    for statement in reversed(body):
        if isinstance(statement, Call):
            is_ready = getattr(statement.routine, "result_columns", None) and statement.epilogue is None
            if is_ready and not read.isdisjoint(statement.outputs):
                used = {*statement.inputs, *statement.outputs, *statement.scratch}
                is_free = all((read | written).isdisjoint(list_buffers([other])) for other in behind)
                return statement if is_free and written.isdisjoint(used) else None
        elif not isinstance(statement, Kernel):
            return None
        behind.append(statement)
    return None


def _make_kernel(lowering, axes: list[Axis], stores: list[Store], call: Call) -> Kernel | None:
    """Rows around columns, where accesses stand or go from neighbour to neighbour along the columns."""
    if not all(isinstance(axis.extent, int) for axis in axes):
        return None
    count = len(axes)
    while count and math.prod(axis.extent for axis in axes[count:]) < call.routine.result_columns:
        count -= 1
    if not count or math.prod(axis.extent for axis in axes[count:]) != call.routine.result_columns:
        return None
    rows, columns, stores = collapse_axes(lowering, Loops(axes[:count], axes[count:], stores))
    tuning = lowering.tuning
    if not rows or len(columns) != 1 or columns[0].extent < tuning.min_epilogue_columns:
        return None
    if len(rows) > 1:
        rows, stores = _number_rows(lowering.graph, rows, stores)
    has_rest = columns[0].extent % tuning.whole_columns and columns[0].extent < tuning.many_columns
    if has_rest and len(collapse_axes(lowering, Loops(rows + columns, [], stores)).outer) == 1:
        return None  # one loop over all elements has no rest at the end of each row
    (row,), (column,) = rows, columns
    whole = Index.of(row) * column.extent + Index.of(column)
    places = {store.buffer: store.offset for store in stores} | dict.fromkeys(call.outputs, whole)
    if any(store.offset.coefficient(column) != 1 for store in stores):
        return None
    for node in walk(list_roots(stores)):
        if node.op != "load":
            continue
        buffer, index = node.attr
        if index.exprs or index.coefficient(column) not in (0, 1):
            return None
        if index != places.get(buffer, index):
            return None
    return Kernel(nest((row, column), stores), column)


def _number_rows(graph: Graph, rows: list[Axis], stores: list[Store]) -> tuple[list[Axis], list[Store]]:
    """One axis instead of several that not every access walks as one: its positions are divided up."""
    extents = tuple(axis.extent for axis in rows)
    number = Axis(math.prod(extents))
    rewrite = Rewrite(graph, dict(zip(rows, delinearize(Index.of(number), extents))))
    return [number], list(map(rewrite.statement, stores))


def place_results(lowering, program: Program) -> None:
    """Lets calls compute what only their epilogue reads in the memory of the one array that it stores."""
    reads: dict = {}
    statements = flatten(program.steps)
    for statement in statements:
        for buffer, _ in statement.loads:
            reads.setdefault(buffer, set()).add(id(statement))
    for call in [s for s in statements if isinstance(s, Call) and s.epilogue is not None]:
        stores = call.epilogue.body[0].body[0].body
        (result,), store = call.outputs, stores[0]
        is_own = result.kind == "temp" and reads.get(result) == {id(store)} and len(stores) == 1
        same_size = store.buffer.dtype == result.dtype and (
            math.prod(store.buffer.shape) == math.prod(result.shape))
        place = next((index for buffer, index in store.loads if buffer is result), None)
        if is_own and same_size and place == store.offset and id(store) not in reads.get(store.buffer, ()):
            rewrite = Rewrite(lowering.graph, {}, buffers={result: (store.buffer, ZERO)})
            call.outputs, stores[:] = [store.buffer], [rewrite.statement(store)]
            if stores[0].value.op == "load" and stores[0].combine is None:
                call.epilogue = None  # it would store what is there
