"""Stencils, whose whole vectors begin where a cache line of the result begins, against NumPy."""

import re

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.backends.cpu.machine import host
from tests.backends.cpu.tuning import tune

LENGTHS = [3, 9, 17, 40, 63, 64, 65, 130, 200, 257, 1003]


def relax(m, u):
    return 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


def smooth(m, u):
    """Along rows, with two results that begin at other places of a line."""
    return u[:, :-2] + 2 * u[:, 1:-1] + u[:, 2:], u[:, 2:-1] - u[:, 1:-2] * u[:, :-3]


def find_slopes(m, u):
    """A result with the edges of the array: rows of other lengths, and another stride."""
    return m.gradient(u, axis=1), (u[:, :-2] + u[:, 1:-1] + u[:, 2:])[:, ::2]


PROGRAMS = [relax, smooth, find_slopes]


def make_array(rows: int, columns: int, dtype: str, lead: int) -> np.ndarray:
    """An array that begins `lead` elements behind a boundary of the allocator."""
    numbers = np.random.default_rng(columns).integers(-50, 50, rows * columns + lead).astype(dtype)
    return numbers[lead:].reshape(rows, columns)


def list_results(found) -> list:
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64"])
@pytest.mark.parametrize("lead", [0, 1, 5])
@pytest.mark.parametrize("program", PROGRAMS)
def test_stencils_of_any_length(program, lead, dtype):
    compiled = jit(lambda u: program(jnp, u))
    for length in LENGTHS:
        if program is relax and dtype.startswith("int"):
            continue
        u = make_array(6, length + 1, dtype, lead)
        for ours, theirs in zip(list_results(compiled(u)), list_results(program(np, u)), strict=True):
            np.testing.assert_allclose(np.asarray(ours), theirs, 1e-6)


@pytest.mark.parametrize("side", [8, 40, 131])
def test_a_stencil_that_a_loop_repeats(side):
    def step(_, u):
        return u.at[1:-1, 1:-1].set(relax(jnp, u))

    u = np.random.default_rng(side).random((side, side + 3))
    expected = u.copy()
    for _ in range(7):
        expected[1:-1, 1:-1] = relax(np, expected)
    found = jit(lambda u: lax.fori_loop(0, 7, step, u))(u)
    np.testing.assert_allclose(np.asarray(found), expected, 1e-13)


def test_threads_share_a_large_stencil():
    u = np.random.default_rng(0).random((700, 901))
    np.testing.assert_array_equal(np.asarray(jit(lambda u: relax(jnp, u))(u)), relax(np, u))


def count_masks(function) -> int:
    return len(re.findall(r"call .*@llvm\.masked\.store", function.inspect("llvm")))


def test_both_edges_share_their_code():
    u = np.ones((40, 300))
    stencil, copy = jit(lambda u: u[:, :-2] + u[:, 1:-1] + u[:, 2:]), jit(lambda u: u[:, :-2] + 1)
    for function in (stencil, copy):
        function(u)
        assert count_masks(function) == 1


@pytest.fixture
def small_caches(monkeypatch):
    tune(monkeypatch, loops={"near_bytes": 1})
    sizes = host.cache_sizes()._replace(l2=1 << 12)
    monkeypatch.setattr(host, "cache_sizes", lambda: sizes)
    monkeypatch.setattr(host, "cpu_name", lambda: "znver5")


def test_a_row_ahead_of_a_stencil_is_asked_for(small_caches):
    u = np.random.default_rng(3).random((20, 400))
    far, near = jit(lambda u: relax(jnp, u)), jit(lambda u: relax(jnp, u) * 2)
    np.testing.assert_array_equal(np.asarray(far(u)), relax(np, u))
    near(u[:, :30])
    texts = [function.inspect("llvm") for function in (far, near)]
    assert "llvm.prefetch" in texts[0]
    assert "llvm.prefetch" not in texts[1]


def test_a_stencil_with_edges_asks_for_rows_too(small_caches):
    def step(u):
        return u.at[1:-1, 1:-1].set(relax(jnp, u))

    u = np.random.default_rng(4).random((30, 130))
    expected = u.copy()
    expected[1:-1, 1:-1] = relax(np, u)
    compiled = jit(step)
    np.testing.assert_allclose(np.asarray(compiled(u)), expected, 1e-13)
    assert "4 rows ahead" in compiled.inspect("loop program")  # rows of a kilobyte
    assert "llvm.prefetch" in compiled.inspect("llvm")


def test_a_processor_that_fetches_rows_in_time(small_caches, monkeypatch):
    monkeypatch.setattr(host, "cpu_name", lambda: "znver4")
    u = np.random.default_rng(3).random((20, 400))
    stencil, sweeps = jit(lambda u: relax(jnp, u) * 3), jit(lambda u: u - u.mean(1, keepdims=True))
    np.testing.assert_array_equal(np.asarray(stencil(u)), relax(np, u) * 3)
    sweeps(u)
    assert "llvm.prefetch" not in stencil.inspect("llvm")
    assert "llvm.prefetch" in sweeps.inspect("llvm")
