"""Outputs that go past the caches: all large enough here, against NumPy, and which ones are marked."""

import os

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.mapping import memory_order
from jitcore.backends.cpu.mapping.memory_order import choose_stream_bytes
from jitcore.config import config
from tests.backends.cpu.tuning import tune

COUNTS = [6, 7, 8, 15, 16, 17, 63, 64, 65, 1000, 4099]

pytestmark = pytest.mark.skipif("sse2" not in host.cpu_features(), reason="x86-64 only")


@pytest.fixture(autouse=True, scope="module")
def all_arrays_are_large():
    patch = pytest.MonkeyPatch()
    with config.override(cache_dir=""), patch.context() as patched:
        jitcore.clear_caches()
        tune(patched, loops={"near_bytes": 1})
        patched.setattr(memory_order, "choose_stream_bytes", lambda machine: 1)
        yield
    jitcore.clear_caches()


def marks(function) -> list[str]:
    """The outputs that each kernel writes past the caches."""
    lines = function.inspect("loop program").splitlines()
    return [line.split("past caches ")[1].rstrip("):") for line in lines if "past caches" in line]


def streams_nothing(function) -> bool:
    return not marks(function) and "nontemporal" not in function.inspect("llvm")


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float32", "float64"])
def test_one_output(dtype):
    f = jit(lambda x: x * x[3] + x)
    for count in COUNTS:
        x = np.random.default_rng(count).integers(0, 50, count).astype(dtype)
        np.testing.assert_array_equal(np.asarray(f(x)), x * x[3] + x)
    assert marks(f) == ["out0"]
    assert "!nontemporal" in f.inspect("llvm") and "sfence" in f.inspect("assembly")


@pytest.mark.parametrize("count", [7, 8, 65, 4099])
def test_outputs_of_several_widths(count):
    x = np.random.default_rng(count).random(count)
    f = jit(lambda x: (x + 1, x.astype(np.float32), (x * 9).astype(np.int8), x > 0.5, x * 1j))
    expected = x + 1, x.astype(np.float32), (x * 9).astype(np.int8), x > 0.5, x * 1j
    for ours, theirs in zip(f(x), expected):
        np.testing.assert_array_equal(np.asarray(ours), theirs)
    assert marks(f) == ["out0, out1, out2"]


@pytest.mark.parametrize("count", [5, 8, 40, 1003])
def test_memory_that_begins_within_a_line(count):
    """Both outputs take over the memory of inputs, which begin lines at several places."""
    x = np.random.default_rng(count).random(count)
    f = jit(lambda x, y, z: (x * 2, x + 3), donate_argnums=(1, 2), keep_unused=True)
    for offset in range(9):
        block = np.empty(2 * count + 32)
        first, second = block[offset : offset + count], block[count + 16 : 2 * count + 16]
        for ours, theirs in zip(f(x, first, second), (x * 2, x + 3)):
            np.testing.assert_array_equal(np.asarray(ours), theirs)


@pytest.mark.parametrize("lead", [0, 1, 7, 9])
def test_parts_of_an_output(lead):
    x = np.random.default_rng(lead).random(203)
    f = jit(
        lambda x: (jnp.concatenate([x[:lead], x * 2]), jnp.zeros(300, x.dtype).at[lead : lead + 203].set(x))
    )
    padded = np.zeros(300)
    padded[lead : lead + 203] = x
    for ours, theirs in zip(f(x), (np.concatenate([x[:lead], x * 2]), padded)):
        np.testing.assert_array_equal(np.asarray(ours), theirs)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_read_what_others_wrote(threads):
    x = np.random.default_rng(0).random(1_500_001)
    f = jit(lambda x: x * 2 + 1, compiler_options={"num_threads": threads})
    reverse = jit(lambda x: x[::-1].sum(), compiler_options={"num_threads": threads})
    for _ in range(5):
        y = f(x)
        np.testing.assert_array_equal(np.asarray(y), x * 2 + 1)
        np.testing.assert_allclose(float(reverse(y)), (x * 2 + 1).sum(), 1e-12)
    assert marks(f) == ["out0"]


def test_what_is_read_stays_in_the_caches():
    x = np.random.default_rng(0).random(1001)
    f = jit(lambda x: x * 2 + 1, donate_argnums=0)
    np.testing.assert_array_equal(np.asarray(f(x.copy())), x * 2 + 1)
    assert streams_nothing(f)


def test_rows_and_small_arrays_stay_in_the_caches(monkeypatch):
    x = np.random.default_rng(0).random((60, 40))
    f = jit(lambda x: x[1:-1, 1:-1] * 2)
    np.testing.assert_array_equal(np.asarray(f(x)), x[1:-1, 1:-1] * 2)
    assert streams_nothing(f)
    jitcore.clear_caches()
    monkeypatch.setattr(memory_order, "choose_stream_bytes", lambda machine: 10_000)
    for extent, expected in ((1249, []), (1250, ["out0"])):
        f = jit(lambda x: x * 3)
        x = np.random.default_rng(0).random(extent)
        np.testing.assert_array_equal(np.asarray(f(x)), x * 3)
        assert marks(f) == expected


def test_what_waits_for_arithmetic_stays_in_the_caches():
    x = np.random.default_rng(0).random(1001)
    f, g = jit(lambda x: jnp.exp(x)), jit(lambda x: jnp.exp(x) + jnp.tanh(x))
    np.testing.assert_allclose(np.asarray(f(x)), np.exp(x), 1e-15)
    np.testing.assert_allclose(np.asarray(g(x)), np.exp(x) + np.tanh(x), 1e-15)
    assert marks(f) == ["out0"] and streams_nothing(g)


def test_loops_around_kernels():
    x = np.random.default_rng(0).random(1001)
    f = jit(lambda x: lax.fori_loop(0, 7, lambda i, x: x[::-1] * 0.5 + i, x))
    expected = x
    for i in range(7):
        expected = expected[::-1] * 0.5 + i
    np.testing.assert_allclose(np.asarray(f(x)), expected, 1e-15)


@pytest.mark.parametrize(("size", "processors", "expected"), [
    (16, 2, 16), (480, 2, 64), (480, 100, 480), (480, None, 32),
])
def test_limit_is_a_share_of_the_last_cache(monkeypatch, size, processors, expected):
    monkeypatch.setattr(host, "cache_sizes", lambda: host.CacheSizes(1, 1, size << 20))
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    assert choose_stream_bytes(host.MACHINE) == expected << 20


def test_processors_without_such_stores(monkeypatch):
    monkeypatch.setattr(host, "cpu_features", frozenset)
    assert choose_stream_bytes(host.MACHINE) == float("inf")
