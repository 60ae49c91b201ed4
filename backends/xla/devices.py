"""Where arrays lie: JAX's devices and shardings as jitcore's, and back.

In: devices, shardings and arrays of JAX. Out: `Device`, shardings, `DeviceArray`; the same object for what is
equal, so that calls find their programs by identity.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from jitcore.array import DeviceArray, DeviceForm, copy_data, find_form
from jitcore.backends.xla.client import allow_64_bits, find_default_device, list_devices, load_jax, put
from jitcore.core.jaxpr import ShapedArray
from jitcore.sharding import (Device, Mesh, NamedSharding, PartitionSpec, PositionalSharding, Sharding,
                              SingleDeviceSharding, Spread)
from jitcore.sharding.mesh import UNCONSTRAINED

#: By JAX's sharding.
_sharding_of: dict[Any, Any] = {}


def to_device(device: Any) -> Device:
    """JAX's device as one of jitcore."""
    backend = "tpu" if device.platform == "tpu" else "xla"
    return Device(device.platform, device.id, device.device_kind, backend, device.process_index)


#: Of what is compiled for a machine that need not be there: our devices, and JAX's in their place.
_stand_ins: ContextVar[tuple[tuple[Device, Any], ...]] = ContextVar("stand_ins", default=())


@contextlib.contextmanager
def standing_in(pairs: Iterable[tuple[Device, Any]]) -> Iterator[None]:
    """Within, devices are converted to these of JAX."""
    token = _stand_ins.set(tuple(pairs))
    try:
        yield
    finally:
        _stand_ins.reset(token)


def to_jax_device(device: Device) -> Any:
    """Raises: ValueError for a device that JAX does not have."""
    if _stand_ins.get():
        return dict(_stand_ins.get())[device]
    for found in list_devices(device.platform):
        if found.id == device.id:
            return found
    raise ValueError(f"there is no device {device}: {device.platform} has "
                     f"{len(list_devices(device.platform))}")


def to_sharding(sharding: Any) -> Any:
    """JAX's sharding as one of jitcore."""
    if sharding not in _sharding_of:
        _sharding_of[sharding] = _convert(sharding)
    return _sharding_of[sharding]


def _convert(sharding: Any) -> Sharding:
    kinds = load_jax().sharding
    if isinstance(sharding, kinds.SingleDeviceSharding):
        (device,) = sharding.device_set
        return SingleDeviceSharding(to_device(device))
    if isinstance(sharding, kinds.NamedSharding):
        mesh, free = sharding.mesh, kinds.PartitionSpec.UNCONSTRAINED
        known = _mesh_of.get(mesh) or Mesh(_map_devices(to_device, mesh.devices), mesh.axis_names)
        entries = [UNCONSTRAINED if entry is free else entry for entry in sharding.spec]
        return NamedSharding(known, PartitionSpec(*entries))
    return XlaSharding(sharding)


