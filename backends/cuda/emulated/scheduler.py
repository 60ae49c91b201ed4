"""Runs the threads of a block, one after the other, each up to its next suspension.

In: the records of the threads, in an order to take them. Out: memory as they leave it, or a failure in the
launch's record. A warp goes on when all lanes of a mask wait at one collective instruction, which is carried
out here; a block when all its threads wait at one barrier. Where neither is so they would wait for ever.
"""

from __future__ import annotations

import numpy as np
from numba import from_dtype, njit, types

from jitcore.backends.cuda.emulated.context import LAUNCH, THREAD, compile_cached, resume, start

__all__ = ["AT_BARRIER", "AT_COLLECTIVE", "BALLOT", "DONE", "ENDLESS", "MATCH_ALL", "MATCH_ANY", "MULTIPLY", "REDUCE",
           "SHUFFLE", "STUCK", "SYNCHRONIZE", "ACTIVE_LANES", "run_block"]  # fmt: skip

#: States of a thread.
RUNNING, AT_COLLECTIVE, AT_BARRIER, DONE = range(4)
#: Collective operations of warps. The first and the last ones have a row for each kind, as named.
SHUFFLE = {"idx": 0, "up": 1, "down": 2, "bfly": 3}
SYNCHRONIZE, BALLOT, MATCH_ANY, MATCH_ALL, ACTIVE_LANES = range(4, 9)
REDUCE = {"add": 10, "and": 11, "or": 12, "xor": 13, "min": 14, "max": 15}
MULTIPLY = 20  # plus the elements of a register, one, two or four; plus eight with half of the registers
#: Failures, besides those of `races`.
STUCK, ENDLESS = 20, 21

#: What a lane gets that asks a lane which does not take part.
_POISON = 0xFFFFFFFF
#: A suspension counts as so many jumps backwards.
_STEPS_OF_A_SUSPENSION = 64


@njit
def _shuffle(threads, base, mask):
    for lane in range(32):
        if mask >> lane & 1:
            thread = threads[base + lane]
            selector, clamp, segment = thread.selector & 31, thread.bounds & 31, thread.bounds >> 8 & 31
            low = lane & segment
            last = low | clamp & ~segment
            if thread.operation == 0:
                source = low | selector & ~segment
            elif thread.operation == 1:
                source = lane - selector
            elif thread.operation == 2:
                source = lane + selector
            else:
                source = lane ^ selector
            thread.passed = source >= last if thread.operation == 1 else source <= last
            if not thread.passed:
                source = lane
            takes_part = source < 32 and mask >> source & 1
            thread.result = threads[base + source].value if takes_part else _POISON


@njit
def _reduce(operation, left, right):
    if operation == 10:
        return left + right
    if operation == 11:
        return left & right
    if operation == 12:
        return left | right
    if operation == 13:
        return left ^ right
    return min(left, right) if operation == 14 else max(left, right)


@njit
def _multiply(threads, base, operation):
    """The product of a 16 x k and a k x 8 matrix, spread over a warp as `mma` wants it, plus a 16 x 8 one.

    A register of A has `width` neighbours of a row. Lane 4 g + t has those from column width * t on in the rows
    g and g + 8, and the same again in the right half of A; and so with B's columns.
    """
    width, halves = operation - MULTIPLY & 7, 1 if operation - MULTIPLY & 8 else 2
    left_size = 2 * halves * width
    for lane in range(32):
        for item in range(4):
            row, column = lane >> 2, (lane & 3) * 2 + (item & 1)
            total = threads[base + lane].tile[left_size + halves * width + item]
            for k in range(4 * width * halves):
                half, place = k // (4 * width), k % (4 * width)
                owner, element = place // width, place % width
                left = threads[base + 4 * row + owner].tile[(2 * half + (item >> 1)) * width + element]
                right = threads[base + 4 * column + owner].tile[left_size + half * width + element]
                total += left * right
            threads[base + lane].tile_result[item] = total


@njit
def _combine(threads, launch, base, mask, operation):
    """Carries out an operation of the lanes of a mask."""
    first = 0
    while not mask >> first & 1:
        first += 1
    if operation < 4:
        _shuffle(threads, base, mask)
        return
    if operation >= MULTIPLY:
        _multiply(threads, base, operation)
        return
    value, total, epoch = threads[base + first].value, 0, 0
    ballot, is_same = 0, True
    for lane in range(first, 32):
        if mask >> lane & 1:
            thread = threads[base + lane]
            total = thread.value if lane == first else _reduce(operation, total, thread.value)
            epoch = max(epoch, thread.block_epoch)
            ballot |= (thread.value & 1) << lane
            is_same = is_same and thread.value == value
    launch.clock += operation == SYNCHRONIZE
    for lane in range(first, 32):
        if mask >> lane & 1:
            thread = threads[base + lane]
            if operation == SYNCHRONIZE:
                thread.block_epoch, thread.epoch = epoch, launch.clock
            elif operation == BALLOT:
                thread.result = ballot | mask << 32
            elif operation == ACTIVE_LANES:
                thread.result = mask
            elif operation == MATCH_ALL:
                thread.result, thread.passed = mask if is_same else 0, is_same
            elif operation == MATCH_ANY:
                equal = 0
                for other in range(32):
                    if mask >> other & 1 and threads[base + other].value == thread.value:
                        equal |= 1 << other
                thread.result = equal
            else:
                thread.result = total


