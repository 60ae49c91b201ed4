"""Every access to memory: where it goes, whether it may, whether it races. Called by translated code.

In: an address and what is done there. Out: the place in this process, a spare one after a failure.

Each word of four bytes of global and shared memory has a cell of three records, its last write and two reads:
line, bytes, thread, and the *clock* at the thread's last barrier. The clock counts barriers, so one thread's
access comes before another's if the other has passed a barrier since; `bar.warp.sync` counts in a warp. If
neither comes first, one writes, and not both are atomic (or volatile, relaxed, ...), they race.

Blocks run one after the other. An access races with one of an earlier block of the launch unless that block
has published it (a fence, then an atomic write, by the thread itself or behind a barrier after the access) and
this block has read a flag since it started (an atomic read, by the thread or before a barrier).

Not found: races of threads that pass different barriers at the same time (`bar.sync` with a count, parts of a
warp); those with a third reader of a word; those with accesses of less than a word that another access to the
same word came after; whether the flag that a block has read is the one that was written; asynchronous copies
that are used before they are waited for; and whatever the order of blocks on a GPU would change.
"""

from __future__ import annotations

import numpy as np
from numba import carray, cfunc, from_dtype, njit, types

from jitcore.backends.cuda.emulated.context import LAUNCH, THREAD, as_pointer, compile_cached

__all__ = ["ACQUIRE", "FAILURES", "OUTSIDE", "RACE", "RANGE", "READ", "RELEASE", "SPACES", "STRONG", "TRAP", "WRITE", "access",
           "pack_access", "unpack_access", "unpack_record"]  # fmt: skip

READ, WRITE, STRONG, RELEASE, ACQUIRE, TRAP = 1, 2, 4, 8, 16, 32
SPACES = ("generic", "global", "shared", "local", "const")
_GLOBAL, _SHARED, _LOCAL, _CONSTANT = 1, 2, 3, 4

OUTSIDE, _MISALIGNED, _OTHER_SPACE, _CONSTANT_WRITE, _OTHER_STACK, _UNWRITTEN, RACE, _TRAPPED = range(1, 9)
FAILURES = {
    OUTSIDE: "",  # said by `Memory.describe`
    _MISALIGNED: "the address is no multiple of that",
    _OTHER_SPACE: "the instruction names another space of memory",
    _CONSTANT_WRITE: "constant memory cannot be written",
    _OTHER_STACK: "local memory of another thread, or past the end of its own",
    _UNWRITTEN: "no thread of the block has written there",
    RACE: "no barrier stands between that and",
    _TRAPPED: "trap",
}

#: Memory that may be accessed; sorted by start. shadow: address of its cells, 0 without.
RANGE = np.dtype([("start", "i8"), ("end", "i8"), ("shadow", "i8"), ("space", "i8")], align=True)

# A record: clock from bit 31 on, 1 bit strong, 10 bits thread, 4 bits bytes of the word, 16 bits line.
_STRONG_BIT = 1 << 30
_NOBODY, _MANY = -1, -2


def pack_access(kinds: int, space: str, size: int, line: int) -> int:
    return kinds | SPACES.index(space) << 6 | size << 9 | line << 20


def unpack_access(what: int) -> tuple[int, int, int]:
    """(kinds, bytes, line)"""
    return what & 63, what >> 9 & 2047, what >> 20


def unpack_record(record: int) -> tuple[int, int, int]:
    """(clock, thread, line)"""
    return record >> 31, record >> 20 & 1023, record & 0xFFFF


@njit
def _fail(failure, thread, launch, address, what, other=0, slot=0):
    """Keeps the first failure. The thread goes on with the spare memory and ends at its next jump backwards."""
    if launch.failure == 0:
        launch.failure, launch.failed_thread = failure, thread.number
        launch.failed_address, launch.failed_access = address, what
        launch.failed_other, launch.failed_slot = other, slot
    thread.steps = 0
    return launch.spare


@njit
def _is_past(record, thread, launch):
    """Whether a record comes before what the thread does now, or is its own, or of an earlier block."""
    stamp, number = record >> 31, record >> 20 & 1023
    if stamp < launch.block_start or number == thread.number:
        return True
    return (thread.epoch if number >> 5 == thread.number >> 5 else thread.block_epoch) > stamp


@njit
def _is_published(record, thread, launch):
    """Whether an earlier block has published a record, and the thread may know of it."""
    if not (thread.acquired or thread.block_epoch > launch.acquired):
        return False
    stamp, number = record >> 31, record >> 20 & 1023
    blocks = carray(as_pointer(launch.blocks), (launch.block, 4), np.int64)
    position = np.searchsorted(blocks[:, 0], stamp, side="right") - 1
    block_epoch, epoch, publisher = blocks[position, 1], blocks[position, 2], blocks[position, 3]
    if publisher == number or publisher == _MANY:
        return True
    return stamp < (epoch if publisher >> 5 == number >> 5 else block_epoch)


