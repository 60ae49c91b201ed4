"""Native matrix products against NumPy in float64: sizes, layouts, blocks, threads, loops, special values."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.routines.product import matrices_routine
from jitcore.backends.cpu.routines.product.matrices_routine import Operand, Sizes, plan_product
from jitcore.backends.cpu.routines.product.parts import choose_tile_shape, cut_rows, list_heights, list_rows
from jitcore.backends.cpu.runtime import threads

FLOATS = ["float32", "float64"]
RNG = np.random.default_rng(17)
TUNING = host.MACHINE.tuning.product


@jit(static_argnums=2)
def contract(x, y, numbers):
    return lax.dot_general(x, y, numbers)


def draw(shape, dtype) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def check_product(x, y, got, exact=None) -> None:
    """Error bound of a sum of products in any order: k * eps * |x| @ |y|."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    bound = (x.shape[-1] + 2) * np.finfo(got.dtype).eps * (np.abs(x) @ np.abs(y)) + 1e-300
    assert got.shape == bound.shape
    assert np.all(np.abs(np.asarray(got) - x @ y) <= bound)


def uses_routine(function, *arguments) -> bool:
    function(*arguments)
    text = function.inspect("loop program")
    assert " call " not in text
    return "product_f" in text


@pytest.fixture
def no_loops(monkeypatch):
    """Every product takes the routine, however small."""
    monkeypatch.setattr(matrices_routine, "prefers_loops", lambda sizes, *_: min(sizes) == 0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("rows", "steps"), [(2048, 9), (2049, 16), (2063, 20), (30001, 33), (2050, 63)])
def test_short_rows_times_a_vector(dtype, rows, steps):
    x, vector = draw((rows, steps), dtype), draw((steps, 1), dtype)
    for function in (jit(lambda x, v: x @ v), jit(lambda x, v: (v.T @ x.T).T)):
        check_product(x, vector, np.asarray(function(x, vector)))
        assert "rows_product_f" in function.inspect("loop program")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_every_small_size(no_loops, dtype, transposed):
    """Tiles of all heights, and every number of columns that is left over."""
    numbers = (((0 if transposed[0] else 1,), (1 if transposed[1] else 0,)), ((), ()))

    @jit
    def multiply(x, y):
        return lax.dot_general(x, y, numbers)

    for m in range(1, 41):
        n, k = (m * 7) % 40 + 1, (m * 11) % 37 + 1
        x, y = draw((m, k), dtype), draw((k, n), dtype)
        left = np.ascontiguousarray(x.T) if transposed[0] else x
        right = np.ascontiguousarray(y.T) if transposed[1] else y
        check_product(x, y, multiply(left, right))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "sizes",
    [(100, 100, 100), (300, 310, 500), (65, 1100, 400), (20, 20, 9000), (3, 5, 70000), (1000, 3, 50),
     (70, 1024, 1024), (2, 5000, 40), (257, 33, 129), (64, 4200, 70)],
)
def test_blocks_and_layouts(no_loops, dtype, sizes):
    """Packed and unpacked operands, stretched sums, several blocks of columns and steps."""
    m, n, k = sizes
    x, y = draw((m, k), dtype), draw((k, n), dtype)
    for left in (x, np.asfortranarray(x)):
        for right in (y, np.asfortranarray(y)):
            axes = (0 if left is not x else 1, 1 if right is not y else 0)
            operands = (left if left is x else left.T), (right if right is y else right.T)
            assert uses_routine(contract, *operands, (((axes[0],), (axes[1],)), ((), ())))
            check_product(x, y, contract(*operands, (((axes[0],), (axes[1],)), ((), ()))))


