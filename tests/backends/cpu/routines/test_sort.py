"""Native sorting against NumPy's stable sorts, bit by bit: every dtype, axis and length, ties, threads, loops."""

import ctypes
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import jitcore.numpy as jnp
from jitcore import dtypes, jit, lax
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.machine.tuning import Sort
from jitcore.backends.cpu.native import images
from jitcore.backends.cpu.routines.sort import network, quicksort
from jitcore.backends.cpu.runtime import threads
from tests.combinations import spread

DTYPES = [dtype.name for dtype in dtypes.SUPPORTED]
REAL = [dtype.name for dtype in dtypes.SUPPORTED if dtype.kind != "c"]
LENGTHS = [*range(12), 15, 16, 17, 31, 33, 64, 127, 128, 129, 257, 1000, 5000]


@jit(static_argnums=(1, 2))
def sort_values(x, axis=-1, is_stable=True):
    return lax.sort(x, axis, is_stable)


@jit(static_argnums=1)
def sort_positions(x, axis=-1):
    return lax.argsort(x, axis)


@jit(static_argnums=(1, 2))
def find_top(x, k, axis=-1):
    return lax.top_k(x, k, axis=axis)


def spread_values(rng, shape, dtype) -> np.ndarray:
    """Values from all over the dtype's range, with NaNs of several kinds and both zeros among floats."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        real = dtypes.real_dtype(dtype)
        parts = [few_values(rng, shape, real), spread_values(rng, shape, real)]
        out = np.empty(shape, dtype)
        out.real, out.imag = parts
        return out
    if dtype == dtypes.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    count = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(rng.bytes(count), dtype).reshape(shape).copy()


def few_values(rng, shape, dtype) -> np.ndarray:
    """Many equal elements, signed zeros, infinities, NaN."""
    dtype = np.dtype(dtype)
    if dtype.kind in "biu":
        return rng.integers(0, 2 if dtype.kind == "b" else 4, shape).astype(dtype)
    values = np.array([0.0, -0.0, 1.0, -1.0, np.nan, -np.nan, np.inf, -np.inf, 2.0])
    out = rng.choice(values, shape).astype(dtypes.real_dtype(dtype) if dtype.kind == "c" else dtype)
    return out if dtype.kind != "c" else spread_values(rng, shape, dtype)


def patterns(rng, n, dtype) -> list[np.ndarray]:
    """Arrays of one length: random, few values, constant, rising, falling, saw, hill."""
    ramp = np.arange(n)
    shapes = [np.zeros(n), ramp, -ramp, ramp % 17, np.minimum(ramp, n - ramp)]
    return [spread_values(rng, n, dtype), few_values(rng, n, dtype), *(x.astype(dtype) for x in shapes)]


def stable_order(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """The independent reference: NumPy's merge sort, lexicographic for complex numbers."""
    if x.dtype.kind == "c":
        return np.lexsort((x.imag, x.real), axis)
    return np.argsort(x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x, axis, "stable")


def assert_same_bits(actual, expected) -> None:
    actual = np.asarray(actual)
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    assert actual.tobytes() == np.ascontiguousarray(expected).tobytes()


def check_sorts(x: np.ndarray, axis: int = -1) -> None:
    order = stable_order(x, axis)
    assert_same_bits(sort_positions(x, axis), order.astype(np.int32))
    assert_same_bits(sort_values(x, axis), np.take_along_axis(x, order, axis))


@pytest.mark.parametrize("dtype", DTYPES)
def test_lengths_and_patterns(dtype):
    rng = np.random.default_rng(1)
    with np.errstate(all="ignore"):
        for n in LENGTHS:
            for x in patterns(rng, n, dtype):
                check_sorts(x)


@pytest.mark.parametrize("dtype", ["int8", "bool", "uint16", "bfloat16", "int32", "float32", "uint64", "float64"])
def test_long_rows(dtype):
    with np.errstate(all="ignore"):
        for x in patterns(np.random.default_rng(2), 150_000, dtype):
            check_sorts(x)


@pytest.mark.parametrize("dtype, axis", spread(DTYPES, [0, 1, 2], times=2))
def test_axes(dtype, axis):
    rng = np.random.default_rng(3)
    for shape in ((3, 70, 5), (1, 1, 1), (130, 2, 33), (4, 0, 2), (0, 3, 3)):
        check_sorts(few_values(rng, shape, dtype), axis)


