"""The CUDA driver: its calls, by the package `cuda.bindings`, and its errors as exceptions.

In: nothing. Out: the started driver, whose attributes are those of the module `cuda.bindings.driver`, or an
error that says what is missing. The module is imported at the first use; an object with the same functions
can stand in its place.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Any

from jitcore.errors import JitcoreRuntimeError, build_error
from jitcore.process.concurrency import Lock


class CudaError(JitcoreRuntimeError):
    """A call of the CUDA driver failed. The message names the call, CUDA's error and the kernel."""


class CudaMemoryError(CudaError, MemoryError):
    """A GPU has no room for an array. What is there stays usable."""


#: Errors after which CUDA refuses every call of a process on this device.
STICKY = frozenset(f"CUDA_ERROR_{name}" for name in (
    "ASSERT", "CONTAINED", "ECC_UNCORRECTABLE", "HARDWARE_STACK_ERROR", "ILLEGAL_ADDRESS",
    "ILLEGAL_INSTRUCTION", "INVALID_ADDRESS_SPACE", "INVALID_PC", "LAUNCH_FAILED", "LAUNCH_TIMEOUT",
    "MISALIGNED_ADDRESS", "NVLINK_UNCORRECTABLE", "TENSOR_MEMORY_LEAK",
))


class LostDriver:
    """Stands for a driver that does not work any more: whoever asks it for a call learns why."""

    def __init__(self, *reason: str):
        self._reason = reason

    def __getattr__(self, name: str) -> Any:
        headline, fix = self._reason
        raise build_error(CudaError, headline, fix=fix)


_FORKED = ("This process was forked from one that had used the GPU, and CUDA does not work in it.",
           "start processes by multiprocessing.get_context('spawn') or 'forkserver', or use the GPU for the "
           "first time after the fork.")
_lock = Lock()
_started: Any = None
#: What has to learn that the process was forked: objects with a method `lose`.
_users: weakref.WeakSet = weakref.WeakSet()


def open_driver() -> Any:
    """The driver. Raises: RuntimeError naming what is missing: the package, the driver, a GPU."""
    global _started
    with _lock:
        if _started is None:
            _started = start_driver(_import_bindings())
        return _started


def _import_bindings() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise RuntimeError(f"the package cuda-bindings is not installed ({error})") from None
    return driver


def start_driver(driver: Any) -> Any:
    """The same driver, ready for calls. Raises: as `open_driver`."""
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError as error:  # how cuda.bindings says that it finds no library
        raise RuntimeError(f"no NVIDIA driver is installed ({error})") from None
    name = status.name
    if name == "CUDA_SUCCESS":
        (status, count) = driver.cuDeviceGetCount()
        name = status.name if status or count else "CUDA_ERROR_NO_DEVICE"
    if name == "CUDA_ERROR_NO_DEVICE":
        seen = os.environ.get("CUDA_VISIBLE_DEVICES")
        hint = "" if seen is None else f"; CUDA_VISIBLE_DEVICES is {seen!r}"
        raise RuntimeError(f"the NVIDIA driver finds no GPU{hint}")
    if name != "CUDA_SUCCESS":
        raise RuntimeError(f"the NVIDIA driver does not start: {name}{describe_status(driver, status)}")
    return driver


def describe_status(driver: Any, status: Any) -> str:
    """CUDA's words for an error, in brackets, after a blank."""
    with contextlib.suppress(Exception):  # they are help, no more
        return f" ({driver.cuGetErrorString(status)[1].decode()})"
    return ""


def list_names(driver: Any) -> list[str]:
    """What NVIDIA calls the GPUs."""
    return [read_name(driver, ordinal) for ordinal in range(driver.cuDeviceGetCount()[1])]


def read_name(driver: Any, ordinal: int) -> str:
    _, device = driver.cuDeviceGet(ordinal)
    status, name = driver.cuDeviceGetName(256, device)
    return f"GPU {ordinal}" if status else name.split(b"\0")[0].decode()


def watch_forks(user: Any) -> None:
    """In a forked child `user.lose(headline, fix)` is called before anything else is."""
    _users.add(user)


def _lose_driver() -> None:
    global _started
    if _started is not None:
        _started = LostDriver(*_FORKED)
    for user in list(_users):
        user.lose(*_FORKED)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lose_driver)
