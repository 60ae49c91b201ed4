"""Rows that come from memory: sweeps in halves and rows that are asked for ahead, all of them large enough here,
against NumPy; and which kernels are marked."""

import mmap

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax, nn
from jitcore.backends.cpu.machine import host
from jitcore.config import config
from tests.backends.cpu.tuning import tune
from tests.combinations import pairwise

COUNTS = [9, 15, 16, 31, 33, 63, 64, 65, 127, 128, 129, 1000, 4099]
BLOCKS = 200_003  # elements that are reduced in blocks

ALONG_ROWS = {
    "sum": (lambda x: x.sum(-1), lambda x: x.sum(-1)),
    "mean": (lambda x: x.mean(-1), lambda x: x.mean(-1)),
    "norm": (lambda x: jnp.sqrt((x * x).sum(-1)), lambda x: np.sqrt((x * x).sum(-1))),
    "var": (lambda x: x.var(-1), lambda x: x.var(-1)),
    "max": (lambda x: x.max(-1), lambda x: x.max(-1)),
    "min and max": (lambda x: x.max(-1) - x.min(-1), lambda x: x.max(-1) - x.min(-1)),
    "of two arrays": (lambda x: (x * x[::-1]).sum(-1), lambda x: (x * x[::-1]).sum(-1)),
    "any": (lambda x: (x > 0.9).any(-1), lambda x: (x > 0.9).any(-1)),
}
IN_SWEEPS = {
    "softmax": (nn.softmax, lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
    "logsumexp": (nn.logsumexp, lambda x: np.log(np.exp(x).sum())),
    "var": (lambda x: x.var(-1), lambda x: x.var(-1)),
    "centred": (lambda x: x - x.mean(-1, keepdims=True), lambda x: x - x.mean(-1, keepdims=True)),
    "normalized": (
        lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 0.1),
        lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.1),
    ),
}


@pytest.fixture
def all_arrays_are_large(monkeypatch):
    tune(monkeypatch, loops={"near_bytes": 1})
    monkeypatch.setattr(host, "cache_sizes", lambda: host.CacheSizes(1, 0, 1 << 30))
    with config.override(cache_dir=""):
        jitcore.clear_caches()
        yield
    jitcore.clear_caches()


@pytest.fixture
def all_rows_are_long(all_arrays_are_large, monkeypatch):
    tune(monkeypatch, loops={"min_long_row": 1})


@pytest.fixture
def all_rows_are_wide(all_arrays_are_large, monkeypatch):
    tune(monkeypatch, loops={"min_wide_row": 1})
    monkeypatch.setattr(host, "is_zen", lambda: False)


@pytest.fixture
def all_rows_are_short(all_arrays_are_large, monkeypatch):
    tune(monkeypatch, loops={"min_long_row": 1 << 60, "short_rows": range(1, 1 << 60)})


def marks(function) -> set[str]:
    text = function.inspect("loop program")
    ways = ("rows in halves", "rows ahead", "row by row", "places ahead")
    return {mark for mark in ways if mark in text}


