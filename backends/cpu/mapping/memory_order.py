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
from jitcore.backends.cpu.machine.tuning import Loops
from jitcore.loopir.expr import OP_COST, Axis, Buffer, Index, walk
from jitcore.loopir.program import Kernel, Loop, Reduce, Scan, Store
from jitcore.loopir.traversal import find_split, list_roots
from jitcore.loopir.ways import Decisions, Nest, Prefetch
from jitcore.schedule.tuning import Tuning


def choose_stream_bytes(machine: Machine) -> float:
    """Bytes of an array from which on its stores go past the caches; infinity where there are none such."""
    if "sse2" not in machine.features:
        return math.inf
    return min(machine.caches.l3, machine.loops.max_share * machine.processors)


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
    if all(_count_bytes(loop.axis, store.buffer) < machine.loops.near_bytes for store in loop.body):
        return ()
    limit = choose_stream_bytes(machine)
    loads = [(homes.get(buffer, buffer), offset) for store in loop.body for buffer, offset in store.loads]
    stores = Counter(homes.get(store.buffer, store.buffer) for store in loop.body)
    read, moved = {buffer for buffer, _ in loads}, {b for b, offset in loads if loop.axis in offset.axes()}
    if _count_bytes(loop.axis, *(moved | stores.keys())) < machine.loops.min_traffic * limit:
        return ()
    nodes = walk(list_roots(loop.body))
    if sum(OP_COST.get(node.op, 0) for node in nodes) > machine.loops.max_streamed_cost:
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


# Narrower registers than these have no instruction for the part of them that a row fills.
MIN_VECTOR_BYTES = 32


class Access(NamedTuple):
    """Where a sweep reads or writes neighbours along a row."""

    buffer: Buffer
    index: Index


def find_transposed(nest: Nest) -> Decisions:
    """A kernel with the axis of its rows, of which each lane gets one."""
    rows = find_row_axis(nest.kernel, nest.machine) if nest.is_plain else None
    return [] if rows is None else [(nest.kernel, rows)]


def find_row_axis(kernel: Kernel, machine: Machine) -> Axis | None:
    """The axis of the rows of a kernel that goes this way; None where it is of another kind or gains none."""
    loop, along, vector_bytes = kernel.body[0], kernel.vector, machine.vector_bytes
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
    is_short = along.extent * widest <= _find_limit(loop, along, machine.loops) * vector_bytes
    if vector_bytes < MIN_VECTOR_BYTES or not is_short:
        return None
    return loop.axis if 0 < len(accesses) <= machine.loops.max_kept_arrays else None


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


def _find_limit(loop: Loop, along: Axis, tuning: Loops) -> float:
    """Registers of the longest rows that gain."""
    statements = list_statements(loop)
    nodes = [node for node in walk([root for s in statements for root in s.roots]) if node.args]
    work = sum(OP_COST.get(node.op, 1) for node in nodes if along not in node.axes)
    parts = [part for s in statements if isinstance(s, Reduce) for part in s.parts]
    is_searched = any(op.startswith("arg") for _, op, _ in parts)  # lanes, for a place
    if work >= tuning.much_work or is_searched:
        return tuning.longest_row
    if any(along in store.offset.axes() for s in statements for store in s.stores):
        has_functions = any(OP_COST.get(node.op, 1) >= tuning.function_cost for node in nodes)
        return tuning.read_row if has_functions else tuning.written_row
    return tuning.working_row if work >= tuning.some_work else tuning.read_row


def find_interchanged(nest: Nest) -> Decisions:
    """Kernels whose sweep down the columns goes row by row."""
    is_open = nest.is_plain and "transpose" not in nest.kernel.ways
    return [(nest.kernel, True)] if is_open and _goes_row_by_row(nest) else []


def find_halved(nest: Nest) -> Decisions:
    """Reductions of a kernel that read both halves of a row at a time, if one of them has long rows."""
    if not _keeps_order(nest):
        return []
    _, body = _find_rows(nest.kernel)
    if not any(goes_in_halves(nest, s) and _is_long(nest, s) for s in body):
        return []
    return [(s, True) for s in nest.sweeps if goes_in_halves(nest, s)]


def find_ahead(nest: Nest) -> Decisions:
    """The sweep that asks for what it, or one before it, will read later."""
    if "interchange" in nest.kernel.ways:
        found = _find_scanned(nest)
    elif _keeps_order(nest) and not any("halves" in s.ways for s in nest.sweeps):
        found = _find_places(nest) or _find_next_rows(nest)
    else:
        return []
    return [] if found is None else [found]


def _keeps_order(nest: Nest) -> bool:
    return nest.is_plain and not nest.kernel.ways.keys() & {"transpose", "interchange"}


def find_alternating(nest: Nest) -> Decisions:
    """Kernels whose range may begin at its end."""
    return [(nest.kernel, True)] if nest.kernel.parallel and goes_to_and_fro(nest) else []


