"""Devices: the protocol that a GPU and the device in software follow, and memory on them.

In: addresses, PTX, arguments of kernels. Out: what runs there. Everything else of the backend knows devices
by this protocol alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from jitcore.backends.cuda.runtime import protocols
from jitcore.sharding import Device, SingleDeviceSharding

#: Where temporaries begin: the longest stretch that one access of a warp reads.
ALIGNMENT = 256


class Runtime(Protocol):
    """What a device offers. arch: its architecture, such as "sm_90"."""

    arch: str

    def allocate(self, nbytes: int) -> int:
        """An address, a multiple of `ALIGNMENT`."""

    def free(self, address: int) -> None: ...

    def copy_in(self, address: int, array: np.ndarray) -> None:
        """From a C-contiguous array of the host."""

    def copy_out(self, array: np.ndarray, address: int) -> None:
        """To a C-contiguous array of the host."""

    def copy(self, target: int, source: int, nbytes: int) -> None: ...

    def load(self, ptx: str) -> Any:
        """A module; its `find_kernel(name)` gives what `launch` takes."""

    def launch(self, kernel: Any, grid: tuple[int, int, int], block: tuple[int, int, int],
               arguments: np.ndarray) -> None:
        """arguments: a uint64 for each parameter."""

    def synchronize(self) -> None: ...

    # -- optional -------------------------------------------------------------------------------------------
    def start_copy_out(self, address: int, nbytes: int) -> Any:
        """Begins a copy to the host, whose `finish(array)` waits for it and writes the array."""

    def make_graph(self, launches: Sequence[tuple]) -> Any:
        """(kernel, grid, block)s that follow one another, for `launch(arguments)` with those of each."""

    has_loops: bool

    def make_loop(self, cond: Sequence[tuple], body: Sequence[tuple]) -> Any:
        """If it has them: the same for a loop whose condition the device reads. `launch(cond, body,
        predicate, moves)` is given the arguments, the predicate's (address, bytes), and (target, source,
        bytes) of copies that end each round."""

    #: NVIDIA's: a `libraries.bindings.Libraries`.
    libraries: Any

    #: Of the work on the device; then also `follow`, `precede`, `retire` and `wait_for_others`, for arrays
    #: that other libraries use too.
    stream: int


class Memory:
    """Bytes on a device, freed with this object. is_shared: whether another library has them, too."""

    __slots__ = ("runtime", "address", "nbytes", "is_shared")

    def __init__(self, runtime: Runtime, nbytes: int):
        self.address = None
        self.runtime, self.nbytes, self.is_shared = runtime, nbytes, False
        self.address = runtime.allocate(nbytes)

    def __del__(self):
        if self.address is not None:
            if self.is_shared:
                self.runtime.wait_for_others()
            self.runtime.free(self.address)


class DeviceBuffer:
    """An array in the memory of a device: what a `DeviceArray` holds."""

    __slots__ = ("memory", "shape", "dtype", "device", "_on_its_way")

    def __init__(self, memory: Memory, shape: Sequence[int], dtype: np.dtype, device: Device):
        self.memory, self.shape, self.dtype, self.device = memory, tuple(shape), dtype, device
        self._on_its_way: Any = None

    @property
    def address(self) -> int:
        return self.memory.address

    @property
    def nbytes(self) -> int:
        return self.memory.nbytes

    @property
    def sharding(self) -> SingleDeviceSharding:
        return SingleDeviceSharding(self.device)

    def delete(self) -> None:
        self.memory = None

    def block_until_ready(self) -> None:
        self.memory.runtime.synchronize()

    def copy_to_host_async(self) -> None:
        """Begins the copy that the first reader waits for."""
        start = getattr(self.memory.runtime, "start_copy_out", None)
        if start is not None and self._on_its_way is None and self.nbytes:
            self._on_its_way = start(self.address, self.nbytes)

    # -- other libraries ------------------------------------------------------------------------------------
    def __dlpack_device__(self) -> tuple[int, int]:
        kind = protocols.DLPACK_CUDA if hasattr(self.memory.runtime, "stream") else protocols.DLPACK_OTHER
        return kind, self.device.id

    def __dlpack__(self, **options: Any) -> Any:
        return protocols.export(self, **options)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return protocols.describe(self)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        found = np.empty(self.shape, self.dtype)
        started, self._on_its_way = self._on_its_way, None
        if started is None:
            self.memory.runtime.copy_out(found, self.address)
        else:
            started.finish(found)
        return found if dtype is None else found.astype(dtype)


def put(runtime: Runtime, device: Device, value: np.ndarray) -> DeviceBuffer:
    """An ndarray of the host as a buffer."""
    value = np.asarray(value, order="C")
    memory = Memory(runtime, value.nbytes)
    runtime.copy_in(memory.address, value)
    return DeviceBuffer(memory, value.shape, value.dtype, device)


def copy(runtime: Runtime, buffer: DeviceBuffer) -> DeviceBuffer:
    """The same elements in memory of their own on the same device."""
    memory = Memory(runtime, buffer.nbytes)
    runtime.copy(memory.address, buffer.address, buffer.nbytes)
    return DeviceBuffer(memory, buffer.shape, buffer.dtype, buffer.device)