class XlaSharding(Sharding):
    """A sharding that XLA chose and for which JAX has no names."""

    def __init__(self, sharding: Any):
        self.sharding = sharding
        shown = sharding.devices_indices_map((sharding.num_devices,))
        self._order = tuple(map(to_device, shown))

    @property
    def device_order(self) -> tuple[Device, ...]:
        return self._order

    def find_tiles(self, ndim: int):
        shape = (self.num_devices,) * ndim  # which any number of parts divides
        part = self.sharding.shard_shape(shape)
        tiles = [tuple(index.indices(extent)[0] // size for index, extent, size in zip(place, shape, part))
                 for place in self.sharding.devices_indices_map(shape).values()]
        return tuple(extent // size for extent, size in zip(shape, part)), tiles

    @property
    def is_fully_replicated(self) -> bool:
        return self.sharding.is_fully_replicated

    def __eq__(self, other) -> bool:
        return isinstance(other, XlaSharding) and self.sharding == other.sharding

    def __hash__(self) -> int:
        return hash(self.sharding)

    def __repr__(self) -> str:
        return repr(self.sharding)


def to_jax_sharding(sharding: Any) -> Any:
    """A device or sharding as JAX's sharding. Raises: ValueError for devices that JAX does not have."""
    found = _make_jax_sharding(sharding, _stand_ins.get())
    if isinstance(sharding, Sharding):
        _sharding_of.setdefault(found, sharding)
    return found


@functools.lru_cache(maxsize=1024)
def _make_jax_sharding(sharding: Any, stand_ins: tuple) -> Any:
    kinds = load_jax().sharding
    if isinstance(sharding, NamedSharding):
        free = kinds.PartitionSpec.UNCONSTRAINED
        entries = [free if entry is UNCONSTRAINED else entry for entry in sharding.spec]
        return kinds.NamedSharding(to_jax_mesh(sharding.mesh), kinds.PartitionSpec(*entries))
    if isinstance(sharding, PositionalSharding):
        names = [f"_{axis}" for axis in range(sharding.ndim)]
        mesh = kinds.Mesh(_map_devices(to_jax_device, sharding.to_grid()), (*names, "_same"))
        return kinds.NamedSharding(mesh, kinds.PartitionSpec(*names))
    if isinstance(sharding, XlaSharding):
        return sharding.sharding
    device = sharding if isinstance(sharding, Device) else sharding.device
    return kinds.SingleDeviceSharding(to_jax_device(device))


#: By JAX's mesh.
_mesh_of: dict[Any, Mesh] = {}


def to_jax_mesh(mesh: Mesh) -> Any:
    """A mesh as one of JAX's, whose partitioner decides along all axes."""
    return _make_jax_mesh(mesh, _stand_ins.get())


@functools.lru_cache(maxsize=256)
def _make_jax_mesh(mesh: Mesh, stand_ins: tuple) -> Any:
    found = load_jax().sharding.Mesh(_map_devices(to_jax_device, mesh.devices), mesh.axis_names)
    _mesh_of.setdefault(found, mesh)
    return found


def _map_devices(convert: Any, devices: np.ndarray) -> np.ndarray:
    found = np.empty(devices.shape, object)
    for place in np.ndindex(devices.shape):
        found[place] = convert(devices[place])
    return found


def wrap(buffer: Any, weak_type: bool = False) -> DeviceArray:
    """An array of JAX's as one of jitcore."""
    sharding, dtype = to_sharding(buffer.sharding), np.dtype(buffer.dtype)
    return DeviceArray(buffer, find_form(buffer.shape, dtype, weak_type, sharding, buffer.committed))


def split(buffer: Any) -> dict[Device, DeviceArray]:
    """The parts of an array on the devices of this process."""
    return {to_device(shard.device): wrap(shard.data) for shard in buffer.addressable_shards}


def join(shape: tuple, sharding: Sharding, parts: Sequence[Any]) -> Any:
    """An array of parts, each on its device."""
    return load_jax().make_array_from_single_device_arrays(shape, to_jax_sharding(sharding), list(parts))


#: Bytes of an array that is lent to XLA's CPU client instead of copied, and where such an array begins.
LENT_BYTES, ALIGNMENT = 1 << 16, 64


def may_be_lent(value: np.ndarray) -> bool:
    """Whether XLA's CPU client can read an array, which nobody writes to, where it lies."""
    return value.nbytes >= LENT_BYTES and value.ctypes.data % ALIGNMENT == 0 and value.dtype.kind in "iufc"


def lend(value: np.ndarray) -> Any:
    """The same elements as an array of JAX's."""
    with allow_64_bits():
        return load_jax().dlpack.from_dlpack(value)


def put_array(value: np.ndarray, sharding: Any, is_immutable: bool = False) -> Any:
    """An ndarray as an array of JAX's where a sharding says. JAX may read it later, or keep its memory."""
    value = copy_data(value) if isinstance(value, np.ndarray) and not is_immutable else value
    if sharding is None and runs_by_default("cpu"):
        return put(value)
    target = to_jax_sharding(to_device(list_devices("cpu")[0]) if sharding is None else sharding)
    is_lent = isinstance(value, np.ndarray) and target.device_set == {list_devices("cpu")[0]}
    return lend(value) if is_lent and may_be_lent(value) else put(value, target)


def runs_by_default(platform: str) -> bool:
    """Whether JAX runs what nothing else is said about on the first device of a platform."""
    return find_default_device() is list_devices(platform)[0]


def find_forms(avals: Sequence[ShapedArray], sharding: Any, platform: str) -> list[DeviceForm] | None:
    """The forms of the outputs of a program on one device; None on several, where XLA decides."""
    is_committed = sharding is not None or not runs_by_default(platform)
    if sharding is None:
        sharding = to_device(list_devices(platform)[0])
    if isinstance(sharding, Spread):
        return None
    known = to_sharding(to_jax_sharding(sharding))
    return [find_form(aval.shape, aval.dtype, aval.weak_type, known, is_committed) for aval in avals]
