"""A CUDA driver without a GPU: the functions of `cuda.bindings.driver` that the backend calls.

Memory is the host's. Streams are queues: what is given to one happens when somebody waits for it and not
before, so that memory which is reused too early has the wrong contents. Kernels are Python functions, found by
name. Every call is kept, any can be made to fail, and calls need a context as the real ones do.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np


class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803


def make_names(*names: str) -> type[IntEnum]:
    return IntEnum("Names", names, start=1)


class Handle(int):
    """A handle; 0 is none."""


class PlainTypes:
    """The types of `cuda.bindings.driver`, as far as they are used."""

    CUresult = CUresult
    CUdevice_attribute = make_names(*[f"CU_DEVICE_ATTRIBUTE_{name}" for name in (
        "COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR", "MULTIPROCESSOR_COUNT", "MEMORY_CLOCK_RATE",
        "GLOBAL_MEMORY_BUS_WIDTH")])
    CUmemPool_attribute = make_names("CU_MEMPOOL_ATTR_RELEASE_THRESHOLD", "CU_MEMPOOL_ATTR_USED_MEM_CURRENT")
    CUmemAllocationType = make_names("CU_MEM_ALLOCATION_TYPE_PINNED")
    CUmemLocationType = make_names("CU_MEM_LOCATION_TYPE_DEVICE")
    CUjit_option = make_names("CU_JIT_ERROR_LOG_BUFFER", "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES")
    CUpointer_attribute = make_names("CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL")
    CUmemorytype = make_names("CU_MEMORYTYPE_DEVICE")
    CUgraphNodeType = make_names("CU_GRAPH_NODE_TYPE_CONDITIONAL")
    CUgraphConditionalNodeType = make_names("CU_GRAPH_COND_TYPE_WHILE")
    CUcontext = CUstream = CUevent = CUmodule = CUfunction = CUmemoryPool = CUdeviceptr = Handle
    CUgraph = CUgraphNode = CUgraphExec = CUgraphConditionalHandle = CUdevice = cuuint64_t = Handle
    CUDA_KERNEL_NODE_PARAMS = CUDA_MEMCPY3D = SimpleNamespace

    @staticmethod
    def CUmemPoolProps() -> Any:
        return SimpleNamespace(location=SimpleNamespace())

    @staticmethod
    def CUgraphNodeParams() -> Any:
        return SimpleNamespace(conditional=SimpleNamespace())


class Fault(Exception):
    """Raised by a kernel: what the driver says from then on."""


class Record:
    """A place in a stream's queue; stream: None when it is done."""

    stream: int | None = None


#: Calls that work in any thread, whatever its context.
FREE_OF_CONTEXT = {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuCtxSetCurrent",
                   "cuDeviceGetAttribute", "cuDeviceTotalMem", "cuDevicePrimaryCtxRetain", "cuCtxGetCurrent", "cuGetErrorString"}


