"""The builder: what a primitive's lowering rule writes its loop program with.

In: values (shape, dtype, element access). Out: a value. Rules never see loops or memory; the scheduler
decides both.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes
from jitcore.loopir.expr import (COMPLEX_COST, OP_COST, ZERO, Dynamic, Expr, Graph, Index, RunTimeSize,
                                 constant, delinearize, linearize)
from jitcore.loopir.values import Computed, Packed, Reduction, Region, Regions, Running, Scalar, Value

# Elements of which each gets code of its own, in reductions and as rows of a reduction's result.
MAX_FEW = 8
# Products that are added one after the other, at most, where few sums are computed.
_CHAIN_TERMS = 4
# Exponents of so many halves are a square root and products.
MAX_HALVES = 5


class Builder:
    """Makes values over one expression graph.

    speculates: whether what is evaluated may not have been chosen, so that places may be anywhere."""

    speculates = False

    def __init__(self, graph: Graph):
        self.graph = graph

    # -- elementwise ------------------------------------------------------------------------------------
    def constant(self, value, dtype) -> Value:
        return Scalar(self.graph, value, dtype)

    def compute(self, shape, dtype, reads, combine, work: int, operands: Sequence[Value]) -> Value:
        """A value whose element at `index` is combine(index, *elements that reads(index) names).

        work: of combine. operands: every value that reads and combine look at."""
        buffers = frozenset().union(*(v.buffers for v in operands))
        work += sum(v.work for v in operands)
        value = Computed(self.graph, tuple(shape), dtype, work, buffers, reads, combine)
        value.choices = sum(v.choices for v in operands)
        return value

    def pointwise(self, operands: Sequence[Value], dtype, combine, work: int = 1) -> Value:
        """combine(*exprs) of the operands' elements at one index; scalars are read at ()."""
        shape = next((v.shape for v in operands if v.shape), ())

        def reads(index):
            return [(v, index if v.shape else ()) for v in operands]

        return self.compute(shape, dtype, reads, lambda index, *exprs: combine(*exprs), work, operands)

    def map(self, op: str, *values: Value, dtype=None) -> Value:
        """A scalar operation on each element. Half-precision floats are computed in float32 and rounded
        back."""
        operand = values[0].dtype
        dtype = _RESULT_DTYPE[op](operand) if op in _RESULT_DTYPE else operand
        g = self.graph
        if dtypes.is_half(operand):

            def combine(*exprs):
                wide = [g.convert(e, dtypes.float32) for e in exprs]
                if dtype == dtypes.bool_:
                    return g.op(op, *wide, dtype=dtype)
                return g.convert(g.op(op, *wide, dtype=dtypes.float32), dtype)
        else:

            def combine(*exprs):
                return g.op(op, *exprs, dtype=dtype)

        cost = OP_COST.get(op, 1) if operand.kind != "c" else COMPLEX_COST.get(op, OP_COST.get(op, 1))
        return self.pointwise(values, dtype, combine, cost)

    def convert(self, x: Value, dtype) -> Value:
        dtype = np.dtype(dtype)
        return x if x.dtype == dtype else self.pointwise([x], dtype, lambda e: self.graph.convert(e, dtype))

    def cast(self, x: Value, dtype) -> Value:
        return self.pointwise([x], dtype, lambda e: self.graph.op("cast", e, dtype=dtype))

    def bitcast(self, x: Value, dtype) -> Value:
        return self.pointwise([x], dtype, lambda e: self.graph.op("bitcast", e, dtype=dtype))

    def select(self, which: Value, *cases: Value) -> Value:
        """cases[which]; `which` is bool for two cases, else int32 clamped to the range."""
        g = self.graph
        if len(cases) == 1:
            return cases[0]

        def combine(w, *exprs):
            if w.dtype == dtypes.bool_:
                return g.op("select", w, exprs[1], exprs[0], dtype=exprs[0].dtype)
            chosen = exprs[0]
            for number, case in enumerate(exprs[1:], 1):
                hit = g.op("ge", w, g.const(number, w.dtype), dtype=dtypes.bool_)
                chosen = g.op("select", hit, case, chosen, dtype=case.dtype)
            return chosen

        return self.pointwise([which, *cases], cases[0].dtype, combine)

    def integer_pow(self, x: Value, y: int) -> Value:
        """x**y by squaring; the reciprocal for negative y."""
        if y == 0:
            return self.pointwise([x], x.dtype, lambda e: self.graph.const(1, x.dtype))
        base, result, left = x, None, abs(y)
        while left:
            if left & 1:
                result = base if result is None else self.map("mul", result, base)
            left >>= 1
            base = self.map("mul", base, base) if left else base
        return result if y > 0 else self.map("div", self.constant(1, x.dtype), result)

    def pow(self, x: Value, y: Value) -> Value:
        """x ** y of floats; a square root and products where y is known to be a few halves."""
        if isinstance(y, Scalar) and x.dtype in (dtypes.float32, dtypes.float64):
            halves = 2 * float(y.value)
            if halves.is_integer() and halves % 2 and abs(halves) <= MAX_HALVES:
                return self.half_pow(x, int(halves))
        return self.map("pow", x, y)

    def half_pow(self, x: Value, halves: int) -> Value:
        """x ** (halves / 2) for an odd number of halves, of float32 or float64."""
        root, whole = self.map("sqrt", x), (abs(halves) - 1) // 2
        power = self.map("mul", root, self.integer_pow(x, whole)) if whole else root
        power = self.map("add", power, self.constant(0.0, x.dtype))  # the power of -0.0 is 0.0
        infinity = self.constant(np.inf, x.dtype)
        is_lowest = self.map("eq", x, self.constant(-np.inf, x.dtype))
        power = self.select(is_lowest, power, infinity)
        return power if halves > 0 else self.map("div", self.constant(1, x.dtype), power)

    # -- shapes -----------------------------------------------------------------------------------------
    def view(self, x: Value, shape, index_map, places: Sequence[Value] = ()) -> Value:
        """A value whose element at `index` is that of x at index_map(index), which may read from `places`."""
        return self.compute(shape, x.dtype, lambda index: [(x, index_map(index))], lambda index, e: e, 0,
                            [x, *places])

    def reshape(self, x: Value, shape) -> Value:
        return self.view(x, shape, lambda index: delinearize(linearize(index, tuple(shape)), x.shape))

    def iota(self, shape, dtype, dimension: int) -> Value:
        return self.compute(shape, dtype, lambda index: [],
                            lambda index: self.index_value(index[dimension], dtype), 1, [])

    zero_index = ZERO

    def index_value(self, index: Index, dtype) -> Expr:
        """An index as a number."""
        dtype = np.dtype(dtype)
        whole = self.graph.index(index, dtypes.int64)
        return self.graph.convert(whole, dtype)

    def dynamic_index(self, expr: Expr, low: int, high) -> Index:
        """An integer expression as an index, clamped to [low, high]."""
        g = self.graph
        if expr.op == "const" and isinstance(high, int):
            return constant(min(max(int(expr.attr), low), high))
        dtype = dtypes.int64
        if _is_short(expr) and _fits_32_bits(low, high):
            dtype = dtypes.uint32 if expr.dtype == dtypes.uint32 else dtypes.int32
        if expr.dtype == dtypes.uint64:  # before half of its numbers become negative
            expr = g.op("min", expr, g.index(constant(high), expr.dtype))
        place = g.convert(expr, dtype)
        place = g.op("max", place, g.const(low, dtype))
        place = g.op("min", place, g.index(constant(high), dtype))
        return Index.of(Dynamic(g.convert(place, dtypes.int64)))

    def raw_index(self, expr: Expr) -> Index:
        """An integer expression as an index that is known to be in range."""
        if expr.op == "const":
            return constant(int(expr.attr))
        return Index.of(Dynamic(self.graph.convert(expr, dtypes.int64)))

    def in_range(self, index: Index, extent) -> Expr:
        """Whether 0 <= index < extent."""
        chosen = self._choice_outside(index, extent)
        if chosen is not None:
            return chosen
        g, dtype = self.graph, dtypes.uint64  # as unsigned numbers, negative ones are above every extent
        value = g.index(index)
        if len(index.terms) == 1 and isinstance(index.terms[0][0], Dynamic):
            inner = index.terms[0][0].expr
            narrow = inner.args[0] if inner.op == "convert" else inner
            if index == Index.of(Dynamic(inner)) and _is_short(narrow) and _fits_32_bits(0, extent):
                value, dtype = narrow, dtypes.uint32
        value, limit = (g.convert(x, dtype) for x in (value, g.index(constant(extent))))
        return g.op("lt", value, limit, dtype=dtypes.bool_)

    def _choice_outside(self, index: Index, extent) -> Expr | None:
        """Whether an index is in range that a mask sends to the end of the range: the mask, and whether it
        was in range before. None for other indices."""
        if len(index.terms) != 1 or not isinstance(index.terms[0][0], Dynamic):
            return None
        which = index.terms[0][0].expr
        if index != Index.of(Dynamic(which)) or which.op != "select" or which.args[0].dtype != dtypes.bool_:
            return None
        mask, *sides = which.args
        for number, side in enumerate(sides):
            if _is_number(side, extent):
                held = mask if number == 1 else self.graph.op("not", mask)
                return self.all_of([held, self.in_range(self.raw_index(sides[1 - number]), extent)])
        return None

    def all_of(self, conditions: Sequence[Expr]) -> Expr | None:
        result = None
        for condition in conditions:
            result = (
                condition if result is None else self.graph.op("and", result, condition, dtype=dtypes.bool_)
            )
        return result

    # -- loops of their own -------------------------------------------------------------------------------
    def reduce(self, op: str, x: Value, axes: Sequence[int]) -> Value:
        """`op` over the axes. Half-precision sums and products accumulate in float32, and so does all of
        bfloat16, which no processor compares."""
        axes = tuple(sorted(axes))
        if not axes:
            return x
        if x.dtype == dtypes.bfloat16 or dtypes.is_half(x.dtype) and op in ("add", "mul"):
            wide = self.reduce(op, self.convert(x, dtypes.float32), axes)
            return self.convert(self.store(wide) if isinstance(wide, Reduction) else wide, x.dtype)
        if is_few([x.shape[axis] for axis in axes]):
            return self.fold(op, x, axes)
        return Reduction(op, x, axes, x.dtype)

    def fold(self, op: str, x: Value, axes: tuple[int, ...]) -> Value:
        """A reduction over a few elements, as a chain of operations."""
        kept = [d for d in range(x.ndim) if d not in axes]
        positions = list(itertools.product(*(range(x.shape[axis]) for axis in axes)))

        def reads(index):
            outer, places = dict(zip(kept, index)), []
            for position in positions:
                inner = dict(zip(axes, position))
                place = tuple(outer[d] if d in outer else constant(inner[d]) for d in range(x.ndim))
                places.append((x, place))
            return places

        waits = op == "add" and len(positions) > _CHAIN_TERMS and is_few([x.shape[d] for d in kept])

        def combine(index, *terms):
            if waits and dtypes.is_floating(x.dtype) and any(term.op == "mul" for term in terms):
                return self._add_products(terms, x.dtype)
            if op == "add" and dtypes.is_floating(x.dtype) and not any(term.op == "mul" for term in terms):
                terms = (self.graph.const(0.0, x.dtype), *terms)  # a sum of -0.0 is 0.0
            return functools.reduce(lambda y, z: self.graph.op(op, y, z, dtype=x.dtype), terms)

        work = (len(positions) - 1) * (1 + x.work)
        return self.compute([x.shape[d] for d in kept], x.dtype, reads, combine, work, [x])

    def _add_products(self, terms: Sequence[Expr], dtype) -> Expr:
        """One of few sums of products, as the rounds of a loop wait for it: two chains, in which one
        instruction multiplies and adds. Other sums are added in NumPy's order."""
        add = functools.partial(self.graph.op, "add", dtype=dtype)
        half = (len(terms) + 1) // 2
        return add(*(functools.reduce(add, chain) for chain in (terms[:half], terms[half:])))

    def arg_reduce(self, op: str, x: Value, axis: int, index_dtype) -> Value:
        if is_few([x.shape[axis]]):
            return self.find_extreme(op, x, axis, np.dtype(index_dtype))
        return Reduction(op, x, (axis,), index_dtype)

    def find_extreme(self, op: str, x: Value, axis: int, index_dtype) -> Value:
        """The first position of the extreme of a few elements; NaN is the most extreme."""
        g, sign, extent = self.graph, "gt" if op == "argmax" else "lt", x.shape[axis]

        def reads(index):
            return [(x, (*index[:axis], constant(k), *index[axis:])) for k in range(extent)]

        def combine(index, best, *others):
            position = g.const(0, index_dtype)
            for k, other in enumerate(others, 1):
                better = g.op(sign, other, best, dtype=dtypes.bool_)
                if dtypes.is_inexact(x.dtype):
                    first_nan = g.op("and", g.op("ne", other, other, dtype=dtypes.bool_),
                                     g.op("eq", best, best, dtype=dtypes.bool_))
                    better = g.op("or", better, first_nan)
                best = g.op("select", better, other, best, dtype=x.dtype)
                position = g.op("select", better, g.const(k, index_dtype), position, dtype=index_dtype)
            return position

        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        return self.compute(shape, index_dtype, reads, combine, 4 * extent * (1 + x.work), [x])

    def running(self, op: str, x: Value, axis: int, reverse: bool) -> Value:
        return Running(op, x, axis, reverse)

    def compress(self, x: Value, mask: Value) -> Value:
        """Each row of x, along the last axis, begins with the elements where the mask holds."""
        return x if is_few(x.shape[-1:]) and x.shape[-1] == 1 else Packed(x, mask)

    def regions(self, shape, dtype, base: Value | None, regions: list[Region]) -> Value:
        """`base` (or nothing) overwritten by regions in order."""
        return Regions(tuple(shape), dtype, base, regions)

    def region(self, value: Value, place, mask=None, combine: str | None = None,
               serial: bool = False) -> Region:
        """`out[place(index)] (combine)= value[index]` where mask(index) holds; see `Region`."""
        return Region(value, place, mask, combine, serial)

    def fill(self, shape, value: Value) -> Value:
        """A scalar value everywhere."""
        return self.view(value, shape, lambda index: ())

    def store(self, value: Value) -> Value:
        """The value in memory: for one that the rule is about to read many times, or a reduction that it goes
        on computing with. Bound by the scheduler."""
        raise NotImplementedError


