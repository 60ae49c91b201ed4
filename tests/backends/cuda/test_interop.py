"""Arrays that jitcore and another library share on a GPU, on a driver without one."""

from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest

import jitcore
from jitcore import dtypes, jit
from jitcore.array import DeviceArray
from jitcore.backends.cuda import CudaBackend
from jitcore.backends.cuda.runtime import linking, protocols
from jitcore.dispatch import backend as backends
from tests.backends.cuda.fake_driver import FakeDriver


@pytest.fixture
def gpu(monkeypatch):
    """A driver, and the backend "cuda" on it. The kernel adds 1 to float32s."""

    def run(driver, arguments, grid, block):
        source, to = arguments[:2]
        driver.view(to, np.float32, 4)[:] = driver.view(source, np.float32, 4) + 1

    monkeypatch.setattr(linking, "find_version", lambda: "")
    driver = FakeDriver({"k0": run})
    backends.list_backends()
    monkeypatch.setitem(backends._tried.loaded, "cuda", CudaBackend(driver))
    jitcore.clear_caches()
    yield driver
    jitcore.clear_caches()


add_one = jit(lambda x: x + 1)


class Foreign:
    """Another library's array, which has its memory as long as it lives. seen: those that are alive."""

    seen: weakref.WeakSet = weakref.WeakSet()

    def __init__(self, driver, value, offset=0):
        self.driver, self.value = driver, np.asarray(value)
        padded = np.zeros(self.value.nbytes + offset, np.uint8)
        padded[offset:] = self.value.reshape(-1).view(np.uint8)
        self.address = driver.add_foreign(padded) + offset
        self.seen.add(self)


class ByInterface(Foreign):
    strides = stream = None

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.value.shape, "typestr": self.value.dtype.str, "data": (self.address, False),
                "strides": self.strides, "stream": self.stream, "version": 3}


class ByDlpack(Foreign):
    """kind, bits, lanes: instead of those of the dtype."""

    place, form, strides = (2, 0), None, None
    streams: tuple = ()

    def __dlpack_device__(self):
        return self.place

    def __dlpack__(self, *, stream=None):
        self.streams = (*self.streams, stream)
        shape = (ctypes.c_int64 * self.value.ndim)(*self.value.shape)
        strides = self.strides and (ctypes.c_int64 * self.value.ndim)(*self.strides)
        form = self.form or (protocols._KINDS[self.value.dtype.kind], 8 * self.value.dtype.itemsize, 1)
        tensor = protocols._Tensor(self.address, *self.place, self.value.ndim, *form, shape, strides, 0)
        managed = protocols._Managed(tensor, None, protocols._forget)
        protocols._exported[ctypes.addressof(managed)] = managed, self
        return protocols._new_capsule(ctypes.addressof(managed), b"dltensor", protocols._forget_unread)


@pytest.fixture(params=[ByInterface, ByDlpack])
def kind(request):
    return request.param


# -- from others --------------------------------------------------------------------------------------------
def test_arguments_of_other_libraries_are_read_where_they_lie(gpu, kind):
    foreign = kind(gpu, np.arange(4, dtype=np.float32))
    found = add_one(foreign)
    assert isinstance(found, DeviceArray) and found.device.backend == "cuda"
    assert gpu.count()["cuMemcpyHtoDAsync"] == gpu.count()["cuMemcpyDtoDAsync"] == 0
    np.testing.assert_array_equal(found, [1, 2, 3, 4])
    np.testing.assert_array_equal(add_one(add_one(foreign)), [2, 3, 4, 5])


def test_they_are_found_in_pytrees_and_beside_arrays_of_the_host(gpu, kind):
    gpu.kernels["k0"] = lambda driver, arguments, *given: seen.extend(arguments)
    seen: list = []
    foreign = kind(gpu, np.arange(4, dtype=np.float32))
    found = jit(lambda tree, y: tree["a"][0] + y)({"a": [foreign]}, np.ones(4, np.float32))
    found.block_until_ready()
    assert foreign.address in seen


