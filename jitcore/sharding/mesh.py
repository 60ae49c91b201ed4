"""Meshes: devices in a grid whose axes have names, and specs, which say by these names how arrays are cut.

In: devices, names of axes. Out: `Mesh` and `PartitionSpec`, small values that compare and hash by what they
say; the current mesh of a thread. `sharding` has what is made of them.
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


@dataclass(frozen=True)
class Device:
    """One device.

    platform: 'cpu', 'gpu' or 'tpu'; id: its number there; backend: entry-point name of the backend that runs
    programs on it; process_index: of the process that it belongs to."""

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

    Raises: ValueError for names that are not one for each axis, or not different ones."""

    def __init__(self, devices: Any, axis_names: Any,
                 axis_types: Sequence[AxisType] | AxisType | None = None):
        grid = (
            np.array(devices, dtype=object) if not isinstance(devices, np.ndarray) else devices.astype(object)
        )
        names = (
            (axis_names,)
            if isinstance(axis_names, str) or not isinstance(axis_names, Sequence)
            else tuple(axis_names))
        if grid.ndim != len(names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of its second "
                f"argument (`axis_names`), but got devices.ndim == {grid.ndim} and len(axis_names) == "
                f"{len(names)}.")
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
            raise ValueError(
                f"Mesh takes one axis type for each axis, got {len(types)} for {len(names)} axes")
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
        return (
            f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, axis_types={self.axis_types})")


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

    Axes of the array that are not mentioned, at the end, are whole. `PartitionSpec.UNCONSTRAINED` leaves one
    to the partitioner."""

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
            for entry in spec]
