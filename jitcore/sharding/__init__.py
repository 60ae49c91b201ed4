"""Shardings: how arrays are cut into parts for devices.

In: devices, meshes, specs. Out: `NamedSharding`, `PositionalSharding` and `SingleDeviceSharding`, small
values that compare and hash by what they say. No backend is needed to make them; one that has several devices
converts them to what its runtime has. This module has the public names of meshes, too.

Modules:
    mesh  Meshes: devices in a grid whose axes have names, and specs, which say by these names how arrays are
          cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitcore.process.lazy import LazyModule
from jitcore.sharding.mesh import (AxisType, Device, Mesh, P, PartitionSpec, get_mesh, list_names, processes,
                                   set_mesh, use_mesh)

__all__ = ["AxisType", "Device", "Mesh", "NamedSharding", "P", "PartitionSpec", "PositionalSharding",
           "Sharding", "SingleDeviceSharding", "get_mesh", "set_mesh", "use_mesh"]


hypertext = LazyModule("jitcore.hypertext")


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
        """Into how many parts each axis of an array is cut, and for each device the coordinates of its
        part."""
        raise NotImplementedError

    def list_cells(self, ndim: int) -> list[list[str]]:
        """The devices of each part of an array with one or two axes, in rows and columns: "CPU 0,1"."""
        counts, tiles = self.find_tiles(ndim)
        names: dict[tuple, list[str]] = {}
        for device, tile in zip(self.device_order, tiles):
            names.setdefault((0, *tile)[-2:], []).append(str(device.id))
        rows, columns = (1, *counts)[-2:]
        platform = self.device_order[0].platform.upper()
        return [[f"{platform} {','.join(names[row, column])}" for column in range(columns)]
                for row in range(rows)]

    def show_cells(self, ndim: int) -> str:
        """The same for notebooks; "" for arrays that a page cannot show."""
        return hypertext.show_grid(self.list_cells(ndim)) if ndim in (1, 2) else ""

    def _repr_html_(self) -> str:
        """What notebooks show: the text, and which devices have which part of an array, if it has no more
        than two axes that are cut."""
        return f"<div>{hypertext.show_text(repr(self))}{self.show_cells(self.least_ndim)}</div>"

    #: Axes of the arrays that it is for, at least.
    least_ndim = 1

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
                    f"Sharding {self!r} implies that array axis {axis} is partitioned {count} times, but "
                    "the dimension "
                    f"size is {extent} (full shape: {shape}, per-dimension tiling factors: {list(counts)} "
                    "should evenly "
                    "divide the shape)")
        return tuple(extent // count for extent, count in zip(shape, counts))

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """Which part of an array of this shape each device has."""
        shape = tuple(global_shape)
        part = self.shard_shape(shape)
        counts, tiles = self.find_tiles(len(shape))
        return {
            device: tuple(
                slice(None) if count == 1 else slice(i * size, (i + 1) * size)
                for i, size, count in zip(tile, part, counts))
            for device, tile in zip(self.device_order, tiles)}

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        found = self.devices_indices_map(global_shape)
        return {device: index for device, index in found.items() if device.process_index == processes.index}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both put arrays of so many axes in the same way on the same devices."""
        return (
            isinstance(other, Sharding)
            and self.device_order == other.device_order
            and self.find_tiles(ndim) == other.find_tiles(ndim))

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
            raise TypeError(f"Unexpected type {type(spec)} for sharding spec {spec!r}: NamedSharding takes a "
                            "PartitionSpec")
        seen: set = set()
        for name in [name for names in list_names(spec) for name in names]:
            if name not in mesh.axis_names:
                raise ValueError(f"Resource axis: {name} of {spec} is not found in mesh: {mesh.axis_names}.")
            if name in seen:
                raise ValueError(
                    "A single NamedSharding spec specification can map every mesh axis to at most one "
                    f"positional dimension, but {spec} has duplicate entries for `{name}`")
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
                             f"but was applied to a value of rank {ndim}")
        names += [()] * (ndim - len(names))
        axes = [[self.mesh.axis_names.index(name) for name in entry] for entry in names]
        sizes = self.mesh.devices.shape
        tiles = [
            tuple(_number([place[axis] for axis in entry], [sizes[axis] for axis in entry]) for entry in axes)
            for place in np.ndindex(sizes)]
        return tuple(math.prod(sizes[axis] for axis in entry) for entry in axes), tiles

    @property
    def is_fully_replicated(self) -> bool:
        return all(self.mesh.shape[name] == 1 for names in list_names(self.spec) for name in names)

    @property
    def least_ndim(self) -> int:
        return max(len(self.spec), 1)

    def update(self, *, mesh: Mesh | None = None, spec: PartitionSpec | None = None) -> NamedSharding:
        return NamedSharding(mesh or self.mesh, self.spec if spec is None else spec)

    def __eq__(self, other) -> bool:
        return self is other or (
            isinstance(other, NamedSharding) and self.spec == other.spec and self.mesh == other.mesh)

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
        devices: sequence or grid of devices. `reshape`, `transpose` and `replicate` give other grids."""

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
                             f"but was applied to a value of rank {ndim}")
        before = (0,) * (ndim - self.ndim)
        place_of = {device: (*before, *place) for place in np.ndindex(self.shape)
                    for device in self._cells[place]}
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
    """Where a program on several devices has its inputs and outputs: a sharding for each, or None for what
    its arguments and XLA decide."""

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
            raise RuntimeError(
                f"{purpose} requires a non-empty mesh in context if you are passing `PartitionSpec`s, "
                f"got {sharding}. To fix: use `with mesh:`, or pass NamedSharding(mesh, spec).")
        return NamedSharding(mesh, sharding)
    if not isinstance(sharding, Sharding):
        raise TypeError(f"{purpose} takes shardings, got {sharding!r} of type {type(sharding)}")
    return sharding
