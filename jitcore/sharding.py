"""Where arrays lie: devices, meshes of them, and how an array is cut into parts for them.

In: devices, names of axes. Out: `Mesh`, `PartitionSpec` and the shardings `NamedSharding`, `PositionalSharding`
and `SingleDeviceSharding`: small values that compare and hash by what they say. No backend is needed to make
them; one that has several devices converts them to what its runtime has.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from jitcore.config import Config, Override, config, set_mesh_everywhere

__all__ = ["AxisType", "Device", "Mesh", "NamedSharding", "P", "PartitionSpec", "PositionalSharding", "Sharding",
           "SingleDeviceSharding", "get_mesh", "set_mesh", "use_mesh"]  # fmt: skip


@dataclass(frozen=True)
class Device:
    """One device.

    platform: 'cpu', 'gpu' or 'tpu'; id: its number there; backend: entry-point name of the backend that runs
    programs on it; process_index: of the process that it belongs to.
    """

    platform: str
    id: int = 0
    device_kind: str = "cpu"
    backend: str = "cpu"
    process_index: int = 0

    def __repr__(self) -> str:
        name = self.platform.upper() if self.platform in ("gpu", "tpu") else self.platform.capitalize()
        return f"{name}Device(id={self.id})"

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"


class _Processes:
    """The processes that run together: the number of this one, and how many there are."""

    index, count = 0, 1


processes = _Processes()


# -- meshes -------------------------------------------------------------------------------------------------
class AxisType(enum.Enum):
    """Who decides how values are cut along an axis. XLA's partitioner does in any case; the type is kept."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class Mesh:
    """Devices in a grid whose axes have names; as a context manager, the mesh that `PartitionSpec`s refer to.

    Args:
        devices: array-like of devices.
        axis_names: one for each axis of the grid; a single name for one axis.
        axis_types: kept for comparison; all Auto by default.

    Raises: ValueError for names that are not one for each axis, or not different ones.
    """

    def __init__(self, devices: Any, axis_names: Any, axis_types: Sequence[AxisType] | AxisType | None = None):
        grid = np.array(devices, dtype=object) if not isinstance(devices, np.ndarray) else devices.astype(object)
        names = (axis_names,) if isinstance(axis_names, str) or not isinstance(axis_names, Sequence) else tuple(axis_names)
        if grid.ndim != len(names):
            raise ValueError("Mesh requires the ndim of its first argument (`devices`) to equal the length of its second "
                             f"argument (`axis_names`), but got devices.ndim == {grid.ndim} and len(axis_names) == {len(names)}.")  # fmt: skip
        if len(set(names)) < len(names):
            raise ValueError(f"Mesh axis names must be different, got {names}")
        for device in grid.flat:
            if not isinstance(device, Device):
                raise TypeError(f"Mesh takes devices, got {device!r}")
        if len({*grid.flat}) < grid.size:
            raise ValueError(f"Mesh takes each device once, got {list(grid.flat)}")
        types = AxisType.Auto if axis_types is None else axis_types
        types = (types,) * len(names) if isinstance(types, AxisType) else tuple(types)
        if len(types) != len(names):
            raise ValueError(f"Mesh takes one axis type for each axis, got {len(types)} for {len(names)} axes")
        grid.flags.writeable = False
        self.devices, self.axis_names, self.axis_types = grid, names, types
        self._overrides: list[Override] = []

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return self.devices.shape

    @property
    def shape(self) -> Mapping[Hashable, int]:
        return MappingProxyType(dict(self.shape_tuple))

    @property
    def shape_tuple(self) -> tuple[tuple[Hashable, int], ...]:
        return tuple(zip(self.axis_names, self.devices.shape))

    @property
    def size(self) -> int:
        return math.prod(self.devices.shape)

    @property
    def ndim(self) -> int:
        return len(self.axis_names)

    @property
    def empty(self) -> bool:
        return self.ndim == 0

    @property
    def device_ids(self) -> np.ndarray:
        return np.array([device.id for device in self.devices.flat], int).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Device]:
        return [device for device in self.devices.flat if device.process_index == processes.index]

    @property
    def is_multi_process(self) -> bool:
        return len({device.process_index for device in self.devices.flat}) > 1

    @property
    def _key(self) -> tuple:
        return tuple(self.devices.flat), self.devices.shape, self.axis_names, self.axis_types

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __eq__(self, other) -> bool:
        return self is other or (isinstance(other, Mesh) and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __enter__(self) -> Mesh:
        self._overrides.append(Override({"mesh": self}))
        self._overrides[-1].__enter__()
        return self

    def __exit__(self, *exception) -> None:
        self._overrides.pop().__exit__(*exception)

    def __reduce__(self):
        return Mesh, (np.array(self.devices), self.axis_names, self.axis_types)

    def __str__(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)
        return f"Mesh({sizes}, axis_types={self.axis_types})"

    def __repr__(self) -> str:
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, axis_types={self.axis_types})"


