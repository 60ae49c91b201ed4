"""Unroll-and-jam: rows side by side, where all of them read the same, and loops of single updates.

In: a kernel. Out: how many iterations of an axis around a sweep in lanes go through it together: where all
pairs of points are compared, what all rows read is loaded once; where a matrix is multiplied with a vector,
each row is read too.
"""

from __future__ import annotations

from jitcore.backends.cpu.machine.host import count_math_calls
from jitcore.backends.llvm.options import is_static
from jitcore.loopir.expr import Expr, walk
from jitcore.loopir.index import Axis, Dynamic
from jitcore.loopir.program import Loop, Reduce, Store
from jitcore.loopir.traversal import list_roots
from jitcore.loopir.ways import Decisions, Jam, Nest

# Rows at a time, the most first; registers for operands that all of them share and for what is in progress.
_COUNTS, WORKING_REGISTERS = (4, 2), 8
# The same where each row is read too: eight would take a tenth less time, and twice as long to compile. Of
# fewer rows than these, each has several registers instead.
_STREAM_COUNTS, _LEAST_STREAMS = (4, 2), 4


def find_jammed(nest: Nest) -> Decisions:
    """Sweeps with how many rows go through them together."""
    found = []
    for s in nest.sweeps:
        if isinstance(s, Loop) and not s.ways.keys() & {"list", "unroll"}:
            inner, counts = s.body[0], _list_loop_rows(nest, s)
            found += [(inner, Jam(s.axis, tuple(counts)))] if counts else []
        elif isinstance(s, Reduce) and len(s.axes) > 1:
            counts = _list_counts(nest, s.axes[-2], s)
            found += [(s, Jam(s.axes[-2], tuple(counts[:1])))] if counts else []
    return found


def _list_loop_rows(nest: Nest, loop: Loop) -> list[int]:
    """How many iterations of a loop around a reduction, or around a loop in lanes, go side by side."""
    first, *rest = loop.body
    is_way = loop.axis is nest.kernel.vector and nest.kernel.ways.keys() & {"interchange", "transpose"}
    if nest.kernel.tile and loop.axis is nest.kernel.tile[0] or is_way:
        return []
    if isinstance(first, Loop) and not rest:
        rows = _count_stored_rows(nest, loop.axis, first)
        return [rows] if rows > 1 else []
    if not isinstance(first, Reduce) or len(first.axes) > 1 or not all(isinstance(s, Store) for s in rest):
        return []
    return _list_counts(nest, loop.axis, first, has_streams=True)


def _list_counts(nest: Nest, axis: Axis, reduce: Reduce, has_streams: bool = False) -> list[int]:
    """How many rows go side by side: first so many, then so many of those that are left, and so on.

    has_streams: each may be read too."""
    kernel, vector = nest.kernel, nest.kernel.vector
    if vector is None or reduce.stores or reduce.axes[-1] is not vector or axis is vector:
        return []
    if any(axis in end.axes for end in reduce.ends):
        return []
    nodes = walk(reduce.values)
    loads = [node for node in nodes if node.op == "load" and vector in node.axes]
    if not loads or any(node.attr[0] in nest.written for node in loads) or any(map(_takes_long, nodes)):
        return []
    own, counts = find_row_values(nodes, axis, vector), _COUNTS
    streams = [node for node in loads if axis in node.axes]
    if streams:
        if not has_streams or len(streams) == len(loads) or _reads_ahead(nest) or kernel.far:
            return []
        if is_static(axis.extent) and axis.extent < _LEAST_STREAMS:
            return []
        own, counts = [*own, *streams], _STREAM_COUNTS
    registers = nest.machine.registers - WORKING_REGISTERS
    fitting = [count for count in counts if own and count * (len(own) + len(reduce.parts)) <= registers]
    return fitting if streams else fitting[:1]


def _reads_ahead(nest: Nest) -> bool:
    """Whether a rule about how rows are read was chosen."""
    has_own = any(s.ways.keys() & {"halves", "prefetch"} for s in nest.sweeps)
    return has_own or bool(nest.kernel.ways.keys() & {"interchange", "transpose"})


def _count_stored_rows(nest: Nest, axis: Axis, loop: Loop) -> int:
    """How many rows of stores go side by side: several where all that they read in lanes is the same."""
    kernel, vector = nest.kernel, nest.kernel.vector
    if loop.axis is not vector or is_static(axis.extent) or "nontemporal" in kernel.ways or kernel.far:
        return 1
    if any(axis in end.axes for end in loop.ends):
        return 1
    if not all(isinstance(s, Store) and s.mask is None and not s.is_update for s in loop.body):
        return 1
    nodes = walk(list_roots(loop.body))
    loads = [node for node in nodes if node.op == "load"]
    if any(node.attr[0] in nest.written for node in loads) or any(map(_takes_long, nodes)):
        return 1
    in_lanes = {node.attr: node.axes for node in loads if vector in node.axes}
    if len(in_lanes) < 2 or any(axis in axes for axes in in_lanes.values()):
        return 1
    own = find_row_values(nodes, axis, vector)
    free = nest.machine.registers - WORKING_REGISTERS - len(in_lanes)
    return next((count for count in _COUNTS if count * len(own) <= free), 1)


def calls_function(node: Expr) -> bool:
    """Whether an operation calls a function of the math library."""
    return bool(node.args) and count_math_calls(node.op, node.args[0].dtype) > 0


def _takes_long(node: Expr) -> bool:
    return node.dtype.kind == "c" or calls_function(node)


def find_row_values(nodes: list[Expr], axis: Axis, vector: Axis) -> list[Expr]:
    """What lanes read of one row: the same number in all of them."""
    used = {id(arg): arg for node in nodes if vector in node.axes for arg in node.args}
    return [arg for arg in used.values() if axis in arg.axes and vector not in arg.axes]


# -- single updates -----------------------------------------------------------------------------------------
def find_listed(nest: Nest) -> Decisions:
    """Loops in lanes of one store at places that are found while it runs: lanes list these first."""
    vector = nest.kernel.vector
    loops = [s for s in _list_single_stores(nest) if s.axis is vector]
    return [(s, True) for s in loops if _is_listed(s.body[0], vector)]


def _is_listed(store: Store, axis: Axis) -> bool:
    if store.in_order:
        return True
    return _is_found(store, axis) and all(node.op != "load" or node.attr[0] is not store.buffer
                                          for node in walk(store.roots))


def find_unrolled(nest: Nest) -> Decisions:
    """Loops without lanes of one update at a place that is found while it runs."""
    is_scalar = nest.kernel.vector is None
    return [(s, True) for s in _list_single_stores(nest) if is_scalar and _is_found(s.body[0], s.axis)]


def _list_single_stores(nest: Nest) -> list[Loop]:
    loops = [s for s in nest.sweeps if isinstance(s, Loop) and len(s.body) == 1]
    return [s for s in loops if isinstance(s.body[0], Store)]


def _is_found(store: Store, axis: Axis) -> bool:
    return any(isinstance(atom, Dynamic) and axis in atom.expr.axes for atom, _ in store.offset.terms)
