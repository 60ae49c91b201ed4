"""Vectorisation: how many registers an iteration in lanes fills, and what becomes of the ends of ranges.

In: a kernel, and the rules before these. Out: `Vectors` of its loops in lanes, and of what these leave; loops
that begin at a cache line; rows that are searched for the place of an extreme; long sums; strips of columns.

Long sums: a sum of many numbers loses a digit whenever it grows by a factor of ten, so long ones are made in
short runs, which `accumulator.Total` adds up. Shorter ones keep the usual code.

Strips: where reductions and scans run down the columns, a loop takes several times the usual lanes. Rows lie
far from each other: whole cache lines of each row, some next to each other, are read from memory and kept by
caches better than pieces of lines, above all where rows are a power of two apart and fall into few sets of a
cache. A second sweep then finds in the cache what the first one read.

Unroll-and-jam: rows go side by side where all of them read the same. Where all pairs of points are compared,
what all rows read is loaded once; where a matrix is multiplied with a vector, each row is read too.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitcore import dtypes
from jitcore.backends.cpu.machine.host import count_math_calls
from jitcore.backends.cpu.mapping.memory_order import find_stencil_store
from jitcore.backends.llvm.options import is_static
from jitcore.loopir.expr import Axis, Dynamic, Expr, Index, walk
from jitcore.loopir.monoids import is_summed
from jitcore.loopir.program import Loop, Reduce, Repeat, Scan, Store
from jitcore.loopir.traversal import block_totals, flatten, list_roots
from jitcore.loopir.ways import Decisions, Jam, Nest, Vectors
from jitcore.schedule.tuning import Tuning


def find_stride(index: Index, axis: Axis) -> int | None:
    """The stride along an axis if it is small: from -8 to 8, but neither 0 nor 1."""
    stride = index.coefficient(axis)
    is_small = isinstance(stride, int) and stride not in (0, 1) and abs(stride) <= Tuning.short
    return stride if is_small else None


def shares_registers(statement, axis: Axis) -> bool:
    """Whether iterations around a statement in lanes of `axis` read or write neighbours in memory."""
    offsets = [node.attr[1] for node in walk(statement.roots) if node.op == "load"]
    offsets += [store.offset for store in statement.stores]
    return any(find_stride(offset, axis) is not None for offset in offsets)


# Additions to one register of lanes, and of columns, from which on a sum of numbers of so many bytes is long.
MIN_ALONG, MIN_DOWN = {4: 64, 8: 1024}, {4: 128, 8: 1024}


def find_long(nest: Nest) -> Decisions:
    """Reductions and scans that are long sums; see `Reduce.is_long`."""
    found = []
    for s in nest.sweeps:
        if isinstance(s, Reduce):
            found.append((s, _is_long(nest, s.axes, [(op, expr.dtype) for _, op, expr in s.parts])))
        elif isinstance(s, Scan):
            found.append((s, _is_long(nest, (s.axis,), [(s.op, s.value.dtype)])))
    return found


def _is_long(nest: Nest, axes: Sequence[Axis], parts: list[tuple]) -> bool:
    sizes = [dtypes.part_size(dtype) for op, dtype in parts if is_summed(op, dtype)]
    if not sizes:
        return False
    size, count = min(sizes), 1.0
    for axis in axes:
        if not isinstance(axis.extent, int):
            return True
        lanes = nest.machine.vector_bytes / size if axis is nest.kernel.vector else 1
        count *= max(axis.extent / lanes, 1)
    return count > (MIN_ALONG if nest.kernel.vector in axes else MIN_DOWN)[size]


# What has the same bits wherever it is computed: the place is where the value is equal to the extreme.
EXACT = {"load", "index", "const", "abs", "neg", "convert"}
FLOATS = (dtypes.float32, dtypes.float64)


def find_vectors(nest: Nest) -> Decisions:
    """Sweeps in lanes with their vectors."""
    return [(s, choose_vectors(nest, s)) for s in nest.sweeps if any(map(nest.runs_in_lanes, s.axes))]


def find_totals(nest: Nest) -> Decisions:
    """Scans in blocks with the vectors of their first phase, which reduces each block to its total."""
    scans = [s for s in nest.sweeps if isinstance(s, Scan) and s.block_results and nest.runs_in_lanes(s.axis)]
    return [(s, choose_vectors(nest, block_totals(s, ()))) for s in scans]


def choose_vectors(nest: Nest, sweep: Loop | Reduce | Scan) -> Vectors:
    """Two registers of the widest element, which hide each other's latency. One around mathematical
    functions, whose arithmetic hides it by itself, in stencils, so that more of a short row is whole vectors,
    and where gathers wait for what is behind the second cache; four for plain reductions and short loops in
    registers, which have no arithmetic to hide it. Shuffles count as arithmetic, and so do rows side by side.
    A complex number takes as many as two numbers."""
    widest, parts, has_math, is_short = 1, 1, False, False
    for inner in flatten([sweep]):
        nodes = walk(inner.roots)
        has_math = has_math or any(calls_function(node) for node in nodes)
        is_round = isinstance(inner, Repeat) and len(nodes) <= nest.machine.loops.max_round_nodes
        is_short = is_round or is_short
        for node in nodes:
            parts = 2 if node.dtype.kind == "c" else parts
            if isinstance(inner, Repeat) and nest.kernel.vector not in node.axes:
                continue  # one for all lanes, as counters of rounds are
            if node.op != "index" and not (node.dtype == dtypes.int64 and node.op == "const"):
                widest = max(widest, dtypes.part_size(node.dtype))
    has_math = has_math or isinstance(sweep, Reduce) and (
        "jam" in sweep.ways or shares_registers(sweep, nest.kernel.vector))
    is_sum = isinstance(sweep, Reduce) or isinstance(sweep, Scan) and sweep.is_long
    usual = 4 if is_short else (4 if is_sum else 2) // parts
    is_single = has_math or _waits(nest) or find_stencil_store(sweep) is not None
    return _fill(nest, 1 if is_single else usual, widest)


def _fill(nest: Nest, registers: int, widest: int) -> Vectors:
    return Vectors(registers, widest, max(2, registers * nest.machine.vector_bytes // widest))


def _waits(nest: Nest) -> bool:
    """Whether a kernel waits for elements at computed places, and asks for them ahead."""
    return any("prefetch" in s.ways and s.ways["prefetch"].axis is nest.kernel.vector for s in nest.sweeps)


def find_searched(nest: Nest) -> Decisions:
    """Reductions that look for the place of one extreme of plain numbers along the axis in lanes."""
    return [(s, True) for s in nest.sweeps if isinstance(s, Reduce) and _is_searched(s, nest.kernel.vector)]


def _is_searched(reduce: Reduce, vector: Axis | None) -> bool:
    if reduce.axes != (vector,) or reduce.stores or len(reduce.parts) != 1 or "jam" in reduce.ways:
        return False
    ((_, op, expr),) = reduce.parts
    is_plain = expr.dtype in FLOATS or expr.dtype.kind in "iu"
    return op in ("argmax", "argmin") and is_plain and all(node.op in EXACT for node in walk([expr]))


def find_rest(nest: Nest) -> Decisions:
    """Reductions over ranges that may be short: what whole groups of registers leave takes single ones."""
    found = []
    for s in nest.sweeps:
        if not isinstance(s, Reduce) or s.axes != (nest.kernel.vector,) or not s.bounds or "jam" in s.ways:
            continue
        vectors = s.ways["vectors"]
        narrow = _fill(nest, 1, vectors.widest)
        if narrow.lanes < vectors.lanes and not s.finds_places:
            found.append((s, narrow))
    return found


def find_peeled(nest: Nest) -> Decisions:
    """Stencils in lanes, with the result whose cache lines they begin with."""
    found = [(s, find_stencil_store(s)) for s in nest.sweeps if "vectors" in s.ways]
    return [(s, store) for s, store in found if store is not None and "nontemporal" not in nest.kernel.ways]


def find_strips(nest: Nest) -> Decisions:
    """Loops over columns with how many times the usual lanes they take at a time."""
    ways = nest.kernel.ways
    loops = [s for s in nest.sweeps if isinstance(s, Loop) and "vectors" in s.ways and "peel" not in s.ways]
    is_own = ways.keys() & {"nontemporal", "interchange", "transpose"}
    found = [] if is_own else [(s, _find_multiple(nest, s)) for s in loops]
    return [(s, multiple) for s, multiple in found if multiple > 1]


def _find_multiple(nest: Nest, loop: Loop) -> int:
    """The most lanes at a time for which all running values of a sweep stay in registers. Rows so few that
    they are written out stay in registers or in the first cache by themselves."""
    sweeps = [s for s in loop.body if isinstance(s, (Reduce, Scan))]
    if all(map(_is_short, sweeps)):
        return 1
    lanes, vector_bytes = loop.ways["vectors"].lanes, nest.machine.vector_bytes
    tuning = nest.machine.loops
    running = lanes * max(map(_count_bytes, sweeps)) / vector_bytes
    registers = lanes * max(map(_find_itemsize, sweeps)) / vector_bytes
    operations = registers * sum(map(_count_in_lanes, loop.body))
    free = nest.machine.registers - tuning.working_registers
    return next((multiple for multiple in tuning.strips
                 if multiple * running <= free and multiple * operations <= tuning.max_strip_operations), 1)


def _is_short(sweep: Reduce | Scan) -> bool:
    """Whether there are so few rows that their number stands in the code."""
    return all(is_static(axis.extent) for axis in sweep.axes)


def _count_bytes(sweep: Reduce | Scan) -> int:
    """Bytes of the running values of one column; the position of an extreme is one more."""
    if isinstance(sweep, Scan):
        return sweep.value.dtype.itemsize
    return sum(expr.dtype.itemsize + (result.dtype.itemsize if op.startswith("arg") else 0)
               for result, op, expr in sweep.parts)


def _find_itemsize(sweep: Reduce | Scan) -> int:
    return max(value.dtype.itemsize for value in sweep.values)


def _count_in_lanes(statement) -> int:
    """Expressions of a statement that take registers of lanes: those that vary, and operands of these. Where
    elements are, and what does not vary, is found by itself."""
    varying = [node for node in walk(statement.roots) if node.axes or node.op == "result"]
    return len({id(other) for node in varying for other in (node, *node.args)})


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
    kernel, vector, tuning = nest.kernel, nest.kernel.vector, nest.machine.loops
    if vector is None or reduce.stores or reduce.axes[-1] is not vector or axis is vector:
        return []
    if any(axis in end.axes for end in reduce.ends):
        return []
    nodes = walk(reduce.values)
    loads = [node for node in nodes if node.op == "load" and vector in node.axes]
    if not loads or any(node.attr[0] in nest.written for node in loads) or any(map(_takes_long, nodes)):
        return []
    own, counts = find_row_values(nodes, axis, vector), tuning.jams
    streams = [node for node in loads if axis in node.axes]
    if streams:
        if not has_streams or len(streams) == len(loads) or _reads_ahead(nest) or kernel.far:
            return []
        if is_static(axis.extent) and axis.extent < tuning.min_read_rows:
            return []
        own, counts = [*own, *streams], tuning.read_jams
    registers = nest.machine.registers - tuning.working_registers
    fitting = [count for count in counts if own and count * (len(own) + len(reduce.parts)) <= registers]
    return fitting if streams else fitting[:1]


def _reads_ahead(nest: Nest) -> bool:
    """Whether a rule about how rows are read was chosen."""
    has_own = any(s.ways.keys() & {"halves", "prefetch"} for s in nest.sweeps)
    return has_own or bool(nest.kernel.ways.keys() & {"interchange", "transpose"})


def _count_stored_rows(nest: Nest, axis: Axis, loop: Loop) -> int:
    """How many rows of stores go side by side: several where all that they read in lanes is the same."""
    kernel, vector, tuning = nest.kernel, nest.kernel.vector, nest.machine.loops
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
    free = nest.machine.registers - tuning.working_registers - len(in_lanes)
    return next((count for count in tuning.jams if count * len(own) <= free), 1)


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
