"""Copies of statements with other axes: what collapsing and unrolling have in common.

In: statements of one kernel. Out: equal statements over other axes, for `nest`.
"""

from __future__ import annotations

from collections.abc import Callable

from jitcore.loopir.builder import MAX_FEW, is_few
from jitcore.loopir.expr import OP_COST, Buffer, Expr, Graph, Result, walk
from jitcore.loopir.index import Axis, Dynamic, Index, Mod
from jitcore.loopir.program import Choice, Loop, Reduce, Repeat, Scan, Store, bound_exprs
from jitcore.schedule.statements import roots_of

# Results that one sweep may accumulate.
MAX_PARTS = 16
# Expressions of stores that stand side by side, and what these have in common at least, in multiply-adds.
MAX_UNROLLED_NODES = 512
MIN_SHARED = 2


class Rewrite:
    """Replaces axes in statements, expressions and indexes.

    merged: axis -> another axis, or None where it vanishes (its terms with it), or an `Index` of other axes,
    of which loops become loops over each.
    fixed: axis -> the position that it is fixed at. number: how results of this copy are numbered.
    buffers: buffer -> the one that is read instead.
    """

    def __init__(self, graph: Graph, merged: dict[Axis, Axis | Index | None],
                 fixed: dict[Axis, int] | None = None, number: Callable[[int], int] = int,
                 buffers: dict[Buffer, Buffer] | None = None):
        self.graph, self.merged, self.fixed, self.number = graph, merged, fixed or {}, number
        self.buffers = buffers or {}
        self.nodes: dict[int, Expr] = {}
        self.results: dict[Result, Result] = {}

    def axes(self, axes):
        found = []
        for axis in axes:
            new = self.merged.get(axis, axis)
            if isinstance(new, Index):
                found += [atom for atom, _ in new.terms]
            elif new is not None:
                found.append(new)
        return found

    def index(self, index: Index) -> Index:
        result = Index((), index.const)
        for atom, coefficient in index.terms:
            if atom in self.fixed:
                result = result + coefficient * self.fixed[atom]
            elif isinstance(atom, Axis):
                atom = self.merged.get(atom, atom)
                if atom is None:
                    continue
                atom = atom if isinstance(atom, Index) else Index.of(atom)
                result = result + atom * coefficient
            elif isinstance(atom, Dynamic):
                result = result + Index(((Dynamic(self.expr(atom.expr)), coefficient),))
            else:
                inner = self.index(atom.index)
                whole = inner.mod(atom.size) if isinstance(atom, Mod) else inner.floordiv(atom.size)
                result = result + whole * coefficient
        return result

    def expr(self, root: Expr) -> Expr:
        for node in walk([root]):
            if id(node) not in self.nodes:
                self.nodes[id(node)] = self._rebuild(node)
        return self.nodes[id(root)]

    def _rebuild(self, node: Expr) -> Expr:
        if node.op == "const":
            return node
        if node.op == "load":
            buffer, index = node.attr
            return self.graph.load(self.buffers.get(buffer, buffer), self.index(index))
        if node.op == "index":
            return self.graph.index(self.index(node.attr), node.dtype)
        if node.op == "result":
            return self.graph.result(self.result(node.attr))
        return self.graph.op(node.op, *[self.nodes[id(arg)] for arg in node.args], dtype=node.dtype)

    def result(self, result: Result) -> Result:
        if result not in self.results:
            axes = frozenset(self.axes(result.axes - self.fixed.keys()))
            self.results[result] = Result(result.dtype, axes, self.number(result.serial))
        return self.results[result]

    def store(self, s: Store) -> Store:
        mask = None if s.mask is None else self.expr(s.mask)
        return Store(s.buffer, self.index(s.offset), self.expr(s.value), mask, s.combine, s.in_order, s.turns,
                     s.packed)

    def statement(self, s):
        if isinstance(s, Store):
            return self.store(s)
        if isinstance(s, Loop):
            body = [self.statement(inner) for inner in s.body]
            axes = self.axes([s.axis])
            if len(axes) == 1:
                return Loop(axes[0], body, *self._ends((s.low, s.high)))
            for axis in reversed(axes):
                body = [Loop(axis, body)]
            return body[0]
        if isinstance(s, Choice):
            bodies = [list(map(self.statement, body)) for body in (s.body, s.other)]
            return Choice(self.expr(s.condition), *bodies)
        if isinstance(s, Scan):
            return Scan(s.axis, s.op, self.expr(s.value), s.buffer, self.index(s.offset), s.reverse)
        if isinstance(s, Repeat):
            return Repeat(list(map(self.result, s.registers)), list(map(self.expr, s.initial)),
                          self.expr(s.condition), [self.statement(inner) for inner in s.body],
                          list(map(self.expr, s.updates)), s.trips)
        parts = [(self.result(result), op, self.expr(expr)) for result, op, expr in s.parts]
        stores = [self.store(store) for store in s.stores]
        bounds = {self.merged.get(axis, axis): self._ends(ends) for axis, ends in s.bounds.items()}
        return Reduce(tuple(self.axes(s.axes)), parts, stores, bounds)

    def _ends(self, ends: tuple) -> tuple:
        return tuple(None if end is None else self.expr(end) for end in ends)


def unroll_rows(graph: Graph, outer: list[Axis], body: list) -> tuple[list[Axis], list]:
    """Reductions for a few positions of an outer axis become parts of one sweep, which shares what they
    read and compute; other loops go on for each position by itself."""
    reduces = [statement for statement in body if isinstance(statement, Reduce)]
    for axis in reversed(outer):
        if not reduces or not is_few([axis.extent]):
            continue
        if max(len(reduce.parts) for reduce in reduces) * axis.extent > MAX_PARTS:
            continue
        if not any(_shares_loads(reduce, axis) for reduce in reduces):
            continue
        if any(axis in end.axes for statement in body for end in bound_exprs(statement)):
            continue
        copies = []
        for position in range(axis.extent):
            rewrite = Rewrite(
                graph, {}, {axis: position}, lambda serial, k=position: serial * axis.extent + k  # noqa: B023
            )
            copies.append([rewrite.statement(statement) for statement in body])
        outer = [other for other in outer if other is not axis]
        return unroll_rows(graph, outer, _merge(copies))
    return outer, body


def unroll_stores(graph: Graph, outer: list[Axis], body: list) -> tuple[list[Axis], list]:
    """Stores for a few positions of an outer axis stand side by side in one loop over the others where they
    share what they read and compute: a small matrix times a wide one makes each column once. So do those that
    write neighbours in memory: whole registers of them are stored."""
    if not all(isinstance(s, Store) and not s.is_update for s in body):
        return outer, body
    for axis in outer:
        if not is_few([axis.extent]) or axis.extent * len(body) > MAX_PARTS:
            continue
        nodes = walk([root for s in body for root in roots_of(s)])
        around = [other for other in outer if other is not axis]
        is_worth_it = _count_shared(nodes, axis, around) >= MIN_SHARED or _interleave(body, axis, around)
        if axis.extent * len(nodes) > MAX_UNROLLED_NODES or not is_worth_it:
            continue
        copies = [Rewrite(graph, {}, {axis: position}) for position in range(axis.extent)]
        return unroll_stores(graph, around, [copy.statement(s) for copy in copies for s in body])
    return outer, body


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
    loads = [node.attr[1] for node in walk([expr for _, _, expr in reduce.parts]) if node.op == "load"]
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
