"""Devices: the protocol that a GPU and the device in software follow, and memory on them.

In: addresses, PTX, arguments of kernels. Out: what runs there. Everything else of the backend knows devices
by this protocol alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

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
               arguments: np.ndarray) -> None:  # fmt: skip
        """arguments: a uint64 for each parameter."""

    def synchronize(self) -> None: ...


class Memory:
    """Bytes on a device, freed with this object."""

    __slots__ = ("runtime", "address", "nbytes")

    def __init__(self, runtime: Runtime, nbytes: int):
        self.address = None
        self.runtime, self.nbytes = runtime, nbytes
        self.address = runtime.allocate(nbytes)

    def __del__(self):
        if self.address is not None:
            self.runtime.free(self.address)


class DeviceBuffer:
    """An array in the memory of a device: what a `DeviceArray` holds."""

    __slots__ = ("memory", "shape", "dtype", "device")

    def __init__(self, memory: Memory, shape: Sequence[int], dtype: np.dtype, device: Device):
        self.memory, self.shape, self.dtype, self.device = memory, tuple(shape), dtype, device

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
        """Does nothing yet: the copy is made when somebody reads."""

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        found = np.empty(self.shape, self.dtype)
        self.memory.runtime.copy_out(found, self.address)
        return found if dtype is None else found.astype(dtype)


def put(runtime: Runtime, device: Device, value: np.ndarray) -> DeviceBuffer:
    """An ndarray of the host as a buffer."""
    value = np.asarray(value, order="C")
    memory = Memory(runtime, value.nbytes)
    runtime.copy_in(memory.address, value)
    return DeviceBuffer(memory, value.shape, value.dtype, device)