def goes_to_and_fro(nest: Nest) -> bool:
    """Whether a kernel's range may begin at its end where that was in a cache last: what its iterations read
    and write lies in their order in memory, as rows do; columns do where there are so many that each thread's
    pieces of them are long runs."""
    kernel = nest.kernel
    first, split = kernel.body[0], find_split(kernel)
    if split is not None:
        return isinstance(split[1], Reduce)  # a scan goes in rounds, whose blocks are in the cache anyway
    if isinstance(first, Loop):
        is_across = kernel.tile is not None and kernel.tile[0] is first.axis
        has_sweeps = any(isinstance(s, (Reduce, Scan)) for s in first.body)
        is_down = first.axis is kernel.vector and has_sweeps and "transpose" not in kernel.ways
        are_many = isinstance(first.axis.extent, int) and first.axis.extent >= nest.machine.loops.many_columns
        return not is_across and (not is_down or are_many and "interchange" not in kernel.ways)
    return isinstance(first, Reduce)


def _goes_row_by_row(nest: Nest) -> bool:
    """Whether a kernel is one scan down the columns of a large array, or one reduction and its results."""
    kernel, tuning = nest.kernel, nest.machine.loops
    loop = kernel.body[0]
    if len(kernel.body) > 1 or not isinstance(loop, Loop) or loop.axis is not kernel.vector:
        return False
    if "nontemporal" in kernel.ways:
        return False
    sweep, *rest = loop.body
    if not all(isinstance(s, Store) for s in rest) or not isinstance(sweep, (Reduce, Scan)):
        return False
    rows = row_axis_of(sweep)
    has_more = rest if isinstance(sweep, Scan) else sweep.stores
    if rows is None or sweep.bounds or sweep.block_results or has_more:
        return False
    if isinstance(sweep, Scan) and nest.machine.is_zen:
        return False
    if not isinstance(rows.extent, int) or rows.extent < tuning.min_rows:
        return False
    nodes = walk(sweep.roots)
    if any(node.args and kernel.vector in node.axes and rows not in node.axes for node in nodes):
        return False  # would be computed for each row again
    return any(index.coefficient(rows) not in (None, 0) and _is_beyond(nest, buffer, 1)
               and kernel.vector.extent * buffer.dtype.itemsize >= tuning.min_wide_row
               for buffer, index in _list_rows(kernel, sweep))


def row_axis_of(sweep: Reduce | Scan) -> Axis | None:
    """The axis that a sweep down columns runs along; None where there are several."""
    axes = sweep.axes
    return axes[0] if len(axes) == 1 else None


def _find_rows(kernel: Kernel) -> tuple[Axis | None, list]:
    """The innermost loop around a kernel's sweeps, and what is done for each of its iterations."""
    axis, body = None, kernel.body
    while (outer := next((s for s in body if _holds_rows(kernel, s)), None)) is not None:
        axis, body = outer.axis, outer.body
    return axis, body


def _holds_rows(kernel: Kernel, statement) -> bool:
    """Whether a statement is a loop around those over the lanes' axis."""
    if not isinstance(statement, Loop) or statement.axis is kernel.vector:
        return False
    return any(kernel.vector in s.axes or _holds_rows(kernel, s) for s in statement.body)


def goes_in_halves(nest: Nest, statement) -> bool:
    """Whether a statement is a plain reduction along rows, with little arithmetic."""
    kernel, tuning = nest.kernel, nest.machine.loops
    if not isinstance(statement, Reduce) or statement.axes != (kernel.vector,):
        return False
    if statement.stores or statement.bounds or statement.finds_places:
        return False
    nodes, rows = walk(statement.roots), _list_rows(kernel, statement)
    loads = {node.attr for node in nodes if node.op == "load" and kernel.vector in node.axes}
    is_real = all(node.dtype.kind != "c" for node in nodes)
    return (0 < len(rows) <= tuning.max_read_arrays and loads == set(rows) and is_real
            and sum(OP_COST.get(node.op, 0) for node in nodes) <= tuning.max_read_cost)


def _is_long(nest: Nest, reduce: Reduce) -> bool:
    """Whether its rows are long, or the blocks of one that threads share, and the array is large."""
    kernel, tuning = nest.kernel, nest.machine.loops
    length = kernel.vector.extent
    length = min(length, int(reduce.block)) if reduce.block_results else length
    long = [buffer for buffer, _ in _list_rows(kernel, reduce)
            if length * buffer.dtype.itemsize >= tuning.min_long_row]
    return any(_is_beyond(nest, buffer, tuning.min_long_array) for buffer in long)


