"""Loop bounds from masks: a loop runs where its statements do something, and there without their masks.

In: the loops of a kernel in their final order. Out: the same loops, some with bounds that are known at run
time. A statement that combines the identity of its reduction, or stores what is there already, unless
`lo <= k and k < hi`, needs no other iterations; lo and hi may be any integers that do not vary along k.

Its value hangs on such comparisons: each has to come out one way, or else the value is neutral, which is the
identity of a reduction, or the element that a store is about to overwrite.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from jitcore import dtypes
from jitcore.core.algebra import COMPARISONS, NEGATED, SWAPPED
from jitcore.loopir.expr import (OP_COST, ZERO, Axis, Buffer, Expr, Graph, Index, RunTimeSize, constant,
                                 number_of, walk)
from jitcore.loopir.monoids import identity_of
from jitcore.loopir.program import Loop, Reduce, Store
from jitcore.loopir.traversal import flatten, list_reads, list_roots, list_writes
from jitcore.schedule.loop_versioning import Assume, split_by_places
from jitcore.schedule.tuning import Tuning

# Numbers beyond this are as good as this: with room left to add sizes of arrays to them.
_FAR = -(np.iinfo(np.int64).min // 2)


def tighten(lowering, body: list, lanes: Sequence[Axis], is_tiled: bool = False) -> list:
    """The statements with their loops tightened. lanes: axes whose place the bounds of loops inside of theirs
    cannot depend on."""
    if not all(isinstance(statement, (Loop, Store, Reduce)) for statement in flatten(body)):
        return body
    return _Tightening(lowering, lanes, list_writes(body), is_tiled).body(body, ())


class _Tightening:
    def __init__(self, lowering, lanes: Sequence[Axis], written: set[Buffer], is_tiled: bool):
        self.lowering, self.graph, self.lanes = lowering, lowering.graph, set(lanes)
        self.written, self.is_tiled = written, is_tiled

    def body(self, body: list, around: tuple[Axis, ...]) -> list:
        parts = [part for statement in body for part in split_parts(self.lowering, statement)]
        return [self.statement(part, around) for part in parts]

    def statement(self, statement, around: tuple[Axis, ...]):
        if isinstance(statement, Loop):
            limits, facts = self.find_limits(_needed(statement.body, self.lowering), statement.axis, around)
            body = list(map(Assume(self.graph, facts).statement, statement.body)) if facts else statement.body
            loop = Loop(statement.axis, self.body(body, (*around, statement.axis)), *limits)
            is_innermost = all(isinstance(s, Store) for s in loop.body)
            return self.split(loop, loop.axis, around) if is_innermost and not self.is_tiled else loop
        if isinstance(statement, Reduce):
            return self.reduce(statement, around)
        return statement

    def reduce(self, reduce: Reduce, around: tuple[Axis, ...]) -> Reduce:
        bounds, outside = dict(reduce.bounds), around
        for axis in reduce.axes:
            limits, facts = self.find_limits(_needed_by_reduce(reduce, self.lowering), axis, around)
            if facts:
                low, high = bounds.get(axis, (None, None))  # those of a block, see `blocks`
                reduce = Assume(self.graph, facts).statement(reduce)
                bounds[axis] = self._join("max", low, limits[0]), self._join("min", high, limits[1])
            around = (*around, axis)
        reduce.bounds = bounds
        return self.split(reduce, reduce.axes[-1], outside)

    def split(self, statement: Loop | Reduce, axis: Axis, around: tuple[Axis, ...]):
        """A version for where computed places are inside of their arrays, and one for where they are not."""
        if axis not in statement.bounds:
            return statement
        roots = list_roots(statement.body) if isinstance(statement, Loop) else statement.roots
        return split_by_places(self.lowering, statement, axis, roots,
                               lambda expr: self._has_value(expr, around))

    def find_limits(self, needed: Conditions, axis: Axis, around: tuple[Axis, ...]):
        """((low, high), facts): the limits of a loop, None for its own ends, and the comparisons that hold
        between them."""
        low = high = None
        facts: dict[Expr, bool] = {}
        for comparison, outcome in sorted(needed or (), key=lambda condition: condition[0].serial):
            if not self._is_known(comparison, axis, around):
                continue
            limits = find_range(self.graph, comparison, outcome, axis)
            if limits is None:
                continue
            facts[comparison] = outcome
            low, high = self._join("max", low, limits[0]), self._join("min", high, limits[1])
        return (low, high), facts

    def _is_known(self, comparison: Expr, axis: Axis, around: tuple[Axis, ...]) -> bool:
        """Whether what an axis is compared with is known where its loop begins."""
        others = comparison.axes - {axis}
        if axis not in comparison.axes or not others <= set(around) or not others.isdisjoint(self.lanes):
            return False
        return self._is_constant(comparison)

    def _has_value(self, expr: Expr, around: tuple[Axis, ...]) -> bool:
        """Whether an expression can be evaluated before a loop."""
        return expr.axes <= set(around) and expr.axes.isdisjoint(self.lanes) and self._is_constant(expr)

    def _is_constant(self, expr: Expr) -> bool:
        """Whether nothing that an expression reads is written by the kernel."""
        return not any(node.op == "load" and node.attr[0] in self.written for node in walk([expr]))

    def _join(self, op: str, first: Expr | None, second: Expr | None) -> Expr | None:
        if first is None or second is None:
            return second if first is None else first
        return self.graph.op(op, first, second)


def find_store_range(lowering, store: Store, axis: Axis, written: set[Buffer]) -> tuple:
    """(low, high), None for an end itself: where on an axis a store may change anything. written: what its
    kernel stores, on which the ends cannot depend."""
    needed = _needed_by_store(store, lowering)
    return _Tightening(lowering, (), written, False).find_limits(needed, axis, ())[0]


# -- statements that run over ranges of their own ---------------------------------------------------------


def split_stores(lowering, stores: list[Store]) -> list[list[Store]]:
    """Stores of one loop nest in runs that need the same ranges; one run where that would change or repeat
    what is computed."""
    runs: list[list[Store]] = []
    keys = [_ranges_in(lowering.graph, _needed_by_store(store, lowering)) for store in stores]
    for number, store in enumerate(stores):
        if number and keys[number] == keys[number - 1]:
            runs[-1].append(store)
        else:
            runs.append([store])
    written: set[Buffer] = set()
    for run in runs:
        if not written.isdisjoint(list_reads(run)):
            return [stores]
        written |= list_writes(run)
    is_shared = len(runs) > 1 and _shares_work([store.roots for store in stores], keys, lowering.tuning)
    return [stores] if is_shared else runs


def split_parts(lowering, statement) -> list:
    """A reduction's parts as reductions of those that need the same ranges; other statements as they are."""
    if not isinstance(statement, Reduce) or statement.stores or len(statement.parts) == 1:
        return [statement]
    keys = [_ranges_in(lowering.graph, _needed_by_part(part, lowering.tuning)) for part in statement.parts]
    if len(set(keys)) == 1 or _shares_work([[value] for value in statement.values], keys, lowering.tuning):
        return [statement]
    groups: dict[frozenset, list] = {}
    for key, part in zip(keys, statement.parts):
        groups.setdefault(key, []).append(part)
    return [Reduce(statement.axes, parts, []) for parts in groups.values()]


