"""Vectorisation: how many registers an iteration in lanes fills, and what becomes of the ends of ranges.

In: a kernel, and the rules before these. Out: `Vectors` of its loops in lanes, and of what these leave; loops
that begin at a cache line; rows that are searched for the place of an extreme.
"""

from __future__ import annotations

from jitcore import dtypes
from jitcore.backends.cpu.machine.host import count_math_calls
from jitcore.backends.cpu.mapping.prefetching import find_stencil_store
from jitcore.backends.cpu.mapping.strides import shares_registers
from jitcore.loopir.expr import Expr, walk
from jitcore.loopir.index import Axis
from jitcore.loopir.monoids import part_size
from jitcore.loopir.program import Loop, Reduce, Repeat, Scan
from jitcore.loopir.traversal import block_totals, flatten
from jitcore.loopir.ways import Vectors
from jitcore.schedule.rules import Decisions, Nest

# Expressions of a round of a loop in registers that is too short to hide its own latency.
MAX_ROUND_NODES = 32
# What has the same bits wherever it is computed: the place is where the value is equal to the extreme.
EXACT = {"load", "index", "const", "abs", "neg", "convert"}
FLOATS = (dtypes.float32, dtypes.float64)


def find(nest: Nest) -> Decisions:
    """Sweeps in lanes with their vectors."""
    return [(s, choose_vectors(nest, s)) for s in nest.sweeps if any(map(nest.runs_in_lanes, axes_of(s)))]


def find_totals(nest: Nest) -> Decisions:
    """Scans in blocks with the vectors of their first phase, which reduces each block to its total."""
    scans = [s for s in nest.sweeps if isinstance(s, Scan) and s.partials and nest.runs_in_lanes(s.axis)]
    return [(s, choose_vectors(nest, block_totals(s, ()))) for s in scans]


def axes_of(sweep: Loop | Reduce | Scan) -> tuple[Axis, ...]:
    return sweep.axes if isinstance(sweep, Reduce) else (sweep.axis,)


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
        is_short = isinstance(inner, Repeat) and len(nodes) <= MAX_ROUND_NODES or is_short
        for node in nodes:
            parts = 2 if node.dtype.kind == "c" else parts
            if isinstance(inner, Repeat) and nest.kernel.vector not in node.axes:
                continue  # one for all lanes, as counters of rounds are
            if node.op != "index" and not (node.dtype == dtypes.int64 and node.op == "const"):
                widest = max(widest, part_size(node.dtype))
    has_math = has_math or isinstance(sweep, Reduce) and (
        "jam" in sweep.ways or shares_registers(sweep, nest.kernel.vector))
    is_sum = isinstance(sweep, Reduce) or isinstance(sweep, Scan) and sweep.is_long
    usual = 4 if is_short else (4 if is_sum else 2) // parts
    is_single = has_math or _waits(nest) or find_stencil_store(sweep) is not None
    return _fill(nest, 1 if is_single else usual, widest)


def _fill(nest: Nest, registers: int, widest: int) -> Vectors:
    return Vectors(registers, widest, max(2, registers * nest.machine.vector_bytes // widest))


def calls_function(node: Expr) -> bool:
    return bool(node.args) and count_math_calls(node.op, node.args[0].dtype) > 0


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
        has_positions = any(op.startswith("arg") for _, op, _ in s.parts)
        if narrow.lanes < vectors.lanes and not has_positions:
            found.append((s, narrow))
    return found


def find_peeled(nest: Nest) -> Decisions:
    """Stencils in lanes, with the result whose cache lines they begin with."""
    found = [(s, find_stencil_store(s)) for s in nest.sweeps if "vectors" in s.ways]
    return [(s, store) for s, store in found if store is not None and "nontemporal" not in nest.kernel.ways]
