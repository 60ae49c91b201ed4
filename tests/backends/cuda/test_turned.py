"""Transposed reads by tiles in shared memory, on the device in software: dtypes, odd extents, sizes of tiles."""

from __future__ import annotations

import re

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit
from jitcore.backends.gpu.tuning import Tuning

DEVICE = "cuda:emulated"
DTYPES = ("bool", "int8", "int16", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
SHAPES = ((33, 33), (64, 33), (65, 128), (127, 40), (32, 1000), (208, 136))
#: Of rows that begin at multiples of an access, and others.
PROGRAMS = {
    "sum": lambda x, y: x + y.T,
    "copy": lambda x, y: (y + y).T,
    "part": lambda x, y: x[:, 1:] + y.T[:, :-1],
    "of a row": lambda x, y: jnp.where(y.T == x, x[:, :1], y.T),
    "two": lambda x, y: x + (y.T + jnp.roll(y, 1, 0).T),
    "of other dtypes": lambda x, y: (x.real > 0) & (y.T.real > 0),
    "function": lambda x, y: x + jnp.sqrt(y.T.real == 1),
    "gather": lambda x, y: x[0][(y.T.real > 0).astype(int)],
}
#: For small arrays: tiles of 128, of 64, with one and several accesses at a time.
TUNINGS = (Tuning(), Tuning(many_tiles=1, turned_bytes=40 << 10), Tuning(many_tiles=1, turned_batch=1),
           Tuning(turned_warps=4, turned_batch=8))


def draw(shape, dtype, seed):
    x = np.random.default_rng(seed).integers(-3, 4, shape)
    x = x + 1j * x[::-1] if dtype.startswith("complex") else x
    return np.asarray(jnp.asarray(x).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_equals_the_reference(name, dtype):
    for number, shape in enumerate(SHAPES):
        x, y = draw(shape, dtype, number), draw(shape[::-1], dtype, number + 1)
        check(PROGRAMS[name], x, y)


@pytest.mark.parametrize("tuning", TUNINGS[1:], ids=range(1, len(TUNINGS)))
@pytest.mark.parametrize("dtype", DTYPES)
def test_sizes_of_tiles(dtype, tuning, use_tuning):
    use_tuning(tuning)
    for number, shape in enumerate(((137, 131), (256, 144))):
        x, y = draw(shape, dtype, number), draw(shape[::-1], dtype, number + 1)
        check(lambda x, y: x + y.T, x, y)


def test_donated_memory():
    x, y = draw((70, 80), "float32", 1), draw((80, 70), "float32", 2)
    f = jit(lambda x, y: x + y.T, backend=DEVICE, donate_argnums=0)
    np.testing.assert_array_equal(f(x.copy(), y), x + y.T)


def check(function, x, y):
    f = jit(function, backend=DEVICE)
    found, expected = np.asarray(f(x, y)), np.asarray(jit(function, backend="reference")(x, y))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    assert "turned" in f.lower(x, y).compile().runtime_executable().texts()["mapping"]()


def test_what_shared_memory_does_not_hold():
    x = draw((64, 64), "complex128", 1)
    function = lambda x: x + (x * jnp.roll(x, 1, 0) * jnp.roll(x, 2, 0) + jnp.roll(x, 3, 0)).T  # noqa: E731
    f = jit(function, backend=DEVICE)
    np.testing.assert_allclose(f(x), jit(function, backend="reference")(x), rtol=1e-12)
    text = f.lower(x).compile(target="cuda:sm_90").runtime_executable().texts()["ptx"]()
    assert all(int(size) <= 48 << 10 for size in re.findall(r"\.shared .*\[(\d+)\]", text))
