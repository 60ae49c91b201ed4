"""Runs the threads of a block, one after the other, each up to its next suspension.

In: the records of the threads, and an order of them. Out: memory as they leave it, or a failure in the
launch's record. A warp goes on when all lanes of a mask that have not ended wait at one collective
instruction, which is carried out here; a block when all its threads wait at one barrier. Else nothing can.
"""

import numpy as np
from numba import carray, from_dtype, njit, types

from jitcore.backends.cuda.emulated.context import LAUNCH, THREAD, as_pointer, call_address, compile_cached

RUNNING, AT_COLLECTIVE, AT_BARRIER, DONE = range(4)  # states of a thread
COLLECTIVES = {name: number for number, name in enumerate(
    ("shfl.idx", "shfl.up", "shfl.down", "shfl.bfly", "sync", "vote", "match.any", "match.all", "activemask",
     "redux.add", "redux.and", "redux.or", "redux.xor", "redux.min", "redux.max", "mma"))}
_SYNC, _VOTE, _MATCH_ANY, _MATCH_ALL, _ACTIVE, _REDUX = range(4, 10)
_MMA = COLLECTIVES["mma"]
STUCK, ENDLESS = 20, 21  # failures, besides those of `races`
_POISON = 0xFFFFFFFF  # what a lane gets from one that does not take part
_STEPS_OF_A_SUSPENSION = 64  # jumps backwards that it counts as


@njit
def _shuffle(threads, base, mask, lane):
    """What one lane gets, by the formulas of the PTX manual."""
    thread = threads[base + lane]
    selector, clamp, segment = thread.selector & 31, thread.bounds & 31, thread.bounds >> 8 & 31
    low, last = lane & segment, lane & segment | clamp & ~segment
    sources = (low | selector & ~segment, lane - selector, lane + selector, lane ^ selector)
    source = sources[thread.operation]
    thread.passed = source >= last if thread.operation == 1 else source <= last
    source = source if thread.passed else lane
    return threads[base + source].value if mask >> source & 1 else _POISON


@njit
def _reduce(operation, left, right):
    results = (left + right, left & right, left | right, left ^ right, min(left, right), max(left, right))
    return results[operation]


@njit
def _multiply(threads, base):
    """`mma.m16n8k16`: where the elements of a lane are in the matrices is said in the PTX manual, "Matrix
    Fragments". Terms are added in order, in float32."""
    left, right = np.zeros((16, 16), np.float32), np.zeros((16, 8), np.float32)
    for lane in range(32):
        values = carray(as_pointer(threads[base + lane].value), (16,), np.float32)
        group, pair = lane >> 2, 2 * (lane & 3)
        for i in range(8):
            left[group + 4 * (i & 2), pair + (i & 1) + 2 * (i & 4)] = values[i]
        for i in range(4):
            right[pair + (i & 1) + 4 * (i & 2), group] = values[8 + i]
    for lane in range(32):
        values = carray(as_pointer(threads[base + lane].value), (16,), np.float32)
        for i in range(4):
            row, column = (lane >> 2) + 4 * (i & 2), 2 * (lane & 3) + (i & 1)
            for k in range(16):
                values[12 + i] += left[row, k] * right[k, column]


@njit
def _combine(threads, launch, base, mask, operation):
    """Carries out an operation of the lanes of a mask."""
    if operation < _SYNC:
        for lane in range(32):
            if mask >> lane & 1:
                threads[base + lane].result = _shuffle(threads, base, mask, lane)
        return
    if operation == _MMA:
        return _multiply(threads, base)
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    total, ballot, epoch = threads[base + lanes[0]].value, 0, 0
    for lane in lanes:
        thread = threads[base + lane]
        if operation >= _REDUX and lane != lanes[0]:
            total = _reduce(operation - _REDUX, total, thread.value)
        ballot |= (thread.value & 1) << lane
        epoch = max(epoch, thread.block_epoch)
    launch.clock += operation == _SYNC
    for lane in lanes:
        thread = threads[base + lane]
        if operation == _SYNC:
            thread.block_epoch, thread.epoch, thread.stamp = epoch, launch.clock, launch.clock
        elif operation in (_VOTE, _ACTIVE):
            thread.result = ballot | mask << 32
        elif operation >= _REDUX:
            thread.result = total
        else:
            thread.result = 0
            for other in lanes:
                thread.result |= (threads[base + other].value == thread.value) << other
            thread.passed = thread.result == mask
            if operation == _MATCH_ALL and not thread.passed:
                thread.result = 0


