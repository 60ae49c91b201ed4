"""Places of extremes along rows, which are searched in the stretch that has the extreme, against NumPy."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import autojit, jit, lax, vmap
from jitcore.backends.cpu.machine import host

SIZES = [1, 2, 31, 32, 33, 64, 255, 256, 257, 1000, 4096, 4097, 300_001]
DTYPES = ["float32", "float64", "int8", "uint8", "int32", "int64", "uint64"]


def draw(kind: str, count: int, dtype: str) -> np.ndarray:
    x = np.random.default_rng(count).standard_normal(count) * 100
    ordered = {
        "rising": np.sort(x),
        "falling": np.sort(x)[::-1],
        "equal": np.full(count, 7),
        "ties": np.round(x / 60),
    }
    return ordered.get(kind, x).astype(dtype)


def is_searched(function) -> bool:
    return "search" in function.inspect("llvm")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["random", "rising", "falling", "equal", "ties"])
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_the_first_extreme_is_found(kind, dtype):
    largest, least = jit(lambda x: x.argmax()), jit(lambda x: x.argmin())
    for count in SIZES:
        x = draw(kind, count, dtype)
        assert (int(largest(x)), int(least(x))) == (x.argmax(), x.argmin())
    assert is_searched(largest) and is_searched(least)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("places", [[0], [5, 3], [999], [256, 255], [100, 700, 90]])
def test_the_first_nan_is_the_extreme(places, dtype):
    x = draw("random", 1000, dtype)
    x[places] = np.nan
    assert int(jit(lambda x: x.argmax())(x)) == int(jit(lambda x: x.argmin())(x)) == min(places)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_nothing_beats_the_least_number(dtype):
    least = -np.inf if dtype.startswith("float") else np.iinfo(dtype).min
    x = np.full(3000, least, dtype)
    assert int(jit(lambda x: x.argmax())(x)) == 0
    x[2000:] = least
    x[1234] = 0
    assert int(jit(lambda x: x.argmax())(x)) == 1234


def test_zeros_of_either_sign_are_equal():
    x = np.array([-1.0, -0.0, 0.0, -0.0] * 100)
    assert int(jit(lambda x: x.argmax())(x)) == 1
    assert int(jit(lambda x: (-x).argmin())(x)) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("columns", [2, 10, 70, 256, 1003])
def test_rows(columns, dtype):
    x = draw("ties", 37 * columns, dtype).reshape(37, columns)
    if dtype.startswith("float"):
        x[3, columns // 2] = np.nan
    for ours, theirs in (
        (lambda x: x.argmax(1), x.argmax(1)),
        (lambda x: jnp.abs(-x).argmin(1), np.abs(x).argmin(1)),
        (vmap(lambda row: row[::-1].argmax()), x[:, ::-1].argmax(1)),
        (lambda x: x.astype(jnp.float32).argmax(1), x.astype("float32").argmax(1)),
    ):
        np.testing.assert_array_equal(np.asarray(jit(ours)(x)), theirs)


def test_threads_do_not_matter():
    x = draw("ties", 1_000_003, "float64")
    found = {int(jit(lambda x: x.argmax(), compiler_options=options)(x))
             for options in ({"parallel": False}, {"num_threads": 2}, {"num_threads": 5})}
    assert found == {int(x.argmax())}


@pytest.mark.parametrize("program", [
    lambda x: jnp.exp(x).argmax(1),  # twice the same, perhaps not with the same bits
    lambda x: (x * x[0] + 1).argmax(1),
    lambda x: x.argmax(0),
    lambda x: (x.argmax(1), x.argmin(1)),
])
def test_others_note_places_beside_extremes(program):
    x = draw("random", 70 * 90, "float64").reshape(70, 90)
    f = jit(program)
    f(x)
    assert not is_searched(f)


def test_stretches_are_shorter_than_the_first_cache():
    assert host.MACHINE.loops.stretch * 4 * host.native_vector_bytes() <= 32 << 10


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_positions_are_found_before_they_are_cut_to_a_dtype(dtype):
    x = draw("random", 100_000, "float32")
    for axis, array in ((0, x), (0, x.reshape(-1, 10)), (1, x.reshape(10, -1))):
        found = jit(lambda x: lax.argmax(x, axis, np.dtype(dtype)))(array)  # noqa: B023
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, array.argmax(axis).astype(dtype))


@pytest.mark.slow
def test_positions_beyond_32_bits():
    x = np.zeros(2**31 + 11, np.int8)
    x[-3], x[-5] = 5, -5
    assert int(jit(jnp.argmax)(x)) == int(jnp.argmax(x)) == x.size - 3
    assert int(autojit(lambda x: x.argmin())(x)) == x.size - 5
