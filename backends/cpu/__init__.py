"""The CPU backend: loop programs rendered to explicit-vector LLVM IR, compiled by Numba's code generator.

In: a jaxpr without constants. Out: an `Executable`. Stages: `schedule.lower_program` (loop program), `entry` and
`kernel` (LLVM IR), `native` (machine code), `executable` (buffers of a call).
"""

from __future__ import annotations

from jitcore.backends.cpu.executable import CpuExecutable
from jitcore.core.jaxpr import ClosedJaxpr
from jitcore.device import Device
from jitcore.dispatch.backend import CompileOptions

__all__ = ["CpuBackend"]


class CpuBackend:
    """Compiles for the processor of this machine."""

    name = "cpu"
    platform = "cpu"

    def devices(self) -> list[Device]:
        return [Device("cpu", device_kind="cpu", backend="cpu")]

    def compile(self, closed_jaxpr: ClosedJaxpr, options: CompileOptions) -> CpuExecutable:
        """The native program of a jaxpr; kernels that differ in sizes only are shared.

        Raises: NativeCodeError where LLVM refuses what was rendered (a defect of jitcore)."""
        return CpuExecutable(closed_jaxpr, options)
