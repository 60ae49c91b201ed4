"""One launch: the records and tables that a kernel needs, its blocks one after the other, what went wrong."""

from __future__ import annotations

import ctypes
import math

import numpy as np

from jitcore.backends.cuda.emulated import memory, races, scheduler
from jitcore.backends.cuda.emulated.context import LAUNCH, THREAD
from jitcore.backends.cuda.emulated.errors import DeviceError
from jitcore.backends.cuda.emulated.module import Kernel
from jitcore.backends.cuda.emulated.translate import SHARED_LIMIT

_LIMITS = {"grid": ((1 << 31) - 1, 65535, 65535), "block": (1024, 1024, 64)}


class Launch:
    def __init__(self, kernel: Kernel, grid, block, arguments, shared_bytes, device: memory.Memory, clock):
        self._kernel, self._grid, self._block, self._memory = kernel, grid, block, device
        self._check(arguments, shared_bytes)
        self._threads, self._record = np.zeros(math.prod(block), THREAD), np.zeros(1, LAUNCH)
        self._threads["number"] = numbers = np.arange(math.prod(block))
        for axis, size, blocks in zip("xyz", block, grid):
            self._threads[f"tid_{axis}"], numbers = numbers % size, numbers // size
            self._record[f"ntid_{axis}"], self._record[f"nctaid_{axis}"] = size, blocks
        self._provide_memory(shared_bytes)
        self._blocks = np.zeros((math.prod(grid), 5), np.int64)
        self._blocks[:, 4] = -1
        self._parameters = np.ascontiguousarray(arguments, np.uint64)
        self._tables = {
            "ranges": memory.make_ranges([*device.list_allocations(), *self._own]),
            "recent": np.zeros(len(kernel.module.lines) + 2, np.int32),
            "blocks": self._blocks,
            "spare": np.zeros(64, np.int64),
            "variables": kernel.module.addresses,
        }
        for name, table in self._tables.items():
            self._record[name] = table.ctypes.data
        self._record["range_count"] = len(self._tables["ranges"])
        self._record["launch_start"] = self._record["clock"] = clock + 1
        self._provide_frames()

    def _check(self, arguments: np.ndarray, shared_bytes: int) -> None:
        function, threads = self._kernel.function, math.prod(self._block)
        shared, wrong = shared_bytes + sum(size for _, size in self._kernel.shared.values()), []
        for name, extents in (("grid", self._grid), ("block", self._block)):
            if len(extents) != 3 or not all(1 <= size <= most for size, most in zip(extents, _LIMITS[name])):
                wrong.append(f"a {name} of {extents}")
        if threads > function.max_threads:
            wrong.append(f"{threads} threads in a block, at most {function.max_threads}")
        if len(arguments) != len(function.parameters):
            wrong.append(f"{len(arguments)} arguments for {len(function.parameters)} parameters")
        if max(function.parameters.values(), default=0) > 8:
            wrong.append("a parameter of more than eight bytes")
        if shared > SHARED_LIMIT:
            wrong.append(f"{shared} bytes of shared memory, at most {SHARED_LIMIT}")
        if wrong:
            raise DeviceError(f"kernel {function.name}: {', '.join(wrong)}")

    def _provide_memory(self, shared_bytes: int) -> None:
        """Shared memory and the threads' local memory, which every block finds full of NaN."""
        places = self._kernel.shared.items()
        shared = {name: (offset, size or shared_bytes) for name, (offset, size) in places}
        buffer = memory.allocate_aligned(max(map(sum, shared.values()), default=0))
        bytes_each, count = self._kernel.module.local_bytes, len(self._threads)
        local = memory.allocate_aligned(bytes_each * count)
        self._poisoned = [local, *(buffer[offset : offset + size] for offset, size in shared.values())]
        self._threads["local"] = local.ctypes.data + bytes_each * np.arange(count)
        self._record["shared"], self._record["local_bytes"] = buffer.ctypes.data, bytes_each
        names = ["the threads' local memory", *(f"shared memory {name}" for name in shared)]
        self._own = []
        for name, part in zip(names, self._poisoned):
            is_shared = part is not local
            cells = memory.make_cells(len(part)) if is_shared and self._memory.check_races else None
            name, space = f"{name} of {len(part)} bytes", "shared" if is_shared else "local"
            self._own.append(memory.Allocation(part.ctypes.data, len(part), name, space, cells, part))

    def _provide_frames(self) -> None:
        """A coroutine that finds its frame too small says how large it has to be."""
        entry = ctypes.CFUNCTYPE(ctypes.c_void_p, *[ctypes.c_void_p] * 3)(self._kernel.entry)
        entry(self._threads.ctypes.data, self._record.ctypes.data, self._parameters.ctypes.data)
        size = -(-int(self._record["frame_bytes"][0]) // 64) * 64
        self._frames = memory.allocate_aligned(size * len(self._threads))
        self._threads["frame"] = self._frames.ctypes.data + size * np.arange(len(self._threads))

    def run(self, random: np.random.Generator | None, steps: int) -> None:
        """Runs all blocks. Raises: DeviceError."""
        count, total, record = len(self._threads), math.prod(self._grid), self._record
        self._order = np.arange(total) if random is None else random.permutation(total)
        threads, group = np.arange(count), count
        for position, place in enumerate(self._order):
            if random is not None:
                threads, group = self._shuffle(random)
            for part in self._poisoned:
                part.fill(0xFF)
            self._blocks[position, 0] = record["clock"][0] + 1
            record["block"] = position
            record["ctaid_x"], record["ctaid_y"], record["ctaid_z"] = self._find_block(place)
            parameters = self._parameters.ctypes.data
            scheduler.run_block(self._threads, record, threads, group, self._kernel.entry, parameters, steps)
            if record["failure"][0]:
                raise DeviceError(self._explain(steps))

    @property
    def clock(self) -> int:
        """For the next launch, also after an error; see `races`."""
        return int(self._record["clock"][0])

    def _shuffle(self, random: np.random.Generator) -> tuple[np.ndarray, int]:
        """(threads in an order, how many of them run as far as they get)"""
        count = len(self._threads)
        if random.integers(2):
            return random.permutation(count), count
        # A warp that is not full stays the last one: the scheduler takes 32 threads at a time.
        warps = [*random.permutation(count // 32), *range(count // 32, -(-count // 32))]
        lanes = [32 * warp + random.permutation(min(32, count - 32 * warp)) for warp in warps]
        return np.concatenate(lanes), 32

    def _find_block(self, place: int) -> tuple[int, ...]:
        x, y, z = self._grid
        return int(place % x), int(place // x % y), int(place // (x * y) % z)

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
            here += f" never ends, after {steps} jumps backwards: {reason}"
            return f"{here}\n    {find_line(thread['site'])}"
        kinds, size, line = races.unpack_access(int(record["failed_access"]))
        reason, address = races.FAILURES[failure], int(record["failed_address"])
        if not size:
            return f"{here}: {reason}\n    {find_line(line)}"
        verb = {races.READ: "reads", races.WRITE: "writes"}.get(kinds & 3, "updates")
        here += f" {verb} {size} bytes at {address:#x}, {self._memory.describe(address, size, self._own)}"
        message = f"{here}{reason and ': '}{reason}\n    {find_line(line)}"
        if not record["failed_other"]:
            return message
        stamp, other, line = races.unpack_record(int(record["failed_other"]))
        position = np.searchsorted(self._blocks[: record["block"] + 1, 0], stamp, side="right") - 1
        who = f"block {self._find_block(self._order[position])}, thread {self._find_thread(other)}"
        message += f"\n    {'read' if record['failed_slot'] else 'written'} by {who}"
        return f"{message}\n    {find_line(line)}"

    def _find_thread(self, number: int) -> tuple[int, ...]:
        return tuple(int(self._threads[number][f"tid_{axis}"]) for axis in "xyz")

    def _explain_waiting(self) -> str:
        sites = np.where(self._threads["state"] == scheduler.DONE, 0, self._threads["site"])
        reason = "a barrier in divergent code"
        if (self._threads["state"] == scheduler.AT_COLLECTIVE).any():
            reason = "lanes are missing at a collective instruction"
        lines = [f"threads wait for each other for ever, {reason}"]
        for site in np.unique(sites):
            numbers = np.flatnonzero(sites == site)
            what = f"wait at {self._kernel.module.find_line(site)}" if site else "have ended"
            lines.append(f"{len(numbers)} threads, the first one {self._find_thread(numbers[0])}, {what}")
        return "\n    ".join(lines)
