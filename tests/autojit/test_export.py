"""Autojitted functions called from Numba's nopython code."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore

numba = pytest.importorskip("numba")
SCALE = np.array([1.0, 2.0, 3.0, 4.0])


@jitcore.autojit
def relax(u, steps):
    """In place; the number of cells above a half, and the sum."""
    for _ in range(steps):
        u[1:-1] = 0.5 * (u[:-2] + u[2:])
    count = 0
    for i in range(len(u)):
        if u[i] > 0.5:
            count += 1
    return count, u.sum()


@jitcore.autojit
def take(x, i):
    x[0] += 1.0
    return x[i]


@jitcore.autojit
def shift(x, y, flag=True):
    x[:] = y * SCALE
    return x if flag else y


def test_writes_reach_the_caller_s_array():
    exported = relax.as_njit(np.ones(6), 3)

    @numba.njit
    def use(u, steps):
        total = 0.0
        for _ in range(3):
            count, s = exported(u, steps)
            total += count + s
        return total

    ours, theirs = np.linspace(0, 1, 12)[::2].copy(), np.linspace(0, 1, 12)[::2].copy()
    expected = 0.0
    for _ in range(3):
        count, s = relax.__jitcore_original__(theirs, 4)
        expected += count + s
    assert use(ours, 4) == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(ours, theirs, rtol=1e-14)
    strided, wide = np.zeros(12), np.zeros(12)
    strided[::2] = wide[::2] = np.linspace(0, 1, 6)
    exported(strided[::2], 2)
    relax.__jitcore_original__(wide[::2], 2)
    np.testing.assert_allclose(strided, wide, rtol=1e-14)


def test_a_failure_raises_before_anything_is_written():
    exported = take.as_njit(np.ones(4), 1)
    x = np.ones(4)
    assert exported(x, 3) == 1.0 and exported(x, -4) == 3.0
    for call in (exported, numba.njit(lambda x, i: exported(x, i))):
        before = x.copy()
        with pytest.raises(IndexError, match="take: "):
            call(x, 4)
        np.testing.assert_array_equal(x, before)


def test_arguments_captured_arrays_and_constants():
    x, y = np.zeros(4), np.ones(4)
    exported = shift.as_njit(x, y)
    assert exported(x, y, True) is x or np.shares_memory(exported(x, y, True), x)
    np.testing.assert_array_equal(x, SCALE)
    SCALE[0] = 7.0
    try:
        exported(x, y, True)
        assert x[0] == 7.0
    finally:
        SCALE[0] = 1.0
    with pytest.raises(ValueError, match="compiled for flag = True"):
        exported(x, y, False)
    with pytest.raises(ValueError, match="share memory"):
        exported(x, x, True)
    with pytest.raises(ValueError, match=r"compiled for y of shape \(4,\)"):
        exported(x, np.ones(5), True)
    fortran = jitcore.autojit(_halve).as_njit(np.asfortranarray(np.ones((2, 3))))
    given = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    fortran(given)
    np.testing.assert_array_equal(given, np.arange(6.0).reshape(2, 3) / 2)


def _halve(a):
    a /= 2


def sets_a_global(x):
    global COUNT
    COUNT = 1
    return x


def prints(x):
    print(x)
    return x


@pytest.mark.parametrize(("function", "example", "error"), [
    (sets_a_global, np.ones(2), NotImplementedError), (lambda x: [x], np.ones(2), NotImplementedError),
    (lambda x: x[1:], np.ones(2), NotImplementedError), (lambda x: x["a"], {"a": 1.0}, NotImplementedError),
    (prints, np.ones(2), NotImplementedError)])
def test_what_it_refuses(function, example, error):
    with pytest.raises(error):
        jitcore.autojit(function).as_njit(example)
