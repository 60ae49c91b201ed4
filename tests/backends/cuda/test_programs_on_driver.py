"""The programs of test_programs.py by the runtime of GPUs: its driver is fake, its kernels are run by the device in
software. So graphs, loops, copies and the order of memory are those of a GPU, and results can be compared."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import jitcore
from jitcore import jit
from jitcore.backends.cuda import CudaBackend
from jitcore.backends.cuda.runtime import linking
from jitcore.dispatch import backend as backends
from jitcore.tree_util import tree_leaves
from tests.backends.cuda.fake_driver import FakeDriver, find_entries

emulated = pytest.importorskip("jitcore.backends.cuda.emulated")
programs = pytest.importorskip("tests.backends.cuda.test_programs")


#: A call that some of them make.
GRAPHS = {"softmax of 5000": "cuGraphExecKernelNodeSetParams", "large while": "cuGraphConditionalHandleCreate"}


class EmulatingDriver(FakeDriver):
    """Memory and kernels are those of the device in software."""

    def __init__(self):
        super().__init__()
        self.device = emulated.EmulatedDevice()

    def _make_memory(self, nbytes):
        return self.device.allocate(nbytes)

    def _cuMemFreeAsync(self, address, stream):
        self.used -= self.sizes.pop(int(address))
        self._queue(stream, lambda: self.device.free(int(address)))

    def view(self, address, dtype, count):
        nbytes = np.dtype(dtype).itemsize * count
        return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(int(address)), dtype)

    def _cuModuleLoadDataEx(self, image, count, options, values):
        text = image.rstrip(b"\0").decode()
        found = find_entries(text)
        if "decide" not in found:  # that tells a graph something, which the device does not have
            module = self.device.load(text)
            self.launchers = {name: self._make_launcher(module.find_kernel(name)) for name in found}
        return self._make("CUmodule", found)

    def _make_launcher(self, kernel):
        return lambda driver, values, grid, block: self.device.launch(kernel, grid, block, np.array(values, np.uint64))

    def _cuModuleGetFunction(self, module, name):
        handle = super()._cuModuleGetFunction(module, name)
        name, count = self._get(handle)
        run = self.kernels.get(name) or self.launchers[name]  # of the module that was loaded last
        self.objects[int(handle)] = f"{name} {int(handle)}", count
        self.kernels[f"{name} {int(handle)}"] = run
        return handle


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(linking, "find_version", lambda: "")
    driver = EmulatingDriver()
    backends.list_backends()
    monkeypatch.setitem(backends._tried.loaded, "cuda", CudaBackend(driver))
    jitcore.clear_caches()
    yield driver
    jitcore.clear_caches()


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_equals_the_reference_in_every_call(gpu, name):
    function, args, _ = programs.PROGRAMS[name]
    expected = tree_leaves(jit(function, backend="reference")(*args))
    compiled = jit(function, backend="cuda")
    calls = [tree_leaves(compiled(*args)) for _ in range(3)]  # before any of them has to be done
    for found in calls:
        for one, other in zip(found, expected, strict=True):
            one, other = np.asarray(one), np.asarray(other)
            tolerance = {2: 1e-3, 4: 2e-6}.get(one.dtype.itemsize, 1e-12) if one.dtype.kind in "fc" else 0
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=10 * tolerance)
    if name in GRAPHS:
        assert gpu.count()[GRAPHS[name]]
