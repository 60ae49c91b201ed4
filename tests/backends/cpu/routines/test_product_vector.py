"""Native products of vectors and matrices against NumPy in float64: sizes, strides, stretches, epilogues."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.routines.product import matrices_routine
from jitcore.backends.cpu.routines.product.vector_routine import choose_length, choose_width
from jitcore.backends.cpu.runtime import threads

FLOATS = ["float32", "float64"]
RNG = np.random.default_rng(23)
TUNING = host.MACHINE.tuning.product


def draw(shape, dtype) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def check(got, vector, matrix) -> None:
    """The bound of a sum of products in any order; operands are vectors and matrices, or stacks of them."""
    x, y = vector.astype(np.float64)[..., None, :], matrix.astype(np.float64)
    bound = (y.shape[-2] + 2) * np.finfo(got.dtype).eps * (np.abs(x) @ np.abs(y)) + 1e-300
    assert np.all(np.abs(np.asarray(got)[..., None, :] - x @ y) <= bound)


@pytest.fixture
def no_loops(monkeypatch):
    """Every product takes the routine, however small."""
    monkeypatch.setattr(matrices_routine, "prefers_loops", lambda sizes, *_: min(sizes) == 0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_small_size(no_loops, dtype):
    """Groups of rows of all sizes, and every number of columns that is left over."""
    for steps in range(1, 36):
        columns = (steps * 11) % 41 + 2
        y, a = draw(steps, dtype), draw((steps, columns), dtype)
        multiply = jit(lambda y, a: y @ a)
        check(np.asarray(multiply(y, a)), y, a)
        check(np.asarray(jit(lambda a, y: a.T @ y)(a, y)), y, a)
        assert steps == 1 or "columns_product_f" in multiply.inspect("loop program")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape", [(64, 64), (511, 33), (1500, 7), (700, 5000), (20, 60000), (30000, 20), (2050, 1030)]
)
def test_stretches_and_blocks(dtype, shape):
    y, a = draw(shape[0], dtype), draw(shape, dtype)
    multiply = jit(lambda y, a: y @ a)
    check(np.asarray(multiply(y, a)), y, a)
    assert "columns_product_f" in multiply.inspect("loop program")


@pytest.mark.parametrize("numbers", [("bk,bkn->bn", (5, 70), (5, 70, 90)), ("kb,bkn->bn", (70, 5), (5, 70, 90)),
                                     ("bk,kbn->bn", (5, 70), (70, 5, 90)), ("bk,bkn->bn", (3, 900), (3, 900, 700)),
                                     ("bkn,bk->bn", (40, 64, 128), (40, 64))])
def test_stacks(numbers):
    text, *shapes = numbers
    x, y = (draw(shape, "float32") for shape in shapes)
    multiply = jit(lambda x, y: jnp.einsum(text, x, y))
    expected = np.einsum(text, x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(multiply(x, y), expected, rtol=0, atol=1e-3)
    assert "columns_product_f" in multiply.inspect("loop program")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(80, 96), (700, 320), (900, 4096)])
def test_epilogues(dtype, shape):
    y, a, b = draw(shape[0], dtype), draw(shape, dtype), draw(shape[1], dtype)
    layer = jit(lambda y, a, b: jnp.tanh((y @ a) / 30 + b))
    exact = np.tanh(y.astype(np.float64) @ a / 30 + b)
    tolerance = shape[0] * np.finfo(dtype).eps
    np.testing.assert_allclose(layer(y, a, b), exact, rtol=0, atol=tolerance)
    many = jit(lambda y, a, b: jnp.tanh(jnp.einsum("bk,bkn->bn", y, a) / 30 + b))
    stacked = np.stack([y, 2 * y, -y])
    exact = np.tanh(stacked.astype(np.float64) @ a / 30 + b)
    np.testing.assert_allclose(many(stacked, np.stack([a] * 3), b), exact, rtol=0, atol=2 * tolerance)


def test_nan_and_infinities_stay_in_their_columns():
    y, a = draw(700, "float32"), draw((700, 90), "float32")
    a[5, 3], a[600, 40] = np.nan, np.inf
    got = np.asarray(jit(lambda y, a: y @ a)(y, a))
    assert np.isnan(got[3]) and got[40] == np.copysign(np.inf, y[600])
    assert np.isfinite(np.delete(got, [3, 40])).all()


def test_threads_do_not_change_bits():
    before, results = threads.get_num_threads(), []
    operands = [(draw(m, "float64"), draw((m, n), "float64")) for m, n in ((5000, 300), (900, 3000))]
    try:
        for count in (1, 2, 5):
            threads.set_num_threads(count)
            results.append([np.asarray(jit(lambda y, a: y @ a)(y, a)) for y, a in operands])
    finally:
        threads.set_num_threads(before)
    for others in results[1:]:
        for first, other in zip(results[0], others):
            np.testing.assert_array_equal(first.view(np.uint64), other.view(np.uint64))


def test_in_a_loop_whose_carry_is_the_vector():
    a, x = draw((80, 80), "float64") / 40, draw(80, "float64")
    repeat = jit(lambda a, x: lax.fori_loop(0, 6, lambda _, x: jnp.sin(x @ a) + x, x))
    expected = x
    for _ in range(6):
        expected = np.sin(expected @ a) + expected
    np.testing.assert_allclose(repeat(a, x), expected, rtol=1e-12)


def test_blocks_and_stretches_cover_the_matrix():
    for columns in (1, 7, 500, 2000, 2049, 10**6):
        for itemsize in (4, 8):
            width = choose_width(columns, itemsize, TUNING)
            assert width * itemsize <= 16384 and width * itemsize % 128 == 0
    assert choose_length(1, 300, 300, TUNING) == 300  # one stretch needs no second pass
    assert choose_length(1, 2000, 2000, TUNING) == 65  # -(-2000 // 31)
    assert choose_length(64, 2000, 400, TUNING) == 400
    assert choose_length(1, 20, 100000, TUNING) <= 512


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sizes", [(2, 300, 50), (7, 131, 60), (8, 90, 700), (300, 3, 40), (65, 6, 333)])
def test_few_rows_times_rows_along_memory_are_loops(dtype, sizes):
    """The larger operand is read once, where it lies."""
    m, n, k = sizes
    x, y = draw((m, k), dtype), draw((n, k), dtype)
    multiply = jit(lambda x, y: jnp.tanh(x @ y.T / 64))
    exact = np.tanh(x.astype(np.float64) @ y.T / 64)
    np.testing.assert_allclose(multiply(x, y), exact, rtol=0, atol=k * np.finfo(dtype).eps)
    assert "product_f" not in multiply.inspect("loop program")
