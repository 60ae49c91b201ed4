"""Running values of reductions: sums, extremes and their positions, in lanes; and results of blocks.

In: one part of a `loopir.Reduce` and the emitter of the function around it. Out: instructions that start the
value, combine one iteration's into it, and read the result; that write and read the result of each block of a
sweep in blocks, and for each iteration of the loops around it.

A long sum adds up short runs of numbers in a total, which keeps what its own additions round off (Dekker's
fast two-sum, which needs the total to be larger than what is added, as it mostly is), so its error is that of
a run, however many there are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.llvm.mathlib.emitter import make_numbers
from jitcore.backends.llvm.registers import (I32, I64, Pair, choose, element_constant, iota, lane_count,
                                             map_parts, multiply_add, splat, split_registers)
from jitcore.backends.llvm.scalar_ops import count_math_calls, emit_operation
from jitcore.loopir.expr import Axis, Buffer, Expr, Index, linearize, walk
from jitcore.loopir.monoids import identity_of, is_summed
from jitcore.loopir.program import Reduce, Scan


def count_blocks(e, sweep: Reduce | Scan) -> ir.Value:
    """Into how many blocks a sweep is split: as many as its range fills, if that varies."""
    if not sweep.bounds:
        return e.size(sweep.block_results[0].shape[0])
    block = e.size(sweep.block)
    extent = e.count_positions(sweep, sweep.axes[0])
    return e.b.sdiv(e.b.add(extent, e.b.sub(block, I64(1))), block)


def find_blocks(e, sweep: Reduce | Scan) -> Callable[[ir.Value], tuple[ir.Value, ir.Value]]:
    """What gives the range of the block of a number."""
    b, (first, end), length = e.b, e.range_of(sweep, sweep.axes[0]), e.size(sweep.block)

    def find(number: ir.Value) -> tuple[ir.Value, ir.Value]:
        low = b.mul(number, length)
        low = b.add(first, low) if sweep.bounds else low
        high = b.add(low, length)
        return low, b.select(b.icmp_signed("<", high, end), high, end)

    return find


class Partials(NamedTuple):
    """columns: the axes of the loops around. around: `around(e, emit)` emits these loops, and calls `emit`
    for what is inside; e: the `FunctionEmitter`."""

    columns: Sequence[Axis] = ()
    around: Callable = lambda e, emit: emit()

    def read(self, e, buffer: Buffer, number: ir.Value):
        return e.load(buffer, self._find_place(e, number))

    def write(self, e, buffer: Buffer, number: ir.Value, value) -> None:
        e.store(buffer, self._find_place(e, number), value)

    def _find_place(self, e, number: ir.Value) -> Index:
        extents = tuple(axis.extent for axis in self.columns)
        for extent in extents:
            number = e.b.mul(number, e.size(extent))
        block = Axis(1)
        e.axis_values[block] = number
        return Index.of(block) + linearize(tuple(map(Index.of, self.columns)), extents)


class Accumulator:
    """The running value of one part of a reduction: a stack slot, in lanes where iterations or outputs are.

    For the position of an extreme there is a second slot; positions come in increasing order, so that the
    first of equals stays. start: the position before any is noted. scalar: combine results of blocks, one at
    a time. lanes: of a loop along the lanes that takes fewer at a time than the reduction's others. is_part:
    whether another one absorbs it at the end of each run."""

    def __init__(self, kernel, e, reduce: Reduce, part, scalar: bool = False, start: ir.Value = I64(0),
                 lanes: int | None = None, is_part: bool = False):
        self.e, (self.result, self.op, self.expr) = e, part
        if lanes is None:
            lanes = kernel.lanes_of(reduce) if kernel.kernel.vector in reduce.axes and not scalar else 1
        self.along_lanes = lanes > 1
        self.spread = lanes if self.along_lanes else e.lanes
        self.axis, self.start = reduce.axes[-1], start
        self.dtype = self.expr.dtype
        has_total = reduce.is_long and not is_part and is_summed(self.op, self.dtype)
        self.total = self._make_total(kernel) if has_total else None
        self.slot = e.stack_slot(self._zero(self.spread))
        is_sum = self.op == "add" and self.axis in self.expr.axes
        self.product = e.contraction.find_product(self.expr) if is_sum else None
        self._terms: list[Sequence] = []
        self.goes_on = True  # whether code was emitted that adds to a run, and none that ends it
        self.tracks_index = self.op in ("argmax", "argmin")
        if self.tracks_index:
            self.index_dtype = dtypes.int64 if self.result.dtype.itemsize == 8 else dtypes.int32
            self.index_slot = e.stack_slot(self._spread_position(start))

    def _make_total(self, kernel) -> Total:
        """Of one register, where all lanes are added up in the end."""
        self.run, lanes = length_of_run(self.expr), self.spread
        if self.along_lanes:
            lanes = min(lanes, max(kernel.vector_bytes // dtypes.part_size(self.dtype), 1))
        return Total(self.e, self._zero(lanes))

    def _zero(self, lanes: int) -> ir.Value | Pair:
        return element_constant(self.dtype, identity_of(self.op, self.dtype), lanes)

    def settle(self) -> None:
        """Ends a run of additions."""
        self.total.add(self.e.read_slot(self.slot))
        self._begin()
        self.goes_on = False

    def _begin(self) -> None:
        self.e.write_slot(self.slot, self._zero(self.spread))

    def update(self) -> None:
        """Combines the current iteration's value; lanes past the end keep what they had."""
        e, b = self.e, self.e.b
        if self.tracks_index:
            return self.note(e.expr_in_lanes(self.expr), e.axis_values[self.axis])
        self.goes_on = True
        old = e.read_slot(self.slot)
        new = self._add_term(old, self._read_term())
        if e.mask is not None and self.along_lanes:
            new = choose(b, e.mask, new, old)
        e.write_slot(self.slot, new)

    def _read_term(self) -> Sequence:
        """The current iteration's value, or the two factors of a product that is not rounded."""
        if self.product is None:
            return (self.e.expr_in_lanes(self.expr),)
        return self.e.expr_in_lanes(self.product.x), self.e.expr_in_lanes(self.product.y)

    def _add_term(self, old: ir.Value | Pair | None, term: Sequence) -> ir.Value | Pair:
        if self.product is None:
            return term[0] if old is None else self.merge(old, term[0])
        if old is None:
            value = self.e.b.fmul(*term)
            return self.e.b.fneg(value) if self.product.is_negative else value
        return multiply_add(self.e.b, *term, old, self.product.is_negative)

    def gather(self) -> None:
        """Notes the current iteration's value, of a sum; `add_gathered` adds up what was noted before it adds
        it, so that it is one addition of a run."""
        self._terms.append(self._read_term())

    def add_gathered(self) -> None:
        e, terms = self.e, self._terms
        halves = [functools.reduce(self._add_term, half, None) for half in (terms[::2], terms[1::2]) if half]
        value = functools.reduce(self.merge, halves)
        e.write_slot(self.slot, self.merge(e.read_slot(self.slot), value))
        terms.clear()
        self.goes_on = True

    def combine(self, partial: ir.Value | Pair) -> None:
        """Combines the result of a block; for a position, the value there is computed once more."""
        e = self.e
        if self.tracks_index:
            position = emit_operation(e.b, "convert", [self.result.dtype], dtypes.int64, [partial])
            e.axis_values[self.axis] = position
            return self.note(e.expr(self.expr), position)
        if self.total is not None:
            return self.total.add(partial)
        e.write_slot(self.slot, self.merge(e.read_slot(self.slot), partial))

    def absorb(self, other: Accumulator) -> None:
        """Combines what another one of the same part has gathered; not for positions."""
        if other.total is not None:
            return self._absorb_total(other)
        self.e.write_slot(self.slot, self.merge(self.e.read_slot(self.slot), self.e.read_slot(other.slot)))
        other._begin()

    def absorb_wide(self, wide: Accumulator) -> None:
        """Combines what more lanes than this one's have gathered; not for positions."""
        if self.total is not None:
            return self._absorb_total(wide)
        value, width = self.e.read_slot(wide.slot), wide.spread
        while width > self.spread:
            width //= 2
            value = self.merge(*self._halve(value, width))
        self.e.write_slot(self.slot, self.merge(self.e.read_slot(self.slot), value))

    def _absorb_total(self, other: Accumulator) -> None:
        if other.goes_on:
            other.settle()
        self.total.absorb(other.total)

    def merge(self, old, new):
        # the new value first: what `max` does about NaN then waits for nothing from the iteration before
        return self.e.merge(self.op, self.dtype, new, old)

    def _spread_position(self, position: ir.Value) -> ir.Value:
        """A position (of lane 0) in all lanes; the lanes' distances from it are added at the end."""
        position = emit_operation(self.e.b, "convert", [dtypes.int64], self.index_dtype, [position])
        return splat(self.e.b, position, self.spread) if self.spread > 1 else position

    def note(self, value, position: ir.Value) -> None:
        """Combines a value that is found at a position: that of lane 0, where iterations are in lanes."""
        e, b, position = self.e, self.e.b, self._spread_position(position)
        old, old_position = e.read_slot(self.slot), e.read_slot(self.index_slot)
        better = self._is_better(value, old)
        if e.mask is not None and self.along_lanes:
            better = b.and_(better, e.mask)
        e.write_slot(self.slot, b.select(better, value, old))
        e.write_slot(self.index_slot, b.select(better, position, old_position))

    def read_extreme(self) -> tuple[ir.Value, ir.Value]:
        """The most extreme value that was noted, and the first position of it; without lanes."""
        index = emit_operation(self.e.b, "convert", [self.index_dtype], dtypes.int64,
                               [self.e.read_slot(self.index_slot)])
        return self.e.read_slot(self.slot), index

    def _test(self, op: str, x, y):
        return emit_operation(self.e.b, op, [self.dtype, self.dtype], dtypes.bool_, [x, y])

    def _is_better(self, value, old):
        """Whether a later value is more extreme; NaN is the most extreme."""
        b, sign = self.e.b, ">" if self.op == "argmax" else "<"
        if dtypes.is_floating(self.dtype):
            return b.and_(b.fcmp_unordered(sign, value, old), b.fcmp_ordered("ord", old, old))
        return self._test("gt" if self.op == "argmax" else "lt", value, old)

    def _is_better_of(self, value, position, old, old_position):
        """Whether another lane's value is more extreme, or as extreme and earlier."""
        b = self.e.b
        ties = self._test("eq", value, old)
        if dtypes.is_floating(self.dtype):
            both_nan = b.and_(b.fcmp_unordered("uno", value, value), b.fcmp_unordered("uno", old, old))
            ties = b.or_(ties, both_nan)
        return b.or_(self._is_better(value, old), b.and_(ties, b.icmp_signed("<", position, old_position)))

    def read(self) -> ir.Value:
        """The combined value (the position for argmax): one number, or one for each lane of the outputs."""
        b = self.e.b
        if self.total is not None and self.goes_on:
            self.settle()
            self.goes_on = True  # code may be emitted again, for other places
        value = self.e.read_slot(self.slot) if self.total is None else self.total.read()
        parts = [value, *([self.e.read_slot(self.index_slot)] if self.tracks_index else [])]
        if self.along_lanes:
            if self.tracks_index:
                lanes, kind = iota(self.spread), parts[1].type
                parts[1] = b.add(parts[1], b.trunc(lanes, kind) if self.index_dtype.itemsize == 4 else lanes)
            parts = self._combine_lanes(parts)
        if not self.tracks_index:
            return parts[0]
        return emit_operation(b, "convert", [self.index_dtype], self.result.dtype, [parts[1]])

    def _combine_lanes(self, parts: list) -> list:
        width = lane_count(parts[0])
        while width > 1:
            width //= 2
            parts = self.merge_parts(*zip(*(self._halve(part, width) for part in parts)))
        return parts

    def merge_parts(self, parts: Sequence, others: Sequence) -> list:
        """The combination of values, or of extremes with their positions, that were found apart."""
        if not self.tracks_index:
            return [self.merge(parts[0], others[0])]
        better = self._is_better_of(*others, *parts)
        return [self.e.b.select(better, other, part) for part, other in zip(parts, others)]

    def _halve(self, value: ir.Value | Pair, width: int) -> list:
        return [map_parts(lambda part: self._half(part, width, k), value) for k in range(2)]  # noqa: B023

    def _half(self, value, width: int, which: int):
        b = self.e.b
        if width == 1:
            return b.extract_element(value, I32(which))
        chosen = make_numbers(32, tuple(range(which * width, (which + 1) * width)))
        return b.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), chosen)


