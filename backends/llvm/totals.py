"""Totals of long sums.

In: the emitter of a function, and sums of short runs of numbers, in lanes or single ones. Out: instructions
that add them up. A total keeps what its own additions round off (Dekker's fast two-sum, which needs the total
to be larger than what is added, as it mostly is), so its error is that of a run, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from jitcore.backends.llvm.lanes import I64, Pair, lane_count, map_parts, split_registers
from jitcore.backends.llvm.scalar_ops import count_math_calls
from jitcore.loopir.expr import Expr, walk
from jitcore.loopir.monoids import part_size

# Additions of a run of numbers of so many bytes: as many as NumPy's have, more where each takes long by
# itself, and where there are digits to spare.
_RUNS, _DEAR_RUNS = {4: 16, 8: 256}, {4: 32, 8: 256}


def length_of_run(expr: Expr, is_scan: bool = False) -> int:
    """How many values of an expression make a run; those that a scan adds are sums of several."""
    is_dear = any(node.args and count_math_calls(node.op, node.args[0].dtype) for node in walk([expr]))
    return (_DEAR_RUNS if is_dear or is_scan else _RUNS)[part_size(expr.dtype)]


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

        def run(first):
            past = b.add(first, length)
            e.loop(first, b.select(b.icmp_signed("<", past, stop), past, stop), step, body)
            self._settle()

        e.loop(start, stop, length, run)

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

        def begin():
            self._settle()
            b.store(I64(self.length), self._left)

        e.when(b.icmp_signed("<=", left, I64(0)), begin, rarely=True)
        for accumulator in self.sums:
            accumulator.goes_on = True  # where the branch was not taken

    def _settle(self) -> None:
        self._everywhere(lambda: [accumulator.settle() for accumulator in self.sums])
