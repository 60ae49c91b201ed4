"""Rendering of searches for the place of an extreme along a row.

In: a reduction whose only part is `argmax` or `argmin`, and a range of it. Out: instructions. To note a place
beside each element costs more than to find the extreme. So the row is cut into stretches of a few vectors;
noted is which one has the extreme, and in the end its place is searched there.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cpu.render.vector_loops import emit_first, vector_loop
from jitcore.backends.llvm.accumulator import Accumulator
from jitcore.backends.llvm.registers import I1, I64, splat
from jitcore.loopir.expr import Axis, Expr
from jitcore.loopir.program import Reduce


def search_extreme(kernel, e, reduce: Reduce, start: ir.Value, stop: ir.Value,
                   nowhere: ir.Value) -> Accumulator:
    """Looks at [start, stop). kernel: the `KernelRenderer`. e: the `FunctionEmitter`. nowhere: the place that
    is given if nothing is more extreme than the least number."""
    b, lanes, (part,) = e.b, kernel.lanes_of(reduce), reduce.parts
    result, op, expr = part
    best = Accumulator(kernel, e, reduce, part, scalar=True, start=nowhere)
    axis, length = best.axis, I64(e.tuning.stretch * lanes)
    kernel.hoist_roots(e, [expr], [], {axis})

    def end_of_stretch(low):
        high = b.add(low, length)
        return b.select(b.icmp_signed("<", high, stop), high, stop)

    def look(low):
        most = Accumulator(kernel, e, reduce, (result, op.removeprefix("arg"), expr))
        vector_loop(e, axis, low, end_of_stretch(low), [lanes], most.update)
        best.note(most.read(), low)

    e.loop(start, stop, length, look)
    value, low = best.read_extreme()
    high = b.select(b.icmp_signed(">=", low, start), end_of_stretch(low), low)  # none, if it is nowhere
    place = _find_first(e, expr, axis, low, high, lanes, value)
    return Accumulator(kernel, e, reduce, part, scalar=True, start=place)


def _find_first(e, expr: Expr, axis: Axis, low: ir.Value, high: ir.Value, lanes: int,
                wanted: ir.Value) -> ir.Value:
    """The first position of [low, high) where an expression has a value; `low` if it has it nowhere."""
    b, before = e.b, e.b.block
    search, found = (e.function.append_basic_block(name) for name in ("search", "found"))
    b.branch(search)
    b.position_at_end(search)
    position, hits = b.phi(I64), []
    position.add_incoming(low, before)
    saved, e.values = e.values, dict(e.values)
    emit_first(e, axis, position, b.sub(high, position), lanes,
               lambda: hits.append(_compare(e, expr, wanted)))
    e.values = saved
    (bits,) = hits
    after, is_hit = b.add(position, I64(lanes)), b.icmp_unsigned("!=", bits, bits.type(0))
    position.add_incoming(after, b.block)
    b.cbranch(b.or_(is_hit, b.icmp_signed(">=", after, high)), found, search)
    b.position_at_end(found)
    number = b.cttz(bits, I1(0))
    number = b.zext(number, I64) if bits.type.width < 64 else b.trunc(number, I64)
    return b.select(is_hit, b.add(position, number), low)


def _compare(e, expr: Expr, wanted: ir.Value) -> ir.Value:
    """In which of the lanes an expression has a value, or is NaN as the value then is: one bit for each."""
    b, value = e.b, e.expr_in_lanes(expr)
    if dtypes.is_floating(expr.dtype):
        is_there = b.fcmp_ordered("==", value, splat(b, wanted, e.lanes))
        is_there = b.or_(is_there, b.fcmp_unordered("uno", value, value))
    else:
        is_there = b.icmp_signed("==", value, splat(b, wanted, e.lanes))
    return b.bitcast(b.and_(is_there, e.mask), ir.IntType(e.lanes))
