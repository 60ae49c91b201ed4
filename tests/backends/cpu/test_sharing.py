"""Kernels that have the same code: how often it is made, and that each call passes its own arrays and numbers."""

import re

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit, lax

RNG = np.random.default_rng(3)


def count_kernels(function) -> int:
    """Functions of kernels in the machine code of the signature compiled last."""
    return len(re.findall(r"^define internal void .*kernel\d+", function.inspect("llvm"), re.MULTILINE))


def test_steps_with_other_sizes_and_numbers_share_code():
    def steps(np, x):
        y = x
        for k in range(5):
            z = (
                np.exp(-abs(y) * (0.37 + k)) / (1.7 + k)
                + np.sin(y) * (0.1 * k + 0.13)
                - np.tanh(y - 0.3 * k - 0.7)
            )
            y = z[10 * (k + 1) :][::-1] / (z.sum() / (1300.0 + k) + 1.5 + k)
        return y

    x = RNG.standard_normal(1000)
    f = jit(lambda x: steps(jnp, x))
    np.testing.assert_allclose(f(x), steps(np, x), rtol=1e-11)
    assert f.inspect("loop program").count("kernel (") > count_kernels(f)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_numbers_that_differ_are_passed(dtype):
    x = RNG.standard_normal((4, 300)).astype(dtype)
    numbers = (
        [1.1, -0.7, 1e-3, 0.345678]
        if np.dtype(dtype).kind == "f"
        else [0.11 + 0.2j, 0.33j, -0.25, 0.7j - 0.1]
    )

    def compute(np, x):
        rows = []
        for k, number in enumerate(numbers):
            total = x[k]
            for power in range(9):  # long enough that its numbers may be told
                total = np.asarray(number, dtype) * total + x[k] * np.asarray(number / 7 + power, dtype)
            rows.append(np.cumsum(total * np.asarray(number, dtype)))
        return rows

    f = jit(lambda x: compute(jnp, x))
    for got, expected in zip(f(x), compute(np, x)):
        np.testing.assert_allclose(got, expected, rtol=0, atol=20000 * np.finfo(dtype).eps)


def test_a_loop_written_out_is_compiled_once():
    def unrolled(np, x):
        for k in range(6):
            x = (np.exp(-1j * x.real * (k + 0.5)) * x + 0.1 * k) / (k + 3.3)
            x = np.fft.ifft(x * np.exp(-0.01j * (k + 1.5) * np.abs(x)))
        return x

    x = RNG.standard_normal(256) + 1j * RNG.standard_normal(256)
    f = jit(lambda x: unrolled(jnp, x))
    np.testing.assert_allclose(f(x), unrolled(np, x), rtol=1e-9, atol=1e-12)
    assert f.inspect("loop program").count("kernel (") == 6
    assert count_kernels(f) <= 3  # the first step adds nothing


def test_simple_numbers_stay_in_the_code():
    x = RNG.standard_normal(500)

    def compute(np, x):
        parts = []
        for number in (0.0, 1.0, -1.0, 2.0, 0.5, float("inf"), -0.0):
            parts.append(np.cumsum(np.exp(np.sin(x) * 1.25) * number + np.tanh(x * 3.5) - np.cos(x) * 0.75))
        return parts

    f = jit(lambda x: compute(jnp, x))
    with np.errstate(all="ignore"):
        for got, expected in zip(f(x), compute(np, x)):
            np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_arrays_that_change_places_in_a_loop():
    def step(k, pair):
        x, y = pair
        new = jnp.exp(-y) * x + jnp.sin(x * 1.7)
        return jnp.exp(-x)[::-1] * y + jnp.sin(y * 1.7), new

    def plain(x, y, count):
        for _ in range(count):
            x, y = np.exp(-x)[::-1] * y + np.sin(y * 1.7), np.exp(-y) * x + np.sin(x * 1.7)
        return x, y

    x, y = RNG.random(400), RNG.random(400)
    for count in (0, 1, 2, 7):
        f = jit(lambda x, y, count=count: lax.fori_loop(0, count, step, (x, y)))
        for got, expected in zip(f(x, y), plain(x, y, count)):
            np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_donated_arrays_and_threads():
    def compute(x, y):
        for k in range(4):
            y = jnp.exp(-jnp.abs(y * (k + 0.3))) + jnp.sin(x * (k + 1.7))
            y = y[::-1] + y.sum()
        return y, x * 2

    x, y = RNG.random(300000), RNG.random(300000)
    expected = [np.asarray(part) for part in jit(compute, compiler_options={"parallel": False})(x, y)]
    for got, want in zip(jit(compute, donate_argnums=0)(x.copy(), y), expected):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("count, size", [(3, 5), (40, 5), (200, 5), (200, 50)])
def test_addresses_are_loaded_where_they_are_needed(count, size):
    """LLVM compares every store with every load of one stretch of code: of hundreds of addresses in the
    beginning of an entry point, its time grows with the square."""
    f = jit(lambda arrays: [x * 2 + k for k, x in enumerate(arrays)])
    arrays = [np.full(size, k, np.float32) for k in range(count)]
    for k, got in enumerate(f(arrays)):
        np.testing.assert_array_equal(got, np.full(size, 3 * k))
    entry = re.search(r"^define i64 @.*?^}", f.inspect("llvm"), re.MULTILINE | re.DOTALL).group()
    stretches = re.split(r"\bcall\b", entry)
    assert max(len(re.findall(r"\b(?:load|store)\b", stretch)) for stretch in stretches) < 160


def test_little_work_is_not_offered_to_threads():
    f = jit(jnp.sin)
    f(np.ones(6, np.float32))
    assert "parallel" not in f.inspect("llvm")
    f(np.ones(600, np.float32))
    assert "parallel" in f.inspect("llvm")


def test_long_scalar_code_has_one_copy_of_a_function():
    def compute(np, x):
        for k in range(60):
            x = np.sin(x) + x * k
        return x

    f = jit(lambda x: compute(jnp, x))
    np.testing.assert_allclose(f(np.float64(0.3)), compute(np, 0.3), rtol=1e-9)
    assert f.inspect("llvm").count("\n") < 1000


def test_calls_of_routines_are_short_code():
    f = jit(lambda x, ws: [x := x @ w for w in ws][-1])
    x, ws = RNG.random((20, 20)), [RNG.random((20, 20)) / 9 for _ in range(30)]
    expected = x
    for w in ws:
        expected = expected @ w
    np.testing.assert_allclose(f(x, ws), expected, rtol=1e-10)
    entry = re.search(r"^define i64 @.*?^}", f.inspect("llvm"), re.MULTILINE | re.DOTALL).group()
    assert entry.count("\n") < 30 * 40
