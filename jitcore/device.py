"""Devices: which there are, and arrays that are made on several of them.

In: names of backends, shardings, parts of arrays. Out: `Device` objects, meshes of them, `Array`s and their
parts.
"""

from __future__ import annotations

import gc
import math
import platform
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.array import Array, ConcreteArray, DeviceArray
from jitcore.config import config
from jitcore.dispatch.backend import find_backend
from jitcore.dispatch.program import with_dtype
from jitcore.passes.keys import to_carriers
from jitcore.process.lazy import LazyModule
from jitcore.sharding import Sharding, SingleDeviceSharding
from jitcore.sharding.mesh import AxisType, Device, Mesh, processes

__all__ = ["Device", "SingleDeviceSharding"]

metadata = LazyModule("importlib.metadata")  # which reads mail headers and zip files: 15 ms


def devices(backend: str | None = None) -> list[Device]:
    """The devices of a backend or platform, of the default one without a name.

    Raises: BackendNotFoundError."""
    return list(find_backend(backend).devices())


def live_arrays(platform: str | None = None) -> list[Array]:
    """The Arrays with values that are alive and lie on a backend or platform, on the default one without a
    name. Garbage that waits for its collection is among them.

    Raises: BackendNotFoundError."""
    there = set(find_backend(platform).devices())
    return [x for x in gc.get_objects() if isinstance(x, ConcreteArray) and not x.is_deleted()
            and not there.isdisjoint(x.devices())]


def local_devices(process_index: int | None = None, backend: str | None = None) -> list[Device]:
    """Those of one process, of this one without a number.

    Raises: ValueError for a process that is not there."""
    number = processes.index if process_index is None else process_index
    if not 0 <= number < processes.count:
        one = (
            "there is one process, number 0"
            if processes.count == 1
            else f"there are {processes.count} processes")
        raise ValueError(f"Unknown process_index {number}: {one}")
    return [device for device in devices(backend) if device.process_index == number]


def device_count(backend: str | None = None) -> int:
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    return len(local_devices(backend=backend))


def default_backend() -> str:
    """The platform of the default backend: 'cpu', 'gpu' or 'tpu'."""
    return find_backend().platform


def process_index(backend: str | None = None) -> int:
    """The number of this process among those that `distributed.initialize` joined."""
    return processes.index


def process_count(backend: str | None = None) -> int:
    return processes.count


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes that `distributed.initialize` joined. Source: jax.process_indices."""
    return list(range(processes.count))


def host_id(backend: str | None = None) -> int:
    """`process_index` by its former name. Source: jax.host_id."""
    return process_index(backend)


def host_ids(backend: str | None = None) -> list[int]:
    """`process_indices` by its former name. Source: jax.host_ids."""
    return process_indices(backend)


def host_count(backend: str | None = None) -> int:
    """`process_count` by its former name. Source: jax.host_count."""
    return process_count(backend)


def default_device(device: Device | str | None) -> AbstractContextManager[None]:
    """Context manager: calls that name no device run on the backend of this one, in this thread.

    device: one of `devices(...)`, the name of a backend, or None for the best. Example: `with
    default_device(devices("cpu")[0]): ...`. Source: jax.default_device."""
    name = device.backend if isinstance(device, Device) else device or ""
    return config.override(default_backend=name)


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints, or returns, versions, system and devices, for reports of errors.

    Example: `print_environment_info()`. Source: jax.print_environment_info."""
    versions = [f"{name}: {metadata.version(name)}"
                for name in ("jitcore", "numpy", "scipy", "numba")]
    text = "\n".join([*versions, f"python: {sys.version}", f"devices: {devices()}",
                      f"process_count: {process_count()}", f"platform: {platform.uname()}"])
    if return_string:
        return text
    print(text)
    return None


def make_mesh(axis_shapes: Sequence[int], axis_names: Sequence[Any],
              axis_types: Sequence[AxisType] | None = None, *,
              devices: Sequence[Device] | None = None) -> Mesh:
    """A mesh of as many devices as its axes ask for: the first ones of those given, of the default backend
    without.

    Raises: ValueError where there are not enough, naming a backend that has several."""
    shape = tuple(axis_shapes)
    if len(shape) != len(axis_names):
        raise ValueError("Number of axis sizes and axis names should be equal. Got "
                         f"axis_shapes={shape} of length {len(shape)} and axis_names={axis_names} of length "
                         f"{len(axis_names)}.")
    found = list(find_backend().devices() if devices is None else devices)
    count = math.prod(shape)
    if len(found) < count:
        hint = (
            ""
            if devices is not None or found[0].backend != "cpu"
            else (
                " To fix: pass devices=jitcore.devices('xla'), or make backend='xla' the default: a mesh "
                "of several "
                "devices is run by XLA."))
        raise ValueError(
            f"Number of devices {len(found)} must be >= the product of mesh_shape {shape}.{hint}")
    grid = np.empty(count, object)
    grid[:] = found[:count]
    return Mesh(grid.reshape(shape), tuple(axis_names), axis_types)


# -- arrays and their parts ---------------------------------------------------------------------------------
class Shard(NamedTuple):
    """One part of an array. index: its place in the array; replica_id: its number among equal parts, 0 for
    one of each; data: an Array on its device alone, None where that belongs to another process."""

    device: Device
    index: tuple[slice, ...]
    replica_id: int
    data: Array | None

    def __repr__(self) -> str:
        where = f"device={self.device!r}, index={self.index}, replica_id={self.replica_id}"
        return f"Shard({where}, data={self.data})"