def _ranges_in(graph: Graph, needed: Conditions) -> frozenset:
    """The conditions that are ranges along some axis."""
    return frozenset((comparison, outcome) for comparison, outcome in needed or () if any(
        find_range(graph, comparison, outcome, axis) for axis in comparison.axes))


def _shares_work(exprs: list[list[Expr]], keys: list[frozenset], tuning: Tuning) -> bool:
    """Whether more than a little is computed for several ranges at once."""
    users: dict[Expr, set] = {}
    for roots, key in zip(exprs, keys):
        for node in walk(roots):
            if node.args and node.axes:
                users.setdefault(node, set()).add(key)
    shared = (OP_COST.get(node.op, 1) for node, found in users.items() if len(found) > 1)
    return sum(shared) > tuning.max_shared_work


def _needed(body: list, lowering) -> Conditions:
    """What has to hold for any of the stores to do something: results of reductions are for these."""
    needed = (_needed_by_store(store, lowering) for statement in flatten(body) for store in statement.stores)
    return functools.reduce(either, needed, None)


def _needed_by_store(store: Store, lowering) -> Conditions:
    depth = lowering.tuning.max_mask_depth
    held = frozenset() if store.mask is None else _Search(lambda node: False).truth(store.mask, True, depth)
    if store.combine is not None or store.packed:
        return held
    place = lowering.graph.load(store.buffer, store.offset)
    return both(held, _Search(lambda node: node is place).number(store.value, depth))


