"""Reductions that threads share by blocks of what is combined, as their results are too few."""

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.schedule.tuning import Tuning
from jitcore.schedule.two_stage_reductions import goes_in_blocks

RNG = np.random.default_rng(0)
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}


def make_values(shape, dtype):
    values = RNG.standard_normal(shape) * 100
    return (values + 1j * RNG.standard_normal(shape) if dtype is np.complex64 else values).astype(dtype)


@pytest.mark.parametrize("layout, kept, expected", [
    ((10000, 100), (1,), True),
    ((100, 100, 100), (2,), True),
    ((3, 300_000), (0,), True),
    ((1, 3, 100_000, 3), (1,), False),  # neither columns nor rows
    ((10000, 8), (1,), False),  # parts of one sweep over all elements
    ((10000, 1000), (1,), False),  # columns enough for threads
    ((16, 1_000_000), (0,), True),
    ((17, 1_000_000), (0,), False),
    ((600, 100), (1,), False),  # short
    ((10000, 100), (), False),
    ((10000, 100), (0, 1), False),
])
def test_shapes(layout, kept, expected):
    assert goes_in_blocks(layout, kept, Tuning()) == expected


@pytest.mark.parametrize("shape, axis, dtype", [
    ((1300, 100), 0, np.float32), ((1300, 100), 0, np.complex64), ((5003, 17), 0, np.float64), ((5003, 17), 0, np.int32),
    ((20, 100, 50), (0, 1), np.float32), ((4, 8, 32, 64), (0, 1, 2), np.float64), ((3, 263_001), 1, np.int32),
    ((2, 515, 511), (1, 2), np.float32),
])
def test_sums(shape, axis, dtype):
    x = make_values(shape, dtype)
    wide = x.astype(np.promote_types(dtype, np.float64)) if dtype is not np.int32 else x
    expected = wide.sum(axis)
    bound = np.abs(wide).sum(axis).max() * {np.int32: 0, np.float64: 1e-15}.get(dtype, 1e-6)
    np.testing.assert_allclose(jit(lambda x: x.sum(axis))(x), expected, rtol=0, atol=bound)


@pytest.mark.parametrize("name", ["max", "min", "prod", "any", "all"])
def test_other_reductions(name):
    x = (RNG.random((5000, 60)) > 0.5) if name in ("any", "all") else RNG.uniform(0.99, 1.01, (5000, 60))
    found = jit(lambda x: getattr(jnp, name)(x, axis=0))(x)
    np.testing.assert_allclose(found, getattr(np, name)(x, axis=0), rtol=1e-12)


@pytest.mark.parametrize("shape, name, accumulate, reverse", [
    ((1000, 100), "cumsum", np.add, False), ((1000, 100), "cummax", np.maximum, True),
    ((33_000, 3), "cumprod", np.multiply, True), ((33_000, 3), "cummin", np.minimum, False),
    ((35_001, 1, 2), "cummax", np.maximum, False), ((1003, 7, 9), "cumsum", np.add, True),
    ((65_537, 1), "cumprod", np.multiply, False), ((65_537, 1), "cumsum", np.add, True),
    ((259, 255), "cummin", np.minimum, True),
])
def test_scans(shape, name, accumulate, reverse):
    x = RNG.uniform(0.99, 1.01, shape) * RNG.choice([-1, 1], shape)
    found = jit(lambda x: getattr(lax, name)(x, 0, reverse=reverse))(x)
    expected = accumulate.accumulate(x[::-1])[::-1] if reverse else accumulate.accumulate(x)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-10)


def test_scans_of_what_is_computed():
    x = make_values((3000, 30), np.float32)
    found = jit(lambda x: jnp.cumsum(jnp.where(x > 0, x * 2, 1).astype("int32"), axis=0))(x)
    np.testing.assert_array_equal(found, np.cumsum(np.where(x > 0, x * 2, 1).astype(np.int32), axis=0))


@pytest.mark.machine_code
def test_scans_do_not_depend_on_threads():
    x = make_values((20_000, 30), np.float32)
    found = [np.asarray(jit(lambda x: jnp.cumsum(x, 0), compiler_options={"num_threads": threads})(x))
             for threads in (1, 2, 5)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_scans_of_one_program():
    """Some share code, though not the number of columns."""
    x, y = make_values((1500, 100), np.float64), make_values((1500, 9), np.float64)

    def scan(np, x, y):
        scans = [np.cumsum(x[:, :columns] * 2, axis=0) for columns in (60, 50)]
        wide = [x[:, :columns, None] + y[:, None, :] for columns in (13, 11)]
        return [*scans, *(np.cumsum(value, axis=0) for value in wide)]

    for found, expected in zip(jit(lambda x, y: scan(jnp, x, y))(x, y), scan(np, x, y)):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-8)


