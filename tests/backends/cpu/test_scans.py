"""Running sums and their kin on the CPU backend: lanes, blocks, columns, directions, threads."""

import numpy as np
import pytest

import jitcore
from jitcore import lax
from jitcore.backends.cpu.machine import host
from jitcore.config import config
from tests.combinations import spread

UFUNCS = {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum,
          "cumlogsumexp": np.logaddexp}
SHAPES = [(0,), (1,), (7,), (31,), (33,), (129,), (1000,), (65536,), (100_003,), (3, 5), (100, 4), (40, 130),
          (130, 40), (3, 70_000), (7, 8, 9), (0, 4)]
CASES = [(name, dtype) for name in UFUNCS for dtype in ("float32", "float64")]
CASES += [(name, dtype) for name in ("cumsum", "cumprod", "cummax", "cummin") for dtype in ("int8", "int32", "int64")]


def draw(name, shape, dtype):
    x = np.random.default_rng(7).standard_normal(shape) * 2
    if name == "cumprod":
        x = 1 + x * 1e-4 if np.dtype(dtype).kind == "f" else np.where(x > 0, 3, 1)
    return (x * (1 if np.dtype(dtype).kind == "f" or name == "cumprod" else 10)).astype(dtype)


def accumulate(name, x, axis, reverse):
    """The result in float64, or in the integers' own dtype."""
    wide = x.astype(np.float64) if x.dtype.kind == "f" else x
    wide = np.flip(wide, axis) if reverse else wide
    result = UFUNCS[name].accumulate(wide, axis, dtype=wide.dtype)
    return np.flip(result, axis) if reverse else result


@pytest.mark.parametrize("case, reverse", spread(CASES, [False, True], times=1))
def test_every_shape_and_axis(case, reverse):
    name, dtype = case
    for shape in SHAPES:
        x = draw(name, shape, dtype)
        for axis in range(len(shape)):
            got = np.asarray(jitcore.jit(lambda x, axis=axis: getattr(lax, name)(x, axis, reverse))(x))
            wanted = accumulate(name, x, axis, reverse)
            if x.dtype.kind == "f":
                scale = np.abs(wanted).max(initial=1)
                eps = float(np.finfo(dtype).eps) * 50
                steps = max((1, *shape)) ** 0.5 if name in ("cumprod", "cumlogsumexp") else 1
                np.testing.assert_allclose(got, wanted, rtol=eps * steps, atol=eps * steps * scale)
            else:
                np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("reverse", [False, True])
def test_long_scans_are_more_accurate_than_numpys(reverse):
    x = np.random.default_rng(1).random(1_000_000, np.float32)
    exact = accumulate("cumsum", x, 0, reverse)
    plain = np.flip(np.flip(x).cumsum()) if reverse else x.cumsum()
    got = np.asarray(jitcore.jit(lambda x: lax.cumsum(x, 0, reverse))(x))
    assert abs(got - exact).max() <= abs(plain - exact).max()


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_special_values_stay(name):
    for place in (0, 13, 40_000, 99_999):
        x = draw(name, (100_000,), "float32")
        x[place] = np.nan
        got = np.asarray(jitcore.jit(lambda x: getattr(lax, name)(x))(x))
        assert not np.isnan(got[:place]).any() and np.isnan(got[place:]).all()


def test_result_does_not_depend_on_threads():
    x = np.random.default_rng(2).standard_normal(300_007).astype(np.float32)
    options = [{"parallel": False}, {"num_threads": 2}, {"num_threads": 3}, {}]
    results = [
        np.asarray(jitcore.jit(lambda x: lax.cumsum(x, 0), compiler_options=option)(x)) for option in options
    ]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_another_length_shares_the_code():
    running = jitcore.jit(lambda x: lax.cumsum(x, 0))
    for size in (100_000, 200_017, 333_333):
        x = np.ones(size, np.int32)
        np.testing.assert_array_equal(np.asarray(running(x)), x.cumsum())
    assert running.cache_info().compiles <= 1


@pytest.fixture(params=[1, 4])
def blocks_in_cache(request, monkeypatch):
    """So many blocks of 32768 numbers of 8 bytes are a thread's part of a round."""
    sizes = host.CacheSizes(32 << 10, request.param << 19, 1 << 25)
    monkeypatch.setattr(host, "cache_sizes", lambda: sizes)
    with config.override(cache_dir=""):
        jitcore.clear_caches()
        yield
    jitcore.clear_caches()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_rounds(blocks_in_cache, threads, reverse):
    f = jitcore.jit(lambda x: lax.cumsum(x, 0, reverse), compiler_options={"num_threads": threads})
    g = jitcore.jit(lambda x: lax.cummax(2 * x + 1, 0, reverse), compiler_options={"num_threads": threads})
    for count in (65_536, 65_537, 131_072, 300_001, 327_680, 1_000_003):
        x = np.random.default_rng(count).integers(-100, 100, count)
        np.testing.assert_array_equal(np.asarray(f(x)), accumulate("cumsum", x, 0, reverse))
        np.testing.assert_array_equal(np.asarray(g(x)), accumulate("cummax", 2 * x + 1, 0, reverse))
    assert "_shifted" in f.inspect("llvm")


def test_rounds_in_loops(blocks_in_cache):
    def twice(x):
        return lax.fori_loop(0, 2, lambda i, x: lax.cumsum(x, 0) % 1000 + i, x)

    x = np.random.default_rng(0).integers(0, 100, 200_003)
    expected = x
    for i in range(2):
        expected = np.cumsum(expected) % 1000 + i
    np.testing.assert_array_equal(np.asarray(jitcore.jit(twice)(x)), expected)


def test_several_scans_in_one_program(blocks_in_cache):
    f = jitcore.jit(lambda x, y: (lax.cumsum(x, 0), lax.cumsum(y, 0, reverse=True), lax.cumsum(x * y, 0)))
    x, y = np.random.default_rng(0).integers(0, 100, (2, 200_003))
    for found, wanted in zip(f(x, y), (np.cumsum(x), np.cumsum(y[::-1])[::-1], np.cumsum(x * y))):
        np.testing.assert_array_equal(np.asarray(found), wanted)


def test_the_same_bits_whatever_a_round(monkeypatch):
    x, results = np.random.default_rng(3).random(500_000, np.float32), []
    with config.override(cache_dir=""):
        for size in (1 << 16, 1 << 20, 1 << 24):
            sizes = host.CacheSizes(32 << 10, size, 1 << 25)
            monkeypatch.setattr(host, "cache_sizes", lambda sizes=sizes: sizes)
            jitcore.clear_caches()
            results.append(np.asarray(jitcore.jit(lambda x: lax.cumsum(x, 0))(x)).tobytes())
    jitcore.clear_caches()
    assert results[0] == results[1] == results[2]
