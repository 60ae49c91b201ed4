"""Divisions of many numbers by one: which kernels multiply with its inverse, and the bits of NumPy either way."""

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit
from jitcore.backends.cpu.machine import host
from jitcore.config import config

HARD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 2.2e-308, 1.7e308, 2.0**800,
                 np.nextafter(2.0**800, 0), 2.0**-800, np.nextafter(2.0**-800, 0)])
DIVISORS = [3.0, -3.0, 0.1, 1 / 3, np.nextafter(2, 0), np.nextafter(1, 2), 7e20, 2.0**100, 2.0**-100,
            np.nextafter(2.0**100, 0), 1e40, 1e-40, 1e300, 5e-324, 0.0, -0.0, np.inf, np.nan]

needs_avx512 = pytest.mark.skipif("avx512f" not in host.cpu_features(), reason="the processor has no AVX-512")


@pytest.fixture(autouse=True)
def on_xeon(monkeypatch):
    monkeypatch.setattr(host, "cpu_name", lambda: "sapphirerapids")
    with config.override(cache_dir=""):
        jitcore.clear_caches()
        yield
    jitcore.clear_caches()


def compare(function, x, *others):
    found = np.asarray(jit(function)(x, *others))
    with np.errstate(all="ignore"):
        wanted = np.asarray(function(x, *others))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    found, wanted = (np.where(np.isnan(wanted), 0.0, values) for values in (found, wanted))
    np.testing.assert_array_equal(found.view(np.int64), wanted.view(np.int64))


def draw_numbers(rng) -> np.ndarray:
    wide = np.exp(rng.standard_normal(1000) * 100) * rng.choice([-1, 1], 1000)
    upper = np.nextafter(2, 0) - rng.integers(0, 1000, 1000) * 2.0**-52
    return np.concatenate([rng.standard_normal(1000), 1 + rng.random(1000), upper, wide])


@pytest.mark.parametrize("divisor", DIVISORS)
def test_bits(divisor):
    rng = np.random.default_rng(0)
    x = draw_numbers(rng)
    for share in (0.0, 0.001, 0.3):
        values = np.where(rng.random(x.size) < share, rng.choice(HARD, x.size), x)
        compare(lambda x, y: x / y, values, np.float64(divisor))
        compare(lambda x: x / divisor, values) if divisor else None


def test_bits_of_many_divisors():
    rng = np.random.default_rng(1)
    x = draw_numbers(rng)
    for divisor in (*(1 + rng.random(100)), *np.exp(rng.standard_normal(50) * 40)):
        compare(lambda x, y: x / y, x, np.float64(divisor))


@pytest.mark.parametrize("count", [1, 7, 8, 15, 16, 17, 100, 1001])
def test_every_length(count):
    x = np.random.default_rng(count).standard_normal((3, count))
    compare(lambda x, y: x / y, x, np.float64(3.7))
    compare(lambda x, y: (x - 1) / y, x, np.array([[3.0], [0.0], [1e-200]]))


@needs_avx512
@pytest.mark.parametrize(("function", "is_inverted"), [
    (lambda x, y: x / y[0], True),
    (lambda x, y: (x - 1) / y[0] + x, True),
    (lambda x, y: (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True), True),
    (lambda x, y: x / y, False),  # a divisor for each lane
    (lambda x, y: y[0] / x, False),
    (lambda x, y: jnp.exp(x) / y[0], False),  # the multiplying units have enough to do
    (lambda x, y: x.astype(np.float32) / 3, False),
    (lambda x, y: x.sum() / y[0], False),
])
def test_which_are_inverted(function, is_inverted):
    f = jit(function, backend="cpu")
    f(np.ones((40, 1000)), np.full(1000, 3.0))
    assert ("quotient" in f.inspect("llvm")) == is_inverted


def test_other_processors_divide(monkeypatch):
    monkeypatch.setattr(host, "cpu_name", lambda: "znver5")
    f = jit(lambda x, y: x / y, backend="cpu")
    f(np.ones(1000), 3.0)
    assert "quotient" not in f.inspect("llvm")
