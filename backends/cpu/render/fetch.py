"""Asking for memory before it is needed: elements at places that are computed from other elements.

In: an access of a vector loop whose places are found while it runs, in an array that is too large for
caches. Out: instructions. The places of a later vector are computed a second time, which is cheap
next to waiting: a core waits for more lines at a time when it need not have come to the access itself.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.llvm.registers import I32, I64, POINTER, call_function
from jitcore.loopir.expr import Buffer, Expr, Index, walk


def prefetch(b: ir.IRBuilder, pointer: ir.Value, is_write: bool) -> None:
    """Asks for the cache line of an address, which may be any."""
    call_function(b, "llvm.prefetch.p0", ir.VoidType(), [pointer, I32(int(is_write)), I32(3), I32(1)])


def fetch_ahead(e, buffer: Buffer, index: Index) -> None:
    """Asks for the elements that a later vector will gather. e: the `FunctionEmitter`, in whole vectors."""
    axis, b = e.vector_axis, e.b
    nodes = walk(index.exprs)
    is_short = 0 < len(nodes) <= e.tuning.max_fetched_nodes
    if not is_short or not all(_is_cheap(node, axis) for node in nodes):
        return
    values, now = e.values, e.axis_values[axis]
    fixed = {id(node) for node in nodes if axis not in node.axes}
    e.values = {key: value for key, value in values.items()
                if (key[0] if isinstance(key, tuple) else key) in fixed}
    later = b.add(now, I64(max(e.tuning.fetched_ahead, 2 * e.lanes)))
    e.axis_values[axis] = b.select(b.icmp_signed("<", later, e.last_vector), later, e.last_vector)
    places = e.stack_slot(e.index(index))
    e.values, e.axis_values[axis] = values, now
    base, first = e.element_pointer(buffer), b.bitcast(places, I64.as_pointer())
    for lane in range(e.lanes):
        place = b.load(b.gep(first, [I64(lane)]))
        prefetch(b, b.bitcast(b.gep(base, [place]), POINTER), is_write=False)


def _is_cheap(node: Expr, axis) -> bool:
    """Whether an expression reads no more than neighbours in memory."""
    return node.op != "load" or axis not in node.axes or node.attr[1].coefficient(axis) == 1
