"""How many columns a loop takes at a time whose reductions and scans run down the columns.

In: a kernel. Out: its loops in lanes that take several times the usual lanes at a time. Rows lie far from
each other: whole cache lines of each row, some next to each other, are read from memory and kept by caches
better than pieces of lines, above all where rows are a power of two apart and fall into few sets of a cache.
A second sweep then finds in the cache what the first one read.
"""

from __future__ import annotations

from jitcore.backends.cpu.mapping.jam import WORKING_REGISTERS
from jitcore.backends.llvm.options import is_static
from jitcore.loopir.expr import walk
from jitcore.loopir.program import Loop, Reduce, Scan
from jitcore.schedule.rules import Decisions, Nest

# Multiples of the usual lanes, the most first.
_MULTIPLES = (4, 2)
# Instructions of a wide group: longer formulas take long to compile, and have much to do while they wait.
_MAX_OPERATIONS = 160


def find(nest: Nest) -> Decisions:
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
    running = lanes * max(map(_count_bytes, sweeps)) / vector_bytes
    registers = lanes * max(map(_find_itemsize, sweeps)) / vector_bytes
    operations = registers * sum(map(_count_in_lanes, loop.body))
    free = nest.machine.registers - WORKING_REGISTERS
    return next((multiple for multiple in _MULTIPLES
                 if multiple * running <= free and multiple * operations <= _MAX_OPERATIONS), 1)


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
