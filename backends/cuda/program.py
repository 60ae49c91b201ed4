"""Programs: the kernels of a loop program, and the steps that launch them.

In: a loop program. Out: PTX, and a function of buffers that runs the steps on a device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore.backends.cuda.device import ALIGNMENT, DeviceBuffer, Memory, Runtime, put
from jitcore.backends.cuda.kernel import Function, KernelRenderer
from jitcore.backends.cuda.loops import LoopRenderer, find_team
from jitcore.backends.llvm.module import TargetModule
from jitcore.backends.llvm.options import RenderOptions
from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import Call, Kernel, LibraryCall, Native, Program, Switch, While
from jitcore.schedule.arena import count_bytes, plan_arena
from jitcore.sharding import Device

Run = Callable[["Frame"], None]


class RenderedProgram:
    """A loop program as kernels. module: of LLVM IR; functions: its kernels, by the id of their statement."""

    def __init__(self, program: Program, options: RenderOptions):
        self.program, self.module = program, TargetModule("jitcore", options.features)
        self.functions: dict[int, list[Function]] = {}
        self.options = options
        self.scratch: dict[Buffer, int] = {}
        self.scratch_bytes = 0
        for step in program.steps:
            self._render(step.body if isinstance(step, Native) else ())

    def _render(self, body: Sequence) -> None:
        is_apart = not self.program.aliases
        for statement in body:
            name = f"k{len(self.functions)}"
            if isinstance(statement, Call):
                routine = statement.routine
                self.functions[id(statement)] = routine.render(self.module, name, statement, self.options)
                continue
            if isinstance(statement, Kernel):
                renderer = KernelRenderer(self.module, name, statement, self.options, is_apart)
            elif isinstance(statement, While) and (team := find_team(statement)):
                renderer = LoopRenderer(self.module, name, statement, team, self.options, is_apart)
            else:
                for inner in _list_bodies(statement):
                    self._render(inner)
                continue
            self.functions[id(statement)] = renderer.render()
            self._place_scratch(getattr(renderer, "scratch", ()))

    def _place_scratch(self, buffers: Sequence[Buffer]) -> None:
        """What one kernel's functions hand on to each other takes the same memory as that of the others."""
        offset = 0
        for buffer in buffers:
            self.scratch[buffer] = offset
            offset += -(-count_bytes(buffer) // ALIGNMENT) * ALIGNMENT
        self.scratch_bytes = max(self.scratch_bytes, offset)

    def list_functions(self) -> list[Function]:
        return [function for found in self.functions.values() for function in found]


def _list_bodies(statement) -> Sequence[list]:
    if isinstance(statement, While):
        return statement.cond, statement.body
    return statement.branches if isinstance(statement, Switch) else ()


class Frame:
    """One call: where each buffer is."""

    __slots__ = ("runtime", "addresses", "keep")

    def __init__(self, runtime: Runtime):
        self.runtime = runtime
        self.addresses: dict[Buffer, int] = {}
        self.keep: list[Memory] = []

    def read(self, buffer: Buffer) -> np.ndarray:
        """A buffer's elements, on the host."""
        found = np.empty(tuple(map(int, buffer.shape)), buffer.dtype)
        self.runtime.copy_out(found, self.addresses[buffer])
        return found

    def write(self, buffer: Buffer, value: Any) -> None:
        value = np.asarray(value, buffer.dtype, order="C").reshape(tuple(map(int, buffer.shape)))
        self.runtime.copy_in(self.addresses[buffer], value)


class LoadedProgram:
    """A rendered program on a device: `run(*values)`, of ndarrays and buffers, gives buffers."""

    def __init__(self, rendered: RenderedProgram, ptx: str, runtime: Runtime, device: Device):
        self.program, self.runtime, self.device = rendered.program, runtime, device
        self.functions = rendered.functions
        self.module = runtime.load(ptx) if rendered.functions else None
        program = rendered.program
        offsets, arena_bytes = plan_arena(program, program.temps, ALIGNMENT)
        scratch = {buffer: arena_bytes + offset for buffer, offset in rendered.scratch.items()}
        self.offsets = dict(zip(program.temps, offsets)) | scratch
        self.arena_bytes = arena_bytes + rendered.scratch_bytes
        self.sizes = {output: count_bytes(output) for output in program.outputs}
        self.steps = self._make_steps([s for step in program.steps for s in _statements_of(step)])

    def run(self, *values: np.ndarray | DeviceBuffer) -> list[DeviceBuffer]:
        program, frame = self.program, Frame(self.runtime)
        given = [value if isinstance(value, DeviceBuffer) else put(self.runtime, self.device, value)
                 for value in values]  # fmt: skip
        memories = dict(zip(program.inputs, [buffer.memory for buffer in given]))
        for output, nbytes in self.sizes.items():
            source = program.aliases.get(output)
            memories[output] = Memory(self.runtime, nbytes) if source is None else memories[source]
        frame.addresses = {buffer: memory.address for buffer, memory in memories.items()}
        if self.arena_bytes:
            arena = Memory(self.runtime, self.arena_bytes)
            frame.keep.append(arena)
            for buffer, offset in self.offsets.items():
                frame.addresses[buffer] = arena.address + offset
        for step in self.steps:
            step(frame)
        return [DeviceBuffer(memories[output], map(int, output.shape), output.dtype, self.device)
                for output in program.outputs]  # fmt: skip

    # -- steps --------------------------------------------------------------------------------------------
    def _make_steps(self, body: Sequence) -> list[Run]:
        steps: list[Run] = []
        for statement in body:
            if id(statement) in self.functions:
                steps += [self._make_launch(function) for function in self.functions[id(statement)]]
            elif isinstance(statement, While):
                steps.append(self._make_loop(statement))
            elif isinstance(statement, Switch):
                steps.append(self._make_switch(statement))
            else:
                steps.append(_make_host_call(statement))
        return steps

    def _make_launch(self, function: Function) -> Run:
        kernel = self.module.find_kernel(function.name)
        sizes = [int(size) for size in function.sizes]
        grid, block, buffers = (function.grid, 1, 1), (function.mapping.block, 1, 1), function.buffers
        launch = self.runtime.launch

        def run(frame: Frame) -> None:
            addresses = frame.addresses
            arguments = np.array([*[addresses[buffer] for buffer in buffers], *sizes], np.int64)
            launch(kernel, grid, block, arguments.view(np.uint64))

        return run

    def _make_loop(self, loop: While) -> Run:
        cond, body, predicate = self._make_steps(loop.cond), self._make_steps(loop.body), loop.predicate

        def run(frame: Frame) -> None:
            homes = {buffer: frame.addresses[buffer] for pair in loop.swaps for buffer in pair}
            while True:
                for step in cond:
                    step(frame)
                if not frame.read(predicate).any():
                    break
                for step in body:
                    step(frame)
                for first, second in loop.swaps:
                    places = frame.addresses
                    places[first], places[second] = places[second], places[first]
            for first, _ in loop.swaps:
                if frame.addresses[first] != homes[first]:
                    frame.runtime.copy(homes[first], frame.addresses[first], count_bytes(first))
            frame.addresses |= homes

        return run

    def _make_switch(self, switch: Switch) -> Run:
        branches = [self._make_steps(branch) for branch in switch.branches]

        def run(frame: Frame) -> None:
            for step in branches[int(frame.read(switch.selector)[()])]:
                step(frame)

        return run


def _statements_of(step) -> Sequence:
    return step.body if isinstance(step, Native) else [step]


def _make_host_call(call: LibraryCall | Call) -> Run:
    """What has no kernel: computed on the host."""

    def run(frame: Frame) -> None:
        results = call.function(*map(frame.read, call.inputs))
        results = results if isinstance(results, (list, tuple)) else [results]
        for buffer, value in zip(call.outputs, results):
            frame.write(buffer, value)

    return run
