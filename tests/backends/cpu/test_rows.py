"""Rows of stores side by side: what all rows read is read once for several of them. Against NumPy."""

import re

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.runtime import threads

SHAPES = [(1, 40), (2, 7), (9, 16), (11, 33), (12, 130), (35, 64), (67, 515)]


def find_distances(m, points, others):
    return m.sqrt(((points[:, None] - others[None]) ** 2).sum(-1))


def add_lines(m, points, others):
    """Two results from three shared operands."""
    x, y, z = others.T
    first, second = points[:, 0, None], points[:, 1, None]
    return first * x + second * y - z, m.maximum(first * y, z) / (x * x + 1)


def fill_upper(m, points, others):
    return m.where(points[:, 2, None] > others[:, 0], others[:, 1] * points[:, :1], others[:, 2])


PROGRAMS = [find_distances, add_lines, fill_upper]


def list_results(found) -> list:
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_rows_of_pairs(program, shape, dtype):
    rng = np.random.default_rng(0)
    points, others = (rng.integers(-9, 9, (count, 3)).astype(dtype) for count in shape)
    found = jit(lambda p, q: program(jnp, p, q))(points, others)
    expected = program(np, points.astype("float64"), others.astype("float64"))
    tolerance = {"float16": 2e-3, "float64": 1e-13}.get(dtype, 1e-6)
    for ours, theirs in zip(list_results(found), list_results(expected), strict=True):
        np.testing.assert_allclose(np.asarray(ours).astype("float64"), theirs, tolerance, tolerance)


@pytest.mark.parametrize("layout", ["C", "F"])
def test_threads_share_rows(layout):
    points = np.array(np.random.default_rng(1).random((1301, 3)), order=layout)
    found = np.asarray(jit(lambda p: find_distances(jnp, p, p))(points))
    np.testing.assert_allclose(found, find_distances(np, points, points), 1e-15)


def count_stores(function) -> int:
    """Stores of whole vectors in the program's code."""
    return len(re.findall(r"store <\d+ x double>", function.inspect("llvm")))


@pytest.mark.skipif(host.MACHINE.registers < 32, reason="four rows need 32 registers")
def test_what_rows_share_is_read_once():
    points = np.ones((40, 3))
    shared = jit(lambda p: ((p.T[:, :, None] - p.T[:, None]) ** 2).sum(0))
    alone = jit(lambda p: (p.T[0][:, None] - p.T[0]) ** 2)
    few = jit(lambda p: ((p.T[:, :3, None] - p.T[:, None]) ** 2).sum(0))
    for function in (shared, alone, few):
        function(points)
    # four rows at a time, then single ones; single ones where rows share one operand, or there are few
    assert count_stores(shared) == 5
    assert count_stores(alone) == 1
    assert count_stores(few) == 3


def test_a_row_that_the_next_one_reads():
    """Rows that depend on each other stay in their order."""

    def grow(m, x):
        rows = [x[0]]
        for row in x[1:]:
            rows.append(rows[-1] * 0.5 + row)
        return m.stack(rows)

    x = np.random.default_rng(2).random((9, 50))
    np.testing.assert_allclose(np.asarray(jit(lambda x: grow(jnp, x))(x)), grow(np, x), 1e-14)


# -- rows that are read too -----------------------------------------------------------------------------------
def weigh(m, a, x, row):
    return a @ x + row


def find_square_distances(m, a, x, row):
    return ((a - x) ** 2).sum(1) * row


def find_largest(m, a, x, row):
    return m.maximum((a * x).max(1), row)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("program", [weigh, find_square_distances, find_largest])
def test_rows_in_memory_with_a_row_that_all_share(program, dtype):
    """Groups of four and two rows, one that is left, and fewer; whole vectors and what they leave."""
    rng = np.random.default_rng(3)
    for rows, columns in [(3, 70), (4, 65), (7, 16), (9, 64), (15, 100), (22, 9), (23, 131), (64, 300)]:
        a, x, row = (rng.integers(-9, 9, shape).astype(dtype) for shape in ((rows, columns), columns, rows))
        got = jit(lambda *operands: program(jnp, *operands))(a, x, row)
        np.testing.assert_array_equal(got, program(np, a, x, row))


def test_rows_in_memory_have_the_same_bits_for_any_number_of_threads():
    rng, before, results = np.random.default_rng(4), threads.get_num_threads(), []
    a, x = rng.standard_normal((1013, 333)), rng.standard_normal(333)
    try:
        for count in (1, 2, 3, 5):
            threads.set_num_threads(count)
            results.append(np.asarray(jit(lambda a, x: a @ x)(a, x)))
    finally:
        threads.set_num_threads(before)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)
