"""One launch: the records and tables that a kernel needs, its blocks one after the other, what went wrong."""

from __future__ import annotations

import ctypes
import math

import numpy as np

from jitcore.backends.cuda.emulated import races, scheduler
from jitcore.backends.cuda.emulated.context import LAUNCH, THREAD
from jitcore.backends.cuda.emulated.errors import DeviceError
from jitcore.backends.cuda.emulated.memory import Allocation, Memory, allocate_aligned, make_cells, make_ranges
from jitcore.backends.cuda.emulated.module import Kernel
from jitcore.backends.cuda.emulated.translate import SHARED_LIMIT

__all__ = ["Launch"]

_LIMITS = {"grid": ((1 << 31) - 1, 65535, 65535), "block": (1024, 1024, 64)}


class Launch:
    """Attributes: clock: see `races`; later launches go on with it."""

    def __init__(self, kernel: Kernel, grid, block, arguments, shared_bytes: int, memory: Memory, clock: int):
        self._kernel, self._grid, self._block, self._memory = kernel, grid, block, memory
        self._check(arguments, shared_bytes)
        self._threads, self._record = np.zeros(math.prod(block), THREAD), np.zeros(1, LAUNCH)
        self._threads["number"] = numbers = np.arange(math.prod(block))
        for axis, places, size, blocks in zip("zyx", np.unravel_index(numbers, block[::-1]), block[::-1], grid[::-1]):
            self._threads[f"tid_{axis}"] = places
            self._record[f"ntid_{axis}"], self._record[f"nctaid_{axis}"] = size, blocks
        # Each block finds its shared memory and its threads' local memory full of NaN.
        shared = {name: (offset, size or shared_bytes) for name, (offset, size) in kernel.shared.items()}
        self._shared = allocate_aligned(max(map(sum, shared.values()), default=0))
        base, local_bytes = self._shared.ctypes.data, kernel.module.local_bytes
        self._local = allocate_aligned(local_bytes * len(numbers))
        self._threads["local"] = self._local.ctypes.data + local_bytes * numbers
        self._own = [
            Allocation(base + offset, size, f"shared memory {name} of {size} bytes", "shared",
                       make_cells(size) if memory.check_races else None)
            for name, (offset, size) in shared.items()
        ]  # fmt: skip
        local = Allocation(self._local.ctypes.data, len(self._local), "the threads' local memory", "local", None)
        self._poisoned = [self._local, *(self._shared[offset : offset + size] for offset, size in shared.values())]
        self._own.append(local)
        self._blocks = np.zeros((math.prod(grid), 5), np.int64)
        self._blocks[:, 4] = -1
        self._parameters = np.ascontiguousarray(arguments, np.uint64)
        self._tables = {
            "ranges": make_ranges([*memory.allocations.values(), *self._own]),
            "recent": np.zeros(len(kernel.module.lines) + 2, np.int32),
            "blocks": self._blocks,
            "spare": np.zeros(64, np.int64),
            "variables": kernel.module.addresses,
        }
        numbers = {"range_count": len(self._tables["ranges"]), "shared": base, "local_bytes": local_bytes,
                   "launch_start": clock + 1, "clock": clock + 1}  # fmt: skip
        for name, value in (numbers | {name: table.ctypes.data for name, table in self._tables.items()}).items():
            self._record[name] = value
        # A coroutine that finds no frame says how large it has to be.
        entry = ctypes.CFUNCTYPE(ctypes.c_void_p, *[ctypes.c_void_p] * 3)(kernel.entry)
        entry(self._threads.ctypes.data, self._record.ctypes.data, self._parameters.ctypes.data)
        size = -(-int(self._record["frame_bytes"][0]) // 64) * 64
        self._frames = allocate_aligned(size * len(self._threads))
        self._threads["frame"] = self._frames.ctypes.data + size * np.arange(len(self._threads))

    def _check(self, arguments: np.ndarray, shared_bytes: int) -> None:
        function, sizes = self._kernel.function, self._kernel.function.parameters.values()
        threads, shared = math.prod(self._block), shared_bytes + sum(size for _, size in self._kernel.shared.values())
        reasons = [
            (f"a {name} of {extents}", len(extents) != 3 or not all(1 <= n <= most for n, most in zip(extents, _LIMITS[name])))
            for name, extents in (("grid", self._grid), ("block", self._block))
        ] + [
            (f"{threads} threads in a block, at most {function.max_threads}", threads > function.max_threads),
            (f"{len(arguments)} arguments for {len(sizes)} parameters", len(arguments) != len(sizes)),
            ("a parameter of more than eight bytes", max(sizes, default=0) > 8),
            (f"{shared} bytes of shared memory, at most {SHARED_LIMIT}", shared > SHARED_LIMIT),
        ]
        for reason, is_so in reasons:
            if is_so:
                raise DeviceError(f"kernel {function.name}: {reason}")

    def run(self, random: np.random.Generator | None, steps: int) -> int:
        """Runs all blocks. Returns the clock for the next launch. Raises: DeviceError."""
        count, total, record = len(self._threads), math.prod(self._grid), self._record
        self._order = np.arange(total) if random is None else random.permutation(total)
        threads, group = np.arange(count), count
        for position, place in enumerate(self._order):
            if random is not None:
                threads, group = self._shuffle(random)
            for memory in self._poisoned:
                memory.fill(0xFF)
            self._blocks[position, 0] = record["clock"][0] + 1
            record["block"] = position
            record["ctaid_x"], record["ctaid_y"], record["ctaid_z"] = self._find_block(place)
            parameters = self._parameters.ctypes.data
            scheduler.run_block(self._threads, record, threads, group, self._kernel.entry, parameters, steps)
            if record["failure"][0]:
                raise DeviceError(self._explain(steps))
        return int(record["clock"][0])

    def _shuffle(self, random: np.random.Generator) -> tuple[np.ndarray, int]:
        """(threads in an order, how many of them run as far as they get)"""
        count = len(self._threads)
        if random.integers(2):
            return random.permutation(count), count
        # A warp that is not full stays the last one: the scheduler takes 32 threads at a time.
        warps = [*random.permutation(count // 32), *range(count // 32, -(-count // 32))]
        return np.concatenate([32 * warp + random.permutation(min(32, count - 32 * warp)) for warp in warps]), 32

    def _find_block(self, place: int) -> tuple[int, ...]:
        return tuple(int(each) for each in np.unravel_index(place, self._grid[::-1]))[::-1]

    # -- messages --------------------------------------------------------------------------------------------
    def _explain(self, steps: int) -> str:
        record, find_line = self._record[0], self._kernel.module.find_line
        failure, thread = int(record["failure"]), self._threads[record["failed_thread"]]
        here = f"kernel {self._kernel.function.name}, block {self._find_block(self._order[record['block']])}"
        if failure == scheduler.STUCK:
            return f"{here}: {self._explain_waiting()}"
        here += f", thread {self._find_thread(record['failed_thread'])}"
        if failure == scheduler.ENDLESS:
            reason = "it may wait for a later block, or for another thread of its block"
            return f"{here} never ends, after {steps} jumps backwards: {reason}\n    {find_line(thread['site'])}"
        kinds, size, line = races.unpack_access(int(record["failed_access"]))
        reason, address = races.FAILURES[failure], int(record["failed_address"])
        if not size:
            return f"{here}: {reason}\n    {find_line(line)}"
        verb = {races.READ: "reads", races.WRITE: "writes"}.get(kinds & 3, "updates")
        message = f"{here} {verb} {size} bytes at {address:#x}, {self._memory.describe(address, size, self._own)}"
        message += f"{reason and ': '}{reason}\n    {find_line(line)}"
        if not record["failed_other"]:
            return message
        stamp, other, line = races.unpack_record(int(record["failed_other"]))
        position = np.searchsorted(self._blocks[: record["block"] + 1, 0], stamp, side="right") - 1
        verb, block = "read" if record["failed_slot"] else "written", self._find_block(self._order[position])
        return f"{message}\n    {verb} by block {block}, thread {self._find_thread(other)}\n    {find_line(line)}"

    def _find_thread(self, number: int) -> tuple[int, ...]:
        return tuple(int(self._threads[number][f"tid_{axis}"]) for axis in "xyz")

    def _explain_waiting(self) -> str:
        states, sites = self._threads["state"], self._threads["site"]
        sites = np.where(states == scheduler.DONE, 0, sites)
        reason = "a barrier in divergent code"
        if (states == scheduler.AT_COLLECTIVE).any():
            reason = "lanes are missing at a collective instruction"
        lines = [f"threads wait for each other for ever, {reason}"]
        for site in np.unique(sites):
            numbers = np.flatnonzero(sites == site)
            what = f"wait at {self._kernel.module.find_line(site)}" if site else "have ended"
            lines.append(f"{len(numbers)} threads, the first one {self._find_thread(numbers[0])}, {what}")
        return "\n    ".join(lines)
