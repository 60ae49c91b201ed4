"""Arrays on GPUs that several libraries use, without a copy.

In: an array of another library, by DLPack or `__cuda_array_interface__`; or a buffer. Out: a buffer in that
array's memory; or what the two protocols ask for. Streams wait for each other, the host for none: the other
library's array is kept until this GPU has read it. Memory that was lent is freed when all streams are done.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.backends.cuda.runtime.device import DLPACK_CUDA, DeviceBuffer, Memory
from jitcore.backends.gpu_mapping import ACCESS_BYTES
from jitcore.errors import build_error
from jitcore.sharding import Device

#: DLPack's number for memory that CUDA moves between GPU and host.
DLPACK_MANAGED = 13
_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT = 4
#: `__dlpack__` without a stream means the default one, -1 that nobody need wait.
_DEFAULT_STREAM, _NO_STREAM = 1, -1


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


class View(NamedTuple):
    """What another library says of its array. strides: in elements, None for C-contiguous."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype
    strides: Sequence[int] | None


# -- from others --------------------------------------------------------------------------------------------
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
        view = _read_capsule(owner)
    elif hasattr(value, "__cuda_array_interface__"):
        owner, (view, stream) = value, _read_interface(value.__cuda_array_interface__)
        ordinal = open_gpu(0)[0].find_ordinal(view.address) if view.address else 0
        runtime, device = open_gpu(ordinal)
        if stream is not None:
            runtime.follow(stream)
    else:
        return None
    if view.dtype not in dtypes.SHORT_NAMES:
        return None
    if not _is_contiguous(view):
        raise build_error(
            ValueError,
            f"an array of shape {view.shape} on {device} is not C-contiguous: it has strides {view.strides}.",
            fix="pass a contiguous copy of it.",
        )
    nbytes = math.prod(view.shape) * view.dtype.itemsize
    memory: Memory = Borrowed(runtime, view.address, nbytes, owner, stream or _DEFAULT_STREAM)
    if view.address % ACCESS_BYTES:
        memory = Memory(runtime, nbytes)
        runtime.copy(memory.address, view.address, nbytes)
    return DeviceBuffer(memory, view.shape, view.dtype, device)


def _read_interface(interface: dict) -> tuple[View, int | None]:
    """The array, and the stream that has to be waited for."""
    dtype, strides = np.dtype(interface["typestr"]), interface.get("strides")
    if strides is not None:
        strides = [stride // dtype.itemsize for stride in strides]
    view = View(interface["data"][0], tuple(interface["shape"]), dtype, strides)
    return view, interface.get("stream")


def _is_contiguous(view: View) -> bool:
    if view.strides is None or 0 in view.shape:
        return True
    step = 1
    for extent, stride in zip(reversed(view.shape), reversed(view.strides)):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True


# -- to others ----------------------------------------------------------------------------------------------
def describe(buffer: DeviceBuffer) -> dict[str, Any]:
    """What `__cuda_array_interface__` is. Raises: AttributeError on a device in software, and for a dtype
    without a name."""
    stream = buffer.memory.runtime.stream
    if buffer.dtype.kind not in _KINDS:
        raise AttributeError(f"__cuda_array_interface__ has no name for {buffer.dtype}")
    buffer.memory.is_shared = True
    return {"shape": buffer.shape, "typestr": buffer.dtype.str, "data": (buffer.address, True),
            "strides": None, "stream": stream, "version": 3}


def export(buffer: DeviceBuffer, stream: int | None = None, dl_device: tuple[int, int] | None = None,
           copy: bool | None = None, max_version: tuple[int, int] | None = None) -> Any:
    """What `__dlpack__` gives. Raises: BufferError for a copy, another device, a dtype without a number."""
    kind = _BFLOAT if buffer.dtype == dtypes.bfloat16 else _KINDS.get(buffer.dtype.kind)
    place = DLPACK_CUDA, buffer.device.id
    if kind is None or copy or dl_device not in (None, place):
        raise BufferError(f"an array of {buffer.dtype} on {buffer.device} is not exported so: no copy is "
                          "made, and DLPack has to know its dtype")
    if stream != _NO_STREAM:
        buffer.memory.runtime.precede(_DEFAULT_STREAM if stream is None else stream)
    buffer.memory.is_shared = True
    shape = (ctypes.c_int64 * len(buffer.shape))(*buffer.shape)
    form = kind, 8 * buffer.dtype.itemsize, 1
    tensor = _Tensor(buffer.address, *place, len(shape), *form, shape, None, 0)
    managed = _Managed(tensor, None, _forget)
    address = ctypes.addressof(managed)
    _exported[address] = managed, buffer.memory
    return _new_capsule(address, _NAME, _forget_unread)


# -- DLPack's memory ----------------------------------------------------------------------------------------
class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


_NAME = b"dltensor"
_api, _Address, _Text = ctypes.pythonapi, ctypes.c_void_p, ctypes.c_char_p
_Destructor = ctypes.PYFUNCTYPE(None, _Address)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, _Address, _Text, _Destructor)(("PyCapsule_New", _api))
_open_capsule = ctypes.PYFUNCTYPE(_Address, ctypes.py_object, _Text)(("PyCapsule_GetPointer", _api))
# a destructor gets an object that nobody may refer to any more
_is_unread = ctypes.PYFUNCTYPE(ctypes.c_int, _Address, _Text)(("PyCapsule_IsValid", _api))
_open_dying = ctypes.PYFUNCTYPE(_Address, _Address, _Text)(("PyCapsule_GetPointer", _api))
#: By the address of what the reader has: it, and the memory that it reads.
_exported: dict[int, tuple[_Managed, Memory]] = {}


@_Deleter
def _forget(address: int) -> None:
    _exported.pop(address, None)


@_Destructor
def _forget_unread(capsule: int) -> None:
    if _is_unread(capsule, _NAME):  # a reader has renamed it
        _exported.pop(_open_dying(capsule, _NAME), None)


def _read_capsule(capsule: Any) -> View:
    """The array of a capsule, which keeps it, as it is not marked as read."""
    tensor = _Managed.from_address(_open_capsule(capsule, _NAME)).tensor
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tensor.strides[: tensor.ndim] if tensor.strides else None
    return View((tensor.data or 0) + tensor.byte_offset, shape, _find_dtype(tensor), strides)


def _find_dtype(tensor: _Tensor) -> np.dtype:
    """One that no program takes, where there is none."""
    if (tensor.code, tensor.bits, tensor.lanes) == (_BFLOAT, 16, 1):
        return dtypes.bfloat16
    letters = {number: letter for letter, number in _KINDS.items()}
    letter = letters.get(tensor.code, "V") if tensor.lanes == 1 else "V"
    return np.dtype(f"{letter}{tensor.bits // 8}")
