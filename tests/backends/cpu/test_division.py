"""Quotients and remainders of integers in lanes, against Python's integers: by arrays, by numbers that the
program is told, and by constants."""

import numpy as np
import pytest

import jitcore
from jitcore import lax

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def make_numbers(dtype, count, rng):
    """Small and large ones, those at the ends, and those next to powers of two."""
    limits, bits = np.iinfo(dtype), 8 * np.dtype(dtype).itemsize
    widths = rng.integers(1, bits + 1, count)
    numbers = [int(rng.integers(0, 1 << min(w, 62))) << max(w - 62, 0) for w in map(int, widths)]
    numbers += [(1 << k) + d for k in range(bits) for d in (-1, 0, 1)]
    numbers += [-number for number in numbers] + [limits.min, limits.max, limits.min + 1, 0]
    numbers = [number for number in numbers if limits.min <= number <= limits.max]
    return np.array(rng.permutation(np.array(numbers, dtype=object))[:count], dtype=dtype)


def divide(x: int, y: int, dtype) -> tuple[int, int]:
    """As XLA does: (quotient, remainder), rounded to zero."""
    if y == 0:
        return np.array(-1).astype(dtype).item(), x
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    remainder = x - quotient * y
    return (x if quotient > np.iinfo(dtype).max else quotient), remainder


def check(results, x, y, dtype):
    expected = [divide(int(a), int(b), dtype) for a, b in zip(x, y)]
    for result, column in zip(results, zip(*expected)):
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, np.array(column, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_by_arrays(dtype):
    rng = np.random.default_rng(1)
    f = jitcore.jit(lambda x, y: (lax.div(x, y), lax.rem(x, y)))
    x, y = (make_numbers(dtype, 4000, rng) for _ in range(2))
    check(f(x, y), x, y, dtype)
    near = y.astype(object) * rng.integers(1, 50, y.size) + rng.integers(-1, 2, y.size)
    inside = [k for k, number in enumerate(near) if np.iinfo(dtype).min <= number <= np.iinfo(dtype).max]
    x, y = near[inside].astype(dtype), y[inside]
    check(f(x, y), x, y, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_by_a_number_that_lanes_share(dtype):
    rng = np.random.default_rng(2)
    f = jitcore.jit(lambda x, y: (lax.div(x, y), lax.rem(x, y)))
    x = make_numbers(dtype, 1000, rng)
    for y in [*make_numbers(dtype, 60, rng), *np.array([0, 1, 3, 97], dtype)]:
        check(f(x, np.full_like(x, y)[0]), x, np.full_like(x, y), dtype)


@pytest.mark.parametrize("number", [0, 1, 2, 3, 7, 97, 1000003, -1, -3, 2**40 + 1, 2**50 - 1, -(2**63), 2**64 - 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_by_constants(dtype, number):
    if not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
        pytest.skip("no number of this dtype")
    x, constant = make_numbers(dtype, 1000, np.random.default_rng(3)), np.array(number, dtype)
    f = jitcore.jit(lambda x: (lax.div(x, constant), lax.rem(x, constant)))
    check(f(x), x, np.full_like(x, number), dtype)


def test_large_numbers_leave_others_alone():
    """Large 64-bit numbers anywhere in a register do not change the others."""
    x, y = np.arange(1000) * 12345, np.arange(1000) % 37 + 1
    x[::17] = 2**62 + x[::17]
    y[5::23] = -(2**61)
    f = jitcore.jit(lambda x, y: (lax.div(x, y), lax.rem(x, y)))
    check(f(x, y), x, y, "int64")
