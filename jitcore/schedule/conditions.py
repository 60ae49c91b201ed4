"""Which comparisons a value hangs on: where one of them fails, the value is neutral.

In: an expression and what is neutral: the identity of a reduction, or the element that a store is about to
overwrite. Out: comparisons of which each has to come out one way, or else the expression is neutral. Loops
are tightened by them (`bounds`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from jitcore import dtypes
from jitcore.core.interval import COMPARISONS
from jitcore.loopir.expr import Expr, Graph, walk
from jitcore.schedule.unrolling import Rewrite

# Operations of neutral numbers that are neutral again, and those where one such operand is enough.
_KEEPS_ZERO = frozenset(("add", "sub", "mul", "neg", "abs", "real", "imag", "or", "xor", "and"))
_KEEPS_ANY = frozenset(("max", "min"))
_MAX_DEPTH = 40

# (comparison, outcome) pairs; None stands for all there are: the value is neutral in any case.
Condition = tuple[Expr, bool]
Conditions = frozenset[Condition] | None
_NONE: frozenset[Condition] = frozenset()


def needed_for(root: Expr, is_neutral: Callable[[Expr], bool]) -> Conditions:
    """The comparisons that all have to come out as told for a number not to be neutral."""
    return _Search(is_neutral).number(root, 0)


def needed_to_hold(mask: Expr) -> Conditions:
    """The comparisons that all have to come out as told for a bool to be true."""
    return _Search(lambda node: False).truth(mask, True, 0)


def both(first: Conditions, second: Conditions) -> Conditions:
    """What is needed where one or the other being neutral is enough."""
    return None if first is None or second is None else first | second


def either(first: Conditions, second: Conditions) -> Conditions:
    """What is needed where both have to be neutral."""
    if first is None or second is None:
        return second if first is None else first
    return first & second


class _Search:
    """One walk down an expression. Whatever it does not know hangs on nothing."""

    def __init__(self, is_neutral: Callable[[Expr], bool]):
        self.is_neutral = is_neutral
        self.memo: dict[tuple, Conditions] = {}

    def number(self, node: Expr, depth: int) -> Conditions:
        key = (id(node), None)
        if key not in self.memo:
            self.memo[key] = self._number(node, depth + 1) if depth < _MAX_DEPTH else _NONE
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
            self.memo[key] = self._truth(node, outcome, depth + 1) if depth < _MAX_DEPTH else _NONE
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
