"""Accesses a few elements apart: `x[::k]`, short rows, reversed arrays, against NumPy."""

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from tests.combinations import spread

DTYPES = ["bool", "int8", "uint8", "int16", "float16", "int32", "float32", "int64", "float64", "complex64"]
SIZES = (1, 5, 31, 32, 33, 100, 257)


def draw(count, dtype):
    x = np.random.default_rng(count).standard_normal(count) * 50
    return x > 0 if dtype == "bool" else x.astype(dtype)


def same(got, wanted):
    np.testing.assert_array_equal(np.asarray(got), wanted)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
@pytest.mark.parametrize(("rows", "count", "width"), [(1, 40, 3), (6, 100, 3), (97, 131, 2), (40, 64, 1)])
def test_all_pairs(rows, count, width, dtype):
    """Rows side by side, rows that are left over, lanes that are left over; sums over one axis and over both."""
    x, y = draw(rows * width, dtype).reshape(rows, width), draw(count * width, dtype).reshape(count, width)
    apart = (y[None].astype("float64") - x[:, None]) ** 2

    def measure(x, y):
        square = ((y[None] - x[:, None]) ** 2).sum(-1, dtype=x.dtype)
        return square.sum(1, dtype=x.dtype), square.min(1), square.sum(dtype=x.dtype)

    wanted = apart.sum((1, 2)), apart.sum(2).min(1), apart.sum()
    for got, right in zip(jitcore.jit(measure)(x, y), wanted):
        np.testing.assert_allclose(np.asarray(got), right, rtol=2e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("dtype, step", spread(DTYPES, [2, 3, 4, 5, 8, 9, -1, -2, -3, -8], times=3))
def test_read_every_kth(dtype, step):
    for size in SIZES:
        x = draw(size * 9 + 20, dtype)
        for start in (0, 1, 3, 9):
            same(jitcore.jit(lambda x, start=start: jnp.where(x[start:][::step] == 0, x[0], x[start:][::step]))(x),
                 np.where(x[start:][::step] == 0, x[0], x[start:][::step]))


@pytest.mark.parametrize("dtype, step", spread(DTYPES, [1, 2, 3, 4, 8, 9], times=2))
def test_write_every_kth(dtype, step):
    for size in SIZES:
        x = draw(size, dtype)
        for way in (step, -step):
            wanted = np.zeros(size * step, dtype)
            wanted[::way] = x
            same(jitcore.jit(lambda x, way=way: jnp.zeros(x.size * step, x.dtype).at[::way].set(x))(x), wanted)


@pytest.mark.parametrize("dtype, width", spread(["int16", "int32", "float32", "float64"], range(1, 10), times=2))
def test_short_rows(dtype, width):
    for size in SIZES:
        x = draw(size * width, dtype).reshape(size, width)
        same(jitcore.jit(lambda x: x.max(axis=1))(x), x.max(axis=1))
        same(jitcore.jit(lambda x: (x + x)[:, ::-1])(x), (x + x)[:, ::-1])
        total = jitcore.jit(lambda x: x.sum(axis=1, dtype=x.dtype))(x)
        np.testing.assert_allclose(np.asarray(total), x.sum(axis=1, dtype=dtype), rtol=1e-4, atol=1e-3)


def test_nothing_is_read_beyond_the_end():
    """The last element of the array is the last of a page; reading on would end the process."""
    import mmap

    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    import ctypes

    whole = np.frombuffer(memory, np.float32)
    start = whole.__array_interface__["data"][0]
    libc = ctypes.CDLL(None)
    assert libc.mprotect(ctypes.c_void_p(start + page), ctypes.c_size_t(page), 0) == 0
    x = whole[: page // 4]
    read = jitcore.jit(lambda x: (x[1::3] + 1, x[::-2] + 1))
    for tail in range(page // 4 - 40, page // 4):
        got = read(x[page // 4 - tail :])
        same(got[0], x[page // 4 - tail :][1::3] + 1)
        same(got[1], x[page // 4 - tail :][::-2] + 1)
    libc.mprotect(ctypes.c_void_p(start + page), ctypes.c_size_t(page), 3)


def test_another_size_shares_the_code():
    double = jitcore.jit(lambda x: x[9::4] * 2)
    for start, size in ((9, 1000), (9, 2011), (9, 555)):
        x = draw(size, "float32")
        same(double(x), x[start::4] * 2)
    assert double.cache_info().compiles <= 1
    shift = [jitcore.jit(lambda x, k=k: x[k::4] * 2) for k in (10, 11, 12, 13)]  # one text, other numbers
    x = draw(1003, "float32")
    for k, function in enumerate(shift, 10):
        same(function(x), x[k::4] * 2)
