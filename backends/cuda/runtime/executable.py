"""Executables: programs compiled for an architecture, and run on a device of it.

In: a jaxpr; by way of a schedule, kernels and PTX. Out: a function of ndarrays and buffers for one signature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jitcore.backends.cuda.architectures import ARCHITECTURES
from jitcore.backends.cuda.libraries.programs import TABLE, use_routines
from jitcore.backends.cuda.program import LoadedProgram, RenderedProgram
from jitcore.backends.cuda.render import nvvm, ptx
from jitcore.backends.cuda.runtime.device import ALIGNMENT, DeviceBuffer, Runtime
from jitcore.backends.cuda.runtime.linking import Resources, disassemble, find_cubin, find_resources
from jitcore.backends.cuda.sorting.programs import TABLE as SORTS
from jitcore.backends.cuda.target import CudaTarget
from jitcore.backends.gpu.mapping import ACCESS_BYTES
from jitcore.backends.llvm.options import RenderOptions
from jitcore.backends.python.cuda import source
from jitcore.config import config
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray
from jitcore.dispatch.backend import CompileOptions
from jitcore.dispatch.tracing import specialize_jaxpr
from jitcore.loopir.program import Program
from jitcore.loopir.text import show_program
from jitcore.schedule import lower_program
from jitcore.schedule.buffers import plan_arena
from jitcore.schedule.cost import count_flops
from jitcore.sharding import Device


class CudaExecutable:
    """Args: the jaxpr; what `jit` was told; the architecture; the device, None to compile only."""

    def __init__(self, closed_jaxpr: ClosedJaxpr, options: CompileOptions, arch: str,
                 runtime: Runtime | None = None, device: Device | None = None):
        self.closed_jaxpr, self.options, self.arch = closed_jaxpr, options, arch
        self.runtime, self.device = runtime, device
        self.compiles = 0
        self._latest: RenderedProgram | None = None
        self._plain: ClosedJaxpr | None = None  # without libraries and routines, where there are some
        self._ptx = ""

    def bind(self, in_avals: Sequence[ShapedArray]) -> Callable[..., list[DeviceBuffer]]:
        plain = specialize_jaxpr(self.closed_jaxpr, in_avals)
        libraries = getattr(self.runtime, "libraries", None) if config.gpu_libraries else None
        closed = use_routines(plain, TABLE | SORTS, libraries, ARCHITECTURES[self.arch].tuning)
        self._plain = None if closed is plain else plain
        options = self.options
        program = lower_program(closed, CudaTarget(ARCHITECTURES[self.arch].tuning), options.donated)
        # NVVM's dialect has no vectors of numbers, and not all of LLVM's products of small matrices
        is_llvm, facts = options.codegen == "llvm", ARCHITECTURES[self.arch]
        rendered_for = RenderOptions(
            ACCESS_BYTES if is_llvm else 1, options.fastmath, None, options.contract,
            features=facts.features if is_llvm else (),
            has_tensor_cores=is_llvm and facts.has_tensor_cores, tuning=facts.tuning)
        self._latest = RenderedProgram(program, rendered_for)
        if options.codegen == "numba":
            self._ptx = nvvm.make_ptx(self._latest.llvm_ir, self._latest.kernels, self.arch)
        else:
            self._ptx = ptx.make_ptx(self._latest.llvm_ir, self.arch, options.opt_level)
        self.compiles += 1
        if self.runtime is None:
            return self._refuse
        return LoadedProgram(self._latest, self._ptx, self.runtime, self.device).run

    def _refuse(self, *values: Any) -> Any:
        raise RuntimeError(f"this program was compiled for cuda:{self.arch} ahead of time and does not run "
                           'here: call the function under jit(backend="gpu") where a GPU is')

    def read_latest(self) -> RenderedProgram:
        if self._latest is None:
            self.bind(self.closed_jaxpr.in_avals)
        return self._latest

    def texts(self, arguments: Sequence[str] = ()) -> dict[str, Callable[[], str]]:
        """Of the latest signature where shapes are symbolic."""
        return {"loop program": lambda: show_program(self.read_latest().program),
                "mapping": lambda: describe_functions(self.read_latest()),
                "numba.cuda": lambda: source.write_file(self._read_plain(), arguments).text,
                "kernel": lambda: self.read_latest().llvm_ir,
                "resources": lambda: "\n".join(f"{k}: {v}" for k, v in self.find_resources().items()),
                "sass": lambda: disassemble(self._read_ptx(), self.arch),
                "ptx": self._read_ptx}

    def _read_plain(self) -> Program:
        """For files that run where there are no libraries."""
        latest = self.read_latest()
        if self._plain is None:
            return latest.program
        return RenderedProgram(lower_program(self._plain, CudaTarget()), latest.options).program

    def _read_ptx(self) -> str:
        self.read_latest()
        return self._ptx

    def find_resources(self) -> dict[str, Resources]:
        blocks = {function.name: function.mapping.block for function in self.read_latest().list_functions()}
        return find_resources(self._read_ptx(), self.arch, blocks)

    def cost(self) -> dict[str, float]:
        program = self.read_latest().program
        moved = sum(buffer.nbytes for buffer in {*program.inputs, *program.outputs})
        return {"flops": float(count_flops(program)), "bytes accessed": float(moved)}

    def memory(self) -> dict[str, int]:
        """Bytes of temporaries; of code, and what its kernels take at most, where NVIDIA's linker is."""
        rendered = self.read_latest()
        _, arena = plan_arena(rendered.program, rendered.program.temps, ALIGNMENT)
        found = {"temp_size_in_bytes": arena + rendered.scratch_bytes}
        cubin, kernels = find_cubin(self._ptx, self.arch), self.find_resources().values()
        if cubin is not None and kernels:
            found["generated_code_size_in_bytes"] = len(cubin)
            found |= {name: max(getattr(one, name) for one in kernels)
                      for name in ("registers", "spilled_bytes", "shared_bytes")}
        return found


def describe_functions(rendered: RenderedProgram) -> str:
    """A line for each kernel: its mapping, and how it is launched."""
    lines = []
    for name, _, _, mapping, grid in rendered.list_functions():
        facts = [mapping.kind, f"{grid} blocks of {mapping.block} threads"]
        facts += [f"{mapping.team} threads an item"] * (mapping.team > 1)
        facts += [f"{mapping.elements} elements a thread"] * (mapping.elements > 1)
        if mapping.row is not None:
            facts.append(f"{mapping.row.rounds * mapping.row.lanes} elements of a thread stay in registers")
        facts += [mapping.units] * bool(mapping.units)
        facts += [f"slow: {mapping.reason}"] * bool(mapping.reason)
        lines.append(f"{name}: {', '.join(facts)}")
    return "\n".join(lines)


def make_device_function(closed_jaxpr: ClosedJaxpr, *facts: Any) -> Callable:
    """A program as a function that kernels of Numba call."""
    return source.make_device_function(lower_program(closed_jaxpr, CudaTarget()), *facts)
