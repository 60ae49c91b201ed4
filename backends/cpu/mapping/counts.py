"""Over how many iterations the functions of a kernel run.

In: a kernel, and the emitter of the function that calls its own (e, a `FunctionEmitter`). Out: instructions
that count the iterations of its outermost loop, or the blocks of a sweep; whether they are known to be too
few for threads.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from jitcore.backends.llvm.options import is_static
from jitcore.backends.llvm.registers import I64
from jitcore.loopir.program import Choice, Kernel, Loop, Reduce, Repeat, Scan
from jitcore.loopir.traversal import find_split, flatten


def outermost_loop(kernel: Kernel) -> Loop | None:
    """The loop that is all of a kernel."""
    first = kernel.body[0]
    loop = first.body[0] if isinstance(first, Choice) else first
    return loop if len(kernel.body) == 1 and isinstance(loop, Loop) else None


def list_counts(kernel: Kernel) -> list[Callable]:
    """For each function of a kernel, what emits the number of iterations of its range."""
    first, loop, split = kernel.body[0], outermost_loop(kernel), find_split(kernel)
    if split is not None:
        sweep = split[1]
        last = count_blocks if isinstance(sweep, Scan) else _once
        return [lambda e: count_blocks(e, sweep), lambda e: last(e, sweep)]
    return [lambda e: _once(e, first) if loop is None else _count_iterations(e, loop, loop.axis)]


def _once(e, statement) -> ir.Value:
    return I64(1)


def _count_iterations(e, statement: Loop | Reduce | Scan, axis) -> ir.Value:
    """How many positions of an axis a statement runs over; less than one for none."""
    low, high = e.range_of(statement, axis)
    return e.b.sub(high, low) if axis in statement.bounds else high


def count_blocks(e, statement: Reduce | Scan) -> ir.Value:
    """Into how many blocks a reduction or scan is split: as many as its range fills, if that varies."""
    if not statement.bounds:
        return e.size(statement.block_results[0].shape[0])
    block = e.size(statement.block)
    extent = _count_iterations(e, statement, statement.axes[0])
    return e.b.sdiv(e.b.add(extent, e.b.sub(block, I64(1))), block)


def is_little(kernel: Kernel, count: ir.Value) -> bool:
    """Whether a kernel is too little work to share, whatever its strides: all of its extents are few."""
    if not isinstance(count, ir.Constant):
        return False
    inside = flatten([kernel])
    axes = [axis for s in inside for axis in s.axes]
    is_known = all(is_static(axis.extent) for axis in axes) and not any(isinstance(s, Repeat) for s in inside)
    return count.constant == 1 or is_known and count.constant <= int(kernel.grain)
