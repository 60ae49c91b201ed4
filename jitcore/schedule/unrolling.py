"""Copies of statements with other axes: what collapsing, unrolling and splitting of axes have in common.

In: the `Loops` of one kernel. Out: equal statements over other axes, for `nest`.

Axes are split where indexes divide them: a loop over a flattened array becomes loops over what was flattened.
An index such as `(i // n) % m`, which a reshape makes, has no stride; it is the second of the digits of i,
and a nest with a loop for each digit can run in lanes and compute once what does not vary within an inner
loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from jitcore import dtypes
from jitcore.loopir.builder import MAX_FEW, is_few
from jitcore.loopir.expr import (OP_COST, ZERO, Axis, Buffer, Dynamic, Expr, FloorDiv, Graph, Index, Result,
                                 constant, walk)
from jitcore.loopir.program import Loop, Reduce, Scan, Statement, Store
from jitcore.loopir.traversal import list_indexes, list_roots


class Rewrite:
    """Replaces axes in statements, expressions and indexes.

    merged: axis -> another axis, or None where it vanishes (its terms with it), or an `Index` of other axes,
    of which loops become loops over each.
    fixed: axis -> the position that it is fixed at. number: how results of this copy are numbered.
    buffers: buffer -> (the one that its elements are in instead, where they begin there)."""

    def __init__(self, graph: Graph, merged: dict[Axis, Axis | Index | None],
                 fixed: dict[Axis, int] | None = None, number: Callable[[int], int] = int,
                 buffers: dict[Buffer, tuple[Buffer, Index]] | None = None):
        self.graph, self.merged, self.fixed, self.number = graph, merged, fixed or {}, number
        self.buffers = buffers or {}
        self.nodes: dict[int, Expr] = {}
        self.results: dict[Result, Result] = {}

    def axes(self, axes: Iterable[Axis]) -> list[Axis]:
        return [atom for axis in axes for atom, _ in self.atom(axis).terms]

    def index(self, index: Index) -> Index:
        return index.substitute(self.atom)

    def atom(self, atom: Axis | Dynamic | FloorDiv) -> Index:
        """What stands for a term of an index."""
        if isinstance(atom, Dynamic):
            return Index.of(Dynamic(self.expr(atom.expr)))
        if isinstance(atom, FloorDiv):
            return atom.of(self.index(atom.index))
        if atom in self.fixed:
            return constant(self.fixed[atom])
        new = self.merged.get(atom, atom)
        return new if isinstance(new, Index) else ZERO if new is None else Index.of(new)

    def expr(self, root: Expr) -> Expr:
        for node in walk([root]):
            if id(node) not in self.nodes:
                self.nodes[id(node)] = self._rebuild(node)
        return self.nodes[id(root)]

    def _rebuild(self, node: Expr) -> Expr:
        if node.op == "const":
            return node
        if node.op == "load":
            return self.graph.load(*self.place(*node.attr))
        if node.op == "index":
            return self.graph.index(self.index(node.attr), node.dtype)
        if node.op == "result":
            return self.graph.result(self.result(node.attr))
        return self.graph.op(node.op, *[self.nodes[id(arg)] for arg in node.args], dtype=node.dtype)

    def result(self, result: Result) -> Result:
        if result not in self.results:
            axes = frozenset(self.axes(result.axes))
            self.results[result] = Result(result.dtype, axes, self.number(result.serial))
        return self.results[result]

    def place(self, buffer: Buffer, offset: Index) -> tuple[Buffer, Index]:
        """Where an element of a buffer is."""
        if buffer not in self.buffers:
            return buffer, self.index(offset)
        new, start = self.buffers[buffer]
        return new, self.index(offset) + start

    def end(self, end: Expr | None) -> Expr | None:
        """The end of a range."""
        return None if end is None else self.expr(end)

    def statement(self, statement: Statement) -> Statement:
        return statement.map(self)


def fold(graph: Graph, node: Expr) -> Expr:
    """A choice or a logical operation of which an operand is known; what stands for it elsewhere."""
    first, known = (node.args[0], [arg.op == "const" for arg in node.args]) if node.args else (None, ())
    if node.op == "select" and known[0] and first.dtype == dtypes.bool_:
        return node.args[1] if first.attr else node.args[2]
    if node.op == "mul" and all(known) and node.dtype.kind in "iu":  # masks as numbers
        with np.errstate(over="ignore"):
            return graph.const(np.multiply(*(arg.attr for arg in node.args)), node.dtype)
    if node.op == "convert" and known[0]:
        return graph.convert(first, node.dtype)
    if node.op == "not" and known[0] and node.dtype == dtypes.bool_:
        return graph.const(not first.attr, dtypes.bool_)
    if node.op in ("and", "or") and node.dtype == dtypes.bool_ and any(known):
        constant, other = node.args if known[0] else node.args[::-1]
        decides = bool(constant.attr) == (node.op == "or")
        return constant if decides else other
    return node


def unroll_rows(lowering, loops):
    """Reductions for a few positions of an outer axis become parts of one sweep, which shares what they
    read and compute; other loops go on for each position by itself."""
    outer, _, body = loops
    reduces = [statement for statement in body if isinstance(statement, Reduce)]
    for axis in reversed(outer):
        if not reduces or not is_few([axis.extent]):
            continue
        if max(len(reduce.parts) for reduce in reduces) * axis.extent > lowering.tuning.max_parts:
            continue
        if not any(_shares_loads(reduce, axis) for reduce in reduces):
            continue
        if any(axis in end.axes for statement in body for end in statement.ends):
            continue
        copies = []
        for position in range(axis.extent):
            number = lambda serial, k=position: serial * axis.extent + k  # noqa: B023, E731
            rewrite = Rewrite(lowering.graph, {}, {axis: position}, number)
            copies.append([rewrite.statement(statement) for statement in body])
        outer = [other for other in outer if other is not axis]
        return unroll_rows(lowering, loops._replace(outer=outer, body=_merge(copies)))
    return loops


def unroll_stores(lowering, loops):
    """Stores for a few positions of an outer axis stand side by side in one loop over the others where they
    share what they read and compute: a small matrix times a wide one makes each column once. So do those that
    write neighbours in memory: whole registers of them are stored."""
    (outer, _, body), tuning = loops, lowering.tuning
    if not all(isinstance(s, Store) and not s.is_update for s in body):
        return loops
    for axis in outer:
        if not is_few([axis.extent]) or axis.extent * len(body) > tuning.max_parts:
            continue
        nodes = walk(list_roots(body))
        around = [other for other in outer if other is not axis]
        shares = _count_shared(nodes, axis, around) >= tuning.min_shared_work
        if axis.extent * len(nodes) > tuning.max_unrolled_nodes or not (
                shares or _interleave(body, axis, around)):
            continue
        copies = [Rewrite(lowering.graph, {}, {axis: position}) for position in range(axis.extent)]
        stores = [copy.statement(s) for copy in copies for s in body]
        return unroll_stores(lowering, loops._replace(outer=around, body=stores))
    return loops


def _interleave(body: list[Store], axis: Axis, around: list[Axis]) -> bool:
    """Whether what positions of an axis store fills memory together, one element of each after the other."""
    return all(store.offset.coefficient(axis) == 1 and any(
        store.offset.coefficient(other) == axis.extent for other in around) for store in body)


def _count_shared(nodes: list[Expr], axis: Axis, around: list[Axis]) -> int:
    """What positions of an axis have in common that varies within all of the other loops, in multiply-adds:
    it would be read and computed again for each position."""
    nodes = [node for node in nodes if node.op != "index"]
    if not around or not any(axis in node.axes for node in nodes):
        return 0
    shared = [node for node in nodes if axis not in node.axes and node.axes.issuperset(around)]
    return sum(OP_COST.get(node.op, 1) for node in shared)


def _shares_loads(reduce: Reduce, axis: Axis) -> bool:
    """Whether positions of an axis read the same elements, or neighbours in memory."""
    loads = [node.attr[1] for node in walk(reduce.values) if node.op == "load"]
    strides = [index.coefficient(axis) for index in loads if not index.axes().isdisjoint(reduce.axes)]
    return any(isinstance(stride, int) and abs(stride) <= MAX_FEW for stride in strides)


def _merge(copies: list[list]) -> list:
    """Statements that correspond to each other become one where they loop over the same axes."""
    merged = []
    for group in zip(*copies):
        first = group[0]
        if isinstance(first, Reduce):
            parts = [part for reduce in group for part in reduce.parts]
            stores = [store for reduce in group for store in reduce.stores]
            merged.append(Reduce(first.axes, parts, stores, first.bounds))
        elif isinstance(first, Loop):
            merged.append(Loop(first.axis, _merge([loop.body for loop in group]), first.low, first.high))
        else:
            merged += group
    return merged


def split_axes(lowering, loops):
    """Axes cut until no further index gets simpler by it."""
    kept_whole = set(_find_ordered(loops.body))
    while True:
        outer, inner, body = loops
        cut = next((found for index in list_indexes(body) if (found := _find_cut(index)) is not None
                    and found[0] not in kept_whole and found[0] in (*outer, *inner)), None)
        if cut is None:
            return loops
        axis, size = cut
        digits = Axis(axis.extent // size), Axis(size)
        rewrite = Rewrite(lowering.graph, {axis: _join_digits(*digits)})
        outer, inner = ([new for old in axes for new in (digits if old is axis else (old,))]
                        for axes in (outer, inner))
        loops = loops._replace(outer=outer, inner=inner, body=list(map(rewrite.statement, body)))


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