@pytest.mark.parametrize("dtype", FLOATS)
def test_vectors(dtype):
    a, x, row = draw((300, 400), dtype), draw(400, dtype), draw(300, dtype)
    check_product(row[None], a, jit(lambda row, a: row @ a)(row, a)[None])
    check_product(a, x[:, None], jit(lambda a, x: a @ x)(a, x)[:, None])
    check_product(a.T, row[:, None], jit(lambda a, row: a.T @ row)(a, row)[:, None])
    check_product(x[None], a.T, jit(lambda x, a: x @ a.T)(x, a)[None])
    assert uses_routine(jit(lambda row, a: row @ a), row, a)
    assert uses_routine(jit(lambda a, row: a.T @ row), a, row)
    assert not uses_routine(jit(lambda a, x: a @ x), a, x)
    short, y = draw((3000, 15), dtype), draw(15, dtype)
    assert uses_routine(jit(lambda a, y: a @ y), short, y)
    check_product(short, y[:, None], jit(lambda a, y: a @ y)(short, y)[:, None])
    check_product(y[None], short.T, jit(lambda a, y: y @ a.T)(short, y)[None])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_contraction(data):
    """Batch, free and contracted axes anywhere, against einsum in float64."""
    extent = st.integers(1, 9)
    groups = {letter: data.draw(extent) for letter in "abijklmn"}
    batch, left, right, summed = "ab"[: data.draw(st.integers(0, 2))], "ij", "kl", "mn"[: data.draw(st.integers(1, 2))]
    x_axes = "".join(data.draw(st.permutations(batch + left + summed)))
    y_axes = "".join(data.draw(st.permutations(batch + right + summed)))
    x, y = (draw([groups[axis] for axis in axes], "float64") for axes in (x_axes, y_axes))
    numbers = tuple(
        (tuple(map(x_axes.index, axes)), tuple(map(y_axes.index, axes))) for axes in (summed, batch)
    )
    out = batch + "".join(axis for axis in x_axes if axis in left) + "".join(
        axis for axis in y_axes if axis in right)
    expected = np.einsum(f"{x_axes},{y_axes}->{out}", x, y)
    np.testing.assert_allclose(contract(x, y, numbers), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(64, 64, 64, 64), (3, 200, 300, 400), (40, 7, 33, 129)])
@pytest.mark.parametrize("transposed", [False, True])
def test_batches(shape, transposed):
    batch, m, n, k = shape
    x, y = draw((batch, m, k), "float32"), draw((batch, k, n), "float32")
    if transposed:
        multiply = jit(lambda x, y: jnp.einsum("bmk,bnk->bmn", x, y))
        check_product(x, y, multiply(x, np.ascontiguousarray(y.transpose(0, 2, 1))))
    else:
        check_product(x, y, jit(jnp.matmul)(x, y))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_summed_in_float32(dtype):
    x, y = jnp.asarray(draw((50, 300), "float32"), dtype), jnp.asarray(draw((300, 60), "float32"), dtype)
    multiply = jit(jnp.matmul)
    assert uses_routine(multiply, x, y)
    exact = np.asarray(x).astype(np.float64) @ np.asarray(y).astype(np.float64)
    expected = np.asarray(jnp.asarray(exact.astype(np.float32), dtype)).astype(np.float64)
    np.testing.assert_allclose(np.asarray(multiply(x, y)).astype(np.float64), expected, rtol=2**-7, atol=1e-3)


def test_other_dtypes_have_no_routine():
    for dtype in ("int32", "uint8"):
        x = (draw((40, 40), "float32") * 3).astype(dtype)
        multiply = jit(jnp.matmul)
        np.testing.assert_allclose(multiply(x, x), x @ x, rtol=1e-4)
        assert "product_f" not in multiply.inspect("loop program")


def test_empty_extents():
    multiply = jit(jnp.matmul)
    for m, k, n in [(0, 5, 6), (5, 0, 6), (5, 6, 0), (0, 0, 0)]:
        got = multiply(np.ones((m, k), np.float32), np.ones((k, n), np.float32))
        np.testing.assert_array_equal(got, np.zeros((m, n), np.float32))


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_infinities_stay_in_their_row_and_column(no_loops, dtype):
    x, y = draw((37, 45), dtype), draw((45, 53), dtype)
    x[5, 7], x[20, 3], y[11, 50] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        expected = x @ y
    for transposed in (False, True):
        if transposed:
            got = contract(np.ascontiguousarray(x.T), np.ascontiguousarray(y.T), (((0,), (1,)), ((), ())))
        else:
            got = contract(x, y, (((1,), (0,)), ((), ())))
        got = np.asarray(got)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        infinite = np.isinf(expected)
        np.testing.assert_array_equal(got[infinite], expected[infinite])