def get_mesh() -> Mesh | None:
    """The mesh that `with mesh:` or `set_mesh` made the current one."""
    return config.mesh


class set_mesh:  # noqa: N801  a function in use
    """Makes a mesh the current one: for the whole process, or inside of a `with`. None: there is none."""

    def __init__(self, mesh: Mesh | None):
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"set_mesh takes a Mesh, got {mesh!r}")
        self._mesh, self._previous = mesh, Config.mesh
        set_mesh_everywhere(mesh)

    def __enter__(self) -> Mesh | None:
        set_mesh_everywhere(self._previous)
        self._override = Override({"mesh": self._mesh})
        self._override.__enter__()
        return self._mesh

    def __exit__(self, *exception) -> None:
        self._override.__exit__(*exception)


def use_mesh(mesh: Mesh) -> Mesh:
    """`with use_mesh(mesh):` is `with mesh:`."""
    return mesh


# -- specs --------------------------------------------------------------------------------------------------
class _Unconstrained:
    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self):
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class PartitionSpec:
    """Along which axes of a mesh each axis of an array is cut: a name, a tuple of names, or None for whole.

    Axes of the array that are not mentioned, at the end, are whole. `PartitionSpec.UNCONSTRAINED` leaves one to
    the partitioner."""

    UNCONSTRAINED = UNCONSTRAINED
    __slots__ = ("_partitions",)

    def __init__(self, *partitions: Any):
        self._partitions = tuple(map(_normalize_entry, partitions))

    def __iter__(self) -> Iterator:
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def __getitem__(self, index):
        return self._partitions[index]

    def __add__(self, other):
        return PartitionSpec(*self._partitions, *other)

    def __radd__(self, other):
        return PartitionSpec(*other, *self._partitions)

    def __eq__(self, other) -> bool:
        if isinstance(other, tuple):
            return self == PartitionSpec(*other)
        return isinstance(other, PartitionSpec) and self._partitions == other._partitions

    def __hash__(self) -> int:
        return hash(self._partitions)

    def __reduce__(self):
        return PartitionSpec, self._partitions

    def count(self, value) -> int:
        return self._partitions.count(_normalize_entry(value))

    def index(self, value) -> int:
        return self._partitions.index(_normalize_entry(value))

    def __repr__(self) -> str:
        return f"P{self._partitions}" if self._partitions else "P()"


P = PartitionSpec


def _normalize_entry(entry: Any) -> Any:
    if isinstance(entry, (tuple, list)):
        entry = tuple(entry)
        return entry[0] if len(entry) == 1 else entry or None
    return entry


def list_names(spec: PartitionSpec) -> list[tuple]:
    """For each entry of a spec its names."""
    return [() if entry is None or entry is UNCONSTRAINED else entry if isinstance(entry, tuple) else (entry,)
            for entry in spec]  # fmt: skip


# -- shardings ----------------------------------------------------------------------------------------------
Index = tuple[slice, ...]


class Sharding:
    """How an array lies on devices."""

    memory_kind = "device"

    @property
    def device_order(self) -> tuple[Device, ...]:
        """The devices, as programs number them."""
        raise NotImplementedError

    def find_tiles(self, ndim: int) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
        """Into how many parts each axis of an array is cut, and for each device the coordinates of its part."""
        raise NotImplementedError

    # -- devices -----------------------------------------------------------------------------------------
    @property
    def device_set(self) -> set[Device]:
        return set(self.device_order)

    @property
    def num_devices(self) -> int:
        return len(self.device_order)

    @property
    def addressable_devices(self) -> set[Device]:
        """Those of this process."""
        return {device for device in self.device_order if device.process_index == processes.index}

    @property
    def is_fully_addressable(self) -> bool:
        return len(self.addressable_devices) == self.num_devices

    @property
    def backend(self) -> str:
        """The entry-point name of the backend that runs programs there."""
        return self.device_order[0].backend

    # -- parts -------------------------------------------------------------------------------------------
    @property
    def is_fully_replicated(self) -> bool:
        raise NotImplementedError

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of one part. Raises: ValueError for an axis that cannot be cut into equal parts."""
        shape = tuple(global_shape)
        counts, _ = self.find_tiles(len(shape))
        for axis, (extent, count) in enumerate(zip(shape, counts)):
            if extent % count:
                raise ValueError(
                    f"Sharding {self!r} implies that array axis {axis} is partitioned {count} times, but the dimension "
                    f"size is {extent} (full shape: {shape}, per-dimension tiling factors: {list(counts)} should evenly "
                    "divide the shape)")  # fmt: skip
        return tuple(extent // count for extent, count in zip(shape, counts))

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """Which part of an array of this shape each device has."""
        shape = tuple(global_shape)
        part = self.shard_shape(shape)
        counts, tiles = self.find_tiles(len(shape))
        return {device: tuple(slice(None) if count == 1 else slice(i * size, (i + 1) * size)
                              for i, size, count in zip(tile, part, counts))
                for device, tile in zip(self.device_order, tiles)}  # fmt: skip

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        found = self.devices_indices_map(global_shape)
        return {device: index for device, index in found.items() if device.process_index == processes.index}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both put arrays of so many axes in the same way on the same devices."""
        return (isinstance(other, Sharding) and self.device_order == other.device_order
                and self.find_tiles(ndim) == other.find_tiles(ndim))  # fmt: skip

    def with_memory_kind(self, kind: str) -> Sharding:
        """The sharding itself. Raises: ValueError for another memory than the device's."""
        if kind != self.memory_kind:
            raise ValueError(f"memory kind {kind!r} is not supported, devices have {self.memory_kind!r}")
        return self