# Additions of a run of numbers of so many bytes: as many as NumPy's have, more where each takes long by
# itself, and where there are digits to spare.
_RUNS, _DEAR_RUNS = {4: 16, 8: 256}, {4: 32, 8: 256}


def length_of_run(expr: Expr, is_scan: bool = False) -> int:
    """How many values of an expression make a run; those that a scan adds are sums of several."""
    is_dear = any(node.args and count_math_calls(node.op, node.args[0].dtype) for node in walk([expr]))
    return (_DEAR_RUNS if is_dear or is_scan else _RUNS)[dtypes.part_size(expr.dtype)]


class Total:
    """A sum and what its additions have rounded off, in stack slots. e: the `FunctionEmitter`. zero: what it
    begins with, in as many lanes as it has."""

    def __init__(self, e, zero: ir.Value | Pair):
        self.e, self.lanes = e, lane_count(zero)
        self.sum, self.rest = e.stack_slot(zero), e.stack_slot(zero)

    def add(self, value: ir.Value | Pair) -> None:
        """Adds numbers in as many lanes, or in a multiple of them."""
        e, b = self.e, self.e.b
        pieces = split_registers(b, value, self.lanes) if lane_count(value) > self.lanes else [value]
        while len(pieces) > 1:
            pieces = [map_parts(b.fadd, x, y) for x, y in zip(pieces[::2], pieces[1::2])]
        old, (value,) = e.read_slot(self.sum), pieces
        new = map_parts(b.fadd, old, value)
        lacking = map_parts(lambda x, y, total: b.fsub(y, b.fsub(total, x)), old, value, new)
        e.write_slot(self.sum, new)
        e.write_slot(self.rest, map_parts(b.fadd, e.read_slot(self.rest), lacking))

    def absorb(self, other: Total) -> None:
        """Adds another total, of as many lanes or a multiple of them."""
        b, e = self.e.b, self.e
        sums, rests = (split_registers(b, e.read_slot(slot), self.lanes) if other.lanes > self.lanes
                       else [e.read_slot(slot)] for slot in (other.sum, other.rest))
        for number, rest in zip(sums, rests):
            self.add(number)
            e.write_slot(self.rest, map_parts(b.fadd, e.read_slot(self.rest), rest))

    def read(self) -> ir.Value | Pair:
        """The total, rounded; it stays as it is."""
        return map_parts(self._round, self.e.read_slot(self.sum), self.e.read_slot(self.rest))

    def _round(self, total: ir.Value, rest: ir.Value) -> ir.Value:
        b = self.e.b
        is_number = b.fcmp_ordered("ord", rest, rest)  # it is none where the sum is infinite
        return b.select(is_number, b.fadd(total, rest), total)