def test_threads_do_not_change_bits():
    before = threads.get_num_threads()
    cases = [((400, 500), (500, 600)), ((30, 20000), (20000, 30)), ((1, 3000), (3000, 700))]
    operands = [(draw(left, "float32"), draw(right, "float32")) for left, right in cases]
    results = []
    try:
        for count in (1, 2, 7):
            threads.set_num_threads(count)
            results.append([np.asarray(jit(jnp.matmul)(x, y)) for x, y in operands])
    finally:
        threads.set_num_threads(before)
    for others in results[1:]:
        for first, other in zip(results[0], others):
            np.testing.assert_array_equal(first.view(np.uint32), other.view(np.uint32))


def test_several_python_threads_at_once():
    x, y = draw((150, 400), "float32"), draw((400, 170), "float32")
    multiply = jit(jnp.matmul)
    first = np.asarray(multiply(x, y))
    with ThreadPoolExecutor(8) as pool:
        for got in pool.map(lambda _: np.asarray(multiply(x, y)), range(64)):
            np.testing.assert_array_equal(got, first)


def test_new_sizes_and_layouts_compile_nothing():
    multiply = jit(lambda x, y: x @ y)
    for m, k, n in [(50, 60, 70), (51, 64, 90), (400, 600, 500), (30, 9000, 20)]:
        x, y = draw((m, k), "float32"), draw((k, n), "float32")
        check_product(x, y, multiply(x, y))
    assert multiply.cache_info().compiles <= 1


def test_inside_a_native_loop():
    x, a = draw((40, 40), "float64"), draw((40, 40), "float64") / 40

    @jit
    def power(x, a):
        return lax.fori_loop(0, 5, lambda _, x: jnp.tanh(x @ a) + x, x)

    expected = x
    for _ in range(5):
        expected = np.tanh(expected @ a) + expected
    np.testing.assert_allclose(power(x, a), expected, rtol=1e-12, atol=1e-13)
    text = power.inspect("loop program")
    assert "while:" in text and "product_f64" in text and " call " not in text


def test_product_of_computed_operands():
    x, w, b = draw((60, 80), "float32"), draw((80, 50), "float32"), draw(50, "float32")
    layer = jit(lambda x, w, b: jnp.tanh((2 * x) @ w.T.T + b))
    np.testing.assert_allclose(layer(x, w, b), np.tanh(2 * x @ w + b), rtol=1e-4, atol=1e-5)


def test_is_as_accurate_as_numpy():
    x, y = draw((200, 3000), "float32"), draw((3000, 200), "float32")
    exact = x.astype(np.float64) @ y.astype(np.float64)
    error, other = (np.sqrt(np.mean((z - exact) ** 2)) for z in (np.asarray(jit(jnp.matmul)(x, y)), x @ y))
    assert error <= 1.5 * other


@pytest.mark.parametrize("largest", [14, 6])
def test_rows_are_cut_into_tiles_that_exist(largest):
    heights, tile_rows = list_heights(largest), list_rows(largest)
    assert heights[0] == tile_rows[0] == largest
    for rows in range(largest):
        cut = cut_rows(rows, heights[1:])
        assert sum(cut) == rows and len(cut) <= 3 and cut == sorted(cut, reverse=True)
        assert set(cut) <= set(tile_rows)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("columns", [1, 15, 16, 33, 64])
def test_every_number_of_rows(no_loops, dtype, columns):
    for rows in range(1, 30):
        x, y = draw((rows, 21), dtype), draw((21, columns), dtype)
        check_product(x, y, np.asarray(jit(jnp.matmul)(x, y)))


