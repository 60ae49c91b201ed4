"""Memory order: results that go past the caches, and short rows that go one in each lane.

In: a kernel. Out: which buffers it writes past the caches; the axis of its short rows, and where it reads and
writes these.

Nontemporal stores: a store to a line that is in no cache reads the line first, to fill the rest of it. Where
an array is written from one end to the other, and is so large that its beginning has left the caches when its
end is written, reading is in vain, and stores of whole lines to memory need a third less of its bandwidth.
Smaller arrays stay with ordinary stores: who reads them next finds them in the cache. So do loops over rows:
lines at the ends of a row are written in part and have to be read all the same, and then nobody asked for
them ahead.

Rows that fill few registers: along such a row there is little to do, and what follows a sweep, such as the
logarithm of a sum, would be done for a single number. `rows_in_lanes` makes the instructions.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

from jitcore.backends.cpu.machine.host import Machine
from jitcore.loopir.expr import OP_COST, Axis, Buffer, Index, walk
from jitcore.loopir.program import Kernel, Loop, Reduce, Store
from jitcore.loopir.traversal import list_roots
from jitcore.loopir.ways import Decisions, Nest
from jitcore.schedule.tuning import Tuning

# Shorter arrays are in caches everywhere, so nobody need ask how large these are.
SMALL_BYTES = 1 << 20
# What a loop reads and writes, in sizes of the last cache: a loop that only writes finds more of its output
# there from the last time.
MIN_TRAFFIC = 1.5
# Bytes of the last cache that a processor can count on. A virtual machine is told of all of a cache that
# others use too: where two processors see 480 MiB, 64 MiB and more are copied past it in 0.6 of the time.
MAX_SHARE = 32 << 20
# Cost of functions above which a loop waits for arithmetic: then such stores take longer, by a few percent.
MAX_COST = 12


def choose_stream_bytes(machine: Machine) -> float:
    """Bytes of an array from which on its stores go past the caches; infinity where there are none such."""
    if "sse2" not in machine.features:
        return math.inf
    return min(machine.caches.l3, MAX_SHARE * machine.processors)


def find_nontemporal(nest: Nest) -> Decisions:
    """A kernel with the buffers that it writes past the caches."""
    streams = find_streams(nest.kernel, nest.homes, nest.machine)
    return [(nest.kernel, streams)] if streams else []


def find_streams(kernel: Kernel, homes: dict[Buffer, Buffer], machine: Machine) -> tuple[Buffer, ...]:
    """The buffers that a kernel of one loop in lanes writes from one end to the other and does not read.

    homes: buffers that live in the memory of others."""
    loop = kernel.body[0]
    is_flat = len(kernel.body) == 1 and isinstance(loop, Loop) and loop.axis is kernel.vector
    if not is_flat or kernel.far or kernel.others or kernel.tile or not isinstance(loop.axis.extent, int):
        return ()
    if not all(isinstance(s, Store) and s.mask is None and not s.is_update for s in loop.body):
        return ()
    if all(_count_bytes(loop.axis, store.buffer) < SMALL_BYTES for store in loop.body):
        return ()
    limit = choose_stream_bytes(machine)
    loads = [(homes.get(buffer, buffer), offset) for store in loop.body for buffer, offset in store.loads]
    stores = Counter(homes.get(store.buffer, store.buffer) for store in loop.body)
    read, moved = {buffer for buffer, _ in loads}, {b for b, offset in loads if loop.axis in offset.axes()}
    if _count_bytes(loop.axis, *(moved | stores.keys())) < MIN_TRAFFIC * limit:
        return ()
    nodes = walk(list_roots(loop.body))
    if sum(OP_COST.get(node.op, 0) for node in nodes) > MAX_COST:
        return ()
    found = [store.buffer for store in loop.body if _is_in_order(store, loop.axis)
             and _count_bytes(loop.axis, store.buffer) >= limit]
    alone = {home for home, count in stores.items() if count == 1 and home not in read}
    return tuple(buffer for buffer in found if homes.get(buffer, buffer) in alone)


def _is_in_order(store: Store, axis: Axis) -> bool:
    """Whether lanes along an axis write neighbours in memory, each one number."""
    is_number = store.buffer.dtype.kind in "iuf"
    return is_number and store.offset.coefficient(axis) == 1 and not store.offset.exprs


def _count_bytes(axis: Axis, *buffers: Buffer) -> int:
    """Bytes of one element of each buffer for each position of an axis."""
    return axis.extent * sum(buffer.dtype.itemsize for buffer in buffers)


# Registers that a row fills at most: beyond that, transposing takes more time than combining lanes. Where
# rows are written too, where they are read only, and with more to do for a row beside its elements, by that
# work in multiply-adds.
WRITTEN, READ, WORKING, MOST = 1.25, 2, 3, 4
SOME_WORK, MUCH_WORK = 8, 16
# Narrower registers than these have no instruction for the part of them that a row fills.
MIN_VECTOR_BYTES = 32
# The cost of functions, of which lanes without an element are not given any here.
FUNCTION_COST = 10
# Arrays whose rows are kept.
MAX_ARRAYS = 4


class Access(NamedTuple):
    """Where a sweep reads or writes neighbours along a row."""

    buffer: Buffer
    index: Index


def find_transposed(nest: Nest) -> Decisions:
    """A kernel with the axis of its rows, of which each lane gets one."""
    rows = find_row_axis(nest.kernel, nest.machine.vector_bytes) if nest.is_plain else None
    return [] if rows is None else [(nest.kernel, rows)]


def find_row_axis(kernel: Kernel, vector_bytes: int) -> Axis | None:
    """The axis of the rows of a kernel that goes this way; None where it is of another kind or gains none."""
    loop, along = kernel.body[0], kernel.vector
    if len(kernel.body) > 1 or not isinstance(loop, Loop) or loop.axis is along or loop.bounds:
        return None
    if not all(isinstance(axis.extent, int) for axis in (loop.axis, along)) or along.extent <= Tuning.short:
        return None
    sweeps = [s for s in loop.body if not isinstance(s, Store)]
    if loop.axis.extent < Tuning.grain_lanes or not any(isinstance(s, Reduce) for s in sweeps):
        return None
    if not all(_is_plain(sweep, along) for sweep in sweeps) or not _is_consistent(loop, along):
        return None
    accesses = list_accesses(loop, along)
    widest = max((buffer.dtype.itemsize for buffer, _ in accesses), default=0)
    is_short = along.extent * widest <= _find_limit(loop, along) * vector_bytes
    if vector_bytes < MIN_VECTOR_BYTES or not is_short:
        return None
    return loop.axis if 0 < len(accesses) <= MAX_ARRAYS else None


def _is_plain(sweep, along: Axis) -> bool:
    """Whether a statement sweeps over all of a row, element by element."""
    if not isinstance(sweep, (Loop, Reduce)) or sweep.bounds:
        return False
    if isinstance(sweep, Reduce):
        return sweep.axes == (along,) and not sweep.block_results and all(map(_is_set, sweep.stores))
    return sweep.axis is along and all(map(_is_set, sweep.body))


def _is_set(statement) -> bool:
    return isinstance(statement, Store) and statement.mask is None and not statement.is_update


def _is_consistent(loop: Loop, along: Axis) -> bool:
    """Whether rows of plain numbers are read and written as they lie, each array at one place."""
    written: dict[Buffer, set[Index]] = {}
    for statement in list_statements(loop):
        for buffer, index in statement.targets:
            written.setdefault(buffer, set()).add(index)
    for buffer, index in _list_all(loop):
        if written.get(buffer, {index}) != {index}:
            return False
        if along not in index.axes():
            continue
        stride, is_number = index.coefficient(loop.axis), buffer.dtype.kind in "fiu"
        is_apart = isinstance(stride, int) and (stride == 0 or stride > Tuning.short)
        if index.coefficient(along) != 1 or index.exprs or not is_apart:
            return False
        if not is_number or buffer.dtype.itemsize < 4:
            return False
    return True


def list_statements(loop: Loop) -> list:
    return [inner for s in loop.body for inner in (s.body if isinstance(s, Loop) else [s])]


def _list_all(loop: Loop) -> list[Access]:
    """Every access in the loop, each once."""
    found = [access for s in list_statements(loop) for access in s.loads]
    found += [access for s in list_statements(loop) for access in s.targets]
    return [Access(*access) for access in dict.fromkeys(found)]


def list_accesses(loop: Loop, along: Axis) -> list[Access]:
    """Those of rows, which differ from row to row."""
    return [access for access in _list_all(loop)
            if along in access.index.axes() and access.index.coefficient(loop.axis) != 0]


def _find_limit(loop: Loop, along: Axis) -> float:
    """Registers of the longest rows that gain."""
    statements = list_statements(loop)
    nodes = [node for node in walk([root for s in statements for root in s.roots]) if node.args]
    work = sum(OP_COST.get(node.op, 1) for node in nodes if along not in node.axes)
    parts = [part for s in statements if isinstance(s, Reduce) for part in s.parts]
    if work >= MUCH_WORK or any(op.startswith("arg") for _, op, _ in parts):  # lanes are searched for a place
        return MOST
    if any(along in store.offset.axes() for s in statements for store in s.stores):
        has_functions = any(OP_COST.get(node.op, 1) >= FUNCTION_COST for node in nodes)
        return READ if has_functions else WRITTEN
    return WORKING if work >= SOME_WORK else READ