def test_programs_call_the_routine():
    sort_values(np.zeros(50, np.float32))
    text = sort_values.inspect("loop program")
    assert "= sort axis" in text and "call sort" not in text


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_several_keys(seed, num_keys):
    rng = np.random.default_rng(seed)
    shape = tuple(int(extent) for extent in rng.integers(1, 40, rng.integers(1, 4)))
    axis = int(rng.integers(len(shape)))
    operands = [few_values(rng, shape, rng.choice(REAL)) for _ in range(num_keys)]
    operands += [spread_values(rng, shape, "complex128"), spread_values(rng, shape, "int16")]
    keys = [x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x
            for x in operands[:num_keys]]
    order = np.lexsort(keys[::-1], axis)
    results = jit(lambda *xs: lax.sort(xs, axis, num_keys=num_keys))(*operands)
    for x, result in zip(operands, results):
        assert_same_bits(result, np.take_along_axis(x, order, axis))


def test_order_by_low_halves_of_long_keys():
    rng = np.random.default_rng(4)
    for high_values in (1, 2, 300):
        high = rng.integers(-high_values, high_values, 3000)
        check_sorts((high << 32) | rng.integers(0, 1 << 32, 3000))
    check_sorts(rng.integers(0, 5, 3000) << 31)


# -- top_k ----------------------------------------------------------------------------------------------------
def check_top(x: np.ndarray, k: int, axis: int = -1) -> None:
    """Against an order by decreasing bits, NaN above all, then by position."""
    moved = np.moveaxis(x, axis, -1)
    keys = moved
    if dtypes.is_floating(x.dtype):
        bits = np.where(np.isnan(moved), np.array(np.nan, x.dtype), moved).view(f"i{x.dtype.itemsize}")
        keys = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
    rising = np.argsort(keys[..., ::-1], -1, kind="stable")
    places = (moved.shape[-1] - 1 - rising[..., ::-1])[..., :k]
    places = np.moveaxis(places, -1, axis).astype(np.int32)
    values, indices = find_top(x, k, axis)
    assert_same_bits(indices, places)
    assert_same_bits(values, np.take_along_axis(x, places, axis))