def list_shards(array: ConcreteArray, *, everywhere: bool = False) -> list[Shard]:
    """The parts of an array in the order of the devices: those of this process, or all of them."""
    sharding = array.sharding
    if isinstance(array, DeviceArray):
        split = find_backend(sharding.backend).split(array)
        parts = {device: with_dtype(part, array.dtype) for device, part in split.items()}
    else:
        parts = {device: array for device in sharding.device_set}
    seen: dict[tuple, int] = {}
    shards = []
    for device, index in sharding.devices_indices_map(array.shape).items():
        place = tuple((part.start, part.stop) for part in index)
        seen[place] = seen.get(place, -1) + 1
        if everywhere or device in parts:
            shards.append(Shard(device, index, seen[place], parts.get(device)))
    return shards


def make_array_from_callback(shape: Sequence[int], sharding: Sharding, data_callback: Callable[[Any], Any],
                             dtype: Any = None) -> Array:
    """An array whose parts a function gives, for the index of each.

    Args:
        data_callback: index (a tuple of slices) -> the elements there."""
    shape = tuple(shape)
    places: dict[tuple, np.ndarray] = {}
    parts = []
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        place = tuple((part.start, part.stop) for part in index)
        if place not in places:
            part = data_callback(index)
            part = part.data if dtypes.is_key(getattr(part, "dtype", None)) else np.asarray(part)
            places[place] = part.astype(dtypes.canonicalize(part.dtype if dtype is None else dtype),
                                        copy=False)
        parts.append((device, places[place]))
    backend = _find_backend_of(sharding)
    arrays = [
        with_dtype(backend.wrap(backend.put(to_carriers(part), SingleDeviceSharding(device)), False),
                   dtypes.of_ndarray(part.dtype))
        if hasattr(backend, "wrap")
        else ConcreteArray(np.array(part, order="C"))
        for device, part in parts]
    return make_array_from_single_device_arrays(shape, sharding, arrays)


def make_array_from_single_device_arrays(shape: Sequence[int], sharding: Sharding, arrays: Sequence[Array], *,
                                         dtype: Any = None) -> Array:
    """An array of parts that lie where the sharding says, one on each device of this process.

    Raises: ValueError where devices or shapes of the parts are others."""
    shape, backend = tuple(shape), _find_backend_of(sharding)
    expected = sharding.shard_shape(shape)
    for array in arrays:
        if array.shape != expected:
            raise ValueError(
                f"a part of an array of shape {shape} with sharding {sharding} has shape {expected}, "
                f"got {array.shape} on {array.device}")
    found = {array.device for array in arrays}
    if found != sharding.addressable_devices or len(arrays) != len(found):
        raise ValueError(
            f"an array with sharding {sharding} takes one part on each of its addressable devices, got "
            f"{len(arrays)} on {sorted(map(str, found))}")
    if not hasattr(backend, "join"):
        return arrays[0]
    return with_dtype(backend.join(shape, sharding, arrays), arrays[0].dtype)


def make_array_from_process_local_data(sharding: Sharding, local_data: Any,
                                       global_shape: Sequence[int] | None = None) -> Array:
    """An array of what each process has of it.

    Args:
        local_data: the elements of this process: all of the array's, or, along axes that are cut among
            processes, those between the first and the last of its devices' parts.
        global_shape: of the array; by default each axis that is cut among processes is as often as long."""
    local = np.asarray(local_data)
    whole = _infer_global_shape(sharding, local.shape) if global_shape is None else tuple(global_shape)
    starts = [min(part.indices(extent)[0] for part in parts)
              for extent, parts in zip(whole, zip(*sharding.addressable_devices_indices_map(whole).values()))]
    starts = [0 if mine == extent else start for start, mine, extent in zip(starts, local.shape, whole)]

    def take(index):
        return local[
            tuple(
                [
                    slice(part.indices(extent)[0] - start, part.indices(extent)[1] - start)
                    for part, extent, start in zip(index, whole, starts)])]

    return make_array_from_callback(whole, sharding, take)


def _infer_global_shape(sharding: Sharding, local_shape: tuple[int, ...]) -> tuple[int, ...]:
    counts, tiles = sharding.find_tiles(len(local_shape))
    mine = [tile
            for tile, device in zip(tiles, sharding.device_order) if device.process_index == processes.index]
    return tuple(extent * count // len({tile[axis] for tile in mine})
                 for axis, (extent, count) in enumerate(zip(local_shape, counts)))


def _find_backend_of(sharding: Sharding) -> Any:
    if not isinstance(sharding, Sharding):
        raise TypeError(f"expected a sharding, got {sharding!r}")
    check_served(sharding.device_set)
    return find_backend(sharding.backend)


def check_served(devices: Any) -> None:
    """Raises: ValueError for several devices that no partitioner serves, naming the backend that has one."""
    for device in devices:
        if len(devices) > 1 and not hasattr(find_backend(device.backend), "split"):
            raise ValueError(f"backend {device.backend!r} runs on one device, got {len(devices)}: "
                             "use devices of backend='xla' (jitcore.devices('xla')).")