def _needed_by_reduce(reduce: Reduce, lowering) -> Conditions:
    parts = (_needed_by_part(part, lowering.tuning) for part in reduce.parts)
    return functools.reduce(either, parts, _needed(reduce.stores, lowering))


def _needed_by_part(part: tuple, tuning: Tuning) -> Conditions:
    _, op, expr = part
    neutral = identity_of(op, expr.dtype)
    return _Search(lambda node: number_of(node) == neutral).number(expr, tuning.max_mask_depth)


# -- comparisons ------------------------------------------------------------------------------------------


def find_range(graph: Graph, comparison: Expr, outcome: bool, axis: Axis) -> tuple | None:
    """(low, high), places in [0, extent] or None for the end itself: the positions on the axis where a
    comparison comes out as told. None where these are no such range."""
    op = comparison.op if outcome else NEGATED[comparison.op]
    if op == "ne":
        return None
    first, second = comparison.args
    if axis in second.axes:
        if axis in first.axes:
            return None
        first, second, op = second, first, SWAPPED[op]
    index = as_index(first)
    stride = 0 if index is None else index.coefficient(axis)
    if stride not in (1, -1) or not isinstance(stride, int):
        return None
    limit = _solve(graph, index - Index(((axis, stride),)), stride, second)
    if limit is None:
        return None
    op = op if stride == 1 else SWAPPED[op]
    low = _begin(graph, limit, op == "gt", axis.extent) if op in ("gt", "ge", "eq") else None
    high = _end(graph, limit, op != "lt", axis.extent) if op in ("lt", "le", "eq") else None
    return low, high


def _solve(graph: Graph, rest: Index, stride: int, other: Expr) -> Expr | None:
    """The position x where `rest + stride * x` is what the place is compared with."""
    index = as_index(other)
    if index is not None:
        return graph.index((index - rest) * stride)
    if other.dtype == dtypes.uint64:
        return None
    limit = graph.convert(other, dtypes.int64)
    if rest == ZERO and stride == 1:
        return limit
    limit = graph.op("min", graph.op("max", limit, graph.const(-_FAR, dtypes.int64)),
                     graph.const(_FAR, dtypes.int64))
    limits = (limit, graph.index(rest)) if stride == 1 else (graph.index(rest), limit)
    return graph.op("sub", *limits)


def _begin(graph: Graph, limit: Expr, is_open: bool, extent) -> Expr | None:
    known = number_of(limit)
    if known is not None and int(known) + is_open <= 0:
        return None
    return _clamp(graph, limit, -1 if is_open else 0, extent, is_open)


def _end(graph: Graph, limit: Expr, is_closed: bool, extent) -> Expr:
    return _clamp(graph, limit, -1 if is_closed else 0, extent, is_closed)


def _clamp(graph: Graph, limit: Expr, lowest: int, extent, is_next: bool) -> Expr:
    """A limit, or the number after it, as one in [0, extent]; nothing wraps around on the way."""
    limit = graph.op("max", limit, graph.const(lowest, dtypes.int64))
    limit = graph.op("min", limit, graph.index(constant(extent + lowest)))
    return graph.op("add", limit, graph.const(1, dtypes.int64)) if is_next else limit


def as_index(node: Expr) -> Index | None:
    """A place as an affine form, where the number does not wrap around; None for what is no place."""
    if node.dtype.kind not in "iu":
        return None
    if node.op == "const":
        return constant(int(node.attr))
    if node.op == "index":
        index = node.attr if not isinstance(node.attr.const, RunTimeSize) else Index(
            node.attr.terms, int(node.attr.const))
        return index if _fits(index, node.dtype) else None
    if node.op == "convert":
        index = as_index(node.args[0])
        return index if index is not None and _fits(index, node.dtype) else None
    if node.op in ("add", "sub"):
        first, second = map(as_index, node.args)
        if first is None or second is None:
            return None
        index = first + second if node.op == "add" else first - second
        return index if _fits(index, node.dtype) else None
    return None


def _fits(index: Index, dtype) -> bool:
    """Whether every value of an index is a number of the dtype; a place in an array is one of int64."""
    low, high = index.interval()
    if math.isinf(low):
        return dtype.itemsize == 8 and dtype.kind == "i"
    info = np.iinfo(dtype)
    return info.min <= low and high <= info.max


