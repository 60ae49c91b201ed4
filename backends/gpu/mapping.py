"""Which threads run what: the mapping of a kernel's iterations.

In: a kernel of the loop program. Out: for each `__global__` function that it becomes, its items (iterations
of the outer loops, which are independent of each other) and how many threads share one. The first rule that
fits:

    pieces   a scan that the schedule has split: a block of threads for each piece, twice, and one between
    rows     items with sweeps inside: a team of threads for each, from 4 to a block
    columns  the same, where neighbours in memory belong to neighbouring items: by teams of threads that lie
             apart, so that those side by side have neighbouring columns (`render.columns`)
    tiles    products of matrices, by tiles of both factors in shared memory (`tiles`), of 16 bits by tensor
             cores (`tensor_cores`)
    turned   stores whose loads lie along the other axis, by tiles in shared memory
    private  many updates of few elements, by tables in shared memory (`render.private_updates`)
    flat     items that are one or few operations each: a thread for each, of several elements side by side
    one      scalars: one thread
    serial   iterations whose order counts: one thread, and slow
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from jitcore.backends.gpu.rows import REGISTER_BYTES, Row, find_row, list_inside
from jitcore.backends.gpu.tuning import Tuning
from jitcore.loopir.expr import Axis, Buffer, Expr, Index, walk
from jitcore.loopir.program import Choice, Kernel, Loop, Reduce, Repeat, Scan, Statement, Store
from jitcore.loopir.traversal import count_runs, find_split, flatten, list_reads, list_writes, peel

#: Threads of a warp. Bytes of the widest access.
WARP, ACCESS_BYTES = 32, 16
#: Threads of a block, at most.
LARGEST_BLOCK = 1024


class Mapping(NamedTuple):
    """kind: the rule's name. loops: the loops whose iterations are items. body: of one item. team: threads
    that share an item; elements: those of one thread. block: threads of a block. reason: why it is slow.
    units: what computes it, besides the usual arithmetic. row: what each team keeps in registers."""

    kind: str
    loops: tuple[Loop, ...]
    body: list
    team: int = 1
    elements: int = 1
    block: int = 1
    reason: str = ""
    units: str = ""
    row: Row | None = None

    @property
    def items(self) -> int:
        """How many items there are, of which each has so many elements."""
        count = math.prod(int(loop.axis.extent) for loop in self.loops)
        return -(-count // self.elements)

    @property
    def is_across(self) -> bool:
        """Whether threads side by side belong to other teams."""
        return self.kind == "columns"

    @property
    def width(self) -> int:
        """Teams of a block."""
        return self.block // self.team

    @property
    def grid(self) -> int:
        """Blocks of threads."""
        return -(-self.items * self.team // self.block)


class Function(NamedTuple):
    """A `__global__` function. buffers, sizes: its arguments. grid: blocks of threads."""

    name: str
    buffers: list[Buffer]
    sizes: list
    mapping: Mapping
    grid: int


def map_kernel(kernel: Kernel, tuning: Tuning, access_bytes: int = ACCESS_BYTES) -> Mapping:
    """The mapping of a kernel that is one function; see `find_split` for the others. access_bytes: of the
    widest access of a thread."""
    loops, body = peel(kernel.body)
    if not is_ordered(kernel):
        if _is_simple(body):
            return _map_teams(kernel, loops, body, access_bytes, tuning)
        if loops:
            return _map_flat(kernel, loops, body, access_bytes, tuning)
    elif can_add_atomically(kernel):
        return Mapping("flat", tuple(loops), body, block=tuning.block)
    if count_work(kernel.body) <= tuning.lone_work:
        return Mapping("one", (), kernel.body)
    why = "updates in order" if is_ordered(kernel) else "statements that depend on each other"
    return Mapping("serial", (), kernel.body, reason=why)


def list_parts(kernel: Kernel) -> list[tuple[tuple[Expr, bool] | None, Kernel]]:
    """A kernel as kernels that run one after the other: statements that stand side by side and need no result
    of each other, and both bodies of a choice, each with the condition that has to hold, or not, for it."""
    parts: list = []
    body = kernel.body
    is_joined = any(s.results for s in body if not isinstance(s, Choice))
    for group in [body] if is_joined else [[statement] for statement in body]:
        (choice,) = group if len(group) == 1 and isinstance(group[0], Choice) else (None,)
        if choice is None or any(isinstance(s, Reduce) for s in choice.body):
            parts.append((None, _take(kernel, group)))
        else:
            parts += [((choice.condition, True), _take(kernel, choice.body)),
                      ((choice.condition, False), _take(kernel, choice.other))]
    if all(guard is None and not peel(part.body)[0] for guard, part in parts):
        return [(None, kernel)]  # scalars
    return parts


def _take(kernel: Kernel, body: list) -> Kernel:
    return Kernel(body, kernel.vector, kernel.parallel)


def cut_pieces(kernel: Kernel, tuning: Tuning) -> None:
    """Cuts a scan that the schedule has split into as many pieces as keep a GPU busy. Their number depends on
    the size alone."""
    split = find_split(kernel)
    if split is None:
        return
    axes, scan = split
    least, count, extent = tuning.least_piece, int(scan.axis.extent), int(scan.axis.extent)
    if has_columns(kernel):
        least = tuning.column_team * tuning.scan_run
        count = count * math.prod(int(axis.extent) for axis in axes) // WARP
    scan.block = max(least, round_up(-(-count // tuning.most_pieces)))
    for buffer in scan.block_results:
        buffer.shape = (-(-extent // scan.block), *buffer.shape[1:])


def has_columns(kernel: Kernel) -> bool:
    """Whether neighbours in memory belong to neighbouring items."""
    loops, body = peel(kernel.body)
    if not loops or kernel.vector is loops[-1].axis:
        return bool(loops)
    return any(isinstance(s, Scan) and s.offset.coefficient(loops[-1].axis) == 1 for s in body)


def is_ordered(kernel: Kernel) -> bool:
    """Whether iterations of the outer loops may not change places."""
    stores = [store for s in flatten([kernel]) for store in s.stores]
    if any(store.in_order or store.turns for store in stores):
        return True
    if kernel.parallel:
        return False
    return any(not store.packed and (store.combine or store.offset.exprs) for store in stores)


def find_lone_store(kernel: Kernel) -> tuple[list[Loop], Store] | None:
    """(loops, store), where a kernel is loops around one store that reads nothing of what it changes."""
    loops, body = peel(kernel.body)
    store = body[0]
    if len(body) > 1 or not isinstance(store, Store) or store.packed:
        return None
    if any(node.op == "load" and node.attr[0] is store.buffer for node in walk(store.roots)):
        return None
    return loops, store


def can_add_atomically(kernel: Kernel) -> bool:
    """Whether the only statement is an update that may be made in any order: of whole numbers."""
    found = find_lone_store(kernel)
    if found is None or not found[0]:
        return False
    combine, dtype = found[1].combine, found[1].buffer.dtype
    is_known = combine in ("add", "min", "max", "and", "or", "xor")
    return is_known and dtype.kind in "iu" and dtype.itemsize in (4, 8)


def _is_simple(body: list) -> bool:
    """Whether a team can run an item: sweeps side by side, of which some are not alone in it."""
    if not any(isinstance(s, (Loop, Reduce, Scan)) for s in body):
        return False
    if any(isinstance(s, (Repeat, Choice)) for s in body):
        return False
    return not any(isinstance(s, Scan) for s in flatten(body) if s not in body)


def _map_teams(kernel: Kernel, loops: list[Loop], body: list, access_bytes: int, tuning: Tuning) -> Mapping:
    items = math.prod(int(loop.axis.extent) for loop in loops)
    work = max(_count_iterations(s) for s in body)
    if loops and work <= tuning.lone_work:
        return _map_flat(kernel, loops, body, access_bytes, tuning)
    is_packed = any(store.packed for statement in body for store in statement.stores)
    is_scan = any(isinstance(statement, Scan) for statement in body)
    is_enough = not is_scan or items >= tuning.least_scan_columns
    if has_columns(kernel) and not is_packed and is_enough:
        team = round_up(min(tuning.column_team, work // tuning.team_work))
        return Mapping("columns", tuple(loops), body, team, 1, WARP * team)
    row = find_row(body)
    if row is not None:
        team, row = _choose_row(row, items, access_bytes, tuning)
    if row is None:
        team = _choose_team(work // tuning.team_work, items, tuning)
        # tiles of scans are as large by fewer threads
        team = min(team, tuning.piece_team) if is_scan else team
    block = team if team > WARP or not loops else tuning.block
    return Mapping("rows", tuple(loops), body, team, 1, block, row=row)


def _choose_team(threads: int, items: int, tuning: Tuning) -> int:
    """A team of about so many threads; fewer where there are many items."""
    team = max(tuning.least_team, min(round_up(threads), LARGEST_BLOCK))
    return min(team, tuning.usual_team) if items * team > tuning.many_threads else team


def _choose_row(row: Row, items: int, access_bytes: int, tuning: Tuning) -> tuple[int, Row | None]:
    """The team of a row, and how it goes along it; None if there are not enough registers for it."""
    extent, statements = int(row.axis.extent), [s for sweep in row.sweeps for s in list_inside(sweep)]
    lanes = count_elements(row.axis, statements, access_bytes, tuning)
    lanes = 1 if extent % lanes else lanes
    # many operations take registers by themselves, and those on long elements more: of 256 threads each has
    # all that one can have
    heavy = max((row.cost // tuning.row_cost).bit_length(), int(row.element_bytes > REGISTER_BYTES))
    threads = tuning.row_threads >> min(heavy, 2)
    if threads < tuning.row_threads:
        lanes = min(lanes, max(access_bytes // REGISTER_BYTES, 1))
    wanted = _choose_team(-(-extent // max(lanes, tuning.row_bytes // row.element_bytes)), items, tuning)
    of_thread = min(tuning.long_row_bytes, tuning.most_row_bytes)
    longer = round_up(-(-extent * row.element_bytes // of_thread))
    for team in (min(team, threads, LARGEST_BLOCK) for team in (wanted, longer)):
        rounds = -(-extent // (team * lanes))
        if rounds * lanes * row.element_bytes <= tuning.most_row_bytes:
            return team, row._replace(lanes=lanes, rounds=rounds, threads=threads)
    return team, None


def _map_flat(kernel: Kernel, loops: list[Loop], body: list, access_bytes: int, tuning: Tuning) -> Mapping:
    """Elements of a thread: as many as one access takes, if rows are whole numbers of accesses."""
    last, elements = loops[-1], 1
    if kernel.vector is last.axis and not last.bounds and all(isinstance(s, Store) for s in body):
        elements = count_elements(last.axis, body, access_bytes, tuning)
    elements = 1 if len(loops) > 1 and int(last.axis.extent) % elements else elements
    return Mapping("flat", tuple(loops), body, 1, elements, tuning.block)


def count_elements(axis: Axis, body: list, access_bytes: int, tuning: Tuning,
                   apart: Sequence[Expr] = ()) -> int:
    """Elements along an axis that a thread may read and write in one access, of stores and one sweep. apart:
    loads that are not from memory."""
    stores, targets = ([one for s in body for one in getattr(s, name)] for name in ("stores", "targets"))
    if any(store.is_update or store.mask is not None for store in stores):
        return 1
    if any(axis not in offset.axes() for _, offset in targets):
        return 1
    nodes = walk([root for s in body for root in s.roots])
    accesses = targets + [node.attr for node in nodes if node.op == "load" and node not in apart]
    widest = max((buffer.dtype.itemsize for buffer, _ in accesses), default=access_bytes)
    count = min(max(access_bytes // widest, 1), tuning.most_elements)
    is_fine = all(is_aligned(index, axis, count) for _, index in accesses if axis in index.axes())
    return count if is_fine else 1


def is_aligned(index: Index, axis, count: int) -> bool:
    """Whether elements along an axis are neighbours, and those at a multiple of a count begin at one."""
    if index.coefficient(axis) != 1:
        return False
    steps = [coefficient for atom, coefficient in index.terms if atom is not axis]
    return all(_divides(count, step) for step in (*steps, index.const))


def _divides(count: int, step) -> bool:
    try:
        return int(step) % count == 0
    except TypeError:  # a symbolic size
        return False


class Accesses:
    """The buffers that threads of a team have read and written since they last waited for each other."""

    def __init__(self):
        self._read: set[Buffer] = set()
        self._written: set[Buffer] = set()

    def add(self, statements: list) -> bool:
        """Whether a barrier has to stand before statements: they need what other threads have written, or
        write what these have read."""
        reads, writes = list_reads(statements), list_writes(statements)
        waits = bool(self._written & (reads | writes) or self._read & writes)
        if waits:
            self._read, self._written = set(), set()
        self._read |= reads
        self._written |= writes
        return waits


def count_work(body: list) -> int:
    """How often operations run, of all statements together."""
    return count_runs(body, lambda statement: not any(statement.bodies))


def _count_iterations(statement: Statement) -> int:
    """How often the innermost operations of a statement run."""
    inside = max((_count_iterations(s) for body in statement.bodies for s in body), default=1)
    return inside * math.prod(int(axis.extent) for axis in statement.axes)


def round_up(count: int) -> int:
    """The next power of two."""
    return 1 << max(count - 1, 0).bit_length()
