"""Programs: the kernels of a loop program, and the steps that launch them.

In: a loop program. Out: PTX, and a function of buffers that runs the steps on a device.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore.backends.cuda.libraries.bindings import Routine
from jitcore.backends.cuda.render.kernel import Function, KernelRenderer
from jitcore.backends.cuda.render.loops import BlockRenderer, find_team
from jitcore.backends.cuda.runtime.device import ALIGNMENT, DeviceBuffer, Memory, Runtime, put
from jitcore.backends.gpu.mapping import cut_pieces
from jitcore.backends.llvm.function import TargetModule
from jitcore.backends.llvm.options import RenderOptions
from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import Call, Kernel, LibraryCall, Native, Program, Switch, While
from jitcore.loopir.traversal import list_outermost
from jitcore.schedule.buffers import plan_arena
from jitcore.sharding import Device

Run = Callable[["Frame"], None]


class RenderedProgram:
    """A loop program as kernels. llvm_ir: their text; kernels: how it refers to each; functions: by the id of
    their statement."""

    def __init__(self, program: Program, options: RenderOptions):
        self.program, self.options = program, options
        self.functions: dict[int, list[Function]] = {}
        self.scratch: dict[Buffer, int] = {}
        self.scratch_bytes = 0
        module = TargetModule("jitcore", options.features)
        for step in program.steps:
            self._render(module, step.body if isinstance(step, Native) else ())
        self.llvm_ir = str(module)  # the module itself takes ten times as much memory
        self.kernels = [f'{one.type} @"{one.name}"' for one in module.functions
                        if one.calling_convention == "ptx_kernel"]

    def _render(self, module: TargetModule, body: Sequence) -> None:
        for team, group in itertools.groupby(body, functools.partial(find_team, tuning=self.options.tuning)):
            statements = list(group)
            if team == 1 and len(statements) > 1:
                self._render_together(module, statements, 1)
            else:
                for statement in statements:
                    self._render_alone(module, statement, team)

    def _render_together(self, module: TargetModule, statements: list, team: int) -> None:
        """Statements as one function."""
        self.functions |= {id(statement): [] for statement in statements}
        name, is_apart = f"k{len(self.functions) - 1}", not self.program.aliases
        renderer = BlockRenderer(module, name, statements, team, self.options, is_apart)
        self.functions[id(statements[0])] = renderer.render()

    def _render_alone(self, module: TargetModule, statement, team: int) -> None:
        name, is_apart = f"k{len(self.functions)}", not self.program.aliases
        if isinstance(statement, Call):
            routine = statement.routine
            self.functions[id(statement)] = routine.render(module, name, statement, self.options)
        elif isinstance(statement, Kernel):
            cut_pieces(statement, self.options.tuning)
            renderer = KernelRenderer(module, name, statement, self.options, is_apart)
            self.functions[id(statement)] = renderer.render()
            self._place_scratch(renderer.scratch)
        elif team:
            self._render_together(module, [statement], team)
        else:
            for inner in statement.bodies:
                self._render(module, inner)

    def _place_scratch(self, buffers: Sequence[Buffer]) -> None:
        """What one kernel's functions hand on to each other takes the same memory as that of the others."""
        offset = 0
        for buffer in buffers:
            self.scratch[buffer] = offset
            offset += -(-buffer.nbytes // ALIGNMENT) * ALIGNMENT
        self.scratch_bytes = max(self.scratch_bytes, offset)

    def list_functions(self) -> list[Function]:
        return [function for found in self.functions.values() for function in found]


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


class Launch:
    """The launch of a kernel. place: kernel, grid and block."""

    def __init__(self, runtime: Runtime, place: tuple, buffers: Sequence[Buffer], sizes: Sequence[int]):
        self.place, self._buffers, self._sizes, self._launch = place, buffers, sizes, runtime.launch

    def read(self, frame: Frame) -> np.ndarray:
        """The arguments."""
        addresses = frame.addresses
        found = np.array([*[addresses[buffer] for buffer in self._buffers], *self._sizes], np.int64)
        return found.view(np.uint64)

    def __call__(self, frame: Frame) -> None:
        self._launch(*self.place, self.read(frame))


class LoadedProgram:
    """A rendered program on a device: `run(*values)`, of ndarrays and buffers, gives buffers."""

    def __init__(self, rendered: RenderedProgram, ptx: str, runtime: Runtime, device: Device):
        self.program, self.runtime, self.device = rendered.program, runtime, device
        self.functions, self.tuning = rendered.functions, rendered.options.tuning
        self.module = runtime.load(ptx) if rendered.list_functions() else None
        program = rendered.program
        offsets, arena_bytes = plan_arena(program, program.temps, ALIGNMENT)
        scratch = {buffer: arena_bytes + offset for buffer, offset in rendered.scratch.items()}
        self.offsets = dict(zip(program.temps, offsets)) | scratch
        self.arena_bytes = arena_bytes + rendered.scratch_bytes
        self.sizes = {output: output.nbytes for output in program.outputs}
        self.steps = self._make_steps(list_outermost(program.steps))

    def run(self, *values: np.ndarray | DeviceBuffer) -> list[DeviceBuffer]:
        program, frame = self.program, Frame(self.runtime)
        given = [value if isinstance(value, DeviceBuffer) else put(self.runtime, self.device, value)
                 for value in values]
        memories = dict(zip(program.inputs, [buffer.memory for buffer in given]))
        for output, nbytes in self.sizes.items():
            memories[output] = self._take_over(memories.get(program.aliases.get(output)), nbytes)
        frame.addresses = {buffer: memory.address for buffer, memory in memories.items()}
        if self.arena_bytes:
            arena = Memory(self.runtime, self.arena_bytes)
            frame.keep.append(arena)
            for buffer, offset in self.offsets.items():
                frame.addresses[buffer] = arena.address + offset
        for step in self.steps:
            step(frame)
        return [DeviceBuffer(memories[output], map(int, output.shape), output.dtype, self.device)
                for output in program.outputs]

    def _take_over(self, donated: Memory | None, nbytes: int) -> Memory:
        """Memory for an output: that of a donated input, or a copy where another library has that, too."""
        if donated is not None and not donated.is_shared:
            return donated
        memory = Memory(self.runtime, nbytes)
        if donated is not None:
            self.runtime.copy(memory.address, donated.address, nbytes)
        return memory

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
            elif isinstance(statement, LibraryCall) and isinstance(statement.primitive, Routine):
                steps.append(_make_library_step(statement))
            else:
                steps.append(_make_host_call(statement))
        return self._join_launches(steps)

    def _make_launch(self, function: Function) -> Launch:
        kernel, sizes = self.module.find_kernel(function.name), [int(size) for size in function.sizes]
        grid, block = (function.grid, 1, 1), (function.mapping.block, 1, 1)
        return Launch(self.runtime, (kernel, grid, block), function.buffers, sizes)

    def _join_launches(self, steps: Sequence[Run]) -> list[Run]:
        """Launches that follow one another: one graph, where the device has graphs and they are several."""
        joined: list[Run] = []
        for is_launch, found in itertools.groupby(steps, lambda step: isinstance(step, Launch)):
            group = list(found)
            is_long = is_launch and len(group) >= self.tuning.least_graph
            joined += [self._make_graph(group)] if is_long and hasattr(self.runtime, "make_graph") else group
        return joined

    def _make_graph(self, launches: Sequence[Launch]) -> Run:
        graph = self.runtime.make_graph([launch.place for launch in launches])
        return lambda frame: graph.launch([launch.read(frame) for launch in launches])

    def _make_loop(self, loop: While) -> Run:
        if getattr(self.runtime, "has_loops", False) and self._runs_alone(loop):
            return self._make_device_loop(loop)
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
                    frame.runtime.copy(homes[first], frame.addresses[first], first.nbytes)
            frame.addresses |= homes

        return run

    def _runs_alone(self, loop: While) -> bool:
        """Whether a loop asks nothing of the host, and moves little where memory would change places."""
        statements, swapped = [*loop.cond, *loop.body], [buffer for pair in loop.swaps for buffer in pair]
        return (
            all(id(statement) in self.functions for statement in statements)
            and len(set(swapped)) == len(swapped)
            and sum(first.nbytes for first, _ in loop.swaps) <= self.tuning.most_moved
        )

    def _make_device_loop(self, loop: While) -> Run:
        cond, body = ([self._make_launch(function) for statement in statements
                       for function in self.functions[id(statement)]]
                      for statements in (loop.cond, loop.body))
        device_loop = self.runtime.make_loop(*([launch.place for launch in part] for part in (cond, body)))
        predicate, nbytes = loop.predicate, loop.predicate.nbytes

        def run(frame: Frame) -> None:
            places, arguments = frame.addresses, [[one.read(frame) for one in part] for part in (cond, body)]
            moves = [(places[first], places[second], first.nbytes) for first, second in loop.swaps]
            device_loop.launch(*arguments, (places[predicate], nbytes), moves)

        return run

    def _make_switch(self, switch: Switch) -> Run:
        branches = [self._make_steps(branch) for branch in switch.branches]

        def run(frame: Frame) -> None:
            for step in branches[int(frame.read(switch.selector)[()])]:
                step(frame)

        return run


def _make_library_step(call: LibraryCall) -> Run:
    """What one of NVIDIA's libraries computes."""

    def run(frame: Frame) -> None:
        inputs, outputs = ([frame.addresses[one] for one in part] for part in (call.inputs, call.outputs))
        frame.runtime.libraries.run(call.primitive, inputs, outputs, call.params)

    return run


def _make_host_call(call: LibraryCall | Call) -> Run:
    """What has neither a kernel nor a library: computed on the host."""

    def run(frame: Frame) -> None:
        results = call.function(*map(frame.read, call.inputs))
        results = results if isinstance(results, (list, tuple)) else [results]
        for buffer, value in zip(call.outputs, results):
            frame.write(buffer, value)

    return run
