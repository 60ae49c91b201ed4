"""Totals of long sums.

In: the emitter of a function, and sums of short runs of numbers, in lanes or single ones. Out: instructions
that add them up. A total keeps what its own additions round off (Dekker's fast two-sum, which needs the total
to be larger than what is added, as it mostly is), so its error is that of a run, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from jitcore.backends.cpu.lanes import I64, Pair, lane_count, map_parts
from jitcore.backends.cpu.long_sums import part_size
from jitcore.backends.cpu.mathlib.emitter import name_type
from jitcore.backends.cpu.scalar_ops import count_math_calls
from jitcore.backends.cpu.strides import register_lanes, split_registers
from jitcore.loopir.expr import Expr, walk

# Additions of a run of numbers of so many bytes: as many as NumPy's have, more where each takes long by
# itself, and where there are digits to spare.
_RUNS, _DEAR_RUNS = {4: 16, 8: 256}, {4: 32, 8: 256}


def length_of_run(expr: Expr, is_scan: bool = False) -> int:
    """How many values of an expression make a run; those that a scan adds are sums of several."""
    is_dear = any(node.args and count_math_calls(node.op, node.args[0].dtype) for node in walk([expr]))
    return (_DEAR_RUNS if is_dear or is_scan else _RUNS)[part_size(expr.dtype)]


class Total:
    """A sum and what its additions have rounded off, in stack slots. e: the `FunctionEmitter`. zero: what it
    begins with, a number of a dtype in as many lanes as the sum has.

    Many registers, such as columns have, are added by a function of the module: this happens seldom, and code
    for each place would take long to compile."""

    def __init__(self, e, dtype, zero: ir.Value | Pair):
        self.e, self.lanes = e, lane_count(zero)
        is_wide = self.lanes > 1 and e.places is None
        self.width = register_lanes(e, self.lanes, dtype) if is_wide else self.lanes
        if self.width == self.lanes:
            self.sum, self.rest, self.given = e.stack_slot(zero), e.stack_slot(zero), None
            return
        self.sum, self.rest, self.given = (map_parts(lambda part: e.prologue.alloca(part.type), zero)
                                           for _ in range(3))  # fmt: skip
        e.write_slot(self.given, zero)
        self._call(_begin)

    def add(self, value: ir.Value | Pair) -> None:
        """Adds numbers in as many lanes, or in a multiple of them."""
        e, b = self.e, self.e.b
        pieces = split_registers(b, value, self.lanes) if lane_count(value) > self.lanes else [value]
        while len(pieces) > 1:
            pieces = [map_parts(b.fadd, x, y) for x, y in zip(pieces[::2], pieces[1::2])]
        if self.given is None:
            slots = (e.read_slot(self.sum), e.read_slot(self.rest), pieces[0])
            new = map_parts(lambda *parts: _add(b, *parts)[0], *slots)
            e.write_slot(self.rest, map_parts(lambda *parts: _add(b, *parts)[1], *slots))
            e.write_slot(self.sum, new)
            return
        e.write_slot(self.given, pieces[0])
        self._call(_add)

    def absorb(self, other: Total) -> None:
        """Adds another total, of as many lanes or a multiple of them."""
        b, e = self.e.b, self.e
        sums, rests = (split_registers(b, e.read_slot(slot), self.lanes) if other.lanes > self.lanes
                       else [e.read_slot(slot)] for slot in (other.sum, other.rest))  # fmt: skip
        for number, rest in zip(sums, rests):
            self.add(number)
            e.write_slot(self.rest, map_parts(b.fadd, e.read_slot(self.rest), rest))

    def read(self) -> ir.Value | Pair:
        b, e = self.e.b, self.e
        if self.given is None:
            slots = e.read_slot(self.sum), e.read_slot(self.rest)
            return map_parts(lambda *parts: _read(b, *parts)[2], *slots)
        self._call(_read)
        return e.read_slot(self.given)

    def _call(self, build: Callable) -> None:
        """Does something to each register of the slots."""
        b, count = self.e.b, I64(self.lanes // self.width)

        def call(*slots):
            register = ir.VectorType(slots[0].type.pointee.element, self.width).as_pointer()
            function = _define(b.module, build, register)
            b.call(function, [*(b.bitcast(slot, register) for slot in slots), count])

        map_parts(call, self.sum, self.rest, self.given)


def _begin(b, total: ir.Value, rest: ir.Value, zero: ir.Value) -> tuple[ir.Value, ...]:
    return zero, zero, zero


def _add(b, total: ir.Value, rest: ir.Value, value: ir.Value) -> tuple[ir.Value, ...]:
    """The total and its rest with a value, which stays."""
    new = b.fadd(total, value)
    return new, b.fadd(rest, b.fsub(value, b.fsub(new, total))), value


def _read(b, total: ir.Value, rest: ir.Value, _: ir.Value | None = None) -> tuple[ir.Value, ...]:
    """In the place of a value the rounded total, which stays too."""
    is_number = b.fcmp_ordered("ord", rest, rest)  # it is none where the sum is infinite
    return total, rest, b.select(is_number, b.fadd(total, rest), total)


def _define(module: ir.Module, build: Callable, register: ir.PointerType) -> ir.Function:
    """The function that does to registers at three places, as many as it is told, what `build` emits."""
    name = f"jitcore.total.{build.__name__.strip('_')}.{name_type(register.pointee)}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [*[register] * 3, I64]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    before, loop, after = (function.append_basic_block(part) for part in ("before", "loop", "after"))
    ir.IRBuilder(before).branch(loop)
    b = ir.IRBuilder(loop)
    number = b.phi(I64)
    number.add_incoming(I64(0), before)
    places = [b.gep(place, [number]) for place in function.args[:3]]
    for place, value in zip(places, build(b, *map(b.load, places))):
        b.store(value, place)
    following = b.add(number, I64(1))
    number.add_incoming(following, loop)
    b.cbranch(b.icmp_signed("<", following, function.args[3]), loop, after)
    ir.IRBuilder(after).ret_void()
    return function


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
