"""The XLA bridge: programs as StableHLO, compiled and run by XLA's clients for CPUs and TPUs.

In: a `ClosedJaxpr`. Out: an executable. The runtime is JAX's (extra `jitcore[xla]`): its compiler, its
devices, its arrays.

Modules:
    aot          Ahead of time: programs for TPUs, compiled where there is none.
    bridge       From a jaxpr to a function of JAX's arrays.
    builder      The builder: what a primitive's `hlo` rule writes its StableHLO with.
    client       JAX, as far as this backend needs it: its version, its devices, 64-bit types, arrays in and
                 out.
    devices      Where arrays lie: JAX's devices and shardings as jitcore's, and back.
    equations    Equations that JAX runs: what has no rule in StableHLO.
    executable   Programs that XLA compiles and runs.
    exporting    Programs as portable artifacts: what `jax.export` makes of functions, and what it wrote.
    limits       What TPUs cannot do, said before anything is compiled.
    lower        From a jaxpr to the text of a StableHLO module.
    open_shapes  Equations whose extents are symbols: what JAX's operations of the same names do.
    scalars      Scalar operations of arrays: what StableHLO has no operation for, as formulas.
    text         StableHLO as text: types, constants and attributes.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from jitcore.array import DeviceArray, DeviceForm
from jitcore.backends.xla import devices
from jitcore.backends.xla.client import list_devices, load_jax
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray
from jitcore.dispatch.backend import CompileOptions
from jitcore.passes import PIPELINE
from jitcore.passes.expand import expand_equations
from jitcore.sharding import Device, Sharding

__all__ = ["TpuBackend", "XlaBackend"]

#: Passes that serve every compiler; the others prepare loops for the CPU backend.
_PASSES = ("expand", "inline", "fold", "simplify", "cse", "dce")


def _load(module: str) -> Any:
    """A module of this package that programs are made with: a process that makes none loads none."""
    return importlib.import_module(f"{__name__}.{module}")


class XlaBackend:
    """XLA's client for CPUs."""

    name, platform = "xla", "cpu"
    passes = tuple([step for step in PIPELINE if step.name in _PASSES])
    wrap, put = staticmethod(devices.wrap), staticmethod(devices.put_array)

    def devices(self) -> list[Device]:
        return [devices.to_device(device) for device in list_devices(self.platform)]

    def compile(self, closed_jaxpr: ClosedJaxpr, options: CompileOptions):
        return _load("executable").XlaExecutable(closed_jaxpr, options, self.platform)

    def clear(self) -> None:
        """Nothing is shared."""

    def lower_text(self, closed_jaxpr: ClosedJaxpr) -> str:
        return _load("exporting").lower_text(closed_jaxpr, self.platform)

    def export(self, programs: Mapping[str, Any], *facts: Any) -> Any:
        return _load("exporting").export_programs(programs, *facts)

    def load_exported(self, blob: bytes) -> Any:
        return _load("exporting").load_artifact(blob)

    def wait(self, buffers: Sequence) -> None:
        load_jax().block_until_ready(buffers)

    def find_forms(self, avals: Sequence[ShapedArray], sharding: Any) -> list[DeviceForm] | None:
        return devices.find_forms(avals, sharding, self.platform)

    def split(self, array: DeviceArray) -> dict[Device, DeviceArray]:
        return devices.split(array.buffer)

    def join(self, shape: tuple, sharding: Sharding, parts: Sequence[DeviceArray]) -> DeviceArray:
        return devices.wrap(devices.join(shape, sharding, [part.buffer for part in parts]))


class TpuBackend(XlaBackend):
    """XLA's client for TPUs. Compiling for one asks for none."""

    name, platform = "tpu", "tpu"
    # the loops of this derivative are of float64
    passes = tuple([step._replace(run=partial(expand_equations, kept=("igamma_grad_a",)))
                    if step.name == "expand" else step for step in XlaBackend.passes])

    def devices(self) -> list[Device]:
        try:
            return super().devices()
        except RuntimeError:
            raise RuntimeError("JAX finds no TPU here") from None

    def check(self, closed_jaxpr: ClosedJaxpr, arguments: Sequence[str]) -> None:
        _load("limits").check_tpu(closed_jaxpr, arguments)

    @property
    def machines(self) -> Sequence[str]:
        return tuple(_load("aot").GENERATIONS)

    def compile_for(self, machine: str):
        return _load("aot").AheadBackend(machine, self)