def test_parts_are_all_that_a_plan_calls():
    """The table holds nothing but the parts that each product asks for: what is missing would be a crash."""
    code = """
import itertools
import numpy as np
import jitcore.numpy as jnp
from jitcore import jit
from jitcore.backends.cpu.routines.product.routine import ProductRoutine
from jitcore.backends.cpu.routines.product.parts import PACK_AT, TILES_AT, enter_part, find_table
from jitcore.backends.cpu.native.images import address_of

made = []
begin = ProductRoutine.__init__
def record(self, *arguments, **facts):
    begin(self, *arguments, **facts)
    made.append(self.parts)
ProductRoutine.__init__ = record

def check(function, x, y, expected):
    made.clear()
    call = jit(function)
    compiled = call.lower(x, y).compile()
    table = find_table(f"jitcore_parts_f{8 * x.dtype.itemsize}")
    rows = table[TILES_AT // 8 :].reshape(-1, 4)
    table[PACK_AT // 8] = rows[:, 1:] = 0
    for symbol in {symbol for parts in made for symbol in parts}:
        enter_part(symbol, address_of(symbol))
    assert np.allclose(compiled(x, y), expected, rtol=1e-3, atol=1e-3)
    return bool(made)

rng = np.random.default_rng(0)
sizes = itertools.product((5, 8, 14, 28, 33, 41), (7, 64, 90, 700, 1100), (9, 32, 40, 50, 128))
for (m, k, n), dtype in itertools.product(sizes, ("float32", "float64")):
    x, y = rng.random((m, k)).astype(dtype), rng.random((k, n)).astype(dtype)
    assert check(lambda x, y: x @ y, x, y, x @ y) or m * k * n < 1 << 14
    if k > 500:
        assert check(lambda x, y: x @ y.T, x, y.T.copy(), x @ y) or m <= 8
for shape in ((20, 9000, 24), (40, 2048, 512), (700, 1024, 300)):
    x, y = rng.random(shape[:2]), rng.random(shape[1:])
    assert check(lambda x, y: x @ y, x, y, x @ y)
"""
    run = subprocess.run([sys.executable, "-c", code], env=os.environ | {"JITCORE_CACHE_DIR": ""},
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]


def test_few_parts_are_compiled():
    def kinds(m, k, n, right=None):
        right = right or Operand(0, 1, n)
        sizes = Sizes(1, m, n, k)
        routine = matrices_routine.multiply(np.dtype("float64"), sizes, Operand(0, k, 1), right, TUNING)
        return {symbol.split("_")[2].rstrip("0123456789") for symbol in routine.parts}, len(routine.parts)

    largest, lanes = choose_tile_shape(8).rows, choose_tile_shape(8).lanes
    assert kinds(10 * largest, 100, 256) == ({f"tile{largest}full"}, 1)
    assert kinds(10 * largest, 100, 256 - lanes + 1)[0] == {f"tile{largest}full", f"tile{largest}edge"}
    assert kinds(10 * largest, 100, 257)[0] == {f"tile{largest}full", f"tile{largest}half"}
    assert kinds(10 * largest, 1000, 256) == ({f"tile{largest}full"}, 1)
    assert kinds(10 * largest, 100, 256, Operand(0, 100, 1))[0] == {f"tile{largest}full", "pack"}


def test_reshapes_are_multiplied_where_they_lie():
    x, y = draw((12, 10, 64), "float64"), draw((64, 64), "float64")
    function = jit(lambda x, y: (x.reshape(12, 10, 1, 64) @ y).reshape(12, 10, 64))
    check_product(x.reshape(120, 64), y, np.asarray(function(x, y)).reshape(120, 64))
    text = function.inspect("loop program")
    assert "product_f64(in0, in1" in text and "kernel" not in text


def test_reshapes_of_what_is_replaced():
    """The operand is what was there before the result, or another update, takes its memory."""
    x, y = draw((64, 64), "float64"), draw((64, 64), "float64") / 32

    def power(x, y):
        return lax.fori_loop(0, 5, lambda _, x: (x.reshape(8, 8, 64) @ y).reshape(64, 64), x)

    def both(x, y):
        before, after = x.reshape(8, 8, 64), x.at[0].set(1.0)
        return before @ y, after.reshape(8, 8, 64) @ y

    np.testing.assert_allclose(jit(power)(x, y), x @ np.linalg.matrix_power(y, 5), rtol=1e-11, atol=1e-13)
    after = x.copy()
    after[0] = 1
    for result, operand in zip(jit(both)(x, y), (x, after)):
        check_product(operand, y, np.asarray(result).reshape(64, 64))