def test_device_put_gives_an_array_in_the_same_memory(gpu, kind):
    foreign = kind(gpu, np.arange(4, dtype=np.float32))
    array = jitcore.device_put(foreign)
    assert array.buffer.address == foreign.address
    copied = jitcore.device_put(array, jitcore.devices("cuda")[0])
    assert copied.buffer.address != foreign.address
    np.testing.assert_array_equal(copied, [0, 1, 2, 3])
    assert gpu.count()["cuMemcpyDtoHAsync"] == 1


def test_their_memory_is_kept_until_it_is_read(gpu, kind):
    Foreign.seen.clear()
    for _ in range(3):
        found = add_one(kind(gpu, np.arange(4, dtype=np.float32)))
        gc.collect()
        assert len(Foreign.seen) == 1  # the kernel has not run yet; those before have
        np.testing.assert_array_equal(found, [1, 2, 3, 4])


def test_their_streams_are_waited_for(gpu):
    foreign = ByInterface(gpu, np.zeros(4, np.float32))
    foreign.stream = 1
    gpu.queues[1].append(lambda: gpu.view(foreign.address, np.float32, 4).fill(8))
    np.testing.assert_array_equal(add_one(foreign), [9, 9, 9, 9])
    foreign = ByDlpack(gpu, np.zeros(4, np.float32))
    add_one(foreign)
    (stream,) = foreign.streams
    assert stream in gpu.queues and stream != 1


def test_what_they_write_after_a_call_is_not_seen_by_it(gpu, kind):
    foreign = kind(gpu, np.arange(4, dtype=np.float32))
    found = add_one(foreign)
    gpu.queues[1].append(lambda: gpu.view(foreign.address, np.float32, 4).fill(8))
    gpu._run(1)
    np.testing.assert_array_equal(found, [1, 2, 3, 4])


def test_donated_ones_are_not_written_to(gpu, kind):
    foreign = kind(gpu, np.arange(4, dtype=np.float32))
    found = jit(lambda x: x + 1, donate_argnums=0)(foreign)
    np.testing.assert_array_equal(found, [1, 2, 3, 4])
    np.testing.assert_array_equal(gpu.view(foreign.address, np.float32, 4), [0, 1, 2, 3])


def test_memory_that_begins_between_accesses_is_copied(gpu, kind):
    foreign = kind(gpu, np.arange(4, dtype=np.float32), offset=4)
    np.testing.assert_array_equal(add_one(foreign), [1, 2, 3, 4])
    assert gpu.count()["cuMemcpyDtoDAsync"] == 1


@pytest.mark.parametrize("strides, is_contiguous", [((1, 4), True), ((3, 4), True), ((1, 8), False), (None, True)])
def test_only_contiguous_arrays_are_taken(gpu, strides, is_contiguous):
    value = np.arange(4, dtype=np.float32).reshape(4, 1) if strides == (1, 4) else np.arange(4, dtype=np.float32).reshape(1, 4)
    for foreign in (ByDlpack(gpu, value), ByInterface(gpu, value)):
        if strides is not None:
            step = 4 if isinstance(foreign, ByInterface) else 1
            foreign.strides = tuple(step * stride for stride in {(1, 4): (1, 1), (3, 4): (3, 1), (1, 8): (8, 2)}[strides])
        if is_contiguous:
            assert add_one(foreign).shape == value.shape
        else:
            with pytest.raises(ValueError, match="is not C-contiguous: it has strides"):
                add_one(foreign)


@pytest.mark.parametrize("form, dtype", [
    ((0, 8, 1), np.int8), ((1, 16, 1), np.uint16), ((2, 64, 1), np.float64), ((5, 128, 1), np.complex128),
    ((6, 8, 1), np.bool_), ((4, 16, 1), dtypes.bfloat16), ((2, 32, 4), None), ((9, 8, 1), None), ((2, 128, 1), None),
])
def test_dtypes_of_dlpack(gpu, form, dtype):
    foreign = ByDlpack(gpu, np.zeros(4, np.float64))
    foreign.form = form
    if dtype is None:
        with pytest.raises(TypeError, match="as an abstract array"):
            add_one(foreign)
    else:
        assert jitcore.device_put(foreign).dtype == dtype


