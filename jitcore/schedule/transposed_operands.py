"""Operands that lie across: short rows, all of which are read for each of many others, are turned around
once, so that loops over them read neighbours.

In: the loops of a kernel, such as those of distances between points. Out: loops that copy such operands, and
those that read the copies.
"""

from __future__ import annotations

import math

from jitcore.loopir.expr import Axis, Buffer, Expr, Graph, Index, constant, linearize, walk
from jitcore.loopir.program import Reduce, Store
from jitcore.schedule.nest import Loops
from jitcore.schedule.tuning import Tuning
from jitcore.schedule.unrolling import Rewrite


def turn_operands(lowering, group, loops: Loops) -> list[Loops] | None:
    """The loops that copy operands, and those that read the copies; None where there is nothing to copy."""
    (outer, inner, body), graph = loops, lowering.graph
    sweeps = [statement for statement in body if not isinstance(statement, Store)]
    is_plain = len(inner) == len(sweeps) <= 1 and all(isinstance(sweep, Reduce) for sweep in sweeps)
    if not is_plain or not _are_repeated(outer, lowering.tuning):
        return None
    rows, copies, rewrite = outer[-1], {}, Rewrite(graph, {})
    written = {store.buffer for statement in body for store in statement.stores}
    for node in walk([root for statement in body for root in statement.roots]):
        is_input = node.op == "load" and node.attr[0] not in written
        column = _find_column(node, outer, inner, lowering.tuning) if is_input else None
        if column is not None:
            key = buffer, length = node.attr[0], node.attr[1].coefficient(rows)
            copies.setdefault(key, lowering.new_temp((length, rows.extent), buffer.dtype))
            place = linearize((column, Index.of(rows)), copies[key].shape)
            rewrite.nodes[id(node)] = graph.load(copies[key], place)
    turned = [_copy(graph, buffer, temp) for (buffer, _), temp in copies.items()]
    return [*turned, Loops(outer, inner, list(map(rewrite.statement, body)))] if turned else None


def _are_repeated(outer: list[Axis], tuning: Tuning) -> bool:
    """Whether the last axis is known to go over many rows, and the others over many repeats."""
    *around, rows = [axis.extent for axis in outer] or [0]
    is_known = all(isinstance(extent, int) for extent in (*around, rows))
    return is_known and rows >= tuning.min_rows and math.prod(around) >= tuning.min_repeats


def _find_column(load: Expr, outer: list[Axis], inner: list[Axis], tuning: Tuning) -> Index | None:
    """Which element of each row of an array is read, the same rows for all other loops; None for others."""
    (buffer, offset), rows = load.attr, outer[-1]
    length, column = offset.coefficient(rows), constant(offset.const)
    swept = [axis for axis in inner if offset.coefficient(axis) == 1]
    is_row = isinstance(length, int) and tuning.min_row <= length <= tuning.max_row and isinstance(
        offset.const, int)
    is_much = is_row and math.prod(axis.extent for axis in outer) * length >= tuning.min_reads
    if not is_much or {atom for atom, _ in offset.terms} != {rows, *swept} or len(swept) != len(inner):
        return None
    nbytes, last = rows.extent * length * buffer.dtype.itemsize, offset.const
    for axis in swept:
        column, last = column + Index.of(axis), last + axis.extent - 1
    fits = nbytes <= min(tuning.max_copy_bytes, buffer.known_bytes or 0)
    return column if fits and isinstance(last, int) and offset.const >= 0 and last < length else None


def _copy(graph: Graph, buffer: Buffer, temp: Buffer) -> Loops:
    """The loops that write a copy, column by column."""
    column, row = map(Axis, temp.shape)
    value = graph.load(buffer, Index.of(row) * temp.shape[0] + Index.of(column))
    place = linearize((Index.of(column), Index.of(row)), temp.shape)
    return Loops([column, row], [], [Store(temp, place, value)])