@pytest.mark.parametrize("processor", ["znver5", "sapphirerapids"])
def test_plans_depend_on_sizes_and_processor(monkeypatch, processor):
    monkeypatch.setattr(host, "cpu_name", lambda: processor)
    waits = processor != "znver5"
    row_major = Operand(0, 1000, 1), Operand(0, 1, 1000)
    large = plan_product(Sizes(1, 1000, 1000, 1000), *row_major, 4, TUNING)
    assert large.packs_right == waits and not large.left_tiles
    assert large.splits == 1 and large.inner_block == 500
    transposed = plan_product(Sizes(1, 1000, 1000, 1000), Operand(0, 1, 1000), row_major[1], 4, TUNING)
    assert (transposed.left_tiles > 0) == waits
    assert plan_product(Sizes(1, 1000, 1000, 1000), row_major[0], Operand(0, 1000, 1), 4, TUNING).packs_right
    assert plan_product(Sizes(1, 4000, 4000, 4000), row_major[0], Operand(0, 1, 4000), 4, TUNING).packs_right
    assert plan_product(Sizes(1, 1000, 1000, 1024), Operand(0, 1024, 1), row_major[1], 4, TUNING).left_tiles
    assert plan_product(Sizes(1, 20, 20, 10**5), Operand(0, 1, 20), Operand(0, 1, 20), 4, TUNING).splits == 16
    small = plan_product(Sizes(64, 64, 64, 64), Operand(4096, 64, 1), Operand(4096, 1, 64), 4, TUNING)
    assert not small.left_tiles and not small.packs_right
    competing = Operand(0, 512, 1), Operand(0, 1, 512)
    assert plan_product(Sizes(1, 28, 512, 512), *competing, 8, TUNING).packs_right
    assert not plan_product(Sizes(1, 14, 512, 512), *competing, 8, TUNING).packs_right
    assert not plan_product(Sizes(1, 28, 504, 512), Operand(0, 512, 1), Operand(0, 1, 504), 8, TUNING).packs_right


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("l2", [64 << 10, 32 << 20])
def test_packed_rows_fill_part_of_the_second_cache(monkeypatch, dtype, l2):
    """One tile at a time, or more than there are; their last steps stand before the next tile's first."""
    monkeypatch.setattr(host, "cache_sizes", lambda: host.CacheSizes(32 << 10, l2, 32 << 20))
    left, right, itemsize = Operand(0, 1, 1024), Operand(0, 1, 300), np.dtype(dtype).itemsize
    tiles = plan_product(Sizes(1, 1024, 300, 700), left, right, itemsize, TUNING).left_tiles
    assert tiles == 1 if l2 == 64 << 10 else tiles > 40
    x, y = draw((700, 1024), dtype), draw((700, 300), dtype)
    check_product(x.T, y, np.asarray(jit(lambda x, y: x.T @ y)(x, y)))


@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="names x86 processors")
@pytest.mark.parametrize(("cpu", "features"), [("haswell", "+avx2,+fma,+avx,+sse2"), ("nehalem", "+sse2,+sse4.2")])
def test_narrower_vectors(cpu, features):
    code = """
import numpy as np
from jitcore import jit
for dtype in (np.float32, np.float64):
    for m, n, k in ((30, 41, 50), (129, 300, 310), (1, 300, 400)):
        x, y = np.random.default_rng(0).standard_normal((2, 400, 400)).astype(dtype)
        x, y = x[:m, :k].copy(), y[:k, :n].copy()
        bound = 4 * k * np.finfo(dtype).eps
        assert abs(jit(lambda x, y: x @ y)(x, y) - x.astype(float) @ y).max() < bound
        assert abs(jit(lambda x, y: x.T @ y.T)(x.T.copy(), y.T.copy()) - x.astype(float) @ y).max() < bound
"""
    settings = {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features, "JITCORE_CACHE_DIR": ""}
    run = subprocess.run([sys.executable, "-c", code], env=os.environ | settings, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


# -- complex numbers ------------------------------------------------------------------------------------------
COMPLEX = ["complex64", "complex128"]


def draw_complex(shape, dtype) -> np.ndarray:
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)


