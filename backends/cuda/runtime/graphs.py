"""Kernels on a GPU, and CUDA graphs: several launches that are given to a GPU at once, and loops whose
condition the GPU reads.

In: kernels, and how they are launched; for each call their arguments. Out: work on the stream of a GPU.

What CUDA calls an executable graph has room for the arguments of one call. `Graph` has as many as threads
call it at once and writes new arguments over the last ones; `DeviceLoop` keeps some for arguments that it has
seen, as nodes inside of a loop cannot be written to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jitcore.backends.cuda.runtime.gpu import GpuRuntime

Dimensions = tuple[int, int, int]
#: A kernel, its grid, its blocks.
Launch = tuple["Kernel", Dimensions, Dimensions]


class Spares(list):
    """What a call takes for itself and puts back by `append`."""

    def take(self, make: Callable[..., Any], *arguments: Any) -> Any:
        """make, arguments: for one more, where there is none."""
        try:
            return self.pop()
        except IndexError:
            return make(*arguments)


class Module:
    """A loaded module, unloaded with the last of its kernels."""

    def __init__(self, runtime: GpuRuntime, handle: Any):
        self.runtime, self.handle = runtime, handle

    def find_kernel(self, name: str) -> Kernel:
        return Kernel(self, name, self.runtime._call("cuModuleGetFunction", self.handle, name.encode()))

    def __del__(self):
        self.runtime.quietly(self.runtime.synchronize)  # its kernels may still run
        self.runtime.quietly(self.runtime._call, "cuModuleUnload", self.handle)


class Kernel:
    """A `__global__` function. packs: memory for parameters."""

    __slots__ = ("module", "name", "handle", "packs")

    def __init__(self, module: Module, name: str, handle: Any):
        self.module, self.name, self.handle = module, name, handle
        self.packs = Spares()


class Pack:
    """Parameters of a launch as the driver reads them: cells of 64 bits, and the addresses of these."""

    __slots__ = ("cells", "address", "_addresses")

    def __init__(self, count: int):
        self.cells = np.zeros(count, np.uint64)
        self._addresses = self.cells.ctypes.data + 8 * np.arange(count, dtype=np.uint64)
        self.address = self._addresses.ctypes.data


# -- graphs -------------------------------------------------------------------------------------------------
#: Copies at the end of a round: target, source, bytes.
Moves = Sequence[tuple[int, int, int]]

#: Combinations of arguments for which a loop is kept.
MAX_LOOPS = 4
#: The handle of a condition gets its default value, 0, at each start of its graph.
_ASSIGN_DEFAULT = 1
_WARP = 32

#: Whether any byte of a predicate is not zero, told to the graph. The driver itself has the function called.
DECIDE = """
.version 6.3
.target sm_75
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);
.visible .entry decide (.param .u64 handle, .param .u64 predicate, .param .u64 count)
{
    .reg .pred %p<5>; .reg .b16 %h<2>; .reg .b32 %r<5>; .reg .b64 %d<7>;
    ld.param.u64 %d1, [handle]; ld.param.u64 %d2, [predicate]; ld.param.u64 %d3, [count];
    cvta.to.global.u64 %d2, %d2;
    mov.u32 %r1, %tid.x; cvt.u64.u32 %d4, %r1; mov.u32 %r2, 0;
next:
    setp.ge.u64 %p1, %d4, %d3; @%p1 bra ready;
    add.s64 %d5, %d2, %d4; ld.global.u8 %h1, [%d5]; cvt.u32.u16 %r3, %h1; or.b32 %r2, %r2, %r3;
    add.s64 %d4, %d4, 32; bra.uni next;
ready:
    setp.ne.u32 %p2, %r2, 0; vote.sync.any.pred %p3, %p2, 0xffffffff;
    setp.ne.u32 %p4, %r1, 0; @%p4 bra end;
    selp.u32 %r4, 1, 0, %p3;
    { .param .b64 a; .param .b32 b; st.param.b64 [a+0], %d1; st.param.b32 [b+0], %r4;
      call.uni cudaGraphSetConditional, (a, b); }
end:
    ret;
}
"""


class Recording:
    """A CUDA graph that grows: what is added comes after what was added before."""

    def __init__(self, runtime: GpuRuntime, graph: Any):
        self.runtime, self.graph, self.nodes = runtime, graph, []
        self.keep: list[Any] = []  # kernels, and memory that the driver may read again

    def _add(self, name: str, *arguments: Any) -> Any:
        before = self.nodes[-1:]
        self.nodes.append(self.runtime._call(name, self.graph, before or None, len(before), *arguments))
        return self.nodes[-1]

    def add_kernel(self, launch: Launch, values: Sequence[int] | np.ndarray) -> tuple:
        """(node, its parameters, their cells): what `cuGraphExecKernelNodeSetParams` takes."""
        kernel, grid, block = launch
        pack = Pack(len(values))
        pack.cells[:] = values
        parameters = self.runtime._driver.CUDA_KERNEL_NODE_PARAMS()
        parameters.func, parameters.kernelParams = kernel.handle, pack.address
        parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ = grid
        parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ = block
        self.keep.append((kernel, pack, parameters))
        return self._add("cuGraphAddKernelNode", parameters), parameters, pack

    def add_copy(self, target: int, source: int, nbytes: int) -> None:
        driver = self.runtime._driver
        copy, kind = driver.CUDA_MEMCPY3D(), driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
        copy.srcMemoryType = copy.dstMemoryType = kind
        copy.srcDevice, copy.dstDevice = driver.CUdeviceptr(source), driver.CUdeviceptr(target)
        copy.WidthInBytes, copy.Height, copy.Depth = nbytes, 1, 1
        self._add("cuGraphAddMemcpyNode", copy, self.runtime._context)

    def make_condition(self) -> Any:
        """A handle, which one loop of the graph reads before each of its rounds."""
        return self.runtime._call("cuGraphConditionalHandleCreate", self.graph, self.runtime._context, 0,
                                  _ASSIGN_DEFAULT)

    def add_loop(self, condition: Any) -> Recording:
        """The rounds of a loop."""
        driver = self.runtime._driver
        node = driver.CUgraphNodeParams()
        node.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        node.conditional.type = driver.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE
        node.conditional.handle, node.conditional.ctx = condition, self.runtime._context
        node.conditional.size = 1
        before = self.nodes[-1:]
        added = self.runtime._call("cuGraphAddNode", self.graph, before or None, None, len(before), node)
        self.nodes.append(added)
        body = Recording(self.runtime, node.conditional.phGraph_out[0])
        self.keep.append(body)
        return body


class Instance:
    """An executable graph. key: the arguments that it has."""

    def __init__(self, recording: Recording, key: Any):
        self.recording, self.runtime, self.key = recording, recording.runtime, key
        self.handle = None
        self.handle = self.runtime._call("cuGraphInstantiate", recording.graph, 0)

    def launch(self) -> None:
        self.runtime._run("cuGraphLaunch", self.handle, self.runtime._stream)

    def __del__(self):
        if self.handle is not None:
            self.runtime.quietly(self.runtime._call, "cuGraphExecDestroy", self.handle)  # once it has run
        self.runtime.quietly(self.runtime._call, "cuGraphDestroy", self.recording.graph)


class Graph:
    """Launches that follow one another."""

    def __init__(self, runtime: GpuRuntime, launches: Sequence[Launch]):
        self._runtime, self._launches = runtime, list(launches)
        self._instances = Spares()

    def launch(self, arguments: Sequence[np.ndarray]) -> None:
        """arguments: uint64, for each launch."""
        runtime = self._runtime
        found = instance, nodes = self._instances.take(self._make, arguments)
        for (node, parameters, pack), values in zip(nodes, arguments):
            if pack.cells.tobytes() != values.tobytes():
                pack.cells[:] = values
                runtime._run("cuGraphExecKernelNodeSetParams", instance.handle, node, parameters)
        runtime._latest = self._launches[-1][0].name
        instance.launch()
        self._instances.append(found)

    def _make(self, arguments: Sequence[np.ndarray]) -> tuple[Instance, list[tuple]]:
        recording = Recording(self._runtime, self._runtime._call("cuGraphCreate", 0))
        nodes = [recording.add_kernel(*given) for given in zip(self._launches, arguments)]
        return Instance(recording, None), nodes


class DeviceLoop:
    """`cond`; as long as the predicate holds, `body` and `cond` again. The host is not asked."""

    def __init__(self, runtime: GpuRuntime, cond: Sequence[Launch], body: Sequence[Launch]):
        self._runtime, self._cond, self._body = runtime, list(cond), list(body)
        self._decide = runtime.load(DECIDE).find_kernel("decide"), (1, 1, 1), (_WARP, 1, 1)
        self._kept: list[Instance] = []

    def launch(self, cond: Sequence[np.ndarray], body: Sequence[np.ndarray], predicate: tuple[int, int],
               moves: Moves = ()) -> None:
        """cond, body: arguments. predicate: its address and bytes. moves: at the end of each round."""
        key = tuple([values.tobytes() for values in (*cond, *body)]), predicate, tuple(moves)
        instance = self._take(key) or self._make(cond, body, predicate, moves, key)
        self._runtime._latest = self._cond[-1][0].name
        instance.launch()
        self._kept.append(instance)
        del self._kept[:-MAX_LOOPS]

    def _take(self, key: tuple) -> Instance | None:
        for instance in list(self._kept):
            if instance.key == key:
                with contextlib.suppress(ValueError):  # another thread was faster
                    self._kept.remove(instance)
                    return instance
        return None

    def _make(self, cond: Sequence[np.ndarray], body: Sequence[np.ndarray], predicate: tuple[int, int],
              moves: Moves, key: tuple) -> Instance:
        recording = Recording(self._runtime, self._runtime._call("cuGraphCreate", 0))
        condition = recording.make_condition()
        self._add_test(recording, cond, condition, predicate)
        rounds = recording.add_loop(condition)
        for given in zip(self._body, body):
            rounds.add_kernel(*given)
        for move in moves:
            rounds.add_copy(*move)
        self._add_test(rounds, cond, condition, predicate)
        return Instance(recording, key)

    def _add_test(self, recording: Recording, cond: Sequence[np.ndarray], condition: Any,
                  predicate: tuple[int, int]) -> None:
        for given in zip(self._cond, cond):
            recording.add_kernel(*given)
        recording.add_kernel(self._decide, [int(condition), *predicate])
