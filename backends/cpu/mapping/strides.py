"""Lanes that lie a few elements apart in memory.

In: the index of an access. Out: its stride along the axis in lanes, where registers and shuffles serve it.
"""

from __future__ import annotations

from jitcore.loopir.expr import walk
from jitcore.loopir.index import Axis, Index

# Accesses further apart use one instruction per lane.
MAX_STRIDE = 8


def find_stride(index: Index, axis: Axis) -> int | None:
    """The stride along an axis if it is small: from -8 to 8, but neither 0 nor 1."""
    stride = index.coefficient(axis)
    is_small = isinstance(stride, int) and stride not in (0, 1) and abs(stride) <= MAX_STRIDE
    return stride if is_small else None


def shares_registers(statement, axis: Axis) -> bool:
    """Whether iterations around a statement in lanes of `axis` read or write neighbours in memory."""
    offsets = [node.attr[1] for node in walk(statement.roots) if node.op == "load"]
    offsets += [store.offset for store in statement.stores]
    return any(find_stride(offset, axis) is not None for offset in offsets)
