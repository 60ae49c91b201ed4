"""Every access to memory: where it goes, whether it may, whether it races. Called by translated code.

In: an address and what is done there. Out: the place in this process, a spare one after a failure.

Each word of four bytes of global and shared memory has three records, of its last write and of two reads:
line, bytes, thread, and the *clock* at the thread's last barrier. The clock counts barriers, so an access
comes before that of a thread which has passed a barrier since; `bar.warp.sync` counts within its warp. Where
neither access comes first, one writes, and not both are atomic (volatile, relaxed, ...), they race.

Blocks run one after the other. An access races with that of an earlier block of the launch unless that block
has published it (a fence, then an atomic write, by the thread itself or behind a barrier) and this block has
read such a flag (an atomic read, by the thread itself or before a barrier).

Not found: races of threads that pass different barriers at one time (with a number of threads, or parts of a
warp); with a third reader of a word; with less than a word where another access to the word came after;
whether a flag that was read is the one that was written, and whether a fence follows; asynchronous copies
that are used before they are waited for; what only another order of blocks does.
"""

from __future__ import annotations

import numpy as np
from numba import carray, cfunc, from_dtype, njit, types

from jitcore.backends.cuda.emulated.context import LAUNCH, THREAD, as_pointer, compile_cached

READ, WRITE, STRONG, RELEASE, TRAP = 1, 2, 4, 8, 16
SPACES = ("generic", "global", "shared", "local", "const")
_GENERIC, _GLOBAL, _SHARED, _LOCAL, _CONSTANT = range(5)
_OUTSIDE, _MISALIGNED, _OTHER_SPACE, _CONSTANT_WRITE, _OTHER_STACK, _UNWRITTEN, _RACE, _TRAPPED = range(1, 9)
#: Ends of messages about an access.
FAILURES = {
    _OUTSIDE: "",
    _MISALIGNED: "the address is no multiple of that",
    _OTHER_SPACE: "the instruction names another space of memory",
    _CONSTANT_WRITE: "constant memory cannot be written",
    _OTHER_STACK: "local memory of another thread, or past the end of its own",
    _UNWRITTEN: "no thread of the block has written there",
    _RACE: "a race, as no barrier stands between this and what was",
    _TRAPPED: "trap",
}
#: Memory that may be accessed, sorted by start. shadow: address of its records, 0 without.
RANGE = np.dtype([("start", "i8"), ("end", "i8"), ("shadow", "i8"), ("space", "i8")], align=True)
#: A record: clock from bit 31 on; bits: 1 for an atomic access, 10 thread, 4 bytes of the word, 16 line.
_STRONG_BIT = 1 << 30
#: Of each block: the clock at its start; of its last publication the epochs, the clock, and who it was by.
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
    """Keeps the first failure. The thread goes on in the spare memory, up to its next jump backwards."""
    if launch.failure == 0:
        launch.failure, launch.failed_thread, launch.failed_slot = failure, thread.number, slot
        launch.failed_address, launch.failed_access, launch.failed_other = address, what, other
    thread.steps = 0
    return launch.spare


@njit
def _is_past(record, thread, launch):
    """Whether a record comes before what the thread does now, or is its own, or an earlier block's."""
    stamp, number = record >> 31, record >> 20 & 1023
    epoch = thread.epoch if number >> 5 == thread.number >> 5 else thread.block_epoch
    return stamp < launch.block_start or number == thread.number or stamp < epoch


@njit
def _is_published(record, thread, launch):
    """Whether an earlier block has published a record, and the thread may know of it."""
    stamp, number = record >> 31, record >> 20 & 1023
    blocks = carray(as_pointer(launch.blocks), (launch.block, 5), np.int64)
    block = blocks[np.searchsorted(blocks[:, 0], stamp, side="right") - 1]
    is_own, is_neighbour = block[4] == number or block[4] == _MANY, block[4] >> 5 == number >> 5
    is_sent = stamp < (block[3] if is_own else block[2] if is_neighbour else block[1])
    return is_sent and (thread.acquired or thread.block_epoch > launch.acquired)


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
    """Keeps two readers that a later write can race with: of two warps, or one of an earlier block."""
    first, second = cell[1], cell[2]
    if _is_past(first, thread, launch):
        if first >> 31 < launch.block_start and _is_past(second, thread, launch):
            cell[2] = first
        cell[1] = record
    elif _is_past(second, thread, launch) or first >> 25 & 31 == second >> 25 & 31 != thread.number >> 5:
        cell[2] = record