@njit
def _release_warp(threads, launch, base, end):
    """Lets lanes go on whose mask is complete; those that ask which are active when no others can."""
    alive, has_moved = 0, False
    for lane in range(end - base):
        alive |= (threads[base + lane].state != DONE) << lane
    for lane in range(2 * (end - base)):
        asks, lane = lane >= end - base, lane % (end - base)
        thread, waiting = threads[base + lane], 0
        if thread.state != AT_COLLECTIVE or asks != (thread.operation == _ACTIVE) or (asks and has_moved):
            continue
        for other in range(end - base):
            neighbour = threads[base + other]
            is_there = neighbour.state == AT_COLLECTIVE and neighbour.site == thread.site
            waiting |= (is_there and neighbour.mask == thread.mask) << other
        # a mask may name lanes that have ended, but for a product of matrices all have to be there
        named = 0xFFFFFFFF if thread.operation == _MMA else alive
        mask = waiting if asks else thread.mask & named
        if mask >> lane & 1 and waiting & mask == mask:
            _combine(threads, launch, base, mask, thread.operation)
            for other in range(end - base):
                if mask >> other & 1:
                    threads[base + other].state = RUNNING
            has_moved = True
    return has_moved


@njit
def _release_block(threads, launch):
    """Lets threads go on whose barrier is complete: so many as it says, or, at one instruction, all that have
    not ended."""
    waiting, sites, counts, votes = np.zeros((4, 16), np.int64)
    alive, has_moved = 0, False
    for thread in threads:
        alive += thread.state != DONE
        if thread.state == AT_BARRIER:
            barrier = thread.operation & 15
            is_there = thread.bounds != 0 or sites[barrier] == 0 or sites[barrier] == thread.site
            waiting[barrier] += 1 if is_there else len(threads)
            sites[barrier], counts[barrier] = thread.site, thread.bounds
            votes[barrier] += thread.value
    for thread in threads:
        barrier = thread.operation & 15
        if thread.state == AT_BARRIER and waiting[barrier] == (counts[barrier] or alive):
            launch.clock += not has_moved
            has_moved = True
            thread.state, thread.result = RUNNING, votes[barrier] | waiting[barrier] << 32
            thread.block_epoch = thread.epoch = thread.stamp = launch.clock
    return has_moved


@njit
def _advance(thread, address, launch, entry, launch_address, parameters):
    """Runs a thread up to its next suspension. Returns whether all is well."""
    if thread.handle:  # of a coroutine, which begins with the address of the code that continues it
        code = carray(as_pointer(thread.handle), (1,), np.int64)[0]
        call_address(code, thread.handle, 0, 0)
    else:
        thread.handle = call_address(entry, address, launch_address, parameters)
    if thread.state != DONE:
        thread.steps -= _STEPS_OF_A_SUSPENSION
    if launch.failure == 0 and thread.steps < 0:
        launch.failure, launch.failed_thread = ENDLESS, thread.number
    return launch.failure == 0


@compile_cached(
    njit,
    types.void(from_dtype(THREAD)[::1], from_dtype(LAUNCH)[::1], types.int64[::1], *[types.int64] * 4),
    nogil=True,
)
def run_block(threads, launches, order, group, entry, parameters, steps):
    """Runs one block, or up to a failure.

    Args:
        order: of the threads; so many as `group`, a warp or all, run as far as they get before others do.
        entry, parameters: addresses of the kernel and of its parameters. steps: jumps backwards of a thread.
    """
    launch, count, width = launches[0], len(threads), 32 if group == 32 else len(threads)
    launch.clock += 1
    launch.block_start, launch.acquired = launch.clock, 1 << 62
    for thread in threads:
        thread.state, thread.handle, thread.steps = RUNNING, 0, steps
        thread.block_epoch = thread.epoch = thread.stamp = launch.clock
        thread.fenced = thread.acquired = 0
    has_moved = True
    while has_moved:
        for first in range(0, count, group):
            while has_moved:
                for number in order[first : first + group]:
                    address = threads.ctypes.data + number * threads.itemsize
                    if threads[number].state == RUNNING and not _advance(
                        threads[number], address, launch, entry, launches.ctypes.data, parameters
                    ):
                        return
                has_moved, low = False, order[first] & ~31 if group == 32 else 0
                for base in range(low, min(low + width, count), 32):
                    has_moved |= _release_warp(threads, launch, base, min(base + 32, count))
            has_moved = True
        has_moved = _release_block(threads, launch)
    for thread in threads:
        if thread.state != DONE:
            launch.failure = STUCK
