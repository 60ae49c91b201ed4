"""A CUDA device in software: allocates, copies, loads PTX and launches kernels, at once and in this thread.

In: PTX, as LLVM, NVVM or numba.cuda make it. Out: what kernels leave in memory, or `DeviceError` with the
place where one goes wrong. It does not show how long anything takes, what ptxas and the driver say, and what
becomes of weakly ordered memory when blocks run at the same time. `races` says what is checked.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence

import numpy as np

from jitcore.backends.cuda.emulated.errors import DeviceError
from jitcore.backends.cuda.emulated.launch import Launch
from jitcore.backends.cuda.emulated.memory import Memory
from jitcore.backends.cuda.emulated.module import Kernel, Module
from jitcore.process.concurrency import Lock


class EmulatedDevice:
    """A device for tests, and for machines without a GPU.

    Args:
        arch: what it says that it is.
        seed: None for threads and blocks in order; a number for random orders, in which either all threads of
            a block take turns, or one warp after the other goes as far as it gets.
        check_races: without, only addresses are checked."""

    #: How many jumps backwards a thread may make before it counts as one that never ends.
    step_limit = 1 << 26

    def __init__(self, arch: str = "sm_90", seed: int | None = None, check_races: bool = True):
        self.arch = arch
        self._memory = Memory(check_races)
        self._random = None if seed is None else np.random.default_rng(seed)
        self._modules: weakref.WeakValueDictionary[str, Module] = weakref.WeakValueDictionary()
        self._clock = 0
        self._lock = Lock()

    def allocate(self, nbytes: int) -> int:
        """Memory full of NaN and -1; its address is a multiple of 256."""
        return self._memory.allocate(nbytes)

    def free(self, address: int) -> None:
        self._memory.free(address)

    def copy_in(self, address: int, array: np.ndarray) -> None:
        self._memory.check(address, array.nbytes)
        ctypes.memmove(address, _find_data(array), array.nbytes)

    def copy_out(self, array: np.ndarray, address: int) -> None:
        self._memory.check(address, array.nbytes)
        ctypes.memmove(_find_data(array), address, array.nbytes)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        self._memory.check(target, nbytes)
        self._memory.check(source, nbytes)
        ctypes.memmove(target, source, nbytes)

    def synchronize(self) -> None:
        """Launches have ended when they return."""

    def load(self, ptx: str) -> Module:
        """The same text is translated once in a process, and its variables exist once on a device.

        Raises: DeviceError with the line that is not understood."""
        with self._lock:
            return self._modules.get(ptx) or self._modules.setdefault(ptx, Module(ptx, self._memory))

    def launch(self, kernel: Kernel, grid: Sequence[int], block: Sequence[int], arguments: np.ndarray,
               shared_bytes: int = 0) -> None:
        """Runs a kernel.

        Args:
            grid, block: extents along x, y and z.
            arguments: one uint64 for each parameter; those of fewer bytes use their low ones.
            shared_bytes: of the shared variable without a size.
        Raises: DeviceError."""
        with self._lock:
            extents = tuple(grid), tuple(block)
            launch = Launch(kernel, *extents, arguments, shared_bytes, self._memory, self._clock)
            try:
                launch.run(self._random, self.step_limit)
            finally:
                self._clock = launch.clock


def _find_data(array: np.ndarray) -> int:
    if not array.flags.c_contiguous:
        raise DeviceError("a copy of an array that is not C-contiguous")
    return array.ctypes.data
