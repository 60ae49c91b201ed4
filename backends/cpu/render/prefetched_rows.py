"""Rendering of sweeps over rows that come from memory: in halves, or with the next row asked for.

In: a reduction in halves, or a vector loop with a `Prefetch`. Out: instructions.
"""

from __future__ import annotations

from functools import partial

from llvmlite import ir

from jitcore.backends.cpu.render.fetch import prefetch
from jitcore.backends.cpu.render.vector_loops import LINE_BYTES, emit_first, emit_vector
from jitcore.backends.llvm.accumulator import Accumulator, Runs
from jitcore.backends.llvm.registers import I64, POINTER
from jitcore.loopir.program import Reduce
from jitcore.loopir.ways import Prefetch


def sweep_halves(kernel, e, reduce: Reduce, start: ir.Value, stop: ir.Value) -> list[Accumulator]:
    """All iterations of a reduction in [start, stop), two places at a time, each with half of the registers.

    kernel: the `KernelRenderer`. e: the `FunctionEmitter`. Returns: what holds all of it then."""
    b, vector, lanes = e.b, kernel.kernel.vector, kernel.lanes_of(reduce) // 2
    first, second = ([Accumulator(kernel, e, reduce, part, lanes=lanes) for part in reduce.parts]
                     for _ in range(2))
    runs = Runs(e, [*first, *second])
    half = b.mul(b.sdiv(b.sub(stop, start), I64(2 * lanes)), I64(lanes))
    kernel.hoist_roots(e, reduce.values, [], {vector})

    def update(accumulators):
        for accumulator in accumulators:
            accumulator.update()

    def run(place):
        for accumulators, position in ((first, place), (second, b.add(place, half))):
            known, e.values = e.values, dict(e.values)
            emit_vector(e, vector, position, lanes, partial(update, accumulators))
            e.values = known

    def run_rest(place):
        emit_first(e, vector, place, b.sub(stop, place), lanes, partial(update, first))

    middle = b.add(start, half)
    runs.loop(start, middle, I64(lanes), run)
    e.loop(b.add(middle, half), stop, I64(lanes), run_rest)
    for accumulator, other in zip(first, second):
        accumulator.absorb(other)
    return first


def ask_ahead(e, ahead: Prefetch) -> None:
    """Asks for what these lanes will read and write later. e: the `FunctionEmitter`, in a vector loop."""
    b, now = e.b, e.axis_values[ahead.axis]
    e.axis_values[ahead.axis] = b.add(now, I64(ahead.distance))
    for buffer, index in (*ahead.accesses, *ahead.written):
        first = b.bitcast(e.address(buffer, index)[0], POINTER)
        for distance in range(0, e.lanes * buffer.dtype.itemsize, LINE_BYTES):
            prefetch(b, b.gep(first, [I64(distance)]), is_write=(buffer, index) in ahead.written)
    e.axis_values[ahead.axis] = now