def _find_next_rows(nest: Nest) -> tuple[Loop | Reduce | Scan, Prefetch] | None:
    """What the second of several sweeps over the rows of a loop reads of a large array again, or what a
    stencil reads first; None where there is no such sweep."""
    kernel, tuning = nest.kernel, nest.machine.loops
    axis, body = _find_rows(kernel)
    sweeps = [s for s in body if not isinstance(s, Store)]
    if axis is None or not sweeps or not all(sweep.axes == (kernel.vector,) for sweep in sweeps):
        return None
    if len(sweeps) == 1:
        sweep, accesses, lengths = sweeps[0], _find_leading(nest, sweeps[0]), tuning.stencil_rows
    elif isinstance(sweeps[0], Reduce):
        first, sweep, lengths = set(_list_rows(kernel, sweeps[0])), sweeps[1], tuning.short_rows
        accesses = [access for access in _list_rows(kernel, sweep) if access in first]
    else:
        return None
    extent = kernel.vector.extent
    wanted = [(buffer, index) for buffer, index in accesses if index.coefficient(axis) not in (None, 0)
              and extent * buffer.dtype.itemsize in lengths and _is_beyond(nest, buffer, 1)]
    if not wanted:
        return None
    shortest = extent * min(buffer.dtype.itemsize for buffer, _ in wanted)
    distance = 1 << max(0, round(math.log2(tuning.min_ahead / shortest)))
    return sweep, Prefetch("rows", tuple(wanted), axis, distance)


def _find_scanned(nest: Nest) -> tuple[Loop | Reduce | Scan, Prefetch] | None:
    """What a scan that goes row by row reads and writes; a reduction leaves it to the processor, as it reads
    more rows side by side."""
    scan = nest.kernel.body[0].body[0]
    if not isinstance(scan, Scan):
        return None
    distance = nest.machine.loops.scanned_rows * (-1 if scan.reverse else 1)
    rows, written = tuple(_list_rows(nest.kernel, scan)), ((scan.buffer, scan.offset),)
    return scan, Prefetch("scanned", rows, scan.axis, distance, written)


def _find_places(nest: Nest) -> tuple[Loop | Reduce | Scan, Prefetch] | None:
    """The places that a flat loop reads from memory, of elements that lie behind the second cache. Processors
    where this was not measured are left alone."""
    kernel, tuning = nest.kernel, nest.machine.loops
    loop, axis = kernel.body[0], kernel.vector
    if len(kernel.body) > 1 or not isinstance(loop, Loop) or loop.axis is not axis or nest.machine.is_zen:
        return None
    if not all(isinstance(s, Store) and _is_run(s.offset, axis) for s in loop.body):
        return None
    loads = (access for store in loop.body for access in store.loads)
    waiting = [index for buffer, index in loads
               if _is_beyond(nest, buffer, 1) and buffer.known_bytes <= tuning.max_near]
    nodes = (node for index in waiting for node in walk(index.exprs) if node.op == "load")
    places = dict.fromkeys(node.attr for node in nodes if _is_run(node.attr[1], axis))
    if not places:
        return None
    distance = tuning.places_distance // max(buffer.dtype.itemsize for buffer, _ in places)
    return loop, Prefetch("places", tuple(places), axis, distance)


def _find_leading(nest: Nest, sweep) -> list[tuple[Buffer, Index]]:
    """Of each array that a stencil reads, the place that lies furthest ahead: nobody has read it before."""
    if find_stencil_store(sweep) is None or nest.machine.name in nest.machine.loops.fetching_in_time:
        return []
    leading: dict[Buffer, Index] = {}
    for buffer, index in _list_rows(nest.kernel, sweep):
        if buffer not in leading or int(index.const) > int(leading[buffer].const):
            leading[buffer] = index
    return list(leading.items())


def find_stencil_store(loop: Loop | Reduce | Scan) -> Store | None:
    """The first result of a loop that reads an array at several places beside each other, and none that it
    writes; None if it is no such loop."""
    if not isinstance(loop, Loop) or not all(isinstance(s, Store) for s in loop.body):
        return None
    first, written = loop.body[0], {store.buffer for store in loop.body}
    accesses = {access for store in loop.body for access in store.loads}
    if any(buffer in written for buffer, _ in accesses):
        return None
    places = Counter(buffer for buffer, index in accesses if _is_run(index, loop.axis))
    is_stencil = any(count > 1 for count in places.values())
    return first if is_stencil and _is_run(first.offset, loop.axis) else None


def _is_run(index, axis: Axis) -> bool:
    """Whether lanes along an axis are neighbours in memory."""
    return index.coefficient(axis) == 1 and not index.exprs


def _list_rows(kernel: Kernel, sweep) -> list[tuple[Buffer, Index]]:
    """Accesses of neighbours in memory along the lanes, each once, at places that the loops alone tell."""
    statements = sweep.body if isinstance(sweep, Loop) else [sweep]
    found = dict.fromkeys(access for statement in statements for access in statement.loads)
    return [(buffer, index) for buffer, index in found if _is_run(index, kernel.vector)]


def _is_beyond(nest: Nest, buffer: Buffer, times: int) -> bool:
    """Whether an array is so many times larger than the second cache."""
    size, machine = buffer.known_bytes, nest.machine
    return size is not None and size >= machine.loops.near_bytes and size > times * machine.caches.l2
