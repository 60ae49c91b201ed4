"""Sweeps down columns: items with sweeps inside, of which neighbours in memory belong to neighbouring items.

In: the mapping of such items. Out: one by which a block of threads lies on a few rows of neighbouring
columns: each thread has several columns, as many as one access takes, and every so-manieth row. Where there
are too few columns to fill a GPU, the schedule has cut rows into blocks (`schedule.two_stage_reductions`).
"""

from __future__ import annotations

from jitcore.backends.gpu.mapping import WARP, Mapping, is_aligned
from jitcore.backends.gpu.tuning import Tuning
from jitcore.loopir.expr import walk
from jitcore.loopir.program import Loop, Reduce, Store
from jitcore.loopir.traversal import flatten, list_roots


def lay_out_columns(mapping: Mapping, access_bytes: int, tuning: Tuning) -> Mapping:
    """The mapping itself for what is more than reductions and stores along one axis: then each thread has one
    column."""
    loops, body = mapping.loops, mapping.body
    if any(loop.bounds for loop in loops) or not all(map(_fits, body)):
        return mapping
    lanes = _count_lanes(loops[-1], body, access_bytes, tuning)
    across, groups = int(loops[-1].axis.extent) // lanes, mapping.items // lanes
    rows = max(int(axis.extent) for statement in body for axis in statement.axes)
    width = -(-across // -(-across // WARP))  # equal tiles
    height = min(tuning.column_block // width, max(1, rows // tuning.team_work))
    width = max(width, min(groups, tuning.column_block // height))
    return mapping._replace(team=height, elements=lanes, block=width * height)


def _fits(statement) -> bool:
    if isinstance(statement, Reduce):
        return len(statement.axes) == 1 and not statement.stores
    stores = statement.body if isinstance(statement, Loop) else [statement]
    return all(isinstance(s, Store) and not s.packed for s in stores)


def _count_lanes(loop: Loop, body: list, access_bytes: int, tuning: Tuning) -> int:
    """Columns of a thread: those of one access, if all accesses can have as many."""
    axis, stores = loop.axis, [s for s in flatten(body) if isinstance(s, Store)]
    if any(s.is_update or s.mask is not None or axis not in s.offset.axes() for s in stores):
        return 1
    if any(axis in end.axes for statement in body for end in statement.ends):
        return 1
    accesses = [(s.buffer, s.offset) for s in stores]
    accesses += [node.attr for node in walk(list_roots(body)) if node.op == "load"]
    accesses = [(buffer.dtype.itemsize, index) for buffer, index in accesses if axis in index.axes()]
    held = max([sum(expr.dtype.itemsize for expr in s.values) for s in body], default=0)
    lanes = min(access_bytes // max(size for size, _ in accesses), tuning.most_elements)
    while lanes > 1 and not (int(axis.extent) % lanes == 0 and lanes * held <= tuning.column_bytes
                             and all(is_aligned(index, axis, lanes) for _, index in accesses)):
        lanes //= 2
    return max(lanes, 1)