def check_complex(x, y, got) -> None:
    """Error bound of a sum of products in any order, of the parts together."""
    x, y = x.astype(np.complex128), y.astype(np.complex128)
    bound = 4 * (x.shape[-1] + 2) * np.finfo(got.dtype).eps * (np.abs(x) @ np.abs(y)) + 1e-300
    assert got.shape == bound.shape
    assert np.all(np.abs(np.asarray(got) - x @ y) <= bound)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(
    "sizes",
    [(16, 16, 16), (17, 31, 23), (40, 9, 200), (200, 300, 9), (9, 1000, 9), (33, 64, 1000), (300, 20, 2)],
)
def test_complex_products(dtype, sizes):
    m, k, n = sizes
    x, y = draw_complex((m, k), dtype), draw_complex((k, n), dtype)
    multiply = jit(jnp.matmul)
    check_complex(x, y, np.asarray(multiply(x, y)))
    assert uses_routine(multiply, x, y) and "complex_product_f" in multiply.inspect("loop program")


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("order", [("mk", "kn"), ("km", "kn"), ("mk", "nk"), ("km", "nk")])
def test_complex_products_of_transposed_operands(dtype, order):
    x, y = draw_complex((30, 40), dtype), draw_complex((40, 50), dtype)
    left, right = (np.ascontiguousarray(a.T if names[0] != first else a) for a, names, first in (
        (x, order[0], "m"), (y, order[1], "k")))
    numbers = (((order[0].index("k"),), (order[1].index("k"),)), ((), ()))
    check_complex(x, y, np.asarray(contract(left, right, numbers)))
    assert "complex_product_f" in contract.inspect("loop program")


@pytest.mark.parametrize("dtype", COMPLEX)
def test_stacks_of_complex_matrices(dtype):
    x, y = draw_complex((3, 4, 20, 30), dtype), draw_complex((3, 4, 30, 25), dtype)
    check_complex(x, y, np.asarray(jit(jnp.matmul)(x, y)))
    several = jit(lambda x, y: jnp.einsum("iajb,bkal->ijkl", x, y))
    got = several(draw_complex((12, 5, 7, 6), dtype), draw_complex((6, 8, 5, 11), dtype))
    assert got.shape == (12, 7, 8, 11)
    x, y = draw_complex((12, 5, 7, 6), dtype), draw_complex((6, 8, 5, 11), dtype)
    expected = np.einsum("iajb,bkal->ijkl", x.astype("complex128"), y.astype("complex128"))
    np.testing.assert_allclose(several(x, y), expected, rtol=0, atol=300 * np.finfo(dtype).eps)


def test_complex_products_of_few_terms_and_of_vectors_are_loops():
    for m, k, n in [(300, 8, 300), (1, 500, 500), (500, 500, 1), (8, 100, 400), (12, 12, 12)]:
        x, y = draw_complex((m, k), "complex128"), draw_complex((k, n), "complex128")
        multiply = jit(jnp.matmul)
        check_complex(x, y, np.asarray(multiply(x, y)))
        assert "product" not in multiply.inspect("loop program")
        assert " call " not in multiply.inspect("loop program")


def test_complex_nan_and_infinities_stay_in_their_row_and_column():
    x, y = draw_complex((37, 45), "complex128"), draw_complex((45, 53), "complex128")
    x[5, 7], y[11, 50] = np.nan, complex(0, np.inf)
    got = np.asarray(jit(jnp.matmul)(x, y))
    is_hit = np.zeros(got.shape, bool)
    is_hit[5], is_hit[:, 50] = True, True
    np.testing.assert_array_equal(~np.isfinite(got), is_hit)


def test_complex_products_in_loops_and_in_parts():
    a, x = draw_complex((30, 30), "complex128") / 8, draw_complex((30, 40), "complex128")

    def step(k, x):
        return jnp.conj(a) @ jnp.exp(1j * x.real) + x * 0.5

    expected = x
    for _ in range(5):
        expected = a.conj() @ np.exp(1j * expected.real) + expected * 0.5
    repeat = jit(lambda x: lax.fori_loop(0, 5, step, x))
    np.testing.assert_allclose(repeat(x), expected, rtol=1e-11)
    assert " call " not in repeat.inspect("loop program")


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.sampled_from(COMPLEX), st.integers(1, 3)
)
def test_any_complex_product(m, k, n, dtype, batch):
    x, y = draw_complex((batch, m, k), dtype), draw_complex((batch, k, n), dtype)
    check_complex(x, y, np.asarray(jit(jnp.matmul)(x, y)))
