"""Running sums, products and extremes on the CUDA device in software: every way in which threads share them."""

from __future__ import annotations

import dataclasses
import itertools

import ml_dtypes
import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.backends.cuda.target import CudaTarget
from jitcore.backends.gpu.tuning import Tuning

RNG = np.random.default_rng(7)
SIZES = (0, 1, 31, 33, 127, 1000, 4096, 4097, 100003)
#: Rows of whole accesses and others, one and several warps, one and several tiles; pieces with columns; many
#: columns, whole warps of them and others, one tile and several.
SHAPES = ((7, 3), (5, 36), (40, 33), (3, 1000), (2, 1001), (2, 20_000), (2, 20_003), (200_001, 2), (9001, 33),
          (17, 1024), (70, 1057), (300, 1090), (40, 90, 4))
FLOATS, WHOLE = ("float16", "bfloat16", "float32", "float64"), ("int8", "uint16", "int32", "int64")
OPERATIONS = {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum,
              "cumlogsumexp": np.logaddexp}
CASES = [(name, dtype) for name in OPERATIONS for dtype in FLOATS]
CASES += [(name, dtype) for name in ("cumsum", "cumprod", "cummax", "cummin") for dtype in WHOLE]
CASES += [(name, "complex64") for name in ("cumsum", "cumprod")]