# -- what a value hangs on ----------------------------------------------------------------------------------
# Operations of neutral numbers that are neutral again, and those where one such operand is enough.
_KEEPS_ZERO = frozenset(("add", "sub", "mul", "neg", "abs", "real", "imag", "or", "xor", "and"))
_KEEPS_ANY = frozenset(("max", "min"))

# (comparison, outcome) pairs; None stands for all there are: the value is neutral in any case.
Condition = tuple[Expr, bool]
Conditions = frozenset[Condition] | None
_NONE: frozenset[Condition] = frozenset()


def both(first: Conditions, second: Conditions) -> Conditions:
    """What is needed where one or the other being neutral is enough."""
    return None if first is None or second is None else first | second


def either(first: Conditions, second: Conditions) -> Conditions:
    """What is needed where both have to be neutral."""
    if first is None or second is None:
        return second if first is None else first
    return first & second


class _Search:
    """One walk down an expression, of so many levels: the comparisons that all have to come out as told for a
    `number` not to be neutral, or for the `truth` of a bool. Whatever it does not know hangs on nothing."""

    def __init__(self, is_neutral: Callable[[Expr], bool]):
        self.is_neutral = is_neutral
        self.memo: dict[tuple, Conditions] = {}

    def number(self, node: Expr, depth: int) -> Conditions:
        key = (id(node), None)
        if key not in self.memo:
            self.memo[key] = self._number(node, depth - 1) if depth > 0 else _NONE
        return self.memo[key]

    def _number(self, node: Expr, depth: int) -> Conditions:
        if self.is_neutral(node):
            return None
        if node.op == "select":
            return self._choice(node, lambda side: self.number(side, depth), depth)
        if node.op == "convert":
            return self._converted(node, depth)
        if node.dtype == dtypes.bool_:
            return self._neutral_bool(node, depth)
        if node.op not in _KEEPS_ZERO and node.op not in _KEEPS_ANY or not node.args:
            return _NONE
        if node.op in _KEEPS_ZERO and not self._is_zero_neutral(node.dtype):
            return _NONE
        join = both if node.op in ("mul", "and") and node.dtype.kind in "iu" else either
        needed = [self.number(arg, depth) if arg.dtype == node.dtype else _NONE for arg in node.args]
        return functools.reduce(join, needed)

    def _is_zero_neutral(self, dtype) -> bool:
        return self.is_neutral(Graph().const(0, dtype))

    def _converted(self, node: Expr, depth: int) -> Conditions:
        (source,) = node.args
        if source.dtype == dtypes.bool_:
            return self.truth(source, True, depth) if self._is_zero_neutral(node.dtype) else _NONE
        inner = _Search(lambda e: e.op == "const" and self.is_neutral(Graph().convert(e, node.dtype)))
        return inner.number(source, depth) if node.dtype != dtypes.bool_ else self._neutral_bool(node, depth)

    def _neutral_bool(self, node: Expr, depth: int) -> Conditions:
        for outcome in (True, False):
            if self.is_neutral(Graph().const(not outcome, dtypes.bool_)):
                return self.truth(node, outcome, depth)
        return _NONE

    def _choice(self, node: Expr, side: Callable[[Expr], Conditions], depth: int) -> Conditions:
        condition, when_true, when_false = node.args
        if condition.dtype != dtypes.bool_:
            return _NONE
        return either(both(self.truth(condition, True, depth), side(when_true)),
                      both(self.truth(condition, False, depth), side(when_false)))

    def truth(self, node: Expr, outcome: bool, depth: int) -> Conditions:
        """What is needed for a bool to come out one way."""
        key = (id(node), outcome)
        if key not in self.memo:
            self.memo[key] = self._truth(node, outcome, depth - 1) if depth > 0 else _NONE
        return self.memo[key]

    def _truth(self, node: Expr, outcome: bool, depth: int) -> Conditions:
        if node.op == "const":
            return _NONE if bool(node.attr) == outcome else None
        if node.op == "not":
            return self.truth(node.args[0], not outcome, depth)
        if node.op in ("and", "or"):
            join = both if (node.op == "and") == outcome else either
            return join(*(self.truth(arg, outcome, depth) for arg in node.args))
        if node.op == "select":
            return self._choice(node, lambda side: self.truth(side, outcome, depth), depth)
        if node.op == "convert" and outcome:
            (source,) = node.args
            return _Search(lambda e: e.op == "const" and not e.attr).number(source, depth)
        if node.op in COMPARISONS and node.args[0].dtype.kind in "iu":
            return frozenset(((node, outcome),))
        return _NONE