class FakeDriver:
    """kernels: by name, functions of (driver, arguments, grid, block). total: bytes of memory.

    Attributes: calls: (name, arguments) of each. failures: by name, what the next calls give, None for their
    own answers. other_kernels: gives the function of a kernel that has none by its name.
    """

    def __init__(self, kernels: dict[str, Callable] | None = None, *, capability=(9, 0), version=13000,
                 total=1 << 30, names=("Fake GPU",), types: Any = PlainTypes):
        self.kernels = {"decide": decide, **(kernels or {})}
        self.other_kernels = self.kernels.__getitem__
        self.capability, self.version, self.total, self.names, self.types = capability, version, total, names, types
        self.calls: list[tuple[str, tuple]] = []
        self.failures: dict[str, list] = {}
        self.broken: Any = None
        self.memory: dict[int, np.ndarray] = {}
        self.sizes: dict[int, int] = {}
        self.pinned: dict[int, np.ndarray] = {}
        self.limit = self.used = 0
        self.objects: dict[int, Any] = {}
        self.queues: dict[int, list[Callable]] = {1: []}
        self.conditions: dict[int, bool] = {}
        self.current = threading.local()

    def __getattr__(self, name: str) -> Any:
        if not re.match("cu[A-Z]", name):
            return getattr(self.types, name)
        answer = getattr(self, f"_{name}")

        def call(*arguments):
            self.calls.append((name, arguments))
            scheduled = self.failures.get(name)
            failed = scheduled.pop(0) if scheduled else None
            if failed is None and name not in FREE_OF_CONTEXT:
                failed = self.broken or (None if self.get_current() else "CUDA_ERROR_INVALID_CONTEXT")
            try:
                found = (failed,) if failed else answer(*arguments)
            except Fault as fault:
                found = (str(fault),)
            status = found[0] if isinstance(found, tuple) and isinstance(found[0], str) else "CUDA_SUCCESS"
            if status != "CUDA_SUCCESS":
                return getattr(self.types.CUresult, status), *[None] * (name == "cuMemAllocFromPoolAsync")
            rest = found if isinstance(found, tuple) else () if found is None else (found,)
            return self.types.CUresult.CUDA_SUCCESS, *rest

        return call

    # -- for tests ------------------------------------------------------------------------------------------
    def count(self) -> Counter:
        return Counter(name for name, _ in self.calls)

    def names_since(self, start: int) -> list[str]:
        """Names of calls, without those about contexts."""
        return [name for name, _ in self.calls[start:] if not name.startswith("cuCtx")]

    def fail(self, name: str, *statuses: str | None) -> None:
        self.failures.setdefault(name, []).extend(statuses)

    def view(self, address: int, dtype: Any, count: int) -> np.ndarray:
        """Elements on the device."""
        nbytes = np.dtype(dtype).itemsize * count
        for start, memory in self.memory.items():
            if start <= address and address + nbytes <= start + memory.size:
                return memory[address - start : address - start + nbytes].view(dtype)
        raise Fault("CUDA_ERROR_ILLEGAL_ADDRESS")

    def get_current(self) -> int:
        return getattr(self.current, "context", 0)

    def add_foreign(self, array: np.ndarray) -> int:
        """Memory of another library; its address."""
        address = self._make_memory(max(array.nbytes, 1))
        self.memory[address][: array.nbytes] = array.reshape(-1).view(np.uint8)
        return address

    # -- the machine ----------------------------------------------------------------------------------------
    def _make(self, kind: str, value: Any) -> Any:
        number = 16 * (len(self.objects) + 100)
        self.objects[number] = value
        return getattr(self.types, kind)(number)

    def _get(self, handle: Any) -> Any:
        return self.objects[int(handle)]

    def _make_memory(self, nbytes: int) -> int:
        base = np.full(nbytes + 256, 0xA5, np.uint8)
        memory = base[-base.ctypes.data % 256 :][:nbytes]
        self.memory[memory.ctypes.data] = memory
        return memory.ctypes.data

    def _queue(self, stream: Any, action: Callable) -> None:
        self.queues[int(stream)].append(action)

    def _run(self, stream: int, until: Callable[[], bool] = lambda: False) -> None:
        queue = self.queues[int(stream)]
        while queue and not until():
            try:
                queue.pop(0)()
            except Fault as fault:
                self.broken = str(fault)
                raise

    def _finish(self, record: Record) -> None:
        if record.stream is not None:
            self._run(record.stream, lambda: record.stream is None)

    # -- starting -------------------------------------------------------------------------------------------
    def _cuInit(self, flags):
        pass

    def _cuDriverGetVersion(self):
        return self.version

    def _cuDeviceGetCount(self):
        return (len(self.names),)

    def _cuDeviceGet(self, ordinal):
        return self.types.CUdevice(ordinal)

    def _cuDeviceGetName(self, length, device):
        return self.names[int(device)].encode().ljust(length, b"\0")

    def _cuDeviceTotalMem(self, device):
        return self.total

    def _cuDeviceGetAttribute(self, attribute, device):
        name = attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_")
        return {"COMPUTE_CAPABILITY_MAJOR": self.capability[0], "COMPUTE_CAPABILITY_MINOR": self.capability[1],
                "MULTIPROCESSOR_COUNT": 132, "MEMORY_CLOCK_RATE": 3201000, "GLOBAL_MEMORY_BUS_WIDTH": 6016}[name]

    def _cuDevicePrimaryCtxRetain(self, device):
        return self._make("CUcontext", "context")

    def _cuCtxGetCurrent(self):
        return self.types.CUcontext(self.get_current())

    def _cuCtxSetCurrent(self, context):
        self.current.context = int(context)

    def _cuCtxSynchronize(self):
        for stream in self.queues:
            self._run(stream)

    def _cuGetErrorString(self, status):
        return f"words about {status.name}".encode()

    def _cuPointerGetAttribute(self, attribute, address):
        return 0

    # -- streams --------------------------------------------------------------------------------------------
    def _cuStreamCreate(self, flags):
        stream = self._make("CUstream", "stream")
        self.queues[int(stream)] = []
        return stream

    def _cuStreamSynchronize(self, stream):
        self._run(int(stream))

    def _cuEventCreate(self, flags):
        return self._make("CUevent", Record())

    def _cuEventDestroy(self, event):
        pass

    def _cuEventRecord(self, event, stream):
        record = self.objects[int(event)] = Record()  # waits that were asked for are for the one before
        record.stream = int(stream)
        self._queue(stream, lambda: setattr(record, "stream", None))

    def _cuEventQuery(self, event):
        return ("CUDA_ERROR_NOT_READY",) if self._get(event).stream is not None else None

    def _cuEventSynchronize(self, event):
        self._finish(self._get(event))

    def _cuStreamWaitEvent(self, stream, event, flags):
        record = self._get(event)
        self._queue(stream, lambda: self._finish(record))

    # -- memory ---------------------------------------------------------------------------------------------
    def _cuMemGetInfo(self):
        return self.total - self.used, self.total

    def _cuMemPoolCreate(self, properties):
        assert properties.location.type == self.types.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        assert properties.allocType == self.types.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        self.limit = properties.maxSize or self.total
        return self._make("CUmemoryPool", "pool")

    def _cuMemPoolSetAttribute(self, pool, attribute, value):
        self.threshold = attribute.name, int(value)

    def _cuMemPoolGetAttribute(self, pool, attribute):
        return self.types.cuuint64_t(self.used)

    def _cuMemPoolTrimTo(self, pool, nbytes):
        pass

    def _cuMemAllocFromPoolAsync(self, nbytes, pool, stream):
        if self.used + nbytes > self.limit:
            return ("CUDA_ERROR_OUT_OF_MEMORY",)
        self.used += nbytes
        address = self._make_memory(nbytes)
        self.sizes[address] = nbytes
        return self.types.CUdeviceptr(address)

    def _cuMemFreeAsync(self, address, stream):
        self.used -= self.sizes.pop(int(address))
        self._queue(stream, lambda: self.memory.pop(int(address)))

    def _cuMemHostAlloc(self, nbytes, flags):
        memory = np.zeros(nbytes, np.uint8)
        self.pinned[memory.ctypes.data] = memory
        return memory.ctypes.data

    def _cuMemFreeHost(self, address):
        del self.pinned[int(address)]

    def _cuMemcpyHtoDAsync(self, target, source, nbytes, stream):
        assert any(start <= source and source + nbytes <= start + memory.size for start, memory in self.pinned.items())
        self._queue(stream, lambda: ctypes.memmove(self.view(target, np.uint8, nbytes).ctypes.data, source, nbytes))

    def _cuMemcpyDtoHAsync(self, target, source, nbytes, stream):
        self._queue(stream, lambda: ctypes.memmove(target, self.view(source, np.uint8, nbytes).ctypes.data, nbytes))

    def _cuMemcpyDtoDAsync(self, target, source, nbytes, stream):
        def copy():
            self.view(int(target), np.uint8, nbytes)[:] = self.view(int(source), np.uint8, nbytes)

        self._queue(stream, copy)

    # -- kernels --------------------------------------------------------------------------------------------
    def _cuModuleLoadData(self, image):
        return ("CUDA_ERROR_NO_BINARY_FOR_GPU",)

    def _cuModuleLoadDataEx(self, image, count, options, values):
        text = image.rstrip(b"\0").decode()
        if ".version" not in text:
            values[0][:12] = b"line 1: what"
            return ("CUDA_ERROR_INVALID_PTX",)
        return self._make("CUmodule", find_entries(text))

    def _cuModuleUnload(self, module):
        pass

    def _cuModuleGetFunction(self, module, name):
        found = self._get(module)
        if name.decode() not in found:
            return ("CUDA_ERROR_NOT_FOUND",)
        return self._make("CUfunction", (name.decode(), found[name.decode()]))

    def _prepare(self, function, grid, block, parameters) -> Callable:
        """A launch with the arguments that it has now."""
        name, count = self._get(function)
        cells = ctypes.cast(parameters, ctypes.POINTER(ctypes.POINTER(ctypes.c_uint64)))
        values = [cells[i][0] for i in range(count)]
        run = self.kernels.get(name) or self.other_kernels(name)
        return lambda: run(self, values, grid, block)

    def _cuLaunchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        assert not shared and not extra
        self._queue(stream, self._prepare(function, (gx, gy, gz), (bx, by, bz), parameters))

    # -- graphs ---------------------------------------------------------------------------------------------
    def _cuGraphCreate(self, flags):
        return self._make("CUgraph", {})

    def _add_node(self, graph, before, count, action) -> Any:
        nodes = self._get(graph)
        assert [int(node) for node in before or ()] == list(nodes)[-1:] and count == len(before or ())
        node = self._make("CUgraphNode", None)
        nodes[int(node)] = action
        return node

    def _cuGraphAddKernelNode(self, graph, before, count, given):
        return self._add_node(graph, before, count, self._prepare_node(given))

    def _prepare_node(self, given) -> Callable:
        grid, block = ((given.gridDimX, given.gridDimY, given.gridDimZ), (given.blockDimX, given.blockDimY, given.blockDimZ))
        return self._prepare(given.func, grid, block, given.kernelParams)

    def _cuGraphAddMemcpyNode(self, graph, before, count, copy, context):
        assert copy.Height == copy.Depth == 1
        assert copy.srcMemoryType == copy.dstMemoryType == self.types.CUmemorytype.CU_MEMORYTYPE_DEVICE
        target, source, nbytes = int(copy.dstDevice), int(copy.srcDevice), copy.WidthInBytes

        def run():
            self.view(target, np.uint8, nbytes)[:] = self.view(source, np.uint8, nbytes)

        return self._add_node(graph, before, count, run)

    def _cuGraphConditionalHandleCreate(self, graph, context, default, flags):
        assert (default, flags) == (0, 1)
        return self._make("CUgraphConditionalHandle", "condition")

    def _cuGraphAddNode(self, graph, before, data, count, given):
        assert given.type == self.types.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        assert given.conditional.type == self.types.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE
        assert given.conditional.size == 1
        condition, body = int(given.conditional.handle), self._make("CUgraph", {})
        self._give_body(given, body)

        def run():
            while self.conditions[condition]:
                for action in list(self._get(body).values()):
                    action()

        return self._add_node(graph, before, count, run)

    def _give_body(self, given, body) -> None:
        given.conditional.phGraph_out = [body]

    def _cuGraphInstantiate(self, graph, flags):
        return self._make("CUgraphExec", dict(self._get(graph)))

    def _cuGraphExecKernelNodeSetParams(self, instance, node, given):
        assert int(node) in self._get(instance)
        self._get(instance)[int(node)] = self._prepare_node(given)

    def _cuGraphLaunch(self, instance, stream):
        for action in self._get(instance).values():
            self._queue(stream, action)

    def _cuGraphExecDestroy(self, instance):
        pass

    def _cuGraphDestroy(self, graph):
        pass


def find_entries(ptx: str) -> dict[str, int]:
    """The kernels of PTX, and how many parameters each has."""
    found = re.findall(r"\.entry\s+(\w+)\s*\(([^)]*)\)", ptx)
    return {name: parameters.count(".param") for name, parameters in found}


def decide(driver: FakeDriver, arguments: Sequence[int], grid: tuple, block: tuple) -> None:
    """The kernel that tells a loop whether it goes on."""
    condition, address, nbytes = arguments
    driver.conditions[condition] = bool(driver.view(address, np.uint8, nbytes).any())