def draw(dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return RNG.integers(0, 100, shape).astype(dtype)
    x = RNG.normal(0, 1, shape)
    x = x + 1j * RNG.normal(0, 1, shape) if dtype.kind == "c" else x
    return (x / np.abs(x) if dtype.kind == "c" else x).astype(dtype)


def accumulate(name, x, axis, reverse):
    """With twice the bits, rounded at the end."""
    wide = x if x.dtype.kind in "iu" else x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    wide = np.flip(wide, axis) if reverse else wide
    with np.errstate(all="ignore"):
        found = OPERATIONS[name].accumulate(wide, axis, x.dtype if x.dtype.kind in "iu" else None)
        return (np.flip(found, axis) if reverse else found).astype(x.dtype)


def check(name, x, axis, reverse):
    found = np.asarray(jit(lambda x: getattr(lax, name)(x, axis, reverse), backend="cuda:emulated")(x))
    expected = accumulate(name, x, axis, reverse)
    assert found.dtype == expected.dtype
    if x.dtype.kind in "iu" or name in ("cummax", "cummin"):
        np.testing.assert_array_equal(found, expected)
        return
    step = float(ml_dtypes.finfo(x.dtype).eps)
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    scale = np.sqrt(x.shape[axis]) + 1
    np.testing.assert_allclose(found.astype(wide), expected.astype(wide), 40 * scale * step, 40 * scale * step)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_sizes(size, reverse):
    check("cumsum", draw(np.int32, size), 0, reverse)
    check("cumsum", draw(np.float32, size), 0, reverse)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(shape):
    for axis, reverse in itertools.product(range(len(shape)), (False, True)):
        check("cumsum", draw(np.int64, shape), axis, reverse)
        check("cummax", draw(np.float32, shape), axis, reverse)


@pytest.mark.parametrize("name, dtype", CASES)
def test_operations(name, dtype):
    for shape, axis, reverse in (((2, 1040), 1, False), ((2, 1043), 1, True), ((70, 5), 0, False),
                                 ((40, 1026), 0, True)):
        if name != "cumprod" or np.dtype(dtype).kind in "iuc":
            check(name, draw(dtype, shape), axis, reverse)
        else:
            check(name, np.exp(draw(dtype, shape).astype(np.float32) / 40).astype(dtype), axis, reverse)


@pytest.mark.parametrize("size", [3, 1000, 70_000])
def test_signs_of_zeros_and_nan(size):
    """A running value begins with what changes nothing, not even -0.0; totals of pieces are usual sums."""
    x = np.full(size, -0.0, np.float32)
    run = jit(lambda x: (lax.cumsum(x), lax.cummax(x), lax.cummin(x)), backend="cuda:emulated")
    assert all(np.signbit(np.asarray(found)[:4096]).all() for found in run(x))
    x[size // 2] = np.nan
    for found in run(x):
        assert np.isnan(np.asarray(found)).tolist() == [False] * (size // 2) + [True] * (size - size // 2)


PROGRAMS = {
    "of what is computed": (lambda x: jnp.cumsum(jnp.where(x > 0, x, 0.0)) * 2, (70_001,)),
    "of what is read turned": (lambda x: jnp.cumsum(x.T, axis=1), (300, 9)),
    "of a part": (lambda x: jnp.cumsum(x[:, 1:], axis=1), (5, 601)),
    "two of rows": (lambda x: (jnp.cumsum(x, axis=1), lax.cummax(x, axis=1)), (3, 500)),
    "down columns after a sum": (lambda x: jnp.cumsum(x - x.mean(axis=0), axis=0), (50, 1040)),
    "after a sum": (lambda x: jnp.cumsum(x - x.mean(axis=1, keepdims=True), axis=1), (3, 500)),
    "of bits": (lambda x: jnp.cumsum(x > 0.3, axis=1), (3, 515)),
    "in a loop": (lambda x: lax.fori_loop(0, 5, lambda i, x: jnp.cumsum(x) / 30, x), (900,)),
    "places": (lambda x: jnp.nonzero(x > 1, size=200, fill_value=-1), (4000,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f, shape = PROGRAMS[name]
    x = draw(np.float32, shape)
    found, expected = (jitcore.tree.leaves(jit(f, backend=backend)(x)) for backend in ("cuda:emulated", "cpu"))
    for one, other in zip(found, expected):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), 1e-4, 1e-3)


@pytest.mark.parametrize("shape, axis", [((3, 5000), 1), ((300, 1100), 0), (((1 << 20) + 7,), 0)])
def test_donated(shape, axis):
    """In place: no place is written before all that need it have read it."""
    x = draw(np.float32, shape)
    run = jit(lambda x: jnp.cumsum(x, axis=axis), backend="cuda:emulated", donate_argnums=0)
    given = jitcore.device_put(x, jitcore.devices("cuda:emulated")[0])
    np.testing.assert_allclose(np.asarray(run(given)), np.cumsum(x, axis, np.float64), 1e-4, 1e-3)


# -- pieces ----------------------------------------------------------------------------------------------
@pytest.fixture
def small_pieces(monkeypatch, use_tuning):
    """Scans of few rows are cut from few elements on."""
    monkeypatch.setattr(CudaTarget, "tuning", dataclasses.replace(CudaTarget.tuning, block_work=512, min_scan_row=1000))
    use_tuning(Tuning(least_piece=512, scan_elements=8))


def find_mapping(f, x):
    return jit(f, backend="cuda:emulated").lower(x).compile().runtime_executable().texts()["mapping"]()


@pytest.mark.parametrize("name, dtype", CASES)
def test_pieces_of_rows(small_pieces, name, dtype):
    for shape, reverse in itertools.product(((3, 2600), (2, 2, 1203)), (False, True)):
        x, axis = draw(dtype, shape), len(shape) - 1
        if name == "cumprod" and x.dtype.kind not in "iuc":
            x = np.exp(x.astype(np.float64) / 900).astype(dtype)
        assert "pieces" in find_mapping(lambda x: getattr(lax, name)(x, axis, reverse), x)  # noqa: B023
        check(name, x, axis, reverse)


def test_many_or_short_rows_stay_whole():
    for shape in ((133, 40_000), (20, 30_000)):
        assert "rows" in find_mapping(lambda x: jnp.cumsum(x, 1), np.zeros(shape, np.float32))


def test_pieces_in_a_loop(small_pieces):
    x = draw(np.float32, (2, 4000))
    found, expected = (jit(lambda x: lax.fori_loop(0, 4, lambda i, x: jnp.cumsum(x, 1) / 90, x), backend=backend)(x)
                       for backend in ("cuda:emulated", "cpu"))
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), 1e-3, 1e-3 * np.abs(expected).max())


def test_usual_tiles():
    for dtype, reverse in ((np.float32, False), (np.int64, True)):
        check("cumsum", draw(dtype, (1 << 20) + 5000), 0, reverse)
