"""Axes cut where indexes divide them: a loop over a flattened array becomes loops over what was flattened.

In: the axes and the body of a kernel. Out: the same over axes along which more indexes have a stride. An
index such as `(i // n) % m`, which a reshape makes, has none; it is the second of the digits of i, and a nest
with a loop for each digit can run in lanes and compute once what does not vary within an inner loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from jitcore.loopir.expr import Graph
from jitcore.loopir.index import Axis, FloorDiv, Index
from jitcore.loopir.program import Reduce, Scan
from jitcore.loopir.traversal import list_indexes
from jitcore.schedule.unrolling import Rewrite


def split_axes(graph: Graph, outer: list[Axis], inner: list[Axis], body: list) -> tuple:
    """(outer, inner, body) with axes cut until no further index gets simpler by it."""
    kept_whole = set(_find_ordered(body))
    while True:
        cut = next((found for index in list_indexes(body) if (found := _find_cut(index)) is not None
                    and found[0] not in kept_whole and found[0] in (*outer, *inner)), None)
        if cut is None:
            return outer, inner, body
        axis, size = cut
        digits = Axis(axis.extent // size), Axis(size)
        rewrite = Rewrite(graph, {axis: _join_digits(*digits)})
        outer, inner = ([new for old in axes for new in (digits if old is axis else (old,))]
                        for axes in (outer, inner))
        body = list(map(rewrite.statement, body))


def _join_digits(high: Axis, low: Axis) -> Index:
    return Index.of(high) * low.extent + Index.of(low)


def _find_ordered(body: list) -> Iterator[Axis]:
    """Axes along which positions count: of scans, of where an extreme is, and of what is packed."""
    for statement in body:
        for store in statement.stores:
            yield from store.offset.axes() | store.value.axes if store.packed else ()
        if isinstance(statement, Scan):
            yield statement.axis
        elif isinstance(statement, Reduce) and statement.finds_places:
            yield from statement.axes


def _find_cut(index: Index) -> tuple[Axis, int] | None:
    """(axis, extent of its lower digit) of a cut after which a term of an index is a sum of axes."""
    for term, _ in index.terms:
        if not isinstance(term, FloorDiv) or not isinstance(term.size, int):
            continue
        for atom, stride in term.index.terms:
            if not isinstance(atom, Axis) or not isinstance(atom.extent, int) or not isinstance(stride, int):
                break
            size = term.size // stride if stride > 0 else 0
            if 1 < size < atom.extent and stride * size == term.size and atom.extent % size == 0:
                digits = Axis(atom.extent // size), Axis(size)
                whole = term.index + (_join_digits(*digits) - Index.of(atom)) * stride
                if not any(isinstance(part, FloorDiv) for part, _ in whole.floordiv(term.size).terms):
                    return atom, size
    return None
