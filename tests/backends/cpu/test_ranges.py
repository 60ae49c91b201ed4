"""Loops over ranges known at run time: every length around the widths of registers, at every kind of place."""

import numpy as np
import pytest

from jitcore import jit, lax, numpy as jnp

SIZE = 150
RNG = np.random.default_rng(0)
LENGTHS = [*range(0, 20), 31, 32, 33, 63, 64, 65, 66, 127, 128, 129, 149, 150]
DTYPES = [np.float64, np.float32, np.float16, np.int64, np.int8, np.complex64, bool]


def values(dtype, *shape):
    return RNG.integers(0, 2 if dtype is bool else 5, shape).astype(dtype)


#: How the k-th element of a range from `low` on is read from a matrix, in jitcore and in NumPy.
PLACES = {
    "row": (lambda x, low, k: x[3], lambda x, low, k: x[3, k]),
    "column": (lambda x, low, k: x[:, 3], lambda x, low, k: x[k, 3]),
    "shifted": (lambda x, low, k: jnp.take(x[3], low + k, mode="clip"), lambda x, low, k: x[3, low + k]),
    "shifted column": (lambda x, low, k: jnp.take(x[:, 3], low + k, mode="clip"), lambda x, low, k: x[low + k, 3]),
    "backwards": (lambda x, low, k: jnp.take(x[3], low - k, mode="clip"), lambda x, low, k: x[3, low - k]),
    "every other": (lambda x, low, k: jnp.take(x.reshape(-1), low + 2 * k, mode="clip"),
                    lambda x, low, k: x.reshape(-1)[low + 2 * k]),
}


def in_array(places, size):
    return np.clip(places, 0, size - 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PLACES)
def test_sums_over_ranges(name, dtype):
    read, read_in_numpy = PLACES[name]
    x = values(dtype, SIZE, SIZE)

    @jit
    def total(x, low, count):
        k = lax.iota(np.int64, SIZE)
        return jnp.where(k < count, read(x, low, k), jnp.zeros((), dtype)).sum()

    for count in LENGTHS:
        low = {"backwards": count - 1}.get(name, SIZE - count)
        if name in ("row", "column", "every other"):
            low = min(count, 3)
        expected = read_in_numpy(x, low, np.arange(count)).sum()
        np.testing.assert_allclose(np.asarray(total(x, low, count)), expected, rtol=1e-3)
    assert " of 150" in total.inspect("loop program")


@pytest.mark.parametrize("low", [-(2**40), -200, -3, 0, 2, 140, 149, 170, 2**40, 2**62])
@pytest.mark.parametrize("name", ["shifted", "backwards", "shifted column"])
def test_places_outside_are_clamped(name, low):
    """The range of places may begin before the array and end after it."""
    read, _ = PLACES[name]
    x = values(np.float64, SIZE, SIZE)
    total = jit(lambda x, low, n: jnp.where(lax.iota(np.int64, SIZE) < n, read(x, low, lax.iota(np.int64, SIZE)),
                                            0.0).sum())
    line = x[:, 3] if name == "shifted column" else x[3]
    for count in (0, 1, 7, 40, SIZE):
        k = np.arange(count)
        places = in_array(low - k if name == "backwards" else low + k, SIZE)
        np.testing.assert_allclose(total(x, np.int64(low), count), line[places].sum())


@pytest.mark.parametrize("dtype", DTYPES)
def test_stores_over_ranges(dtype):
    x, new = values(dtype, SIZE), values(dtype, SIZE)

    @jit
    def fill(x, new, low, count):
        def step(j, x):
            k = lax.iota(np.int64, SIZE)
            return jnp.where((k >= low + j) & (k < low + j + count), jnp.take(new, k - j, mode="clip"), x)

        return lax.fori_loop(0, 3, step, x)

    for count in LENGTHS:
        low, expected = (SIZE - count) // 2, x.copy()
        for j in range(3):
            stop = min(low + j + count, SIZE)
            expected[low + j : stop] = new[low : stop - j]
        np.testing.assert_array_equal(np.asarray(fill(x, new, low, count)), expected)
