"""Products of matrices by tiles: sizes around those of tiles, layouts, dtypes and what is done on the way, on the
device in software, with large and small tiles."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import clear_caches, jit
from jitcore.backends.cuda.architectures import ARCHITECTURES

DEVICE = "cuda:emulated"
RNG = np.random.default_rng(17)
#: Tuning under which few elements have large tiles, and those of small shapes.
LARGE = {"many_tiles": 1}
SMALL = {"many_tiles": 10**9}
LAYOUTS = {
    "as they are": (lambda x, y: x @ y, lambda m, k, n: [(m, k), (k, n)]),
    "left transposed": (lambda x, y: x.T @ y, lambda m, k, n: [(k, m), (k, n)]),
    "right transposed": (lambda x, y: x @ y.T, lambda m, k, n: [(m, k), (n, k)]),
    "both transposed": (lambda x, y: (y @ x).T, lambda m, k, n: [(k, m), (n, k)]),
}
SIZES = 1, 7, 127, 128, 129, 200, 257
#: Each size in each extent, beside several of the others.
SHAPES = [(m, SIZES[(i + 2 * j) % 7], SIZES[(3 * i + j + 2) % 7])
          for i, m in enumerate(SIZES) for j in range(4)]
DTYPES = "float32", "float64", "int32", "uint64", "float16", "bfloat16"
#: (function, shapes): what surrounds the product.
AROUND = {
    "batches": (lambda x, y: x @ y, [(2, 130, 40), (2, 40, 140)]),
    "one factor for all": (lambda x, y: x @ y, [(3, 70, 24), (24, 132)]),
    "batches of transposed ones": (lambda x, y: jnp.swapaxes(x, 1, 2) @ y, [(2, 9, 130), (2, 9, 12)]),
    "an epilogue": (lambda x, y, b: jnp.maximum(x @ y + b, 0) * 0.5, [(131, 20), (20, 130), (130,)]),
    "an epilogue of rows": (lambda x, y, b: (x @ y - b[:, None]).T, [(131, 20), (20, 130), (131,)]),
    "computed on the way in": (lambda x, y: jnp.where(x > 0, x, 0) @ (y + 1), [(132, 36), (36, 128)]),
    "a factor of another dtype": (lambda x, y: x.astype(np.int8).astype(np.float32) @ y, [(132, 36), (36, 128)]),
    "windows": (lambda x, y: x[1:, 3:] @ y[:, 2:-1], [(130, 36), (33, 140)]),
    "every other one": (lambda x, y: x[::2] @ y[:, ::2], [(260, 20), (20, 260)]),
    "reversed": (lambda x, y: x[::-1] @ y[::-1], [(40, 44), (44, 40)]),
    "windows of one array": (lambda x, y: x[jnp.arange(30)[:, None] + jnp.arange(20)] @ y, [(49,), (20, 40)]),
    "one matrix": (lambda x: x @ x.T @ x, [(65, 65)]),
}


@pytest.fixture
def tune(monkeypatch):
    def set_numbers(**numbers):
        clear_caches()
        for name, facts in ARCHITECTURES.items():
            monkeypatch.setitem(ARCHITECTURES, name, facts._replace(tuning=dataclasses.replace(facts.tuning, **numbers)))

    yield set_numbers
    clear_caches()


def draw(shape, dtype):
    """Small integers, whose sums of products are exact."""
    return RNG.integers(-3, 4, shape).astype(jnp.dtype(dtype))


def check(function, args):
    compiled = jit(function, backend=DEVICE).lower(*args).compile()
    want = jit(function, backend="reference")(*args)
    np.testing.assert_array_equal(np.asarray(compiled(*args)), np.asarray(want))
    return compiled.as_text("mapping")


@pytest.mark.parametrize("layout, shape", list(zip(itertools.cycle(LAYOUTS), SHAPES)))
def test_sizes_around_large_tiles(layout, shape, tune):
    tune(**LARGE)
    function, list_shapes = LAYOUTS[layout]
    mapping = check(function, [draw(one, "float32") for one in list_shapes(*shape)])
    assert ("tiles" in mapping) == (min(shape) >= 8)


@pytest.mark.parametrize("numbers", [LARGE, SMALL], ids=["large", "small"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_dtypes(layout, dtype, numbers, tune):
    tune(**numbers)
    function, list_shapes = LAYOUTS[layout]
    for shape in ((132, 20, 140), (63, 33, 17), (16, 24, 40)):
        assert "tiles" in check(function, [draw(one, dtype) for one in list_shapes(*shape)])


@pytest.mark.parametrize("numbers", [LARGE, SMALL], ids=["large", "small"])
@pytest.mark.parametrize("name", AROUND)
def test_what_is_around_the_product(name, numbers, tune):
    tune(**numbers)
    function, shapes = AROUND[name]
    assert "tiles" in check(function, [draw(shape, "float32") for shape in shapes])


#: Rows, columns, threads, bytes along the sum.
TUNED = ((128, 128, 256, 64), (128, 64, 128, 32), (64, 128, 256, 64), (64, 128, 128, 32), (64, 64, 128, 64), (64, 64, 64, 32),
         (32, 64, 64, 64), (32, 64, 128, 128), (32, 32, 128, 64), (32, 32, 64, 32))


@pytest.mark.parametrize("shape", TUNED)
def test_shapes_of_tiles(shape, tune):
    """Numbers that a GPU may be tuned to."""
    shapes, halves = (shape, shape), ((*shape[:3], 64),) * 2
    tune(many_tiles=1, product_shapes=shapes, wide_product_shapes=shapes, tensor_product_shapes=halves)
    rows, columns, threads, _ = shape
    for dtype in ("float32", "float64", "float16"):
        if rows * columns // threads * jnp.dtype(dtype).itemsize <= 256:
            mapping = check(lambda x, y: x @ y, [draw((140, 21), dtype), draw((21, 150), dtype)])
            assert f"tiles, {-(-140 // rows) * -(-150 // columns)} blocks of {threads} threads" in mapping


@pytest.mark.parametrize("m, n, tiles", [
    (4096, 4096, 1024), (1000, 1000, 256), (300, 300, 100), (16, 100000, 3125), (16, 100, 7), (64, 100000, 782)])
def test_how_large_tiles_are(m, n, tiles):
    x, y = np.ones((m, 64), np.float32), np.ones((64, n), np.float32)
    mapping = jit(lambda x, y: x @ y).lower(x, y).compile(target="cuda:sm_90").as_text("mapping")
    assert mapping == f"k0: tiles, {tiles} blocks of 256 threads"


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_registers(arch, dtype):
    """Two blocks run on a multiprocessor at once, and nothing is moved out of registers."""
    x = np.ones((4096, 4096), jnp.dtype(dtype))
    compiled = jit(lambda x, y: x @ y).lower(x, x).compile(target=f"cuda:{arch}")
    ptx = compiled.as_text("ptx")
    assert ".maxntid 256" in ptx and ".minnctapersm 2" in ptx and ".local" not in ptx
    if compiled.as_text("resources"):
        assert " 0 bytes spilled" in compiled.as_text("resources")