class Runs:
    """The runs of sums that go on together, if any of them is long.

    everywhere: emits what it is given for each place at which there are such sums."""

    def __init__(self, e, accumulators: list, everywhere: Callable = lambda settle: settle()):
        self.e, self.sums = e, [a for a in accumulators if a.total is not None]
        self._everywhere = everywhere
        self._left: ir.Value | None = None
        self.length = min((a.run for a in self.sums), default=0)

    def loop(self, start: ir.Value, stop: ir.Value, step: ir.Value, body: Callable[[ir.Value], None]) -> None:
        """`for i in range(start, stop, step): body(i)`, in which each sum gets one number at a time."""
        e, b = self.e, self.e.b
        if not self.sums:
            return e.loop(start, stop, step, body)
        length = b.mul(step, I64(self.length))
        with e.for_range(start, stop, length) as first:
            past = b.add(first, length)
            e.loop(first, b.select(b.icmp_signed("<", past, stop), past, stop), step, body)
            self._settle()

    def count(self, additions: int) -> None:
        """Where sums go on through several loops: notes that each got some numbers."""
        e, b = self.e, self.e.b
        if not self.sums:
            return
        if self._left is None:
            self._left = e.prologue.alloca(I64)
            e.prologue.store(I64(self.length), self._left)
        left = b.sub(b.load(self._left), I64(additions))
        b.store(left, self._left)
        with e.if_then(b.icmp_signed("<=", left, I64(0)), rarely=True):
            self._settle()
            b.store(I64(self.length), self._left)
        for accumulator in self.sums:
            accumulator.goes_on = True  # where the branch was not taken

    def _settle(self) -> None:
        self._everywhere(lambda: [accumulator.settle() for accumulator in self.sums])
