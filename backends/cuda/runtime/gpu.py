"""A GPU: the implementation of `device.Runtime` for NVIDIA's driver.

In: addresses, PTX, launches. Out: memory, loaded kernels, work on one stream of the GPU. All work of a
process on a GPU goes through that stream, so that it runs in the order in which it was given, whatever thread
gave it: memory may be freed while kernels that use it wait, and its next owner's kernels come after them.

What one call needs for itself (parameters, pinned memory, events) is taken from `Spares` and put back.
Threads, and finalisers that run in the middle of a call, find other ones; there is no lock.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore.backends.cuda.architectures import choose_arch, find_oldest_cuda
from jitcore.backends.cuda.libraries.bindings import Libraries
from jitcore.backends.cuda.runtime import linking
from jitcore.backends.cuda.runtime.driver import (STICKY, CudaError, CudaMemoryError, LostDriver,
                                                  describe_status, open_driver, read_name, watch_forks)
from jitcore.backends.cuda.runtime.graphs import DeviceLoop, Graph, Kernel, Launch, Module, Pack, Spares
from jitcore.config import config
from jitcore.errors import build_error

#: Bytes of one half of the pinned memory through which arrays go to a GPU.
HALF = 2 << 20
#: Pinned memory, and a GPU's, is cut at multiples of these.
PIECE, GRAIN = 64, 512
#: The pool keeps at most this part of a GPU's memory when nobody uses it.
MAX_KEPT_PART = 1 / 4
_BYTES_OF_LOG = 8192
#: The version of CUDA that has graphs with loops.
_FIRST_LOOPS = 12, 4

#: Flags of calls: a stream that does not wait for the default one; memory that is pinned for all contexts; an
#: event without a clock.
_NON_BLOCKING, _PORTABLE, _NO_TIMING = 1, 1, 2


class GpuRuntime:
    """A `device.Runtime`. ordinal: of the GPU; driver: what `open_driver` gives.

    Attributes:
        arch: what programs are compiled for. machine: the GPU's own architecture, which may be newer.
        cuda: the version of the driver. stream: of all work on the GPU. libraries: NVIDIA's.

    Raises: CudaError, from here on whenever the driver says so. After an error that leaves no context usable,
    and in a forked child, each call raises one that tells the reason."""

    def __init__(self, ordinal: int = 0, driver: Any = None):
        self.ordinal, self._latest = ordinal, ""
        self._driver = driver = open_driver() if driver is None else driver
        self._device = self._ask("cuDeviceGet", ordinal)
        self._context = self._ask("cuDevicePrimaryCtxRetain", self._device)
        self.cuda = self._read_cuda()
        self.has_loops = self.cuda >= _FIRST_LOOPS
        self.arch, self.machine = self._choose_arch()
        self._stream = self._call("cuStreamCreate", _NON_BLOCKING)
        self.stream = int(self._stream)
        self._pool = self._make_pool()
        #: Bytes at addresses; of these what nobody uses, by bytes.
        self._sizes: dict[int, int] = {}
        self._spare: dict[int, deque[int]] = {}
        self._kept = 0
        self._modules: weakref.WeakValueDictionary[bytes, Module] = weakref.WeakValueDictionary()
        self.libraries = Libraries(self)
        self._stages, self._events = Spares(), Spares()
        self._retired: deque[tuple[Any, Any]] = deque()
        watch_forks(self)

    # -- calls of the driver --------------------------------------------------------------------------------
    def _ask(self, name: str, *arguments: Any) -> Any:
        """What a call of the driver gives."""
        status, *found = getattr(self._driver, name)(*arguments)
        if status:
            raise self._note_error(name, status)
        return found[0] if len(found) == 1 else found

    def _call(self, name: str, *arguments: Any) -> Any:
        """The same for calls that need the GPU's context."""
        return self.within(self._ask, name, *arguments)

    def within(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """What a function gives in the GPU's context. A thread without one keeps it; another library's comes
        back."""
        driver = self._driver
        before = self._ask("cuCtxGetCurrent")
        if int(before) == int(self._context):
            return call(*arguments)
        self._ask("cuCtxSetCurrent", self._context)
        try:
            return call(*arguments)
        finally:
            if int(before):
                driver.cuCtxSetCurrent(before)

    def _run(self, name: str, *arguments: Any) -> None:
        """A call about the stream, made often: it is tried as things are, and where that fails, which it does
        in a thread without the stream's context, made once more by the slow way."""
        if getattr(self._driver, name)(*arguments)[0]:
            self._call(name, *arguments)

    def quietly(self, call: Callable[..., Any], *arguments: Any) -> None:
        """For finalisers, which may run when the interpreter ends. What CUDA no longer lets this process do,
        or what is half taken down, the end of the process does."""
        try:
            call(*arguments)
        except Exception:
            pass

    def _note_error(self, name: str, status: Any) -> CudaError:
        code = status.name
        text = f"{name} on GPU {self.ordinal} failed with {code}{describe_status(self._driver, status)}."
        if code == "CUDA_ERROR_OUT_OF_MEMORY":
            return build_error(CudaMemoryError, text)
        latest = f"The kernel launched last is {self._latest}." if self._latest else ""
        if code not in STICKY:
            return build_error(CudaError, text, detail=latest if "Launch" in name else "")
        fix = "start a new process: CUDA lets this one do nothing more on the GPU."
        self.lose(f"An earlier error has made the GPU unusable: {text} {latest}", fix)
        latest = latest and f"{latest} It, or one before it, went wrong."
        return build_error(CudaError, text, detail=latest, fix=fix)

    def lose(self, headline: str, fix: str) -> None:
        """From here on each call raises an error with these words."""
        self._driver = LostDriver(headline, fix)

    # -- facts ----------------------------------------------------------------------------------------------
    def _read(self, attribute: str) -> int:
        kind = getattr(self._driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{attribute}")
        return self._ask("cuDeviceGetAttribute", kind, self._device)

    def _read_cuda(self) -> tuple[int, int]:
        version = self._ask("cuDriverGetVersion")
        return version // 1000, version % 1000 // 10

    def _choose_arch(self) -> tuple[str, str]:
        major, minor = self._read("COMPUTE_CAPABILITY_MAJOR"), self._read("COMPUTE_CAPABILITY_MINOR")
        arch = choose_arch(major, minor)
        needed = find_oldest_cuda(arch)
        if self.cuda < needed:
            found, wanted = (".".join(map(str, version)) for version in (self.cuda, needed))
            raise build_error(
                CudaError,
                f"The NVIDIA driver is of CUDA {found}, and programs for {arch} need one of CUDA {wanted}.",
                fix="install a newer NVIDIA driver.",
            )
        return arch, f"sm_{major}{minor}"

    def facts(self) -> dict[str, Any]:
        """bytes, free, held (by arrays of this process); bandwidth: bytes a second, by clock and bus."""
        free, total = self._call("cuMemGetInfo")
        hertz, wires = 1e3 * self._read("MEMORY_CLOCK_RATE"), self._read("GLOBAL_MEMORY_BUS_WIDTH")
        name = read_name(self._driver, self.ordinal)
        return {"name": name, "machine": self.machine, "cuda": self.cuda,
                "multiprocessors": self._read("MULTIPROCESSOR_COUNT"), "bytes": total, "free": free,
                "held": self._count_held(), "bandwidth": 2 * hertz * wires / 8}

    # -- memory ---------------------------------------------------------------------------------------------
    def _make_pool(self) -> Any:
        """A pool of its own, which takes memory as it is asked for and gives back what it need not keep."""
        driver = self._driver
        properties = driver.CUmemPoolProps()
        properties.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = self.ordinal
        properties.maxSize = config.gpu_memory_limit
        pool = self._call("cuMemPoolCreate", properties)
        total = self._ask("cuDeviceTotalMem", self._device)
        # without it, memory goes back at each synchronization: a millisecond for 400 MB
        self._most_kept = min(config.gpu_memory_kept, int(total * MAX_KEPT_PART))
        kept = driver.cuuint64_t(self._most_kept)
        self._call("cuMemPoolSetAttribute", pool, self._pool_attribute("RELEASE_THRESHOLD"), kept)
        return pool

    def _pool_attribute(self, name: str) -> Any:
        return getattr(self._driver.CUmemPool_attribute, f"CU_MEMPOOL_ATTR_{name}")

    def _count_held(self) -> int:
        used = self._call("cuMemPoolGetAttribute", self._pool, self._pool_attribute("USED_MEM_CURRENT"))
        return int(used) - self._kept

    def allocate(self, nbytes: int) -> int:
        """Raises: CudaMemoryError telling how much there is."""
        wanted = -(-max(nbytes, 1) // GRAIN) * GRAIN
        spare = self._spare.get(wanted)
        if spare:
            with contextlib.suppress(IndexError):  # another thread was faster
                address = spare.pop()
                self._kept -= wanted
                return address
        status, found = self._driver.cuMemAllocFromPoolAsync(wanted, self._pool, self._stream)
        address = int(self._allocate_slowly(wanted) if status else found)
        self._sizes[address] = wanted
        return address

    def _allocate_slowly(self, nbytes: int) -> Any:
        """Where there is no room: what is garbage goes, and what the pool keeps."""
        try:
            return self._call("cuMemAllocFromPoolAsync", nbytes, self._pool, self._stream)
        except CudaMemoryError:
            gc.collect()
            self.trim()
        try:
            return self._call("cuMemAllocFromPoolAsync", nbytes, self._pool, self._stream)
        except CudaMemoryError:
            raise self._describe_shortage(nbytes) from None

    def _describe_shortage(self, nbytes: int) -> CudaMemoryError:
        (free, total), limit = self._call("cuMemGetInfo"), config.gpu_memory_limit
        held = f"{self._count_held()}" + (f"; config.gpu_memory_limit is {limit}" if limit else "")
        return build_error(
            CudaMemoryError,
            f"GPU {self.ordinal} has no room for {nbytes} bytes.",
            detail=f"{free} of its {total} bytes are free; arrays of this process have {held}.",
            fix="drop arrays that are not needed, donate arguments, or compute in parts.",
        )

    def trim(self) -> None:
        """Waits, and gives back what nobody uses."""
        for spare in list(self._spare.values()):
            while spare:
                self._give_back_one(spare)
        self.synchronize()
        self._call("cuMemPoolTrimTo", self._pool, 0)

    def free(self, address: int) -> None:
        """Behind what the stream has been given. What is asked for next is often as large, and used later in
        the stream: it is kept for that. The driver's pool may have to put pieces together."""
        self.quietly(self._keep, address)

    def _keep(self, address: int) -> None:
        size = self._sizes[address]
        spare = self._spare.setdefault(size, deque())
        spare.append(address)
        self._kept += size  # nothing comes between the parts of a statement that calls nothing
        if self._kept > self._most_kept:
            self._give_back_one(spare)

    def _give_back_one(self, spare: deque[int]) -> None:
        with contextlib.suppress(IndexError):  # another thread was faster
            address = spare.popleft()
            self._kept -= self._sizes.pop(address)
            self.quietly(self._run, "cuMemFreeAsync", address, self._stream)

    # -- copies ---------------------------------------------------------------------------------------------
    def copy_in(self, address: int, array: np.ndarray) -> None:
        """The array may be changed and freed afterwards: all its bytes are in pinned memory then. CUDA leaves
        it open whether it has read memory that is not pinned when its own copy returns, so such memory would
        have to be waited for; and its way takes longer."""
        data = array.reshape(-1).view(np.uint8)
        stage = self._stages.take(Stage, self)
        for first in range(0, data.size, HALF):
            part = data[first : first + HALF]
            self._run("cuMemcpyHtoDAsync", address + first, stage.fill(part), part.size, self._stream)
        self._stages.append(stage)

    def copy_out(self, array: np.ndarray, address: int) -> None:
        """Into the array's own memory: a copy by way of pinned memory is no faster."""
        if array.nbytes:
            self._run("cuMemcpyDtoHAsync", array.ctypes.data, address, array.nbytes, self._stream)
            self.synchronize()

    def start_copy_out(self, address: int, nbytes: int) -> HostCopy:
        return HostCopy(self, address, nbytes)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        if nbytes:
            self._run("cuMemcpyDtoDAsync", target, source, nbytes, self._stream)

    # -- programs -------------------------------------------------------------------------------------------
    def load(self, ptx: str) -> Module:
        """Equal texts are one module while a program uses it."""
        key = hashlib.sha256(ptx.encode()).digest()
        found = self._modules.get(key)
        return found or self._modules.setdefault(key, Module(self, self._load(ptx)))

    def _load(self, ptx: str) -> Any:
        cubin = linking.find_cubin(ptx, self.machine)
        if cubin is not None:
            with contextlib.suppress(CudaError):  # of a linker that is newer than the driver
                return self._call("cuModuleLoadData", cubin)
        log, options = bytearray(_BYTES_OF_LOG), self._driver.CUjit_option
        kinds = [options.CU_JIT_ERROR_LOG_BUFFER, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        try:
            return self._call("cuModuleLoadDataEx", ptx.encode() + b"\0", 2, kinds, [log, len(log)])
        except CudaError as error:
            words = log.rstrip(b"\0").decode(errors="replace").strip()
            raise CudaError(f"{error}\n{words}" if words else str(error)) from None

    def launch(self, kernel: Kernel, grid: tuple[int, int, int], block: tuple[int, int, int],
               arguments: np.ndarray) -> None:
        pack = kernel.packs.take(Pack, len(arguments))
        pack.cells[:] = arguments
        self._latest = kernel.name
        self._run("cuLaunchKernel", kernel.handle, *grid, *block, 0, self._stream, pack.address, 0)
        kernel.packs.append(pack)  # the driver has copied the parameters

    def make_graph(self, launches: Sequence[Launch]) -> Graph:
        """Launches that follow one another, given to the GPU at once."""
        return Graph(self, launches)

    def make_loop(self, cond: Sequence[Launch], body: Sequence[Launch]) -> DeviceLoop:
        """A loop whose condition the GPU reads."""
        return DeviceLoop(self, cond, body)

    # -- order ----------------------------------------------------------------------------------------------
    def synchronize(self) -> None:
        self._run("cuStreamSynchronize", self._stream)
        self._let_go()

    def wait_for_others(self) -> None:
        """For all streams, before memory is freed that other libraries have too."""
        self.quietly(self._call, "cuCtxSynchronize")

    def follow(self, stream: int) -> None:
        """What is given to this GPU from here on waits for what another stream has got."""
        self._order(self._driver.CUstream(stream), self._stream)

    def precede(self, stream: int) -> None:
        """What another stream gets from here on waits for what this GPU has been given."""
        self._order(self._stream, self._driver.CUstream(stream))

    def _order(self, first: Any, second: Any) -> None:
        event = self._events.take(self._call, "cuEventCreate", _NO_TIMING)
        self._run("cuEventRecord", event, first)
        self._run("cuStreamWaitEvent", second, event, 0)
        self._events.append(event)  # a wait is for what was recorded when it was asked for

    def retire(self, owner: Any) -> None:
        """Lets go of an owner of memory when what this GPU has been given is done."""
        event = self._events.take(self._call, "cuEventCreate", _NO_TIMING)
        self._run("cuEventRecord", event, self._stream)
        self._retired.append((event, owner))
        self._let_go()

    def _let_go(self) -> None:
        for _ in range(len(self._retired)):
            with contextlib.suppress(IndexError):  # another thread was faster
                event, owner = self._retired.popleft()
                if self._driver.cuEventQuery(event)[0]:
                    return self._retired.appendleft((event, owner))
                self._events.append(event)

    def find_ordinal(self, address: int) -> int:
        """The GPU on which an address lies."""
        kind = self._driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return int(self._call("cuPointerGetAttribute", kind, address))


class HostCopy:
    """A copy of a GPU's memory on its way to pinned memory of the host: only there may it take its time."""

    def __init__(self, runtime: GpuRuntime, address: int, nbytes: int):
        self._runtime, self._nbytes = runtime, nbytes
        self._address = int(runtime._call("cuMemHostAlloc", nbytes, _PORTABLE))
        self._done = runtime._call("cuEventCreate", _NO_TIMING)
        runtime._run("cuMemcpyDtoHAsync", self._address, address, nbytes, runtime._stream)
        runtime._run("cuEventRecord", self._done, runtime._stream)

    def finish(self, array: np.ndarray) -> None:
        """Waits for it, and writes it into a C-contiguous array."""
        self._runtime._call("cuEventSynchronize", self._done)
        ctypes.memmove(array.ctypes.data, self._address, self._nbytes)

    def __del__(self):
        runtime = self._runtime
        for name, given in (("cuEventSynchronize", self._done), ("cuEventDestroy", self._done),
                            ("cuMemFreeHost", self._address)):
            runtime.quietly(runtime._call, name, given)


class Stage:
    """Pinned memory on the way to a GPU, filled half by half: while one half is filled, copies of the other
    run."""

    def __init__(self, runtime: GpuRuntime):
        self._runtime = runtime
        self._address = int(runtime._call("cuMemHostAlloc", 2 * HALF, _PORTABLE))
        self._memory = np.frombuffer((ctypes.c_uint8 * (2 * HALF)).from_address(self._address), np.uint8)
        self._events = [runtime._call("cuEventCreate", _NO_TIMING) for _ in range(2)]
        self._half = self._used = 0

    def fill(self, data: np.ndarray) -> int:
        """The address of a copy, to be used by the runtime's stream at once. data: at most a half."""
        if self._used + data.size > HALF:
            runtime = self._runtime
            runtime._call("cuEventRecord", self._events[self._half], runtime._stream)
            self._half, self._used = 1 - self._half, 0
            runtime._call("cuEventSynchronize", self._events[self._half])  # returns at once when new
        first = self._half * HALF + self._used
        self._memory[first : first + data.size] = data
        self._used += -(-data.size // PIECE) * PIECE
        return self._address + first