def test_arrays_elsewhere_are_none_of_the_gpus(gpu):
    foreign = ByDlpack(gpu, np.zeros(4, np.float32))
    foreign.place = (1, 0)
    with pytest.raises(TypeError, match="as an abstract array"):
        add_one(foreign)


def test_without_a_gpu_they_are_no_arrays(monkeypatch):
    backends.list_backends()
    monkeypatch.setattr(backends._tried, "loaded", {"cpu": backends.find_backend("cpu")})
    with pytest.raises(TypeError, match="as an abstract array"):
        add_one(ByInterface(FakeDriver(), np.zeros(4, np.float32)))


# -- to others ----------------------------------------------------------------------------------------------
def put(value):
    return jitcore.device_put(np.asarray(value), jitcore.devices("cuda")[0])


def test_the_interface_says_where_and_in_which_stream(gpu):
    array = put(np.arange(6, dtype=np.int32).reshape(2, 3))
    stream = backends.find_backend("cuda").open(array.device).stream
    assert array.__cuda_array_interface__ == {
        "shape": (2, 3), "typestr": "<i4", "data": (array.buffer.address, True), "strides": None, "stream": stream, "version": 3}
    assert not hasattr(put(np.zeros(2, dtypes.bfloat16)), "__cuda_array_interface__")
    assert not hasattr(jitcore.numpy.ones(2), "__cuda_array_interface__")


@pytest.mark.parametrize("stream, waits", [(None, 1), (1, 1), (-1, 0)])
def test_dlpack_gives_the_same_memory(gpu, stream, waits):
    array = put(np.arange(6, dtype=np.int16).reshape(2, 3))
    capsule = array.__dlpack__(stream=stream)
    assert array.__dlpack_device__() == (2, 0)
    view = protocols.read_capsule(capsule)
    assert view == (array.buffer.address, (2, 3), np.dtype(np.int16), None)
    assert len(gpu.queues[1]) == waits


def count_held(array) -> int:
    return array.buffer.memory.runtime.facts()["held"]


def test_memory_is_kept_for_readers_and_freed_when_all_streams_are_done(gpu):
    array = put(np.arange(4, dtype=np.float32)).block_until_ready()
    capsule, address, held = array.__dlpack__(stream=-1), array.buffer.address, count_held(array)
    runtime = array.buffer.memory.runtime
    del array
    gc.collect()
    assert runtime.facts()["held"] == held
    gpu.queues[1].append(lambda: seen.append(gpu.view(address, np.float32, 4).copy()))
    seen: list = []
    start = len(gpu.calls)
    del capsule  # which nobody has read
    gc.collect()
    assert [name for name, _ in gpu.calls[start:] if name != "cuCtxGetCurrent"] == ["cuCtxSynchronize"]
    assert runtime.facts()["held"] < held
    np.testing.assert_array_equal(seen, [[0, 1, 2, 3]])


def test_a_reader_says_when_it_has_done(gpu):
    array = put(np.arange(4, dtype=np.float32))
    capsule, runtime, held = array.__dlpack__(stream=-1), array.buffer.memory.runtime, count_held(array)
    managed = protocols._Managed.from_address(protocols._open_capsule(capsule, b"dltensor"))
    name = ctypes.c_char_p(b"used_dltensor")
    ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), name)
    del array, capsule
    gc.collect()
    assert runtime.facts()["held"] == held
    managed.deleter(ctypes.addressof(managed))
    gc.collect()
    assert runtime.facts()["held"] < held


def test_what_cannot_be_exported_is_refused(gpu):
    array = put(np.zeros(2, np.float32))
    for options in ({"copy": True}, {"dl_device": (1, 0)}):
        with pytest.raises(BufferError, match="not exported so"):
            array.__dlpack__(**options)
    array.__dlpack__(copy=False, dl_device=(2, 0), max_version=(1, 0))


def test_arrays_in_software_and_on_the_host_are_exported_from_the_host():
    array = jitcore.numpy.arange(4)
    np.testing.assert_array_equal(np.from_dlpack(array), [0, 1, 2, 3])
