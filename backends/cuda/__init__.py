"""The CUDA backend: loop programs as kernels of NVIDIA GPUs.

In: a jaxpr without constants. Out: an `Executable`. Stages: `schedule.lower_program` (loop program),
`mapping` (which threads run what), `kernel` (LLVM IR), `ptx`, `program` (the steps of a call), `device`.

Modules:
    architectures  Architectures of NVIDIA's GPUs: which PTX each reads, what it has, and what a
                   multiprocessor holds.
    emulated/      A CUDA device in software: PTX is translated to machine code of this processor and runs on
                   it.
    libraries/     NVIDIA's libraries, where they are installed: cuBLAS, cuSOLVER, cuFFT.
    program        Programs: the kernels of a loop program, and the steps that launch them.
    render/        Kernels of a loop program as LLVM IR for a GPU.
    runtime/       Running on a GPU: the device, its driver, memory that others share, graphs, executables.
    sorting/       Sorting on a GPU: by a network in shared memory, or by digits of the keys.
    target         What the CUDA backend can do: the answers that scheduling needs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from jitcore.array import DeviceArray, DeviceForm, find_form
from jitcore.backends.cuda.architectures import ARCHITECTURES
from jitcore.backends.cuda.runtime import device as memory, driver, interop
from jitcore.backends.cuda.runtime.gpu import GpuRuntime
from jitcore.backends.cuda.runtime.linking import describe_linker
from jitcore.config import config
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray
from jitcore.dispatch.backend import CompileOptions
from jitcore.passes import PIPELINE
from jitcore.passes.contractions import keep_halves
from jitcore.process.concurrency import Lock
from jitcore.sharding import Device, SingleDeviceSharding

__all__ = ["CudaBackend", "EmulatedBackend"]

#: Passes whose results are for the routines and the threads of processors.
_CPU_ONLY = ("sweeps", "variances")
#: What stands in the place of others.
_OTHERS = {"contractions": keep_halves}


def _load_compiler() -> ModuleType:
    """What compiles, with LLVM, which finding devices and moving arrays do not need."""
    from jitcore.backends.cuda.runtime import executable

    return executable


class _Backend:
    """What runs programs on devices of one kind."""

    name: str
    platform = "gpu"
    passes = tuple([step._replace(run=_OTHERS.get(step.name, step.run)) for step in PIPELINE
                    if step.name not in _CPU_ONLY])

    def devices(self) -> list[Device]:
        raise NotImplementedError

    def open(self, device: Device) -> Any:
        """The runtime of a device."""
        raise NotImplementedError

    def compile(self, closed_jaxpr: ClosedJaxpr, options: CompileOptions):
        device = self._find_device(options.sharding)
        runtime = self.open(device)
        return _load_compiler().CudaExecutable(closed_jaxpr, options, runtime.arch, runtime, device)

    def clear(self) -> None:
        _load_compiler().ptx.clear()

    def _find_device(self, sharding: Any) -> Device:
        if sharding is None:
            return self.devices()[0]
        return sharding if isinstance(sharding, Device) else sharding.device_order[0]

    # -- arrays -------------------------------------------------------------------------------------------
    def wrap(self, buffer: Any, weak_type: bool) -> DeviceArray:
        form = find_form(buffer.shape, buffer.dtype, weak_type, SingleDeviceSharding(buffer.device), True)
        return DeviceArray(buffer, form)

    def find_forms(self, avals: Sequence[ShapedArray], sharding: Any) -> list[DeviceForm] | None:
        where = SingleDeviceSharding(self._find_device(sharding))
        is_committed = sharding is not None
        return [find_form(aval.shape, aval.dtype, aval.weak_type, where, is_committed) for aval in avals]

    def put(self, value: np.ndarray, sharding: Any, is_immutable: bool = False) -> Any:
        device = self._find_device(sharding)
        if isinstance(value, memory.DeviceBuffer) and value.device == device:
            return memory.copy(self.open(device), value)
        return memory.put(self.open(device), device, np.asarray(value))


class CudaBackend(_Backend):
    """NVIDIA GPUs. Compiling for one asks for none. driver: instead of the installed one."""

    name = "cuda"

    def __init__(self, driver: Any = None):
        self._driver, self._lock = driver, Lock()
        self._devices: list[Device] = []
        self._runtimes: dict[int, Any] = {}

    def devices(self) -> list[Device]:
        """Raises: RuntimeError naming what is missing: the package, the driver, or a GPU."""
        if not self._devices:
            given = self._driver
            names = driver.list_names(driver.open_driver() if given is None else driver.start_driver(given))
            self._devices = [Device("gpu", i, name, self.name) for i, name in enumerate(names)]
        return self._devices

    def open(self, device: Device) -> Any:
        with self._lock:
            runtime = self._runtimes.get(device.id)
            if runtime is None:
                runtime = self._runtimes[device.id] = GpuRuntime(device.id, self._driver)
            return runtime

    def adopt(self, value: Any) -> DeviceArray | None:
        buffer = interop.adopt(value, self._open_number)
        return None if buffer is None else self.wrap(buffer, False)

    def _open_number(self, number: int) -> tuple[Any, Device]:
        device = self.devices()[number]
        return self.open(device), device

    def clear(self) -> None:
        super().clear()
        for runtime in list(self._runtimes.values()):
            runtime.quietly(runtime.trim)  # a forked child has nothing to give back

    def describe(self) -> dict[str, str]:
        """For people: each GPU, the driver, the linker, NVIDIA's libraries."""
        found = {"linker": describe_linker()}
        for device in self.devices():
            runtime = self.open(device)
            facts = runtime.facts()
            found[f"gpu {device.id}"] = (
                f"{facts['name']} ({facts['machine']}), CUDA {'.'.join(map(str, facts['cuda']))}, "
                f"{facts['multiprocessors']} multiprocessors, {facts['bytes'] / 1e9:.0f} GB, "
                f"{facts['free'] / 1e9:.0f} GB free, {facts['bandwidth'] / 1e9:.0f} GB/s"
            )
            found[f"libraries of gpu {device.id}"] = (
                runtime.libraries.describe() if config.gpu_libraries else "off (config.gpu_libraries)"
            )
        return found

    def make_device_function(self, closed_jaxpr: ClosedJaxpr, *facts: Any) -> Callable:
        return _load_compiler().make_device_function(closed_jaxpr, *facts)

    @property
    def machines(self) -> Sequence[str]:
        return (*ARCHITECTURES, "emulated")

    def compile_for(self, machine: str) -> Any:
        return EmulatedBackend() if machine == "emulated" else AheadBackend(machine)


class EmulatedBackend(_Backend):
    """A CUDA device in software: the same PTX, run by the processor, with every access checked."""

    name = "cuda:emulated"

    def devices(self) -> list[Device]:
        return [Device("gpu", device_kind="emulated", backend=self.name)]

    def open(self, device: Device) -> Any:
        return _open_emulated()


@functools.cache
def _open_emulated() -> Any:
    from jitcore.backends.cuda.emulated import EmulatedDevice

    return EmulatedDevice()


class AheadBackend:
    """Compiles for an architecture, and runs nothing."""

    platform, passes = "gpu", _Backend.passes

    def __init__(self, machine: str):
        if machine not in ARCHITECTURES:
            raise ValueError(f"unknown target 'cuda:{machine}': targets are "
                             f"{', '.join(f'cuda:{known}' for known in ARCHITECTURES)}")
        self.name, self.machine = f"cuda:{machine}", machine

    def devices(self) -> list[Device]:
        return []

    def compile(self, closed_jaxpr: ClosedJaxpr, options: CompileOptions):
        return _load_compiler().CudaExecutable(closed_jaxpr, options, self.machine)

    def clear(self) -> None:
        """Nothing is shared."""
