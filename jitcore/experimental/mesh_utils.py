"""Grids of devices for meshes, where JAX's scripts import them from.

In: a shape. Out: an ndarray of devices, in the order of their numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitcore.device import devices as list_devices
from jitcore.sharding import Device

__all__ = ["create_device_mesh"]


def create_device_mesh(mesh_shape: Sequence[int], devices: Sequence[Device] | None = None,
                       **options: Any) -> np.ndarray:
    """The devices, of the default backend without, in a grid of this shape.

    Raises: ValueError where their number differs."""
    found = list(list_devices() if devices is None else devices)
    if math.prod(mesh_shape) != len(found):
        raise ValueError(
            f"Number of devices {len(found)} must equal the product of mesh_shape {tuple(mesh_shape)}")
    grid = np.empty(len(found), object)
    grid[:] = found
    return grid.reshape(tuple(mesh_shape))