@njit
def _release_warp(threads, launch, base, end):
    """Lets lanes go on whose mask is complete: all lanes of it that have not ended wait at one place."""
    alive, has_moved = 0, False
    for lane in range(end - base):
        alive |= (threads[base + lane].state != DONE) << lane
    # Lanes that ask which are active go on when no others do, together with those that ask the same.
    for asks in range(2):
        for lane in range(end - base):
            thread = threads[base + lane]
            if thread.state != AT_COLLECTIVE or has_moved and asks or asks != (thread.operation == ACTIVE_LANES):
                continue
            mask, waiting = thread.mask & alive, 0
            if not mask >> lane & 1:
                continue
            for other in range(end - base):
                neighbour = threads[base + other]
                is_there = neighbour.state == AT_COLLECTIVE and neighbour.site == thread.site
                waiting |= (is_there and neighbour.mask == thread.mask) << other
            if asks or waiting & mask == mask:
                mask &= waiting
                _combine(threads, launch, base, mask, thread.operation)
                for other in range(end - base):
                    if mask >> other & 1:
                        threads[base + other].state = RUNNING
                has_moved = True
    return has_moved


@njit
def _release_block(threads, launch):
    """Lets threads go on whose barrier is complete. One without a number of threads has to be the same
    instruction for all that have not ended."""
    waiting, sites, counts = launch.arrived.astype(np.int64), np.zeros(16, np.int64), np.zeros(16, np.int64)
    alive, has_moved = 0, False
    for thread in threads:
        alive += thread.state != DONE
        if thread.state == AT_BARRIER:
            barrier = thread.operation & 15
            waiting[barrier] += 1
            counts[barrier] = thread.bounds
            if thread.bounds == 0 and sites[barrier] != 0 and sites[barrier] != thread.site:
                waiting[barrier] = -len(threads)
            sites[barrier] = thread.site
    for barrier in range(16):
        if sites[barrier] == 0 or waiting[barrier] != (counts[barrier] if counts[barrier] else alive):
            continue
        launch.clock += 1
        launch.arrived[barrier] = 0
        has_moved, total = True, 0
        for thread in threads:
            if thread.state == AT_BARRIER and thread.operation == barrier:
                total += thread.value
        for thread in threads:
            if thread.state == AT_BARRIER and thread.operation == barrier:
                thread.state, thread.result = RUNNING, total | waiting[barrier] << 32
                thread.block_epoch = thread.epoch = launch.clock
    return has_moved


@njit
def _advance(thread, address, launch, entry, launch_address, parameters):
    """Runs a thread up to its next suspension. Returns whether all is well."""
    if thread.handle:
        resume(thread.handle)
    else:
        thread.handle = start(entry, address, launch_address, parameters)
    thread.steps -= _STEPS_OF_A_SUSPENSION
    if launch.failure == 0 and (thread.endless or thread.steps < 0 and thread.state != DONE):
        launch.failure, launch.failed_thread = ENDLESS, thread.number
        launch.failed_address = thread.endless if thread.endless else thread.site
    return launch.failure == 0


@compile_cached(
    njit,
    types.void(
        from_dtype(THREAD)[::1], from_dtype(LAUNCH)[::1], types.int64[::1], types.int64, types.int64, types.int64,
        types.int64,
    ),
    nogil=True,
)  # fmt: skip
def run_block(threads, launches, order, group, entry, parameters, steps):
    """Runs one block, or up to a failure, which `launches[0]` names.

    Args:
        order: of threads. group: how many of them run as far as they get before others run, a warp or all.
        entry, parameters: addresses of the kernel and of its parameters.
        steps: how many jumps backwards a thread may make.
    """
    launch = launches[0]
    launch.clock += 1
    launch.block_start, launch.acquired, launch.arrived[:] = launch.clock, 1 << 62, 0
    for thread in threads:
        thread.state, thread.handle, thread.steps, thread.endless = RUNNING, 0, steps, 0
        thread.block_epoch = thread.epoch = launch.clock
        thread.fenced, thread.acquired = 0, 0
    count, size = len(threads), threads.itemsize
    done = False
    while not done:
        for first in range(0, count, group):
            goes_on = True
            while goes_on:
                for position in range(first, min(first + group, count)):
                    number = order[position]
                    if threads[number].state == RUNNING:
                        address = threads.ctypes.data + number * size
                        if not _advance(threads[number], address, launch, entry, launches.ctypes.data, parameters):
                            return
                goes_on = False
                low = order[first] & ~31 if group == 32 else 0
                for base in range(low, low + 32 if group == 32 else count, 32):
                    goes_on |= _release_warp(threads, launch, base, min(base + 32, count))
        if not _release_block(threads, launch):
            done = True
            for thread in threads:
                if thread.state != DONE:
                    launch.failure = STUCK