@njit
def _is_race(record, since, mask, is_strong, thread, launch):
    stamp = record >> 31
    if stamp < since or not record >> 16 & mask or (is_strong and record & _STRONG_BIT):
        return False
    if stamp < launch.block_start:
        return not _is_published(record, thread, launch)
    return not _is_past(record, thread, launch)


@njit
def _note_read(cell, record, thread, launch):
    """Keeps two readers that a later write can race with: of two warps, or of an earlier block and this one."""
    first, second = cell[1], cell[2]
    if _is_past(first, thread, launch):
        if first >> 31 < launch.block_start and _is_past(second, thread, launch):
            cell[2] = first
        cell[1] = record
    elif _is_past(second, thread, launch) or (
        first >> 25 & 31 == second >> 25 & 31 and thread.number >> 5 != first >> 25 & 31
    ):
        cell[2] = record


@njit
def _check_races(memory, address, size, thread, launch, what):
    """Looks through the cells of an access and enters it. Returns whether it may go on."""
    words = (memory.end - memory.start + 3) >> 2
    cells = carray(as_pointer(memory.shadow), (words, 3), np.int64)
    offset = address - memory.start
    since = launch.block_start if memory.space == _SHARED else launch.launch_start
    is_strong = what & STRONG != 0
    for word in range(offset >> 2, (offset + size + 3) >> 2):
        low, high = max(offset - 4 * word, 0), min(offset + size - 4 * word, 4)
        mask = (1 << high) - (1 << low)
        cell = cells[word]
        if what & READ and memory.space == _SHARED and cell[0] >> 31 < launch.block_start:
            _fail(_UNWRITTEN, thread, launch, address, what)
            return False
        for slot in range(3 if what & WRITE else 1):
            if _is_race(cell[slot], since, mask, is_strong, thread, launch):
                _fail(RACE, thread, launch, address, what, cell[slot], slot)
                return False
        record = thread.epoch << 31 | thread.number << 20 | mask << 16 | min(what >> 20, 0xFFFF)
        record |= _STRONG_BIT if is_strong else 0
        if what & WRITE:
            cell[0] = record
        else:
            _note_read(cell, record, thread, launch)
    return True


@njit
def _note_order(thread, launch, what):
    """Stores end what a fence covers; flags that are read and written order blocks."""
    if not what & STRONG:
        if what & WRITE:
            thread.fenced = 0
        return
    if what & READ:
        thread.acquired = 1
        launch.acquired = min(launch.acquired, thread.block_epoch)
    if what & WRITE and (thread.fenced or what & RELEASE):
        block = carray(as_pointer(launch.blocks), (launch.block + 1, 4), np.int64)[launch.block]
        is_another = block[3] != _NOBODY and block[3] != thread.number and block[1] == thread.block_epoch
        block[1], block[2] = thread.block_epoch, thread.epoch
        block[3] = _MANY if is_another else thread.number


@compile_cached(
    cfunc,
    types.int64(
        types.CPointer(from_dtype(THREAD)), types.CPointer(from_dtype(LAUNCH)), types.int64, types.int64
    ),
)
def access(thread_pointer, launch_pointer, address, what):
    """The place of an access that is allowed, after it has been entered. what: see `pack_access`."""
    thread, launch = carray(thread_pointer, (1,))[0], carray(launch_pointer, (1,))[0]
    space, size = what >> 6 & 7, what >> 9 & 2047
    if what & TRAP:
        return _fail(_TRAPPED, thread, launch, address, what)
    if size == 0:
        return launch.spare
    if space == _SHARED:
        address += launch.shared
    elif space == _LOCAL:
        address += thread.local
    ranges = carray(as_pointer(launch.ranges), (launch.range_count,), RANGE)
    recent = carray(as_pointer(launch.recent), (1 << 20,), np.int32)
    row = recent[what >> 20]  # an instruction mostly goes to the range that it went to before
    if address < ranges[row].start or address + size > ranges[row].end:
        low, high = 0, launch.range_count
        while high - low > 1:
            middle = (low + high) >> 1
            if ranges[middle].start <= address:
                low = middle
            else:
                high = middle
        row = low
        if address < ranges[row].start or address + size > ranges[row].end:
            return _fail(OUTSIDE, thread, launch, address, what)
        recent[what >> 20] = row
    memory = ranges[row]
    if address & ((size & -size) - 1):
        return _fail(_MISALIGNED, thread, launch, address, what)
    if space != 0 and space != memory.space and not (space == _GLOBAL and memory.space == _CONSTANT):
        return _fail(_OTHER_SPACE, thread, launch, address, what)
    if memory.space == _LOCAL:
        if address < thread.local or address + size > thread.local + launch.local_bytes:
            return _fail(_OTHER_STACK, thread, launch, address, what)
        return address
    if memory.space == _CONSTANT:
        return _fail(_CONSTANT_WRITE, thread, launch, address, what) if what & WRITE else address
    if launch.check_races and not _check_races(memory, address, size, thread, launch, what):
        return launch.spare
    if memory.space == _GLOBAL:
        _note_order(thread, launch, what)
    return address