@njit
def _check_races(memory, address, size, thread, launch, what):
    """Looks at the records of each word of an access, and adds one. Returns whether it may go on."""
    offset, is_strong = address - memory.start, what & STRONG != 0
    cells = carray(as_pointer(memory.shadow), ((memory.end - memory.start + 3) >> 2, 3), np.int64)
    since = launch.block_start if memory.space == _SHARED else launch.launch_start
    for word in range(offset >> 2, (offset + size + 3) >> 2):
        mask = (1 << min(offset + size - 4 * word, 4)) - (1 << max(offset - 4 * word, 0))
        cell = cells[word]
        if what & READ and memory.space == _SHARED and cell[0] >> 31 < launch.block_start:
            _fail(_UNWRITTEN, thread, launch, address, what)
            return False
        for slot in range(3 if what & WRITE else 1):
            if _is_race(cell[slot], since, mask, is_strong, thread, launch):
                _fail(_RACE, thread, launch, address, what, cell[slot], slot)
                return False
        record = thread.stamp << 31 | is_strong << 30 | thread.number << 20 | mask << 16
        record |= min(what >> 20, 0xFFFF)
        if what & WRITE:
            cell[0] = record
        else:
            _note_read(cell, record, thread, launch)
    return True


@njit
def _note_order(thread, launch, what):
    """A store ends what a fence covers; flags that are read and written order blocks."""
    if not what & STRONG:
        thread.fenced &= not what & WRITE
        return
    if what & READ:
        thread.acquired = 1
        launch.acquired = min(launch.acquired, thread.block_epoch)
    if what & WRITE and (thread.fenced or what & RELEASE):
        block = carray(as_pointer(launch.blocks), (launch.block + 1, 5), np.int64)[launch.block]
        is_another = block[4] != _NOBODY and block[4] != thread.number and block[1] == thread.block_epoch
        launch.clock += 1
        thread.stamp = launch.clock
        block[1], block[2], block[3] = thread.block_epoch, thread.epoch, launch.clock
        block[4] = _MANY if is_another else thread.number


@njit
def _is_outside(memory, address, size, what):
    """A read of 16 aligned bytes may begin inside and end behind: compilers make it of three elements, as no
    page ends between them."""
    if memory.start <= address and address + size <= memory.end:
        return False
    is_whole = what & READ and not what & WRITE and size <= 16 and address & (size - 1) == 0
    return not (is_whole and memory.start <= address < memory.end)


@compile_cached(
    cfunc,
    types.int64(*map(types.CPointer, map(from_dtype, (THREAD, LAUNCH))), types.int64, types.int64),
)
def access(thread_pointer, launch_pointer, address, what):
    """The place of an access that is allowed, after a record is made. what: see `pack_access`."""
    thread, launch = carray(thread_pointer, (1,))[0], carray(launch_pointer, (1,))[0]
    space, size, failure = what >> 6 & 7, what >> 9 & 2047, 0
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
    if _is_outside(ranges[row], address, size, what):
        row, high = 0, launch.range_count
        while high - row > 1:
            middle = (row + high) >> 1
            row, high = (middle, high) if ranges[middle].start <= address else (row, middle)
        if _is_outside(ranges[row], address, size, what):
            return _fail(_OUTSIDE, thread, launch, address, what)
        recent[what >> 20] = row
    memory = ranges[row]
    if address & ((size & -size) - 1):
        failure = _MISALIGNED
    elif space not in (_GENERIC, memory.space) and (space != _GLOBAL or memory.space != _CONSTANT):
        failure = _OTHER_SPACE
    elif memory.space == _LOCAL and not 0 <= address - thread.local <= launch.local_bytes - size:
        failure = _OTHER_STACK
    elif memory.space == _CONSTANT and what & WRITE:
        failure = _CONSTANT_WRITE
    if failure:
        return _fail(failure, thread, launch, address, what)
    size = min(size, memory.end - address)
    if memory.shadow and not _check_races(memory, address, size, thread, launch, what):
        return launch.spare
    if memory.space == _GLOBAL:
        _note_order(thread, launch, what)
    return address
