"""The runtime of a GPU on a driver without one: which calls it makes, and what becomes of errors."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from jitcore import errors
from jitcore.backends.cuda.architectures import find_oldest_cuda
from jitcore.backends.cuda.runtime import driver as drivers, linking
from jitcore.backends.cuda.runtime.driver import CudaError, CudaMemoryError
from jitcore.backends.cuda.runtime.gpu import HALF, GpuRuntime
from jitcore.config import config
from tests.backends.cuda.fake_driver import FakeDriver, Fault

PTX = """
.version 7.8
.target sm_90
.visible .entry add(.param .u64 to, .param .u64 from, .param .u64 step) { ret; }
.visible .entry fail(.param .u64 to) { ret; }
"""
ONE, ROOT = (1, 1, 1), Path(__file__).parents[3]


def add(driver, arguments, grid, block):
    to, source, step = arguments
    driver.view(to, np.float32, 4)[:] = driver.view(source, np.float32, 4) + step


def fail(driver, arguments, grid, block):
    raise Fault("CUDA_ERROR_ILLEGAL_ADDRESS")


@pytest.fixture(autouse=True)
def without_linker(monkeypatch):
    monkeypatch.setattr(linking, "find_version", lambda: "")


def make(**options):
    driver = FakeDriver({"add": add, "fail": fail}, **options)
    return driver, GpuRuntime(0, driver)


def put(runtime, value):
    value = np.asarray(value, np.float32)
    address = runtime.allocate(value.nbytes)
    runtime.copy_in(address, value)
    return address


def get(runtime, address, shape=4, dtype=np.float32):
    found = np.empty(shape, dtype)
    runtime.copy_out(found, address)
    return found


def numbers(*values):
    return np.array(values, np.uint64)


# -- starting -----------------------------------------------------------------------------------------------
def test_a_runtime_takes_the_primary_context_one_stream_and_a_pool_of_its_own():
    driver, runtime = make()
    assert driver.names_since(0) == [
        "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuDriverGetVersion", "cuDeviceGetAttribute", "cuDeviceGetAttribute",
        "cuStreamCreate", "cuMemPoolCreate", "cuDeviceTotalMem", "cuMemPoolSetAttribute"]
    assert dict(driver.calls)["cuStreamCreate"] == (1,)  # waits for no other stream
    assert driver.threshold == ("CU_MEMPOOL_ATTR_RELEASE_THRESHOLD", driver.total // 4)
    assert (runtime.arch, runtime.machine, runtime.cuda) == ("sm_90", "sm_90", (13, 0))
    assert runtime.facts() == {
        "name": "Fake GPU", "machine": "sm_90", "cuda": (13, 0), "multiprocessors": 132, "bytes": 1 << 30,
        "free": 1 << 30, "held": 0, "bandwidth": pytest.approx(4.814e12, rel=1e-3)}


def test_the_configuration_limits_the_pool_and_what_it_keeps():
    before = config.gpu_memory_limit, config.gpu_memory_kept
    try:
        config.update("gpu_memory_limit", 1 << 20)
        config.update("gpu_memory_kept", 5000)
        driver, runtime = make()
    finally:
        config.update("gpu_memory_limit", before[0])
        config.update("gpu_memory_kept", before[1])
    assert driver.limit == 1 << 20 and driver.threshold[1] == 5000


@pytest.mark.parametrize("capability, arch, cuda", [
    ((7, 5), "sm_75", (10, 0)), ((8, 0), "sm_80", (11, 0)), ((8, 6), "sm_86", (11, 1)), ((8, 8), "sm_87", (11, 4)),
    ((8, 9), "sm_89", (11, 8)), ((9, 0), "sm_90", (11, 8)), ((10, 0), "sm_100", (12, 7)), ((10, 1), "sm_100", (12, 7)),
    ((11, 0), "sm_103", (12, 9)), ((12, 0), "sm_120", (12, 8)), ((13, 1), "sm_121", (12, 9)),
])
def test_programs_are_compiled_for_what_the_gpu_and_the_driver_know(capability, arch, cuda):
    version = 1000 * cuda[0] + 10 * cuda[1]
    driver, runtime = make(capability=capability, version=version)
    assert runtime.arch == arch and runtime.machine == "sm_%d%d" % capability
    assert find_oldest_cuda(arch) == cuda
    with pytest.raises(CudaError, match=rf"programs for {arch} need one of CUDA {cuda[0]}\.{cuda[1]}"):
        make(capability=capability, version=version - 10)


def test_old_gpus_are_refused():
    with pytest.raises(RuntimeError, match=r"capability 7\.0 is too old"):
        make(capability=(7, 0))


# -- memory -------------------------------------------------------------------------------------------------
def test_a_copy_to_the_host_is_begun_and_awaited():
    driver, runtime = make()
    address = put(runtime, [1, 2, 3, 4])
    start = len(driver.calls)
    copy = runtime.start_copy_out(address, 16)
    assert driver.names_since(start) == ["cuMemHostAlloc", "cuEventCreate", "cuMemcpyDtoHAsync", "cuEventRecord"]
    runtime.free(address)  # behind the copy
    start, found = len(driver.calls), np.empty(4, np.float32)
    copy.finish(found)
    assert driver.names_since(start) == ["cuEventSynchronize"] and found.tolist() == [1, 2, 3, 4]
    pinned = len(driver.pinned)
    del copy
    assert len(driver.pinned) == pinned - 1
    runtime.start_copy_out(put(runtime, [5, 6, 7, 8]), 16)  # which nobody reads
    assert len(driver.pinned) == pinned - 1


@pytest.mark.parametrize("nbytes", [0, 1, 63, 4096, HALF - 1, HALF, HALF + 1, 3 * HALF + 5])
def test_copies_bring_every_byte_there_and_back(nbytes):
    driver, runtime = make()
    value = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    given, address = value.copy(), runtime.allocate(nbytes)
    start = len(driver.calls)
    runtime.copy_in(address, given)
    assert "cuStreamSynchronize" not in driver.names_since(start)  # the host does not wait
    given[:] = 7  # the array is the caller's again
    np.testing.assert_array_equal(get(runtime, address, nbytes, np.uint8), value)


def test_pinned_memory_is_used_again_when_its_copies_are_done():
    driver, runtime = make()
    rng = np.random.default_rng(0)
    values = [rng.integers(0, 256, size, np.uint8) for size in rng.integers(1, HALF // 2, 40)]
    places = [runtime.allocate(value.size) for value in values]
    for place, value in zip(places, values):
        runtime.copy_in(place, value)
    assert driver.count()["cuMemHostAlloc"] == 1
    for place, value in zip(places, values):
        np.testing.assert_array_equal(get(runtime, place, value.size, np.uint8), value)


@pytest.mark.parametrize("value", [np.float64(3.5), np.array(True), np.zeros((0, 3)), np.ones((2, 3), np.complex64)])
def test_copies_take_arrays_of_every_shape_and_type(value):
    driver, runtime = make()
    value = np.asarray(value)
    address = runtime.allocate(value.nbytes)
    runtime.copy_in(address, value)
    np.testing.assert_array_equal(get(runtime, address, value.shape, value.dtype), value)


def test_memory_is_freed_in_the_order_of_the_stream():
    driver, runtime = make()
    first, second = put(runtime, [1, 2, 3, 4]), runtime.allocate(16)
    runtime.copy(second, first, 16)
    runtime.free(first)  # while the copy waits
    np.testing.assert_array_equal(get(runtime, second), [1, 2, 3, 4])
    assert set(driver.sizes) == {first, second} and runtime.facts()["held"] == driver.sizes[second]
    runtime.trim()
    assert set(driver.sizes) == {second} and runtime.facts()["held"] == driver.sizes[second]


def test_memory_is_kept_for_what_is_as_large():
    before = config.gpu_memory_kept
    config.update("gpu_memory_kept", 3000)
    driver, runtime = make()
    config.update("gpu_memory_kept", before)
    first, other = runtime.allocate(100), runtime.allocate(2000)
    runtime.free(first)
    assert runtime.allocate(500) == first != runtime.allocate(512)
    runtime.free(other)
    assert runtime.allocate(4000) != other == runtime.allocate(1600)
    assert driver.count()["cuMemAllocFromPoolAsync"] == 4 and not driver.count()["cuMemFreeAsync"]
    held = runtime.facts()["held"]
    runtime.free(first)
    runtime.free(other)
    assert driver.count()["cuMemFreeAsync"] == 0 and runtime.facts()["held"] == held - 512 - 2048
    runtime.free(next(address for address, size in driver.sizes.items() if size == 4096))
    assert driver.count()["cuMemFreeAsync"] == 1  # 3000 bytes are kept, no more


def test_what_does_not_fit_is_told_and_everything_stays_usable():
    driver, runtime = make(total=1 << 20)
    held = runtime.allocate(1 << 19)
    with pytest.raises(CudaMemoryError) as caught:
        runtime.allocate(1 << 20)
    text = str(caught.value).splitlines()
    assert text[0] == "GPU 0 has no room for 1048576 bytes."
    assert text[1] == "524288 of its 1048576 bytes are free; arrays of this process have 524288."
    assert isinstance(caught.value, MemoryError) and isinstance(caught.value, errors.JitcoreRuntimeError)
    assert len(text) <= errors.MAX_LINES
    runtime.free(held)
    np.testing.assert_array_equal(get(runtime, put(runtime, [1, 2, 3, 4])), [1, 2, 3, 4])


def test_garbage_and_what_the_pool_keeps_go_before_an_array_is_refused():
    class Owner:
        def __init__(self):
            self.itself, self.address = self, runtime.allocate(1 << 19)

        def __del__(self):
            runtime.free(self.address)

    driver, runtime = make(total=1 << 20)
    gc.collect()
    Owner()  # a cycle
    start = len(driver.calls)
    runtime.allocate(1 << 20)
    assert driver.names_since(start) == [
        "cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync", "cuGetErrorString", "cuMemFreeAsync",
        "cuStreamSynchronize", "cuMemPoolTrimTo", "cuMemAllocFromPoolAsync"]


# -- threads and contexts -----------------------------------------------------------------------------------
def test_threads_get_the_context_at_their_first_call():
    driver, runtime = make()
    kernel, found = runtime.load(PTX).find_kernel("add"), []

    def work(number):
        for _ in range(20):
            source, to = put(runtime, np.full(4, number)), runtime.allocate(16)
            runtime.launch(kernel, ONE, ONE, numbers(to, source, 5))
            found.append((number, get(runtime, to)))
            runtime.free(source)
            runtime.free(to)

    # one after the other: the machine without a GPU has one processor
    for number in range(4):
        thread = threading.Thread(target=work, args=(number,))
        thread.start()
        thread.join()
    assert len(found) == 80 and all((value == number + 5).all() for number, value in found)
    assert driver.count()["cuCtxSetCurrent"] == 5


def test_the_context_of_another_library_comes_back():
    driver, runtime = make()
    driver.current.context = 77
    runtime.facts()
    assert driver.get_current() == 77


# -- programs -----------------------------------------------------------------------------------------------
def test_launches_pass_arguments_and_dimensions():
    seen = []
    driver, runtime = make()
    driver.kernels["add"] = lambda driver, *given: seen.append(given)
    kernel = runtime.load(PTX).find_kernel("add")
    runtime.launch(kernel, (7, 1, 1), (128, 1, 1), numbers(1, 2, 2**63))
    runtime.launch(kernel, (8, 1, 1), (256, 1, 1), numbers(3, 4, 5))  # in the same memory, before the first has run
    runtime.synchronize()
    assert seen == [([1, 2, 2**63], (7, 1, 1), (128, 1, 1)), ([3, 4, 5], (8, 1, 1), (256, 1, 1))]
    assert len(kernel.packs) == 1


def test_a_launch_is_one_call():
    driver, runtime = make()
    kernel, address = runtime.load(PTX).find_kernel("add"), runtime.allocate(16)
    start = len(driver.calls)
    for _ in range(3):
        runtime.launch(kernel, ONE, ONE, numbers(address, address, 1))
    runtime.free(runtime.allocate(100))
    runtime.free(runtime.allocate(100))
    assert [name for name, _ in driver.calls[start:]] == ["cuLaunchKernel"] * 3 + ["cuMemAllocFromPoolAsync"]


def test_equal_texts_are_one_module_which_goes_with_its_last_user():
    driver, runtime = make()
    first, second = runtime.load(PTX), runtime.load(PTX)
    assert first is second and driver.count()["cuModuleLoadDataEx"] == 1
    kernel = first.find_kernel("add")
    del first, second
    gc.collect()
    assert driver.count()["cuModuleUnload"] == 0
    del kernel
    gc.collect()
    assert driver.names_since(0)[-2:] == ["cuStreamSynchronize", "cuModuleUnload"]
    runtime.load(PTX)
    assert driver.count()["cuModuleLoadDataEx"] == 2


def test_bad_programs_are_refused_with_the_words_of_the_driver():
    driver, runtime = make()
    with pytest.raises(CudaError, match=r"(?s)CUDA_ERROR_INVALID_PTX \(words about.*\nline 1: what$"):
        runtime.load("nonsense")
    with pytest.raises(CudaError, match="CUDA_ERROR_NOT_FOUND"):
        runtime.load(PTX).find_kernel("other")


def test_machine_code_is_kept_on_disk(monkeypatch, tmp_path):
    linked = []
    monkeypatch.setattr(linking, "find_version", lambda: "1.2")
    monkeypatch.setattr(linking, "_link", lambda text, machine: linked.append(machine) or (b"\x7fELF" + text, ""))
    monkeypatch.setattr(FakeDriver, "_cuModuleLoadData", lambda driver, image: driver._make(
        "CUmodule", {"add": 3}) if image[:4] == b"\x7fELF" else ("CUDA_ERROR_NO_BINARY_FOR_GPU",))
    with config.override(cache_dir=str(tmp_path)):
        for capability in ((9, 0), (9, 0), (12, 0)):
            driver, runtime = make(capability=capability)
            runtime.load(PTX).find_kernel("add")
            assert driver.count()["cuModuleLoadDataEx"] == 0
    assert linked == ["sm_90", "sm_120"]


def test_the_driver_translates_what_the_linker_cannot_or_makes_too_new(monkeypatch):
    monkeypatch.setattr(linking, "find_version", lambda: "1.2")
    for cubin in (None, b"\x7fELF"):
        monkeypatch.setattr(linking, "_link", lambda text, machine, cubin=cubin: (cubin, ""))
        driver, runtime = make()
        runtime.load(PTX).find_kernel("add")
        assert (driver.count()["cuModuleLoadData"], driver.count()["cuModuleLoadDataEx"]) == (cubin is not None, 1)


# -- errors -------------------------------------------------------------------------------------------------
def test_errors_name_the_call_and_the_kernel():
    driver, runtime = make()
    kernel, address = runtime.load(PTX).find_kernel("add"), runtime.allocate(16)
    driver.fail("cuLaunchKernel", *["CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"] * 2)
    with pytest.raises(CudaError) as caught:
        runtime.launch(kernel, ONE, ONE, numbers(address, address, 1))
    assert str(caught.value) == (
        "cuLaunchKernel on GPU 0 failed with CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (words about "
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES).\nThe kernel launched last is add."
    )
    runtime.launch(kernel, ONE, ONE, numbers(address, address, 1))
    runtime.synchronize()


def test_after_an_error_that_stays_every_call_says_which_it_was():
    driver, runtime = make()
    address, module = runtime.allocate(16), runtime.load(PTX)
    runtime.launch(module.find_kernel("fail"), ONE, ONE, numbers(address))
    with pytest.raises(CudaError, match=r"(?s)cuStreamSynchronize .*ILLEGAL_ADDRESS.*last is fail.*new process"):
        runtime.synchronize()
    calls = len(driver.calls)
    for again in (lambda: runtime.allocate(4), lambda: get(runtime, address), lambda: runtime.load("x"), runtime.trim,
                  lambda: runtime.launch(module.find_kernel("add"), ONE, ONE, numbers(1, 2, 3))):
        with pytest.raises(CudaError, match="An earlier error has made the GPU unusable.*ILLEGAL_ADDRESS.*is fail") as caught:
            again()
        assert len(str(caught.value).splitlines()) <= errors.MAX_LINES
    runtime.free(address)  # of a finaliser: silent
    assert len(driver.calls) == calls


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_gets_one_clear_error():
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=100, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    parts = done.stdout.strip().split("\n\n")
    assert parts[0] == parts[1] and parts[0].startswith("This process was forked from one that had used the GPU")
    assert "get_context('spawn')" in parts[0]
    assert parts[2:] == ["silent", "the parent goes on"]


FORKING = """
import os
from jitcore.backends.cuda.runtime.driver import CudaError
from jitcore.backends.cuda.runtime.gpu import GpuRuntime
from tests.backends.cuda.fake_driver import FakeDriver

