"""Where arrays lie: JAX's devices and shardings as jitcore's, and back.

In: devices, shardings and arrays of JAX. Out: `Device`, `SingleDeviceSharding`, `DeviceArray`; the same object
for what is equal, so that calls find their programs by identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitcore.array import DeviceArray, DeviceForm, find_form
from jitcore.backends.xla.client import allow_64_bits, list_devices, load_jax, put
from jitcore.core.aval import ShapedArray
from jitcore.device import Device, SingleDeviceSharding

#: By JAX's object: by its identity, which is found first, and by its value.
_by_id: dict[int, tuple[Any, Any]] = {}
_by_value: dict[Any, Any] = {}
_MAX_IDS = 1 << 14


def name_backend(platform: str) -> str:
    """The backend that serves a platform of JAX."""
    return "tpu" if platform == "tpu" else "xla"


def to_device(device: Any) -> Device:
    """JAX's device as one of jitcore."""
    return Device(device.platform, device.id, device.device_kind, name_backend(device.platform),
                  device.process_index)  # fmt: skip


def to_jax_device(device: Device) -> Any:
    """Raises: ValueError for a device that JAX does not have."""
    for found in list_devices(device.platform):
        if found.id == device.id:
            return found
    raise ValueError(f"there is no device {device}: {device.platform} has {len(list_devices(device.platform))}")


def to_sharding(sharding: Any) -> Any:
    """JAX's sharding as one of jitcore."""
    known = _by_id.get(id(sharding))
    if known is not None:
        return known[1]
    found = _by_value.get(sharding)
    if found is None:
        found = _by_value[sharding] = _convert(sharding)
    if len(_by_id) >= _MAX_IDS:
        _by_id.clear()
    _by_id[id(sharding)] = sharding, found  # which keeps it, so that its identity stays its own
    return found


def _convert(sharding: Any) -> Any:
    (device,) = sharding.device_set
    return SingleDeviceSharding(to_device(device))


def to_jax_sharding(sharding: Any) -> Any:
    """A device or sharding as JAX's sharding."""
    device = sharding if isinstance(sharding, Device) else sharding.device
    return load_jax().sharding.SingleDeviceSharding(to_jax_device(device))


def wrap(buffer: Any, weak_type: bool = False) -> DeviceArray:
    """An array of JAX's as one of jitcore."""
    return DeviceArray(buffer, find_form(buffer.shape, np.dtype(buffer.dtype), weak_type, to_sharding(buffer.sharding)))


#: Bytes of an array that is lent to XLA's CPU client instead of copied, and where such an array begins.
LENT_BYTES, ALIGNMENT = 1 << 16, 64


def may_be_lent(value: np.ndarray) -> bool:
    """Whether XLA's CPU client can read an array, which nobody writes to, where it lies."""
    return value.nbytes >= LENT_BYTES and value.ctypes.data % ALIGNMENT == 0 and value.dtype.kind in "iufc"


def lend(value: np.ndarray) -> Any:
    """The same elements as an array of JAX's."""
    with allow_64_bits():
        return load_jax().dlpack.from_dlpack(value)


def put_array(value: np.ndarray, sharding: Any, is_immutable: bool) -> Any:
    """An ndarray as an array of JAX's where a sharding says."""
    if sharding is None:
        sharding = to_device(list_devices("cpu")[0])
    target = to_jax_sharding(sharding)
    (device,) = target.device_set
    is_lent = is_immutable and isinstance(value, np.ndarray) and device.platform == "cpu" and device.id == 0
    return lend(value) if is_lent and may_be_lent(value) else put(value, target)


def find_forms(avals: Sequence[ShapedArray], sharding: Any, platform: str) -> list[DeviceForm] | None:
    """The forms of the outputs of a program on one device; None on several, where XLA decides."""
    if sharding is None:
        sharding = to_device(list_devices(platform)[0])
    if not isinstance(sharding, (Device, SingleDeviceSharding)):
        return None
    known = to_sharding(to_jax_sharding(sharding))
    return [find_form(aval.shape, aval.dtype, aval.weak_type, known) for aval in avals]
