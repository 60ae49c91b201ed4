"""How square roots and quotients are shared out to two units of a core.

In: a `Kernel`, or what a loop computes. Out: a `Share`, or divisors to invert. Stage: rendering. The unit
that divides takes several times as long for a register of roots or quotients as another operation, and the
units that multiply wait for it; these can compute some of the registers of roots, or all where there are
divisions too (`mathlib.roots`), and quotients of one divisor (`mathlib.quotient`). That pays where the kernel
gives them little else to do.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from math import prod

from jitcore import dtypes
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.machine.tuning import Loops
from jitcore.backends.llvm.options import is_static
from jitcore.backends.llvm.scalar_ops import DIVISIONS, count_math_calls
from jitcore.loopir.expr import Axis, Expr, walk
from jitcore.loopir.program import Kernel, Reduce
from jitcore.loopir.traversal import flatten


class Share(enum.IntEnum):
    """One of how many registers of roots the multiplying units compute."""

    NONE, ALL, HALF, QUARTER = 0, 1, 2, 4


def share_roots(kernel: Kernel, tuning: Loops) -> Share:
    """What the multiplying units have time for."""
    work = roots = divisions = 0
    is_single = False
    for node, count in _weigh(kernel.body, kernel.vector, tuning.usual_extent):
        if node.op == "sqrt":
            roots, is_single = roots + count, is_single or node.dtype.itemsize == 4
        elif node.op == "div":
            divisions += count
        elif node.args:
            work += count
    if not roots or work > tuning.max_work_beside_roots * (roots + divisions):
        return Share.NONE
    if host.is_zen():
        # its unit is fast: roots of float32 take no longer there than those that are multiplied
        return Share.QUARTER if is_single else Share.HALF
    return Share.ALL if divisions else Share.HALF


def find_divisions(roots: list[Expr], vector: Axis | None, tuning: Loops) -> list[Expr]:
    """Divisions in lanes that share a divisor, and so multiply with its inverse: those of integers always."""
    nodes = [node for node in walk(roots) if vector in node.axes and node.args]
    shared = [node for node in nodes if node.op in DIVISIONS and vector not in node.args[1].axes]
    floats = [node for node in shared if node.op == "div" and node.dtype == dtypes.float64]
    others = [node for node in nodes if node.dtype.kind == "f"]
    found = floats if _has_time(len(floats), others, tuning) else []
    return found + [node for node in shared if node.dtype.kind in "iu" and not _is_easy(node.args[1])]


def _is_easy(divisor: Expr) -> bool:
    """Whether LLVM divides lanes of integers well by it: by constants, of 64 bits by powers of two alone."""
    return divisor.op == "const" and (divisor.dtype.itemsize < 8 or int(divisor.attr).bit_count() <= 1)


def _has_time(divisions: int, nodes: list[Expr], tuning: Loops) -> bool:
    """Whether the multiplying units have time to make quotients in double precision with inverses. Not on
    processors where this was not measured: an Intel Xeon takes 0.35 of the time in the cache, but 1.07 beside
    an exponential function."""
    if host.is_zen() or "avx512f" not in host.cpu_features():
        return False
    has_math = any(count_math_calls(node.op, node.args[0].dtype) for node in nodes)
    return not has_math and len(nodes) - divisions <= tuning.max_work_beside_roots * divisions


def _weigh(body: list, vector: Axis | None, usual_extent: int) -> Iterator[tuple[Expr, int]]:
    """The operations in lanes on floats, and how often each is done for every iteration of the lanes."""
    for statement in flatten(body):
        swept = statement.axes if isinstance(statement, Reduce) else ()
        inner = [axis.extent for axis in swept if axis is not vector]
        count = prod(extent if is_static(extent) else usual_extent for extent in inner)
        for node in walk(statement.roots):
            if vector in node.axes and node.dtype.kind == "f":
                yield node, count
