"""Operands that lie across: short rows, all of which are read for each of many others, are turned around
once, so that loops over them read neighbours.

In: the loops of a kernel, such as those of distances between points. Out: loops that copy such operands, and
those that read the copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from jitcore.loopir.expr import Buffer, Expr, Graph, walk
from jitcore.loopir.index import Axis, Index, constant, linearize
from jitcore.loopir.program import Reduce, Store
from jitcore.schedule.nest import collapse_axes
from jitcore.schedule.two_stage_reductions import Loops
from jitcore.schedule.unrolling import Rewrite

# Elements of a row: two are picked from registers, of more than the last a row fills several.
LENGTHS = range(3, 65)
# Rows that fill a register, how many others they are read for, and elements that are read in all: the code of
# a copy takes long to compile.
MIN_ROWS, MIN_REPEATS, MIN_READS = 16, 16, 1 << 15
# Bytes of a copy, which stays in the second cache.
MAX_BYTES = 1 << 18


def turn_operands(graph: Graph, loops: Loops, new_temp: Callable[..., Buffer]) -> list[Loops]:
    outer, inner, body = loops = Loops(*collapse_axes(graph, *loops))
    sweeps = [statement for statement in body if not isinstance(statement, Store)]
    is_plain = len(inner) == len(sweeps) <= 1 and all(isinstance(sweep, Reduce) for sweep in sweeps)
    if not is_plain or not _are_repeated(outer):
        return [loops]
    rows, copies, rewrite = outer[-1], {}, Rewrite(graph, {})
    written = {store.buffer for statement in body for store in statement.stores}
    for node in walk([root for statement in body for root in statement.roots]):
        is_input = node.op == "load" and node.attr[0] not in written
        column = _find_column(node, outer, inner) if is_input else None
        if column is not None:
            key = buffer, length = node.attr[0], node.attr[1].coefficient(rows)
            copies.setdefault(key, new_temp((length, rows.extent), buffer.dtype))
            place = linearize((column, Index.of(rows)), copies[key].shape)
            rewrite.nodes[id(node)] = graph.load(copies[key], place)
    turned = [_copy(graph, buffer, temp) for (buffer, _), temp in copies.items()]
    return [*turned, Loops(outer, inner, list(map(rewrite.statement, body))) if turned else loops]


def _are_repeated(outer: list[Axis]) -> bool:
    """Whether the last axis is known to go over many rows, and the others over many repeats."""
    *around, rows = [axis.extent for axis in outer] or [0]
    is_known = all(isinstance(extent, int) for extent in (*around, rows))
    return is_known and rows >= MIN_ROWS and math.prod(around) >= MIN_REPEATS


def _find_column(load: Expr, outer: list[Axis], inner: list[Axis]) -> Index | None:
    """Which element of each row of an array is read, the same rows for all other loops; None for others."""
    (buffer, offset), rows = load.attr, outer[-1]
    length, column = offset.coefficient(rows), constant(offset.const)
    swept = [axis for axis in inner if offset.coefficient(axis) == 1]
    is_row = isinstance(length, int) and length in LENGTHS and isinstance(offset.const, int)
    is_much = is_row and math.prod(axis.extent for axis in outer) * length >= MIN_READS
    if not is_much or {atom for atom, _ in offset.terms} != {rows, *swept} or len(swept) != len(inner):
        return None
    nbytes, last = rows.extent * length * buffer.dtype.itemsize, offset.const
    for axis in swept:
        column, last = column + Index.of(axis), last + axis.extent - 1
    fits = nbytes <= min(MAX_BYTES, buffer.known_bytes or 0)
    return column if fits and isinstance(last, int) and offset.const >= 0 and last < length else None


def _copy(graph: Graph, buffer: Buffer, temp: Buffer) -> Loops:
    """The loops that write a copy, column by column."""
    column, row = map(Axis, temp.shape)
    value = graph.load(buffer, Index.of(row) * temp.shape[0] + Index.of(column))
    place = linearize((Index.of(column), Index.of(row)), temp.shape)
    return Loops([column, row], [], [Store(temp, place, value)])