def test_scans_in_a_loop_and_in_place():
    x = make_values((1200, 60), np.float64)
    repeat = jit(lambda x: lax.fori_loop(0, 3, lambda _, x: jnp.cumsum(x, axis=0) * 1e-3, x))
    expected = x
    for _ in range(3):
        expected = np.cumsum(expected, axis=0) * 1e-3
    np.testing.assert_allclose(repeat(x), expected, rtol=1e-11, atol=1e-11)
    given = jit(lambda x: jnp.cumsum(x, axis=0), donate_argnums=0)(jnp.asarray(x))
    np.testing.assert_allclose(given, np.cumsum(x, axis=0), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("columns, reverse", [(1, True), (2, False), (4, True), (30, False)])
def test_scans_of_complex_numbers(columns, reverse):
    x = make_values((70_000 // columns, columns), np.complex64).astype(np.complex128)
    found = jit(lambda x: lax.cumsum(x, 0, reverse=reverse))(x)
    expected = np.cumsum(x[::-1], axis=0)[::-1] if reverse else np.cumsum(x, axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-8)


def test_the_first_block_begins_with_its_first_element():
    x = np.full((2000, 30), -0.0)
    assert np.signbit(np.asarray(jit(lambda x: jnp.cumsum(x, 0))(x))[0]).all()
    x[0], x[1] = np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(jit(lambda x: jnp.cumsum(x, 0))(x), np.cumsum(x, 0))


def test_nan_and_infinity_of_single_columns():
    x = RNG.standard_normal((5000, 60)).astype(np.float32)
    x[4990, 3], x[7, 5] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.isnan(jit(lambda x: x.max(0))(x)), np.arange(60) == 3)
        np.testing.assert_array_equal(np.isinf(jit(lambda x: x.sum(0))(x)), np.arange(60) == 5)


def test_several_sweeps_each_in_blocks():
    x = RNG.standard_normal((2500, 60))
    standardize = jit(lambda x: (x - x.mean(0)) / x.std(0))
    np.testing.assert_allclose(standardize(x), (x - x.mean(0)) / x.std(0), rtol=1e-10, atol=1e-12)
    text = standardize.inspect("loop program")
    assert text.count("of 546") == 2 and text.count("sqrt") == 1


def test_stores_in_the_sweep():
    x = RNG.standard_normal((2500, 60))
    found = jit(lambda x: (jnp.exp(x), jnp.exp(x).sum(0), x.min(0)))(x)
    for value, expected in zip(found, (np.exp(x), np.exp(x).sum(0), x.min(0))):
        np.testing.assert_allclose(value, expected, rtol=1e-12)


def test_operands_across():
    x = RNG.standard_normal((60, 5000))
    np.testing.assert_allclose(jit(lambda x: x.T.sum(0))(x), x.sum(1), rtol=0, atol=1e-11)
    np.testing.assert_allclose(jit(lambda x: (x.T * 2).max(0))(x), 2 * x.max(1), rtol=0)


def test_masked_rows():
    x = RNG.standard_normal((5000, 60))
    total = jit(lambda x, n: jnp.where(jnp.arange(5000)[:, None] < n, x, 0.0).sum(0))
    for n in (0, 1, 547, 4999, 5000):
        np.testing.assert_allclose(total(x, n), x[:n].sum(0), rtol=0, atol=1e-11)
    assert "select" not in total.inspect("loop program")


@pytest.mark.machine_code
def test_threads_do_not_change_the_bits():
    x = make_values((20_000, 40), np.float32)
    results = [jit(lambda x: x.sum(0), compiler_options={"num_threads": threads})(x) for threads in (1, 2, 5)]
    for found in results[1:]:
        np.testing.assert_array_equal(results[0], found)


@pytest.mark.machine_code
def test_new_sizes_do_not_compile():
    jitcore.clear_caches()
    total = jit(lambda x: jnp.sin(x).sum(0))
    for rows in (5000, 6001, 7002):
        total(np.ones((rows, 60)))
    assert total.cache_info().compiles == 1


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_places_of_extremes(name, dtype):
    x = RNG.integers(-900, 900, (6000, 60)).astype(dtype)  # which repeat
    if dtype is np.float32:
        x[4000, 3] = x[5000, 3] = np.nan
        x[:, 4] = np.inf
    both = jit(lambda x: (getattr(jnp, name)(x, axis=0), x.max(0), getattr(jnp, name)(x, axis=0) + 1))
    place, largest, after = both(x)
    np.testing.assert_array_equal(place, getattr(np, name)(x, axis=0))
    np.testing.assert_array_equal(after, place + 1)
    np.testing.assert_array_equal(largest, x.max(0))
    assert both.inspect("loop program").count("of 546") == 1
