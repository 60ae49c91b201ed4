"""What dispatch sees of the CPU backend.

In: a jaxpr without constants. Out: an `Executable`.
"""

from __future__ import annotations

from jitcore import array
from jitcore.backends.cpu.compiler import CpuTarget
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.native.libraries import code_cache
from jitcore.backends.cpu.runtime import threads
from jitcore.backends.cpu.runtime.executable import CpuExecutable
from jitcore.backends.cpu.runtime.memory import choose_allocator, drop_blocks
from jitcore.core.jaxpr import ClosedJaxpr
from jitcore.device import Device
from jitcore.dispatch.backend import CompileOptions, Executable

__all__ = ["CpuBackend"]


class CpuBackend:
    """Compiles for the processor of this machine."""

    name = "cpu"
    platform = "cpu"

    def __init__(self):
        array.choose_allocator = choose_allocator

    def devices(self) -> list[Device]:
        return [Device("cpu", device_kind="cpu", backend="cpu")]

    def compile(self, closed_jaxpr: ClosedJaxpr, options: CompileOptions) -> Executable:
        """The native program of a jaxpr; kernels that differ in sizes only are shared.

        Raises: NativeCodeError where LLVM refuses what was rendered (a defect of jitcore)."""
        if options.codegen != "llvm":
            from jitcore.backends.python import SourceExecutable

            return SourceExecutable(closed_jaxpr, options, CpuTarget)
        return CpuExecutable(closed_jaxpr, options)

    def describe(self) -> dict[str, str]:
        """Facts about this machine for people: processor, vectors, caches, threads. Starts the threads."""
        pool, caches = threads.describe(), host.cache_sizes()
        tbb = f", TBB interface {pool['tbb']}" if pool["tbb"] else ""
        return {
            "processor": host.cpu_name(),
            "vectors": f"{8 * host.native_vector_bytes()} bits",
            "features": " ".join(sorted(host.cpu_features())),
            "caches": ", ".join(f"{level} {size >> 10} KiB" for level, size in caches._asdict().items()),
            "threads": f"{pool['threads']} on {pool['cores']} cores, layer {pool['layer']}{tbb}",
        }

    def clear(self) -> None:
        code_cache.clear()
        drop_blocks()
