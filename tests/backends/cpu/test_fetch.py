"""Elements that are asked for ahead: gathers from arrays that count as large, against NumPy."""

import numpy as np
import pytest

import jitcore
from jitcore import jit
from jitcore.backends.cpu.compiler import CpuTarget
from jitcore.backends.cpu.machine import host
from jitcore.config import config
from jitcore.schedule.tuning import Tuning

AHEAD = host.MACHINE.loops.fetched_ahead


@pytest.fixture
def all_arrays_are_far(monkeypatch):
    monkeypatch.setattr(CpuTarget, "tuning", Tuning(far_bytes=0))
    with config.override(cache_dir=""):
        jitcore.clear_caches()
        yield
    jitcore.clear_caches()


@pytest.mark.parametrize("dtype", ["int8", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("count", [0, 1, 15, 33, AHEAD - 1, AHEAD, AHEAD + 1, 2 * AHEAD + 17, 1000])
def test_gather(all_arrays_are_far, count, dtype):
    rng = np.random.default_rng(count)
    x = rng.integers(0, 100, 50).astype(dtype)
    indices = rng.integers(0, 50, count).astype(np.int32)
    f = jit(lambda x, indices: x[indices] + x[indices[::-1]])
    np.testing.assert_array_equal(np.asarray(f(x, indices)), x[indices] + x[indices[::-1]])
    if count > AHEAD:
        assert "llvm.prefetch" in f.inspect("llvm")


def test_gather_at_places_out_of_range(all_arrays_are_far):
    x, indices = np.arange(40.0), np.arange(-500, 500, dtype=np.int64)
    found = np.asarray(jit(lambda x, indices: x[indices])(x, indices))
    wrapped = np.where(indices < 0, indices + 40, indices)
    np.testing.assert_array_equal(found, x[np.clip(wrapped, 0, 39)])