@pytest.mark.parametrize("dtype", REAL)
def test_top_k(dtype):
    rng = np.random.default_rng(5)
    with np.errstate(all="ignore"):
        for n in (1, 2, 16, 17, 100, 1500, 20_000):
            for k in {1, min(3, n), n // 2 or 1, n}:
                for x in patterns(rng, n, dtype):
                    check_top(x, k)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_top_k_along_axes(axis):
    x = few_values(np.random.default_rng(6), (9, 40, 12), "float32")
    for k in (1, 5, x.shape[axis]):
        check_top(x, k, axis)


# -- in programs ------------------------------------------------------------------------------------------------
def test_sort_in_a_loop_is_native():
    @jit
    def shuffle_and_sort(x):
        return lax.fori_loop(0, 5, lambda i, x: lax.sort(x * -2.0 + i), x)

    x = np.random.default_rng(7).standard_normal(500).astype(np.float32)
    expected = x
    for i in range(5):
        expected = np.sort(expected * np.float32(-2) + np.float32(i))
    assert_same_bits(shuffle_and_sort(x), expected)
    text = shuffle_and_sort.inspect("loop program")
    assert "while" in text and "call" not in text


def test_lengths_share_machine_code():
    f = jit(lambda x: lax.sort(x) + lax.top_k(x, 9)[0][0])
    for n in (100, 1000, 20_000):
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        assert_same_bits(f(x), np.sort(x) + x.max())
    assert f.cache_info().compiles == 1


@pytest.fixture
def restored_threads():
    count = threads.get_num_threads()
    yield
    threads.set_num_threads(count)


def test_threads_do_not_change_results(restored_threads):
    rng = np.random.default_rng(8)
    arrays = [few_values(rng, shape, "float64") for shape in ((400_000,), (300, 700), (700, 300, 2))]
    results = []
    for count in (1, 2, 5):
        threads.set_num_threads(count)
        results.append([np.asarray(f(x, 0)).tobytes() for x in arrays for f in (sort_values, sort_positions)])
    assert results[0] == results[1] == results[2]


def test_without_threads():
    x = np.random.default_rng(9).standard_normal(200_000)
    f = jit(lambda x: (lax.sort(x), lax.argsort(x)), compiler_options={"parallel": False})
    values, order = f(x)
    assert_same_bits(values, np.sort(x))
    assert_same_bits(order, np.argsort(x, kind="stable").astype(np.int32))


def test_several_python_threads():
    rng = np.random.default_rng(10)
    arrays = [rng.standard_normal(60_000 + 1000 * k).astype(np.float32) for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for x, result in zip(arrays, pool.map(sort_values, arrays)):
            assert_same_bits(result, np.sort(x))


# -- the engine ---------------------------------------------------------------------------------------------------
def engine(bits: int):
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    return kind(images.address_of(f"{quicksort.SYMBOL_PREFIX}{bits}"))


@pytest.mark.parametrize("bits", [32, 64])
def test_engine_writes_only_its_keys(bits):
    rng, margin = np.random.default_rng(11), 64
    for n in (*range(800), 1000, 40_000):
        room = rng.integers(-(2**31), 2**31, n + 2 * margin).astype(f"i{bits // 8}")
        expected = room.copy()
        expected[margin : margin + n].sort()
        engine(bits)(room[margin:].ctypes.data, n, 1)
        assert (room == expected).all(), n


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("n", [300, 517, 5000, 70_001])
def test_engine_on_keys_in_some_order(bits, n):
    """All on one side, both ends in turns, and few different keys: whichever end a partition reads."""
    places = np.arange(n)
    rounds = np.random.default_rng(14).integers(0, 7, n)
    for keys in (places, -places, np.minimum(places, n - places), places % 2, rounds, 0 * places,
                 np.where(places < n // 2, 5, places), np.where(rounds == 0, places, -3)):
        keys = keys.astype(f"i{bits // 8}")
        expected = np.sort(keys)
        engine(bits)(keys.ctypes.data, n, 1)
        assert (keys == expected).all()


@pytest.mark.parametrize("rows", [1, 2, 4, 8, 16])
def test_comparators_sort_all_bit_patterns(rows):
    """A network that sorts all zeros and ones sorts everything."""
    patterns = np.array([[i >> k & 1 for k in range(rows)] for i in range(1 << rows)])
    for low, high in network.list_comparators(rows):
        patterns[:, [low, high]] = np.sort(patterns[:, [low, high]], axis=1)
    assert (np.diff(patterns, axis=1) >= 0).all()


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("bits", [32, 64])
def test_engine_for_other_vectors(monkeypatch, vector_bytes, bits):
    from jitcore.backends.cpu.native import libraries

    if vector_bytes == 64 and host.native_vector_bytes() == 16:
        pytest.skip("LLVM ends the process: it knows no vectors of masks there")
    monkeypatch.setattr(host, "native_vector_bytes", lambda: vector_bytes)
    symbol = f"{quicksort.SYMBOL_PREFIX}{bits}"
    library = libraries.compile_module(quicksort.render_engine(symbol, Sort()), symbol)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    sort = kind(library.address(symbol))
    rng = np.random.default_rng(12)
    for n in (*range(0, 300, 7), 1000, 30_000):
        for high in (3, 2**31):
            keys = rng.integers(-high, high, n).astype(f"i{bits // 8}")
            expected = np.sort(keys)
            sort(keys.ctypes.data, n, 0)
            assert (keys == expected).all()


@pytest.mark.parametrize("bits", [32, 64])
def test_pivots_that_mislead(bits):
    """Where sampled places hold the largest keys alone, halving the range of values ends it."""
    n = 60_000
    keys = np.arange(n).astype(f"i{bits // 8}")
    keys[: n // 2] = keys[: n // 2][::-1].copy()
    keys[::3] = np.iinfo(keys.dtype).max
    keys[1::3] = np.iinfo(keys.dtype).min
    expected = np.sort(keys)
    engine(bits)(keys.ctypes.data, n, 1)
    assert (keys == expected).all()


def test_jnp_functions_of_sorted_values():
    x = np.random.default_rng(13).standard_normal((50, 40)).astype(np.float32)
    for ours, theirs in ((jnp.median, np.median), (jnp.sort, np.sort)):
        np.testing.assert_allclose(np.asarray(jit(lambda x, f=ours: f(x, axis=0))(x)), theirs(x, axis=0), rtol=1e-6)
