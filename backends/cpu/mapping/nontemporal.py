"""Loops whose results go past the caches, straight to memory.

In: a kernel. Out: which buffers it writes so. A store to a line that is in no cache reads the line first, to
fill the rest of it. Where an array is written from one end to the other, and is so large that its beginning
has left the caches when its end is written, reading is in vain, and stores of whole lines to memory need a
third less of its bandwidth. Smaller arrays stay with ordinary stores: who reads them next finds them in the
cache. So do loops over rows: lines at the ends of a row are written in part and have to be read all the same,
and then nobody asked for them ahead.
"""

from __future__ import annotations

import math
from collections import Counter

from jitcore.backends.cpu.machine.host import Machine
from jitcore.loopir.expr import OP_COST, Buffer, walk
from jitcore.loopir.index import Axis
from jitcore.loopir.program import Kernel, Loop, Store
from jitcore.loopir.traversal import list_roots
from jitcore.schedule.rules import Decisions, Nest

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


def find(nest: Nest) -> Decisions:
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
