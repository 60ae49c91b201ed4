"""Reductions and scans down columns, in groups of columns of several widths, against NumPy."""

import re

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit
from jitcore.backends.cpu.machine import host

SHAPES = [(9, 1), (40, 15), (100, 64), (33, 130), (200, 333), (17, 1000), (3, 500)]


def add_powers(m, x, count):
    return tuple((x**power).sum(0) for power in range(1, count + 1))


def standardize(m, x):
    centred = x - m.mean(x, axis=0)
    return centred / m.sqrt(m.mean(centred * centred, axis=0) + 0.25)


def find_lanes(function, kind: str) -> int:
    """The most lanes of a number that the program has at a time."""
    return max(map(int, re.findall(rf"<(\d+) x {kind}>", function.inspect("llvm"))))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 7])
def test_sums_side_by_side(count, shape, dtype):
    x = np.random.default_rng(0).random(shape).astype(dtype)
    found = jit(lambda x: add_powers(jnp, x, count))(x)
    for ours, theirs in zip(found, add_powers(np, x.astype("float64"), count)):
        np.testing.assert_allclose(np.asarray(ours), theirs, 1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", SHAPES)
def test_sweeps_one_after_the_other(shape, dtype):
    x = (10 * np.random.default_rng(1).random(shape)).astype(dtype)
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-11
    for compute in (standardize, lambda m, x: m.cumsum(x - m.mean(x, axis=0), axis=0)):
        found = np.asarray(jit(lambda x, compute=compute: compute(jnp, x))(x))
        wide = x.astype("complex128" if found.dtype.kind == "c" else "float64")
        np.testing.assert_allclose(found, compute(np, wide), tolerance, 10 * tolerance)


@pytest.mark.parametrize("shape", SHAPES)
def test_positions_of_extremes(shape):
    x = np.random.default_rng(2).integers(0, 5, shape).astype("float64")
    found = jit(lambda x: (x.argmax(0), (x * x).argmin(0), x.max(0)))(x)
    for ours, theirs in zip(found, (x.argmax(0), (x * x).argmin(0), x.max(0))):
        np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_groups_are_wide_while_sums_stay_in_registers():
    x = np.ones((100, 200), np.float32)
    size = host.native_vector_bytes()
    usual, free = 2 * size // 4, host.MACHINE.registers - host.MACHINE.loops.working_registers
    for count in (1, 2, 3, 4, 6):
        f = jit(lambda x, count=count: add_powers(jnp, x, count))
        f(x)
        widest = next((wide for wide in (4, 2) if wide * 2 * count <= free), 1)
        assert find_lanes(f, "float") == widest * usual


def test_few_rows_are_written_out_and_not_widened():
    f = jit(lambda x: standardize(jnp, x))
    f(np.ones((3, 500), np.float32))
    assert find_lanes(f, "float") <= 2 * host.native_vector_bytes() // 4