def is_few(extents: Sequence) -> bool:
    """Whether extents are known and their elements so few that code for each of them is short."""
    return all(isinstance(n, int) for n in extents) and 0 < math.prod(extents) <= MAX_FEW


def _is_number(expr: Expr, extent) -> bool:
    """Whether an expression is the number of an extent."""
    if expr.op == "index" and not expr.attr.terms:
        return isinstance(expr.attr.const, (int, RunTimeSize)) and isinstance(extent, int) and (
            int(expr.attr.const) == extent)
    return expr.op == "const" and expr.dtype.kind in "iu" and isinstance(extent, int) and expr.attr == extent


def _is_short(expr: Expr) -> bool:
    """Whether an integer has 32 bits at most, half of what an index has."""
    return expr.dtype.kind in "iu" and expr.dtype.itemsize <= 4


def _fits_32_bits(low, high) -> bool:
    return all(isinstance(bound, int) and 0 <= bound < 2**31 for bound in (low, high))


_RESULT_DTYPE = {
    **{
        op: (lambda dtype: dtypes.bool_)
        for op in ("eq", "ne", "lt", "le", "gt", "ge", "is_finite", "signbit")
    },
    "real": dtypes.real_dtype,
    "imag": dtypes.real_dtype,
    "abs": dtypes.real_dtype,
    "complex": dtypes.complex_dtype,
}
