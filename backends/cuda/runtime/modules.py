"""Kernels on a GPU, and what their launches need.

In: handles of the driver. Out: kernels, and parameters as the driver reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jitcore.backends.cuda.runtime.gpu import GpuRuntime

Dimensions = tuple[int, int, int]
#: A kernel, its grid, its blocks.
Launch = tuple["Kernel", Dimensions, Dimensions]


class Spares(list):
    """What a call takes for itself and puts back by `append`."""

    def take(self, make: Callable[..., Any], *arguments: Any) -> Any:
        """make, arguments: for one more, where there is none."""
        try:
            return self.pop()
        except IndexError:
            return make(*arguments)


class Module:
    """A loaded module, unloaded with the last of its kernels."""

    def __init__(self, runtime: GpuRuntime, handle: Any):
        self.runtime, self.handle = runtime, handle

    def find_kernel(self, name: str) -> Kernel:
        return Kernel(self, name, self.runtime._call("cuModuleGetFunction", self.handle, name.encode()))

    def __del__(self):
        self.runtime.quietly(self.runtime.synchronize)  # its kernels may still run
        self.runtime.quietly(self.runtime._call, "cuModuleUnload", self.handle)


class Kernel:
    """A `__global__` function. packs: memory for parameters."""

    __slots__ = ("module", "name", "handle", "packs")

    def __init__(self, module: Module, name: str, handle: Any):
        self.module, self.name, self.handle = module, name, handle
        self.packs = Spares()


class Pack:
    """Parameters of a launch as the driver reads them: cells of 64 bits, and the addresses of these."""

    __slots__ = ("cells", "address", "_addresses")

    def __init__(self, count: int):
        self.cells = np.zeros(count, np.uint64)
        self._addresses = self.cells.ctypes.data + 8 * np.arange(count, dtype=np.uint64)
        self.address = self._addresses.ctypes.data
