"""What DLPack and `__cuda_array_interface__` say of an array on a GPU, read and written.

In: an array of another library, or a `DeviceBuffer`. Out: where the array lies; or what protocols ask for.
Streams wait for each other, the host for none. Memory that was lent is freed when all streams are done.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitcore import dtypes

#: DLPack's numbers for memory of a GPU, of a device that it does not know, and for memory that CUDA moves
#: between GPU and host.
DLPACK_CUDA, DLPACK_OTHER, DLPACK_MANAGED = 2, 12, 13
_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT = 4
#: `__dlpack__` without a stream means the default one, -1 that nobody need wait.
DEFAULT_STREAM, _NO_STREAM = 1, -1


class View(NamedTuple):
    """What another library says of its array. strides: in elements, None for C-contiguous."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype
    strides: Sequence[int] | None

    @property
    def is_contiguous(self) -> bool:
        if self.strides is None or 0 in self.shape:
            return True
        step = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides)):
            if extent > 1 and stride != step:
                return False
            step *= extent
        return True


def read_interface(interface: dict) -> tuple[View, int | None]:
    """The array, and the stream that has to be waited for."""
    dtype, strides = np.dtype(interface["typestr"]), interface.get("strides")
    if strides is not None:
        strides = [stride // dtype.itemsize for stride in strides]
    view = View(interface["data"][0], tuple(interface["shape"]), dtype, strides)
    return view, interface.get("stream")


# -- to others ----------------------------------------------------------------------------------------------
def describe(buffer: Any) -> dict[str, Any]:
    """What `__cuda_array_interface__` is. Raises: AttributeError on a device in software, and for a dtype
    without a name."""
    stream = buffer.memory.runtime.stream
    if buffer.dtype.kind not in _KINDS or dtypes.is_narrow(buffer.dtype):
        raise AttributeError(f"__cuda_array_interface__ has no name for {buffer.dtype}")
    buffer.memory.is_shared = True
    return {"shape": buffer.shape, "typestr": buffer.dtype.str, "data": (buffer.address, True),
            "strides": None, "stream": stream, "version": 3}


def export(buffer: Any, stream: int | None = None, dl_device: tuple[int, int] | None = None,
           copy: bool | None = None, max_version: tuple[int, int] | None = None) -> Any:
    """What `__dlpack__` gives. Raises: BufferError for a copy, another device, a dtype without a number."""
    kind = _BFLOAT if buffer.dtype == dtypes.bfloat16 else _KINDS.get(dtypes.kind_of(buffer.dtype))
    place = DLPACK_CUDA, buffer.device.id
    if kind is None or copy or dl_device not in (None, place):
        raise BufferError(f"an array of {buffer.dtype} on {buffer.device} is not exported so: no copy is "
                          "made, and DLPack has to know its dtype")
    if stream != _NO_STREAM:
        buffer.memory.runtime.precede(DEFAULT_STREAM if stream is None else stream)
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
_exported: dict[int, tuple[_Managed, Any]] = {}


@_Deleter
def _forget(address: int) -> None:
    _exported.pop(address, None)


@_Destructor
def _forget_unread(capsule: int) -> None:
    if _is_unread(capsule, _NAME):  # a reader has renamed it
        _exported.pop(_open_dying(capsule, _NAME), None)


def read_capsule(capsule: Any) -> View:
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