runtime = GpuRuntime(0, FakeDriver())
address, child = runtime.allocate(16), os.fork()
if not child:
    for work in (lambda: runtime.allocate(4), runtime.synchronize, lambda: runtime.free(address)):
        try:
            work()
            print("silent", end="\\n\\n")
        except CudaError as error:
            print(error, end="\\n\\n")
else:
    os.waitpid(child, 0)
    runtime.synchronize()
    print("the parent goes on")
"""


# -- order --------------------------------------------------------------------------------------------------
def test_streams_of_other_libraries_are_waited_for_and_wait():
    driver, runtime = make()
    kernel, source, to = runtime.load(PTX).find_kernel("add"), put(runtime, [1, 2, 3, 4]), runtime.allocate(16)
    seen = []
    runtime.synchronize()
    driver.queues[1].append(lambda: driver.view(source, np.float32, 4).fill(10))
    runtime.follow(1)
    runtime.launch(kernel, ONE, ONE, numbers(to, source, 1))
    runtime.precede(1)
    driver.queues[1].append(lambda: seen.append(driver.view(to, np.float32, 4).copy()))
    driver._run(1)
    np.testing.assert_array_equal(seen, [[11, 11, 11, 11]])
    assert driver.count()["cuEventCreate"] == 3  # two of pinned memory, one for both waits


def test_owners_of_memory_are_kept_until_the_gpu_is_done():
    driver, runtime = make()
    alive = []

    class Owner:
        def __init__(self, name):
            self.name = name
            alive.append(name)

        def __del__(self):
            alive.remove(self.name)

    runtime.retire(Owner("first"))
    runtime.retire(Owner("second"))
    assert alive == ["first", "second"]
    runtime.synchronize()
    runtime.retire(Owner("third"))
    assert alive == ["third"]


# -- what is missing ----------------------------------------------------------------------------------------
def test_what_is_missing_is_named(monkeypatch):
    def refuse(flags):
        raise RuntimeError("no libcuda.so.1")

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    driver = FakeDriver(names=())
    with pytest.raises(RuntimeError, match="^the NVIDIA driver finds no GPU$"):
        drivers.start_driver(driver)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    driver.fail("cuInit", "CUDA_ERROR_NO_DEVICE")
    with pytest.raises(RuntimeError, match="finds no GPU; CUDA_VISIBLE_DEVICES is '-1'$"):
        drivers.start_driver(driver)
    driver.fail("cuInit", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")
    with pytest.raises(RuntimeError, match="does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"):
        drivers.start_driver(driver)
    driver._cuInit = refuse
    with pytest.raises(RuntimeError, match=r"no NVIDIA driver is installed \(no libcuda.so.1\)"):
        drivers.start_driver(driver)
    monkeypatch.setitem(__import__("sys").modules, "cuda.bindings", None)
    with pytest.raises(RuntimeError, match="the package cuda-bindings is not installed"):
        drivers._import_bindings()
