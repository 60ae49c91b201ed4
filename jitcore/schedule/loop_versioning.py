"""Computed places that a range keeps inside of an array: loops in two versions, of which one runs.

In: a loop over a range that is known at run time, which reads elements at places like
`min(max(start + k, 0), last)`. Out: the same loop without the clamping, for when both ends of the range are
inside, and the loop as it was, for when they are not. Neighbours then are neighbours in memory.

Copies of statements in which comparisons are known (`Assume`) are made here too.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes
from jitcore.loopir.expr import Axis, Dynamic, Expr, FloorDiv, Graph, Index, constant, number_of, walk
from jitcore.loopir.program import Choice, Loop, Reduce
from jitcore.schedule.unrolling import Rewrite, fold


def split_by_places(lowering, statement: Loop | Reduce, axis: Axis, exprs: list[Expr], is_known):
    """The statement, or a choice between two versions of it.

    exprs: what it evaluates. is_known: whether an expression has its value before the loop begins."""
    (low, high), graph, tuning = statement.bounds[axis], lowering.graph, lowering.tuning
    if not all(end is None or is_known(end) for end in (low, high)):
        return statement
    found: dict[Expr, tuple[Index, int]] = {}
    for node in walk(exprs):
        place = _find_place(graph, node, axis, is_known, tuning.max_place_depth)
        if place is not None and len(found) < tuning.max_places:
            found[node] = place
    if not found:
        return statement
    low = graph.index(constant(0)) if low is None else low
    high = graph.index(constant(axis.extent)) if high is None else high
    last = graph.op("sub", high, graph.const(1, dtypes.int64))
    inside = None
    for index, most in dict.fromkeys(found.values()):
        for end in (low, last):
            place = graph.index(_put(index, axis, end))
            for test in (graph.op("ge", place, graph.const(0, dtypes.int64), dtype=dtypes.bool_),
                         graph.op("le", place, graph.index(constant(most)), dtype=dtypes.bool_)):
                inside = test if inside is None else graph.op("and", inside, test, dtype=dtypes.bool_)
    plain = _Unclamped(graph, found).statement(statement)
    return Choice(inside, [plain], [statement])


def _put(index: Index, axis: Axis, position: Expr) -> Index:
    return index.substitute(lambda atom: Index.of(Dynamic(position) if atom is axis else atom))


def _find_place(graph: Graph, node: Expr, axis: Axis, is_known, depth: int) -> tuple[Index, int] | None:
    """(the place without clamping, the largest one) of a clamped place that moves evenly along an axis."""
    if node.op != "min" or axis not in node.axes or node.dtype.kind != "i":
        return None
    inner, last = node.args[0], number_of(node.args[1])
    if inner.op != "max" or last is None or number_of(inner.args[1]) != 0:
        return None
    place = inner.args[0]
    while place.op == "convert" and place.args[0].dtype.kind in "iu" and place.dtype == dtypes.int64:
        place = place.args[0]
    parts = _split(graph, place, axis, depth)
    if parts is None or not is_known(parts[1]):
        return None
    step, rest = parts
    start = rest.attr if rest.op == "index" else Index.of(Dynamic(rest))
    return start + Index(((axis, step),)), int(last)


def _split(graph: Graph, node: Expr, axis: Axis, depth: int) -> tuple[int, Expr] | None:
    """(step, rest) with `node = step * axis + rest`, both in int64 and but for numbers that wrap around."""
    if axis not in node.axes:
        return 0, graph.convert(node, dtypes.int64)
    if depth < 0 or node.dtype.kind not in "iu":
        return None
    if node.op == "index":
        step = node.attr.coefficient(axis)
        return (step, graph.index(node.attr - Index(((axis, step),)))) if isinstance(step, int) else None
    if node.op == "convert":
        source = node.args[0]
        is_whole = source.op == "index" or source.dtype.itemsize >= node.dtype.itemsize
        return _split(graph, source, axis, depth - 1) if is_whole else None
    if node.op in ("add", "sub"):
        parts = [_split(graph, arg, axis, depth - 1) for arg in node.args]
        if None in parts:
            return None
        (first, a), (second, b) = parts
        step = first + second if node.op == "add" else first - second
        return (step, _combine(graph, node.op, a, b)) if step else None
    return None


def _combine(graph: Graph, op: str, first: Expr, second: Expr) -> Expr:
    if number_of(second) == 0:
        return first
    return second if op == "add" and number_of(first) == 0 else graph.op(op, first, second)


class _Unclamped(Rewrite):
    """A statement whose clamped places are known to be inside. places: node -> (place, the largest one)."""

    def __init__(self, graph: Graph, places: dict[Expr, tuple[Index, int]]):
        super().__init__(graph, {})
        self.places = places
        self.most: dict[Expr, int] = {}  # of numbers that are known to be at least 0

    def result(self, result):
        return result

    def atom(self, atom: Axis | Dynamic | FloorDiv) -> Index:
        if isinstance(atom, Dynamic):
            place = self.expr(atom.expr)
            while place in self.most and place.op == "convert":
                place = place.args[0]
            if place in self.most and place.op == "index":
                return place.attr
        return super().atom(atom)

    def _rebuild(self, node: Expr) -> Expr:
        if node in self.places:
            index, most = self.places[node]
            place = self.graph.index(index)
            self.most[place] = most
            new = self.graph.convert(place, node.dtype)
        else:
            new = self._simplify(fold(self.graph, super()._rebuild(node)))
        if new.op == "convert" and new.args[0] in self.most and new.dtype.kind in "iu":
            if self.most[new.args[0]] <= np.iinfo(new.dtype).max:
                self.most[new] = self.most[new.args[0]]
        return new

    def _simplify(self, node: Expr) -> Expr:
        """Comparisons and further clampings of what is known to be in an array."""
        if len(node.args) != 2 or node.args[0] not in self.most:
            return node
        first, limit = node.args[0], number_of(node.args[1])
        if limit is None:
            return node
        if node.op in ("lt", "ge") and limit == 0:
            return self.graph.const(node.op == "ge", dtypes.bool_)
        if node.op == "max" and limit <= 0 or node.op == "min" and limit >= self.most[first]:
            return first
        return node


class Assume(Rewrite):
    """Copies of statements in which comparisons are known. facts: comparison -> its outcome."""

    def __init__(self, graph: Graph, facts: dict[Expr, bool]):
        super().__init__(graph, {})
        self.facts = facts

    def result(self, result):
        return result

    def expr(self, root: Expr) -> Expr:
        if not any(node in self.facts for node in walk([root])):
            return root
        return super().expr(root)

    def _rebuild(self, node: Expr) -> Expr:
        if node in self.facts:
            return self.graph.const(self.facts[node], dtypes.bool_)
        return fold(self.graph, super()._rebuild(node))