@dataclass(frozen=True, repr=False)
class SingleDeviceSharding(Sharding):
    """All of an array on one device."""

    device: Device

    @property
    def device_order(self) -> tuple[Device, ...]:
        return (self.device,)

    def find_tiles(self, ndim: int):
        return (1,) * ndim, [(0,) * ndim]

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r}, memory_kind={self.memory_kind})"


class NamedSharding(Sharding):
    """An array cut along named axes of a mesh.

    Raises: ValueError for a name that the mesh lacks, or that occurs twice; TypeError for other types."""

    def __init__(self, mesh: Mesh, spec: PartitionSpec, *, memory_kind: str | None = None):
        if not isinstance(mesh, Mesh):
            raise TypeError(f"NamedSharding takes a Mesh, got {mesh!r} of type {type(mesh)}")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"Unexpected type {type(spec)} for sharding spec {spec!r}: NamedSharding takes a PartitionSpec")
        seen: set = set()
        for name in [name for names in list_names(spec) for name in names]:
            if name not in mesh.axis_names:
                raise ValueError(f"Resource axis: {name} of {spec} is not found in mesh: {mesh.axis_names}.")
            if name in seen:
                raise ValueError("A single NamedSharding spec specification can map every mesh axis to at most one "
                                 f"positional dimension, but {spec} has duplicate entries for `{name}`")  # fmt: skip
            seen.add(name)
        self.mesh, self.spec = mesh, spec
        self.with_memory_kind(memory_kind or self.memory_kind)
        self._hash = hash((mesh, spec))

    @property
    def device_order(self) -> tuple[Device, ...]:
        return tuple(self.mesh.devices.flat)

    def find_tiles(self, ndim: int):
        names = list_names(self.spec)
        if len(names) > ndim:
            raise ValueError(f"Sharding {self!r} is only valid for values of rank at least {len(names)}, "
                             f"but was applied to a value of rank {ndim}")  # fmt: skip
        names += [()] * (ndim - len(names))
        axes = [[self.mesh.axis_names.index(name) for name in entry] for entry in names]
        sizes = self.mesh.devices.shape
        tiles = [tuple(_number([place[axis] for axis in entry], [sizes[axis] for axis in entry]) for entry in axes)
                 for place in np.ndindex(sizes)]  # fmt: skip
        return tuple(math.prod(sizes[axis] for axis in entry) for entry in axes), tiles

    @property
    def is_fully_replicated(self) -> bool:
        return all(self.mesh.shape[name] == 1 for names in list_names(self.spec) for name in names)

    def update(self, *, mesh: Mesh | None = None, spec: PartitionSpec | None = None) -> NamedSharding:
        return NamedSharding(mesh or self.mesh, self.spec if spec is None else spec)

    def __eq__(self, other) -> bool:
        return self is other or (
            isinstance(other, NamedSharding) and self.spec == other.spec and self.mesh == other.mesh
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}, memory_kind={self.memory_kind})"


def _number(place: Sequence[int], sizes: Sequence[int]) -> int:
    """Coordinates as one number, the last one fastest."""
    number = 0
    for coordinate, size in zip(place, sizes):
        number = number * size + coordinate
    return number


