"""Arrays of other libraries on GPUs, used without a copy.

In: an array of another library, by DLPack or `__cuda_array_interface__`. Out: a buffer in its memory. The
other library's array is kept until this GPU has read it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from jitcore import dtypes
from jitcore.backends.cuda.runtime.device import DeviceBuffer, Memory
from jitcore.backends.cuda.runtime.protocols import (DEFAULT_STREAM, DLPACK_CUDA, DLPACK_MANAGED,
                                                     read_capsule, read_interface)
from jitcore.backends.gpu.mapping import ACCESS_BYTES
from jitcore.errors import build_error
from jitcore.sharding import Device


class Borrowed(Memory):
    """Memory of another library's array, which is kept as long as this GPU reads it. stream: the other
    library's, which writes to the array later than that."""

    __slots__ = ("owner", "stream")

    def __init__(self, runtime: Any, address: int, nbytes: int, owner: Any, stream: int):
        self.runtime, self.address, self.nbytes, self.is_shared = runtime, address, nbytes, True
        self.owner, self.stream = owner, stream

    def __del__(self):
        self.runtime.quietly(self.runtime.retire, self.owner)
        self.runtime.quietly(self.runtime.precede, self.stream)


def adopt(value: Any, open_gpu: Callable[[int], tuple[Any, Device]]) -> DeviceBuffer | None:
    """A buffer in the memory of another library's array on a GPU; None for anything else. Memory that begins
    where kernels cannot read it is copied. open_gpu: (runtime, device) of an ordinal.

    Raises: ValueError for an array that is not C-contiguous."""
    if hasattr(value, "__dlpack_device__"):
        kind, ordinal = value.__dlpack_device__()
        if kind not in (DLPACK_CUDA, DLPACK_MANAGED):
            return None
        runtime, device = open_gpu(ordinal)
        owner, stream = value.__dlpack__(stream=runtime.stream), None  # that stream waits already
        view = read_capsule(owner)
    elif hasattr(value, "__cuda_array_interface__"):
        owner, (view, stream) = value, read_interface(value.__cuda_array_interface__)
        ordinal = open_gpu(0)[0].find_ordinal(view.address) if view.address else 0
        runtime, device = open_gpu(ordinal)
        if stream is not None:
            runtime.follow(stream)
    else:
        return None
    if view.dtype not in dtypes.SHORT_NAMES:
        return None
    if not view.is_contiguous:
        raise build_error(
            ValueError,
            f"an array of shape {view.shape} on {device} is not C-contiguous: it has strides {view.strides}.",
            fix="pass a contiguous copy of it.",
        )
    nbytes = math.prod(view.shape) * view.dtype.itemsize
    memory: Memory = Borrowed(runtime, view.address, nbytes, owner, stream or DEFAULT_STREAM)
    if view.address % ACCESS_BYTES:
        memory = Memory(runtime, nbytes)
        runtime.copy(memory.address, view.address, nbytes)
    return DeviceBuffer(memory, view.shape, view.dtype, device)
