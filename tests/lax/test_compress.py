"""Elements of masks side by side: `lax.compress` and the loops that it becomes, against NumPy's masks."""

import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import jitcore
from jitcore import dtypes, jit, numpy as jnp
from jitcore.lax.compress import compress

DTYPES = ("bool", "int8", "uint16", "float16", "bfloat16", "int32", "float32", "uint64", "float64", "complex64",
          "complex128")
LENGTHS = (0, 1, 2, 7, 8, 16, 33, 100, 1001)
RNG = np.random.default_rng(0)


def count_sweeps(function) -> int:
    return len(re.findall(r"(?:for|reduce) i\d+ in", function.inspect("loop program")))


@jit
def pack(x, mask):
    return compress(x, mask), mask.sum()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_are_those_of_the_mask(dtype, share):
    for n in LENGTHS:
        x, mask = (RNG.random(n) * 100).astype(dtypes.canonicalize(dtype)), RNG.random(n) < share
        for function in (pack, lambda x, mask: (compress(x, mask), mask.sum())):
            packed, count = function(x, mask)
            assert packed.shape == x.shape and packed.dtype == x.dtype and int(count) == mask.sum()
            np.testing.assert_array_equal(np.asarray(packed)[: mask.sum()], x[mask])


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(1, 70), st.integers(0, 2**32))
def test_each_row_by_itself(rows, columns, seed):
    rng = np.random.default_rng(seed)
    x, mask = rng.random((rows, columns)), rng.random((rows, columns)) < rng.random()
    packed = np.asarray(pack(x, mask)[0])
    for row, own, held in zip(packed, x, mask):
        np.testing.assert_array_equal(row[: held.sum()], own[held])


@pytest.mark.cpu
def test_arrays_of_one_mask_move_in_one_sweep():
    @jit
    def function(x, y, z, mask):
        return compress(x * 2, mask), compress(y, mask), compress(z, mask), mask.sum()

    x, y, z = RNG.random(300), RNG.random(300) + 1j, np.arange(300)
    mask = RNG.random(300) < 0.3
    *found, count = function(x, y, z, mask)
    for packed, expected in zip(found, (x * 2, y, z)):
        np.testing.assert_array_equal(np.asarray(packed)[:count], expected[mask])
    assert count_sweeps(function) == 1


@pytest.mark.cpu
def test_memory_is_that_of_the_operand():
    @jit
    def function(x, limit):
        def body(state):
            x, n = state
            x = jnp.where(jnp.arange(400) < n, x * 0.9, x)
            mask = (x > limit) & (jnp.arange(400) < n)
            count = mask.sum()
            return compress(x, mask), count

        return jitcore.lax.while_loop(lambda state: state[1] > 100, body, (x, jnp.asarray(400)))

    x = RNG.random(400)
    found, count = function(x, 0.3)
    expected = x
    while len(expected) > 100:
        expected = expected * 0.9
        expected = expected[expected > 0.3]
    np.testing.assert_allclose(np.asarray(found)[:count], expected, rtol=1e-14)
    text = function.inspect("loop program")
    assert "swap" not in text and re.search(r"(out\d+)\[0\] = t\d+ where t\d+ packed", text)
    assert re.search(r"reduce i\d+ in range\(0, t\d+\) of 400", text)


def test_a_shifted_operand_is_read_before_it_is_overwritten():
    @jit
    def function(x, mask):
        return jitcore.lax.fori_loop(0, 3, lambda _, y: compress(jnp.roll(y, -1), mask), x)

    x, mask = np.arange(50.0), np.ones(50, bool)
    np.testing.assert_array_equal(function(x, mask), np.roll(x, -3))


@pytest.mark.parametrize("shape", [(50,), (4, 50)])
def test_what_reads_elsewhere_is_computed_before_elements_move(shape):
    """A loop packs an array in its own memory, and adds up what the array holds at other places."""

    def pack_and_add(_, carry):
        x, total, count = carry
        inside = jnp.arange(shape[-1]) < count[..., None]
        mask = inside & (x > -1)
        total = total + jnp.where(inside & inside[..., ::-1], x[..., ::-1], 0)
        return compress(x, mask), total, mask.sum(-1)

    def function(x):
        start = x, jnp.zeros_like(x), jnp.full(shape[:-1], shape[-1])
        return jitcore.lax.fori_loop(0, 4, pack_and_add, start)[1:]

    x = np.random.default_rng(0).standard_normal(shape)
    for found, expected in zip(jit(function)(x), jit(function, backend="reference")(x)):
        np.testing.assert_array_equal(found, expected)


def test_errors():
    with pytest.raises(TypeError, match="compress requires a mask of bools, got dtype int64"):
        compress(np.ones(3), np.arange(3))
    for x, mask in ((np.ones(3), np.ones(4, bool)), (np.float64(1), np.bool_(True))):
        with pytest.raises(TypeError, match="compress requires an array and a mask of one shape"):
            compress(x, mask)
