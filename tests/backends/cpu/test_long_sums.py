"""Long sums are as exact as NumPy's: they go in short runs, whose totals keep what they round off."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import autojit, jit
from jitcore.backends.cpu.machine import host
from tests.backends.cpu.tuning import tune

F32 = np.float32
#: Numbers of which sums round in one direction; the largest relative error of many of them.
NUMBERS, BOUND = (0.1, 0.7, 1 / 3, 0.9), 5e-7
COUNT = 1 << 20


def find_error(found, expected) -> float:
    return float(np.max(np.abs(np.asarray(found, float) / expected - 1)))


#: shape -> function and what it gives for an array of ones, times the power of the number.
SUMS = {
    "all": ((COUNT,), lambda x: x.sum(), COUNT, 1),
    "all but a few": ((COUNT - 77,), lambda x: x.sum(), COUNT - 77, 1),
    "mean": ((COUNT,), lambda x: x.mean(), 1, 1),
    "squares": ((COUNT,), lambda x: (x * x).sum(), COUNT, 2),
    "functions": ((COUNT,), lambda x: np.sqrt(x * x).sum(), COUNT, 1),
    "dot": ((COUNT,), lambda x: np.dot(x, x), COUNT, 2),
    "rows": ((16, COUNT // 16), lambda x: x.sum(1), COUNT // 16, 1),
    "short rows": ((COUNT // 4096, 4096), lambda x: x.sum(1), 4096, 1),
    "columns": ((COUNT // 64, 64), lambda x: x.sum(0), COUNT // 64, 1),
    "few columns": ((COUNT // 4, 4), lambda x: x.mean(0), 1, 1),
    "seven columns": ((COUNT // 7, 7), lambda x: x.sum(0), COUNT // 7, 1),
    "many columns": ((1024, 1024), lambda x: x.sum(0), 1024, 1),
    "middle": ((8, COUNT // 160, 20), lambda x: x.sum(1), COUNT // 160, 1),
    "outer": ((8, COUNT // 160, 20), lambda x: x.sum((0, 1)), COUNT // 160 * 8, 1),
    "around": ((20, COUNT // 400, 20), lambda x: x.sum((0, 2)), 400, 1),
    "turned": ((COUNT // 64, 64), lambda x: x.T.sum(1), COUNT // 64, 1),
    "pairs": ((3000, 1), lambda x: (x + 0 * x[:, 0]).sum(), 3000 * 3000, 1),
    "running": ((COUNT,), lambda x: np.cumsum(x)[-1], COUNT, 1),
    "running back": ((COUNT,), lambda x: np.cumsum(x[::-1])[-1], COUNT, 1),
    "running rows": ((8, COUNT // 8), lambda x: np.cumsum(x, 1)[:, -1], COUNT // 8, 1),
    "running columns": ((COUNT // 64, 64), lambda x: np.cumsum(x, 0)[-1], COUNT // 64, 1),
}


@pytest.mark.parametrize("name", SUMS)
def test_many_numbers_keep_their_digits(name):
    shape, function, count, power = SUMS[name]
    for compile_ in (jit, autojit):
        compiled = compile_(function)
        for number in NUMBERS:
            x = np.full(shape, number, F32)
            assert find_error(compiled(x), count * float(F32(number)) ** power) < BOUND, (compile_, number)


def test_norms_and_variances_keep_their_digits():
    x = np.full(COUNT, 0.3, F32)
    assert find_error(jit(jnp.linalg.norm)(x), float(x[0]) * COUNT**0.5) < BOUND
    y = np.where(np.arange(COUNT) % 2, F32(0.1), F32(0.6))
    half = float(F32(0.6) - F32(0.1)) / 2
    assert find_error(jit(jnp.var)(y), half**2) < 1e-6 > find_error(jit(lambda m: m.std(1))(y.reshape(8, -1)), half)


def test_random_numbers_of_all_dtypes_are_as_exact_as_numpys():
    rng = np.random.default_rng(3)
    for dtype in ("float32", "float64", "complex64", "complex128"):
        for shape in ((COUNT,), (4, COUNT // 4), (COUNT // 16, 16)):
            x = (rng.random(shape) + (1j * rng.random(shape) if dtype[0] == "c" else 0)).astype(dtype)
            for axis in (None, 0, -1):
                exact = x.astype("clongdouble" if dtype[0] == "c" else "longdouble").sum(axis)
                error = np.max(abs(np.asarray(jit(lambda x: x.sum(axis))(x)) - exact) / abs(exact))  # noqa: B023
                assert error < 4 * np.finfo(dtype).eps, (dtype, shape, axis)


@pytest.mark.parametrize(("way", "axis"), [("row by row", 0), ("rows in halves", 1), ("rows in halves", None)])
def test_each_way_through_memory(way, axis, monkeypatch):
    tune(monkeypatch, loops=dict.fromkeys(("near_bytes", "min_long_array", "min_long_row"), 0))
    monkeypatch.setattr(host, "cache_sizes", lambda: host.CacheSizes(1 << 10, 1 << 10, 1 << 10))
    for scale in (1, 1.5):
        x, run = np.full((2050, 2050), 0.7, F32), jit(lambda x: (x * F32(scale)).sum(axis))  # noqa: B023
        assert find_error(run(x), float(F32(0.7)) * scale * (x.size if axis is None else 2050)) < 2 * BOUND
        assert way in run.inspect("loop program") and "in short runs" in run.inspect("loop program")


def test_infinite_and_undefined_numbers_are_summed_as_ever():
    cases = {
        "one": (np.inf,),
        "two": (np.inf, np.inf),
        "both": (np.inf, -np.inf),
        "nan": (np.nan, 1.0),
        "too large": (3e38,) * 300,
    }
    for values in cases.values():
        x = np.ones(100_000, F32)
        x[np.linspace(5, 99_000, len(values)).astype(int)] = values
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(jit(jnp.sum)(x), x.sum())
            np.testing.assert_array_equal(jit(lambda x: x.sum(0))(x.reshape(-1, 2)), x.reshape(-1, 2).sum(0))
            np.testing.assert_array_equal(jit(jnp.cumsum)(x)[-1], np.cumsum(x)[-1])


def test_whole_numbers_are_summed_exactly():
    x = np.random.default_rng(0).integers(-50, 50, 100_000).astype(F32)
    assert float(jit(jnp.sum)(x)) == x.astype(int).sum()
    assert (np.asarray(jit(jnp.cumsum)(x)) == np.cumsum(x.astype(int))).all()


def test_short_sums_keep_the_usual_code():
    def count_runs(function, x):
        wrapped = jit(function)
        wrapped(x)
        return wrapped.inspect("loop program").count("in short runs")

    assert count_runs(lambda x: x.sum(1), np.ones((1000, 200), F32)) == 0
    assert count_runs(lambda x: x.sum(0), np.ones((100, 1000), F32)) == 0
    assert count_runs(lambda x: x.sum(), np.ones(200, F32)) == 0
    assert count_runs(lambda x: x.max(), np.ones(COUNT, F32)) == 0
    assert count_runs(lambda x: x.sum(), np.ones(COUNT, np.int32)) == 0
    assert count_runs(lambda x: x.sum(), np.ones(COUNT, F32)) == 1
    assert count_runs(lambda x: x.sum(0), np.ones((1000, 1000), F32)) == 1


@pytest.mark.slow
def test_a_hundred_million_numbers():
    x = np.full(10**8, 0.1, F32)
    number = float(x[0])
    for compile_ in (jit, autojit):
        assert find_error(compile_(lambda x: x.sum())(x), number * 1e8) < 3e-7
        assert find_error(compile_(lambda x: x.mean())(x), number) < 3e-7
        for shape in ((10**4, 10**4), (10**7, 10), (10, 10**7)):
            for axis in (0, 1):
                found = compile_(lambda x: x.sum(axis))(x.reshape(shape))  # noqa: B023
                assert find_error(found, number * shape[axis]) < 3e-7