def compare(function, reference, x) -> None:
    exact = x.dtype.kind != "f"
    expected = reference(x if exact else x.astype(np.float64))
    tolerance = 0 if exact else 200 * np.finfo(x.dtype).eps
    np.testing.assert_allclose(np.asarray(function(x)), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ALONG_ROWS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_in_halves(all_rows_are_long, name, dtype):
    program, reference = ALONG_ROWS[name]
    f = jit(program)
    for count in COUNTS:
        compare(f, reference, np.random.default_rng(count).random((5, count)).astype(dtype))
        assert marks(f) == {"rows in halves"}


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64"])
def test_integers_in_halves(all_rows_are_long, dtype):
    f = jit(lambda x: (x.sum(-1), x.max(-1), (x * x).min(-1)))
    for count in COUNTS:
        x = np.random.default_rng(count).integers(0, 11, (3, count)).astype(dtype)
        for ours, theirs in zip(f(x), (x.sum(-1), x.max(-1), (x * x).min(-1))):
            np.testing.assert_array_equal(np.asarray(ours), theirs)
    assert marks(f) == {"rows in halves"}


@pytest.mark.parametrize("place", [0, 40, 63, 64, 70, 128, 130])
def test_nan_in_either_half(all_rows_are_long, place):
    x = np.random.default_rng(0).random((2, 131))
    x[1, place] = np.nan
    assert np.isnan(np.asarray(jit(lambda x: x.max(-1))(x))).tolist() == [False, True]


@pytest.mark.parametrize("name", ["sum", "norm", "max"])
def test_blocks_in_halves(all_rows_are_long, name):
    """A reduction that threads share: the same bits whatever their number."""
    program, reference = ALONG_ROWS[name]
    x, results = np.random.default_rng(1).random(BLOCKS), []
    for options in ({"parallel": False}, {"num_threads": 2}, {"num_threads": 3}):
        f = jit(program, compiler_options=options)
        compare(f, reference, x)
        results.append(np.asarray(f(x)))
        assert marks(f) == {"rows in halves"}
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("program", [
    lambda x: x.argmax(-1),
    lambda x: (x * 1j).sum(-1),
    lambda x: jnp.exp(x).sum(-1),
    lambda x: x[:, ::2].sum(-1),
    lambda x: x.sum(0),
    lambda x: x + 1,
])
def test_what_goes_as_usual(all_rows_are_long, program):
    f = jit(program)
    f(np.random.default_rng(2).random((70, 90)))
    assert not marks(f)


# Sweeps down columns: what is summed, compared or scanned, as jitcore and NumPy have it.
DOWN_COLUMNS = {
    "sum": (lambda x: x.sum(0), lambda x: x.sum(0)),
    "mean": (lambda x: x.mean(0), lambda x: x.mean(0)),
    "norm": (lambda x: jnp.sqrt((x * x).sum(0)), lambda x: np.sqrt((x * x).sum(0))),
    "max": (lambda x: x.max(0), lambda x: x.max(0)),
    "argmin": (lambda x: x.argmin(0), lambda x: x.argmin(0)),
    "both extremes": (lambda x: x.max(0) - x.min(0), lambda x: x.max(0) - x.min(0)),
    "of exp": (lambda x: jnp.exp(x).sum(0), lambda x: np.exp(x).sum(0)),
    "weighted": (lambda x: (x * x[:, :1]).sum(0), lambda x: (x * x[:, :1]).sum(0)),
    "cumsum": (lambda x: jnp.cumsum(x, 0), lambda x: np.cumsum(x, 0)),
    "cumprod": (lambda x: jnp.cumprod(x + 0.5, 0), lambda x: np.cumprod(x + 0.5, 0)),
    "cumulative maximum": (lambda x: lax.cummax(x, 0), lambda x: np.maximum.accumulate(x, 0)),
    "from the end": (lambda x: lax.cumsum(x, 0, reverse=True), lambda x: np.cumsum(x[::-1], 0)[::-1]),
    "complex": (lambda x: jnp.cumsum(x * (1 + 2j), 0).real, lambda x: np.cumsum(x, 0)),
}


@pytest.mark.parametrize("name, dtype, rows", pairwise(list(DOWN_COLUMNS), ["float32", "float64"], [16, 21, 64]))
def test_row_by_row(all_rows_are_wide, name, dtype, rows):
    program, reference = DOWN_COLUMNS[name]
    f = jit(program)
    for count in (9, 16, 33, 128, 1000, 1024, 4099):
        x = np.random.default_rng(count).random((rows, count)).astype(dtype)
        compare(f, reference, x)
        assert marks(f) == {"row by row"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scans_on_zen(all_rows_are_wide, monkeypatch, dtype):
    monkeypatch.setattr(host, "is_zen", lambda: True)
    x = np.random.default_rng(3).random((40, 1001)).astype(dtype)
    for name, way in {"cumsum": set(), "cumprod": set(), "argmin": {"row by row"}}.items():
        program, reference = DOWN_COLUMNS[name]
        f = jit(program)
        compare(f, reference, x)
        assert marks(f) == way


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64"])
def test_integers_row_by_row(all_rows_are_wide, dtype):
    f = jit(lambda x: x.sum(0))
    g = jit(lambda x: jnp.cumsum(x, 0))
    for count in (9, 100, 4099):
        x = np.random.default_rng(count).integers(0, 2, (40, count)).astype(dtype)
        np.testing.assert_array_equal(np.asarray(f(x)), x.sum(0))
        np.testing.assert_array_equal(np.asarray(g(x)), np.cumsum(x, 0))
        assert marks(f) == marks(g) == {"row by row"}


@pytest.mark.parametrize("name", ["sum", "argmin", "cumsum", "cumprod"])
def test_columns_of_several_threads(all_rows_are_wide, name):
    program, reference = DOWN_COLUMNS[name]
    x, results = np.random.default_rng(5).random((300, 3001)), []
    for options in ({"parallel": False}, {"num_threads": 2}, {"num_threads": 3}):
        f = jit(program, compiler_options=options)
        compare(f, reference, x)
        results.append(np.asarray(f(x)))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_nan_row_by_row(all_rows_are_wide):
    x = np.random.default_rng(6).random((40, 70))
    x[7, 3] = x[39, 69] = np.nan
    found = np.asarray(jit(lambda x: x.max(0))(x))
    assert np.flatnonzero(np.isnan(found)).tolist() == [3, 69]


@pytest.mark.parametrize("program", [
    lambda x: x.T.sum(0),
    lambda x: (x * (x[0] + 1)).sum(0),
    lambda x: x - x.mean(0),
    lambda x: x[:8].sum(0),
])
def test_what_does_not_go_row_by_row(all_rows_are_wide, program):
    f = jit(program)
    x = np.random.default_rng(2).random((40, 70))
    f(x)
    assert "row by row" not in marks(f)


@pytest.mark.parametrize("name", IN_SWEEPS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [9, 33, 128, 1001])
def test_next_rows(all_rows_are_short, name, dtype, count):
    program, reference = IN_SWEEPS[name]
    f = jit(jitcore.vmap(program)) if name == "logsumexp" else jit(program)
    x = np.random.default_rng(count).random((9, count)).astype(dtype)
    expected = np.array([reference(row) for row in x.astype(np.float64)])
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(np.asarray(f(x)), expected, rtol=tolerance, atol=tolerance)
    assert marks(f) == {"rows ahead"}
    assert "llvm.prefetch" in f.inspect("llvm")


# Elements at computed places: of x at places i, and of both at the end.
AT_PLACES = {
    "elements": lambda x, i: x[i],
    "with a run": lambda x, i: x[i] * x[: len(i)],
    "two of them": lambda x, i: x[i] - x[len(x) - 1 - i[::-1]],
    "computed": lambda x, i: x[(i * 3 + 1) % len(x)],
}


@pytest.mark.parametrize("name", AT_PLACES)
@pytest.mark.parametrize("dtype", ["int16", "float32", "float64"])
@pytest.mark.parametrize("count", [9, 33, 128, 1001])
def test_places_ahead(all_arrays_are_large, monkeypatch, name, dtype, count):
    monkeypatch.setattr(host, "is_zen", lambda: False)
    rng, program = np.random.default_rng(count), AT_PLACES[name]
    x, f = rng.integers(0, 100, 2000).astype(dtype), jit(program)
    for kind in ("int32", "int64"):
        places = rng.integers(0, 2000, count).astype(kind)
        np.testing.assert_array_equal(np.asarray(f(x, places)), program(x, places))
        assert marks(f) == {"places ahead"}
        assert "llvm.prefetch" in f.inspect("llvm")


def test_the_place_after_the_last_one_may_be_nowhere(all_arrays_are_large, monkeypatch):
    monkeypatch.setattr(host, "is_zen", lambda: False)
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        places, x = np.frombuffer(page, np.int32), np.arange(5000.0)
        places[:] = np.random.default_rng(3).integers(0, 5000, places.shape)
        f = jit(lambda x, i: x[i])
        np.testing.assert_array_equal(np.asarray(f(x, places)), x[places])
        assert marks(f) == {"places ahead"}
        del places


@pytest.mark.parametrize("program", [
    lambda x, i: x[i].sum(),
    lambda x, i: x.at[i].set(x[i] + 1),
    lambda x, i: x[i[:5], None] * x,
])
def test_which_places_are_not_asked_for(all_arrays_are_large, monkeypatch, program):
    monkeypatch.setattr(host, "is_zen", lambda: False)
    f = jit(program)
    f(np.arange(500.0), np.arange(100, dtype=np.int32))
    assert "places ahead" not in marks(f)


def test_one_sweep_asks_for_nothing(all_rows_are_short):
    f = jit(lambda x: (x.sum(-1), x + 1))
    g = jit(lambda x: x - x.mean(0))
    f(np.ones((9, 70))), g(np.ones((9, 70)))
    assert not marks(f) and not marks(g)


def test_the_row_after_the_last_one_may_be_nowhere(all_rows_are_short):
    with mmap.mmap(-1, 2 * mmap.PAGESIZE) as pages:
        x = np.frombuffer(pages, np.float64).reshape(4, -1)
        x[:] = np.random.default_rng(3).random(x.shape)
        f = jit(lambda x: x - x.mean(-1, keepdims=True))
        compare(f, IN_SWEEPS["centred"][1], x)
        assert marks(f) == {"rows ahead"}
        del x


def test_which_sizes_are_marked(monkeypatch):
    sizes = host.CacheSizes(l1=32 << 10, l2=1 << 20, l3=32 << 20)
    monkeypatch.setattr(host, "cache_sizes", lambda: sizes)

    monkeypatch.setattr(host, "is_zen", lambda: False)

    def find(program, *shape):
        f = jit(program)
        f(np.ones(shape, np.float32))
        return marks(f)

    def find_gather(count):
        f = jit(lambda x, places: x[places])
        f(np.ones(count, np.float32), np.zeros(100_000, np.int32))
        return marks(f)

    with config.override(cache_dir=""):
        total = lambda x: x.sum(-1)  # noqa: E731
        assert find(total, 20, 300_000) == find(total, 4_000_000) == {"rows in halves"}
        assert find(total, 1000, 1000) == find(total, 4, 100_000) == find(total, 4000, 4000) == set()
        assert find(nn.softmax, 1000, 1000) == {"rows ahead"}
        assert find(nn.softmax, 100, 1000) == find(nn.softmax, 100_000, 10) == set()
        assert find(nn.softmax, 10, 100_000) == set()
        assert find_gather(1_000_000) == {"places ahead"}
        assert find_gather(100_000) == find_gather(4_000_000) == find_gather(10_000_000) == set()
        assert find(lambda x: x.sum(0), 1000, 1000) == {"row by row"}
        assert find(lambda x: x.sum(0), 1000, 100) == find(lambda x: x.sum(0), 100_000, 4) == set()
