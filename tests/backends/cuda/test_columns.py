"""Sweeps down columns by tiles, whole and in parts, on the device in software: operations, dtypes, odd extents."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.backends.cuda.target import CudaTarget
from jitcore.backends.gpu.tuning import Tuning
from jitcore.tree_util import tree_leaves

DEVICE = "cuda:emulated"
DTYPES = ("bool", "int8", "int16", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
#: Rows, columns: of a part of a tile, of one and several, of accesses of several widths.
SHAPES = ((20, 1), (300, 9), (257, 12), (130, 37), (33, 130), (65, 264), (18, 500))
PROGRAMS = {
    "sum": lambda x: x.sum(0),
    "product": lambda x: (x != 0).prod(0),
    "any": lambda x: (x == 2).any(0),
    "all": lambda x: (x == x[0]).all(0),
    "mean and variance": lambda x: (x.mean(0), jnp.abs(x).var(0)),
    "several": lambda x: (x.sum(0), jnp.abs(x).max(0), jnp.argmin(x.real, 0)),
    "normalised": lambda x: (x - x.mean(0)) / (1 + jnp.abs(x).max(0)),
    "softmax": lambda x: jitcore.nn.softmax(x.real.astype("float32"), axis=0),
    "of a batch": lambda x: jnp.stack([x, x + x]).sum(1),
    "after others": lambda x: (x * x.max(0) == x[0]).sum(0) + (x == 1).sum(0) * 2,
    "integers": lambda x: lax.reduce(x.real.astype("int32"), np.int32(0), lax.bitwise_xor, (0,)),
}
#: As it is; narrow blocks; one row at a time.
TUNINGS = {"usual": Tuning(), "narrow": Tuning(column_block=40, team_work=3),
           "by rows": Tuning(column_batch=1, team_work=2)}


def draw(shape, dtype):
    x = np.random.default_rng(3).integers(-3, 4, shape)
    x = x + 1j * x[::-1] if dtype.startswith("complex") else x
    return np.asarray(jnp.asarray(x).astype(dtype))


def check(function, x):
    f = jit(function, backend=DEVICE)
    for one, other in zip(tree_leaves(f(x)), tree_leaves(jit(function, backend="reference")(x)), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        tolerance = {2: 1e-2, 4: 2e-6}.get(one.dtype.itemsize, 1e-12) if one.dtype.kind not in "biu" else 0
        if one.dtype == jnp.bfloat16:
            one, other = one.astype("float32"), other.astype("float32")
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=10 * tolerance)
    return f.lower(x).compile().runtime_executable().texts()["mapping"]()


@pytest.mark.parametrize("tuning", TUNINGS)
@pytest.mark.parametrize("name", ["sum", "several", "softmax", "of a batch"])
def test_tunings(name, tuning, use_tuning):
    use_tuning(TUNINGS[tuning])
    for number, shape in enumerate(SHAPES):
        check(PROGRAMS[name], draw(shape, DTYPES[number]))


@pytest.mark.parametrize("name", ["sum", "several", "softmax", "of a batch"])
def test_blocks(name, monkeypatch):
    jitcore.clear_caches()
    short = dataclasses.replace(CudaTarget.tuning, block_work=32, short_block_work=64, min_block_rows=3)
    monkeypatch.setattr(CudaTarget, "tuning", short)
    for number, shape in enumerate(SHAPES[1:]):
        assert "k1" in check(PROGRAMS[name], draw(shape, DTYPES[number]))
    jitcore.clear_caches()


def test_stacks_of_columns_are_cut_into_blocks():
    x = draw((3, 5000, 20), "float32")
    for function in (lambda x: x.sum(1), lambda x: jnp.argmax(x, 1), lambda x: x - x.max(1, keepdims=True)):
        assert "k1" in check(function, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_dtypes(name, dtype):
    mapping = check(PROGRAMS[name], draw((301, 24), dtype))
    assert "columns" in mapping


def test_extremes_that_are_equal_or_no_numbers():
    x = np.full((5000, 12), -np.inf, "float32")
    x[4321, 3], x[77, 4], x[4000, 4], x[2500:, 5] = np.nan, np.nan, np.nan, 1
    for function in (jnp.argmax, jnp.argmin):
        assert "columns" in check(lambda x: function(x, 0), x)  # noqa: B023


def test_many_rows_are_cut_into_parts():
    x = draw((20000, 100), "float32")
    mapping = check(lambda x: x.sum(0), x)
    assert mapping.count("columns") == 2 and "4 elements a thread" in mapping
    f = jit(lambda x: (x * 1.1).sum(0), backend=DEVICE)
    assert np.asarray(f(x)).tobytes() == np.asarray(f(x)).tobytes()


def test_a_vector_by_a_matrix_goes_in_blocks_and_matrices_do_not():
    x, y = draw((2000, 60), "float32"), draw((3000,), "float32")
    for function in (lambda x: y[:2000] @ x,
                     lambda x: jnp.einsum("bj,bjc->bc", y.reshape(3, 1000), x.reshape(3, 1000, 40))):
        assert "k1" in check(function, x)
    assert "tiles" in check(lambda x: x.T @ x, x) and "rows" in check(lambda x: x.reshape(40, 1000, 3).sum(1), x)


@pytest.mark.parametrize("name", ["mean and variance", "several", "normalised", "softmax", "after others"])
def test_columns_of_turned_arrays(name):
    """Each of their sweeps is a kernel, or two of blocks."""
    for dtype in ("float32", "int16", "complex64"):
        mapping = check(jitcore.vmap(lambda x: PROGRAMS[name](x[:, None]), in_axes=1), draw((1500, 60), dtype))
        assert "columns" in mapping and "k1" in mapping


def test_columns_of_turned_arrays_in_place():
    x = draw((1500, 60), "float32")
    scale = jitcore.vmap(lambda x: (x - x.mean()) / (1 + abs(x).max()), in_axes=1, out_axes=1)
    given = jitcore.device_put(x, jitcore.devices(DEVICE)[0])
    found = jit(scale, backend=DEVICE, donate_argnums=0)(given)
    np.testing.assert_allclose(np.asarray(found), np.asarray(jit(scale, backend="reference")(x)), 1e-5, 1e-6)