class PositionalSharding(Sharding):
    """An array cut as a grid of devices is: its axes are those of the array, from the last one on.

    Args:
        devices: sequence or grid of devices. `reshape`, `transpose` and `replicate` give other grids.
    """

    def __init__(self, devices: Any, *, memory_kind: str | None = None):
        grid = np.asarray(devices, dtype=object)
        self.with_memory_kind(memory_kind or self.memory_kind)
        cells = np.empty(grid.shape, object)
        for place in np.ndindex(grid.shape):
            cells[place] = (grid[place],)
        self._order, self._cells = tuple(grid.flat), cells

    def _replace(self, cells: np.ndarray) -> PositionalSharding:
        new = object.__new__(PositionalSharding)
        new._order, new._cells = self._order, cells
        return new

    @property
    def shape(self) -> tuple[int, ...]:
        return self._cells.shape

    @property
    def ndim(self) -> int:
        return self._cells.ndim

    def reshape(self, *shape) -> PositionalSharding:
        return self._replace(self._cells.reshape(*shape))

    def transpose(self, *axes) -> PositionalSharding:
        return self._replace(self._cells.transpose(*axes))

    T = property(transpose)

    def replicate(self, axis: int | Sequence[int] | None = None, keepdims: bool = True) -> PositionalSharding:
        """The whole of what an axis of the grid cuts on each device along it; along all axes by default."""
        axes = range(self.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        axes = sorted({number % self.ndim for number in axes})
        kept = [number for number in range(self.ndim) if number not in axes]
        moved = self._cells.transpose(*kept, *axes)
        cells = np.empty([self.shape[number] for number in kept], object)
        for place in np.ndindex(cells.shape):
            cells[place] = sum(moved[place].flat, ()) if axes else moved[place]
        if keepdims:
            cells = cells.reshape([1 if number in axes else size for number, size in enumerate(self.shape)])
        return self._replace(cells)

    def to_grid(self) -> np.ndarray:
        """The devices with one more axis at the end: those that have the same part."""
        return np.array([list(cell) for cell in self._cells.flat], object).reshape(*self.shape, -1)

    @property
    def device_order(self) -> tuple[Device, ...]:
        return self._order

    def find_tiles(self, ndim: int):
        if self.ndim > ndim:
            raise ValueError(f"Sharding {self!r} is only valid for values of rank at least {self.ndim}, "
                             f"but was applied to a value of rank {ndim}")  # fmt: skip
        before = (0,) * (ndim - self.ndim)
        place_of = {device: (*before, *place) for place in np.ndindex(self.shape) for device in self._cells[place]}
        return (1,) * (ndim - self.ndim) + self.shape, [place_of[device] for device in self._order]

    @property
    def is_fully_replicated(self) -> bool:
        return self._cells.size == 1

    @property
    def _key(self) -> tuple:
        return self._order, self.shape, tuple(self._cells.flat)

    def __eq__(self, other) -> bool:
        return isinstance(other, PositionalSharding) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        names = np.empty(self.shape, object)
        platform = self._order[0].platform.upper()
        for place in np.ndindex(self.shape):
            ids = ", ".join(str(device.id) for device in self._cells[place])
            names[place] = f"{{{platform} {ids}}}"
        text = np.array2string(names, separator=" ", formatter={"object": str}, prefix="PositionalSharding(")
        return f"PositionalSharding({text}, memory_kind={self.memory_kind}, shape={self.shape})"


class Spread:
    """Where a program on several devices has its inputs and outputs: a sharding for each, or None for what its
    arguments and XLA decide."""

    __slots__ = ("ins", "outs")

    def __init__(self, ins: tuple, outs: tuple):
        self.ins, self.outs = ins, outs

    def __eq__(self, other) -> bool:
        return isinstance(other, Spread) and (self.ins, self.outs) == (other.ins, other.outs)

    def __hash__(self) -> int:
        return hash((self.ins, self.outs))


def resolve_sharding(sharding: Any, purpose: str) -> Any:
    """A `PartitionSpec` as a sharding on the current mesh; others as they are.

    Raises: RuntimeError naming the purpose where there is no mesh; TypeError for what is no sharding."""
    if isinstance(sharding, PartitionSpec):
        mesh = get_mesh()
        if mesh is None:
            raise RuntimeError(f"{purpose} requires a non-empty mesh in context if you are passing `PartitionSpec`s, "
                             f"got {sharding}. To fix: use `with mesh:`, or pass NamedSharding(mesh, spec).")  # fmt: skip
        return NamedSharding(mesh, sharding)
    if not isinstance(sharding, Sharding):
        raise TypeError(f"{purpose} takes shardings, got {sharding!r} of type {type(sharding)}")
    return sharding
