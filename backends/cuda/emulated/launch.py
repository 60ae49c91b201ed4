"""One launch: the records and tables that a kernel needs, its blocks one after the other, what went wrong."""

from __future__ import annotations

import ctypes
import math

import numpy as np

from jitcore.backends.cuda.emulated import races, scheduler
from jitcore.backends.cuda.emulated.context import LAUNCH, THREAD
from jitcore.backends.cuda.emulated.errors import DeviceError
from jitcore.backends.cuda.emulated.memory import Allocation, Memory, make_cells, make_ranges
from jitcore.backends.cuda.emulated.module import Kernel
from jitcore.backends.cuda.emulated.translate import SHARED_LIMIT

__all__ = ["Launch"]

_GRID_LIMITS, _BLOCK_LIMITS = ((1 << 31) - 1, 65535, 65535), (1024, 1024, 64)


def _allocate_aligned(size: int) -> tuple[int, np.ndarray]:
    owner = np.empty(size + 256, np.uint8)
    skipped = -owner.ctypes.data % 256
    return owner.ctypes.data + skipped, owner[skipped : skipped + size]


class Launch:
    def __init__(self, kernel: Kernel, grid, block, arguments: np.ndarray, shared_bytes: int, memory: Memory, clock: int):
        self.kernel, self.grid, self.block, self._memory = kernel, grid, block, memory
        self._check(arguments, shared_bytes)
        count = math.prod(block)
        self.threads, self.record = np.zeros(count, THREAD), np.zeros(1, LAUNCH)
        threads, record = self.threads, self.record[0]
        threads["number"] = np.arange(count)
        for axis, places in zip("zyx", np.unravel_index(np.arange(count), block[::-1])):
            threads[f"tid_{axis}"] = places
        for axis, blocks, size in zip("xyz", grid, block):
            record[f"nctaid_{axis}"], record[f"ntid_{axis}"] = blocks, size
        # Every block finds shared and local memory full of NaN.
        static = {name: place for name, place in kernel.shared.items() if place[1]}
        shared = {**static, "of the launch": (0, shared_bytes)} if len(static) < len(kernel.shared) else static
        base, self._shared = _allocate_aligned(max((sum(place) for place in shared.values()), default=0))
        self._ranges = [
            Allocation(base + offset, size, f"shared memory {name} of {size} bytes", "shared", make_cells(size))
            for name, (offset, size) in shared.items()
        ]
        self._poisoned = [self._shared[offset : offset + size] for offset, size in shared.values()]
        local_bytes = kernel.module.local_bytes
        local, owner = _allocate_aligned(local_bytes * count)
        self._ranges.append(Allocation(local, local_bytes * count, "the threads' local memory", "local", None))
        self._poisoned.append(owner)
        threads["local"] = local + local_bytes * np.arange(count)
        self._blocks = np.zeros((math.prod(grid), 4), np.int64)
        self._blocks[:, 3] = -1
        self._table = make_ranges([*memory.allocations.values(), *self._ranges])
        self._recent = np.zeros(len(kernel.module.lines) + 2, np.int32)
        self._spare = np.zeros(64, np.int64)
        self._parameters = np.ascontiguousarray(arguments, np.uint64)
        for name, table in (("ranges", self._table), ("recent", self._recent), ("blocks", self._blocks),
                            ("spare", self._spare), ("variables", kernel.module.addresses)):  # fmt: skip
            record[name] = table.ctypes.data
        record["range_count"], record["shared"], record["local_bytes"] = len(self._table), base, local_bytes
        record["dynamic_bytes"], record["check_races"] = shared_bytes, memory.check_races
        record["clock"] = record["launch_start"] = clock + 1
        if kernel.suspends:
            self._provide_frames()

    def _check(self, arguments: np.ndarray, shared_bytes: int) -> None:
        kernel = self.kernel
        for what, extents, limits in (("grid", self.grid, _GRID_LIMITS), ("block", self.block, _BLOCK_LIMITS)):
            if len(extents) != 3 or not all(1 <= extent <= limit for extent, limit in zip(extents, limits)):
                raise DeviceError(f"kernel {kernel.name}: a {what} of {extents}")
        if math.prod(self.block) > kernel.max_threads:
            raise DeviceError(f"kernel {kernel.name}: {math.prod(self.block)} threads in a block, at most {kernel.max_threads}")
        if len(arguments) != len(kernel.parameters):
            raise DeviceError(f"kernel {kernel.name}: {len(arguments)} arguments for {len(kernel.parameters)} parameters")
        if any(size > 8 for size in kernel.parameters.values()):
            raise DeviceError(f"kernel {kernel.name}: a parameter of more than eight bytes")
        total = shared_bytes + sum(size for _, size in kernel.shared.values())
        if total > SHARED_LIMIT:
            raise DeviceError(f"kernel {kernel.name}: {total} bytes of shared memory, at most {SHARED_LIMIT}")

    def _provide_frames(self) -> None:
        """A coroutine that finds its frame too small says how large it has to be."""
        entry = ctypes.CFUNCTYPE(ctypes.c_void_p, *[ctypes.c_void_p] * 3)(self.kernel.entry)
        entry(self.threads.ctypes.data, self.record.ctypes.data, self._parameters.ctypes.data)
        size = -(-int(self.record["frame_bytes"][0]) // 64) * 64
        start, self._frames = _allocate_aligned(size * len(self.threads))
        self.threads["frame"] = start + size * np.arange(len(self.threads))

    def run(self, random: np.random.Generator | None, steps: int) -> int:
        """Runs all blocks. Returns the clock. Raises: DeviceError."""
        count, total = len(self.threads), math.prod(self.grid)
        self._order = np.arange(total) if random is None else random.permutation(total)
        order, group = np.arange(count, dtype=np.int64), count
        parameters, record = self._parameters.ctypes.data, self.record
        for position, place in enumerate(self._order):
            if random is not None:
                order, group = self._shuffle(random)
            for memory in self._poisoned:
                memory.fill(0xFF)
            self._blocks[position, 0] = record["clock"][0] + 1
            record["block"] = position
            record["ctaid_x"], record["ctaid_y"], record["ctaid_z"] = self._find_block(place)
            scheduler.run_block(self.threads, record, order, group, self.kernel.entry, parameters, steps)
            if record["failure"][0]:
                raise DeviceError(self._explain(steps))
        return int(record["clock"][0])

    def _shuffle(self, random: np.random.Generator) -> tuple[np.ndarray, int]:
        """(threads in an order, how many of them run as far as they get)"""
        count = len(self.threads)
        if random.integers(2):
            return random.permutation(count), count
        warps = [random.permutation(np.arange(first, min(first + 32, count))) for first in range(0, count, 32)]
        # The warp that is not full stays the last one: the scheduler takes 32 at a time.
        full = random.permutation(count // 32)
        return np.concatenate([*(warps[warp] for warp in full), *warps[count // 32 :]]), 32

    def _find_block(self, place: int) -> tuple[int, int, int]:
        return tuple(int(each) for each in np.unravel_index(place, self.grid[::-1]))[::-1]

    # -- messages --------------------------------------------------------------------------------------------
    def _explain(self, steps: int) -> str:
        record = self.record[0]
        failure, number, line = int(record["failure"]), int(record["failed_thread"]), self.kernel.module.find_line
        here = f"kernel {self.kernel.name}, block {self._find_block(self._order[record['block']])}"
        if failure == scheduler.STUCK:
            return f"{here}: {self._explain_waiting()}"
        here += f", thread {self._find_thread(number)}"
        if failure == scheduler.ENDLESS:
            return (f"{here} never ends: more than {steps} jumps backwards. It may wait for a block that comes later, or "
                    f"for another thread of its block.\n    {line(int(record['failed_address']))}")  # fmt: skip
        kinds, size, number = races.unpack_access(int(record["failed_access"]))
        address, reason = int(record["failed_address"]), races.FAILURES[failure]
        if kinds & races.TRAP:
            return f"{here}: trap\n    {line(number)}"
        verb = {races.READ: "reads", races.WRITE: "writes"}.get(kinds & 3, "updates")
        where = self._memory.describe(address, size, self._ranges, is_inside=failure != races.OUTSIDE)
        message = f"{here} {verb} {size} bytes at {address:#x}, {where}{reason and ': '}{reason}\n    {line(number)}"
        if failure != races.RACE:
            return message
        stamp, other, other_line = races.unpack_record(int(record["failed_other"]))
        position = np.searchsorted(self._blocks[: record["block"] + 1, 0], stamp, side="right") - 1
        what = "read" if record["failed_slot"] else "written"
        block = f" of block {self._find_block(self._order[position])}" if position != record["block"] else ""
        return f"{message}\n    {what} by thread {self._find_thread(other)}{block}: {line(other_line)}"

    def _find_thread(self, number: int) -> tuple[int, int, int]:
        return tuple(int(self.threads[number][f"tid_{axis}"]) for axis in "xyz")

    def _explain_waiting(self) -> str:
        places: dict[tuple[int, int], list[int]] = {}
        for thread in self.threads:
            key = int(thread["state"]), int(thread["site"]) if thread["state"] != scheduler.DONE else 0
            places.setdefault(key, []).append(int(thread["number"]))
        at_collective = any(state == scheduler.AT_COLLECTIVE for state, _ in places)
        reason = "lanes are missing at a collective instruction" if at_collective else "a barrier in divergent code"
        lines = [f"threads wait for each other for ever, {reason}"]
        for (state, site), numbers in places.items():
            what = "have ended" if state == scheduler.DONE else f"wait at {self.kernel.module.find_line(site)}"
            lines.append(f"    {len(numbers)} threads, the first one {self._find_thread(numbers[0])}, {what}")
        return "\n".join(lines)
