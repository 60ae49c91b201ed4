"""Devices: where arrays live and programs run.

In: names of backends. Out: `Device` objects and `SingleDeviceSharding`, the only sharding there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jitcore.dispatch.backend import find_backend


@dataclass(frozen=True)
class Device:
    """One device.

    platform: 'cpu', 'gpu' or 'tpu'; id: its number there; backend: entry-point name of the backend that runs
    programs on it.
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


@dataclass(frozen=True)
class SingleDeviceSharding:
    """All of an array on one device."""

    device: Device

    @property
    def device_set(self) -> set[Device]:
        return {self.device}

    @property
    def backend(self) -> str:
        """The entry-point name of the backend that runs programs on it."""
        return self.device.backend

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r})"


def devices(backend: str | None = None) -> list[Device]:
    """The devices of a backend or platform, of the default one without a name.

    Raises: BackendNotFoundError."""
    return list(find_backend(backend).devices())


def local_devices(process_index: int | None = None, backend: str | None = None) -> list[Device]:
    """As `devices`: there is one process."""
    _check_process(process_index)
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    return len(devices(backend))


def default_backend() -> str:
    """The platform of the default backend: 'cpu', 'gpu' or 'tpu'."""
    return find_backend().platform


def process_index(backend: str | None = None) -> int:
    return 0


def process_count(backend: str | None = None) -> int:
    return 1


def _check_process(index: Any) -> None:
    if index not in (None, 0):
        raise ValueError(f"Unknown process_index {index}: there is one process, number 0")
