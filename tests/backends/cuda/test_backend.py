"""The backend of GPUs: its devices, what it says when it has none, and what it tells people."""

from __future__ import annotations

import re

import numpy as np
import pytest

import jitcore
from jitcore import jit
from jitcore.__main__ import main
from jitcore.backends.cuda import CudaBackend, EmulatedBackend
from jitcore.backends.cuda.runtime import driver, linking
from jitcore.device import Device
from jitcore.dispatch import backend as backends
from tests.backends.cuda.fake_driver import FakeDriver


@pytest.fixture(autouse=True)
def without_linker(monkeypatch):
    monkeypatch.setattr(linking, "find_version", lambda: "")


def install(monkeypatch, backend):
    backends.list_backends()
    monkeypatch.setitem(backends._tried.loaded, "cuda", backend)


def test_devices_are_the_gpus_of_the_driver(monkeypatch):
    fake = FakeDriver(names=("Big GPU", "Small GPU"))
    install(monkeypatch, CudaBackend(fake))
    assert jitcore.devices("gpu") == [Device("gpu", 0, "Big GPU", "cuda"), Device("gpu", 1, "Small GPU", "cuda")]
    assert fake.count()["cuDevicePrimaryCtxRetain"] == 0  # asking costs no memory of a GPU
    second = jitcore.device_put(np.ones(3), jitcore.devices("gpu")[1])
    assert second.device.id == 1 and str(second.device) == "gpu:1"


def test_each_gpu_has_one_runtime(monkeypatch):
    backend = CudaBackend(FakeDriver(names=("Big GPU", "Small GPU")))
    first, second = map(backend.open, backend.devices())
    assert backend.open(backend.devices()[0]) is first is not second
    assert (first.ordinal, second.ordinal) == (0, 1)


def test_a_missing_gpu_is_told_with_what_to_install(monkeypatch):
    monkeypatch.setattr(driver, "_started", None)
    monkeypatch.setitem(__import__("sys").modules, "cuda.bindings", None)
    backends.list_backends()
    for table in (backends._tried.loaded, backends._tried.reasons):
        monkeypatch.delitem(table, "cuda", raising=False)
    with pytest.raises(jitcore.errors.BackendNotFoundError) as caught:
        jit(lambda x: x + 1, backend="gpu")(1.0)
    text = str(caught.value)
    assert "RuntimeError: the package cuda-bindings is not installed" in text
    assert 'pip install "jitcore[cuda]"' in text


def test_clear_caches_gives_back_what_the_pool_keeps(monkeypatch):
    fake = FakeDriver()
    install(monkeypatch, CudaBackend(fake))
    jitcore.device_put(np.ones(3), jitcore.devices("gpu")[0])
    jitcore.clear_caches()
    assert fake.calls[-1][0] == "cuMemPoolTrimTo"


def test_doctor_describes_the_gpus(monkeypatch, capsys):
    fake = FakeDriver()
    fake.other_kernels = lambda name: double_and_add
    install(monkeypatch, CudaBackend(fake))
    monkeypatch.delitem(backends._tried.reasons, "cuda", raising=False)
    jitcore.clear_caches()
    main(["doctor"])
    jitcore.clear_caches()
    out = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert re.search(r"cuda gpu:0: works, first program in", out)
    assert "gpu 0 Fake GPU (sm_90), CUDA 13.0, 132 multiprocessors, 1 GB, 1 GB free, 4814 GB/s" in out
    assert "linker the driver's (nvidia-nvjitlink is not installed)" in out
    assert re.search(r"cuda-bindings (\d|not installed)", out) and re.search(r"nvidia-nvjitlink (\d|not installed)", out)


def double_and_add(driver, arguments, grid, block):
    source, to = arguments[:2]
    driver.view(to, np.float32, 3)[:] = 2 * driver.view(source, np.float32, 3) + 1


@pytest.mark.parametrize("version, library, expected", [
    ("", None, "the driver's (nvidia-nvjitlink is not installed)"),
    ("13.5", None, "the driver's (the library of nvidia-nvjitlink 13.5 is not found)"),
    ("13.5", object(), "nvJitLink 13.5"),
])
def test_the_linker_is_named(monkeypatch, version, library, expected):
    monkeypatch.setattr(linking, "find_version", lambda: version)
    monkeypatch.setattr(linking, "_load_linker", lambda: library)
    assert linking.describe_linker() == expected


def test_the_device_in_software_has_no_streams():
    assert EmulatedBackend().devices()[0].backend == "cuda:emulated"
    from jitcore.backends.cuda.runtime.device import DeviceBuffer, Memory
    from jitcore.backends.cuda.runtime.protocols import DLPACK_OTHER

    class Runtime:
        def allocate(self, nbytes):
            return 256

        def free(self, address):
            pass

    buffer = DeviceBuffer(Memory(Runtime(), 8), (2,), np.dtype(np.float32), EmulatedBackend().devices()[0])
    assert buffer.__dlpack_device__() == (DLPACK_OTHER, 0) and not hasattr(buffer, "__cuda_array_interface__")
