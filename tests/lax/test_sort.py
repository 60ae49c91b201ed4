"""Sorting against JAX: several operands, NaN, signed zeros, stability, top_k."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from jitcore import lax
from tests.jax_answers import jax
from tests.lax.oracle import check_against_jax, random_array

jax_lax = jax.lax

RNG = np.random.default_rng(7)
DTYPES = ["bool", "int8", "uint32", "float16", "bfloat16", "float32", "complex64", "int64", "float64"]


def few_values(rng, shape, dtype) -> np.ndarray:
    """An array with many equal elements, signed zeros, infinities and NaN where the dtype has them."""
    dtype = np.dtype(dtype)
    if dtype.kind in "biu":
        return rng.integers(0, 2 if dtype.kind == "b" else 4, shape).astype(dtype)
    values = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 2.0])
    parts = [rng.choice(values, shape) for _ in range(2)]
    if dtype.kind != "c":
        return parts[0].astype(dtype)
    out = np.empty(shape, dtype)
    out.real, out.imag = parts
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, -1])
def test_one_operand(dtype, axis):
    check_against_jax(
        lambda x: lax.sort(x, axis), lambda x: jax_lax.sort(x, axis), few_values(RNG, (9, 7), dtype)
    )


def signs(x):
    return np.signbit(np.asarray(x)).tolist()


def test_zeros_of_either_sign_keep_their_order():
    x = np.array([1, 0.0, -0.0, 0.0, -0.0, -1], np.float32)
    assert signs(lax.sort(x)) == signs(jax_lax.sort(x)) == [True, False, True, False, True, False]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_several_operands(seed, num_keys):
    rng = np.random.default_rng(seed)
    shape = tuple(int(extent) for extent in rng.integers(0, 9, rng.integers(1, 3)))
    keys = [few_values(rng, shape, rng.choice(["bool", "int8", "bfloat16", "float32", "complex64"]))
            for _ in range(num_keys)]
    rest = [np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)]
    axis = int(rng.integers(len(shape)))
    check_against_jax(lambda *xs: lax.sort(xs, axis, num_keys=num_keys),
                      lambda *xs: jax_lax.sort(xs, axis, num_keys=num_keys), *keys, *rest)


def test_sort_key_val_and_argsort():
    keys, values = few_values(RNG, (4, 6), "float32"), random_array(RNG, (4, 6), "int32")
    check_against_jax(
        lambda k, v: lax.sort_key_val(k, v, 0), lambda k, v: jax_lax.sort_key_val(k, v, 0), keys, values
    )
    np.testing.assert_array_equal(lax.argsort(keys, 1), np.argsort(keys, 1, kind="stable"))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_unstable(dtype):
    x = random_array(RNG, (100,), dtype)
    np.testing.assert_array_equal(lax.sort(x, is_stable=False), np.sort(x))


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "complex64"])
@pytest.mark.parametrize("k", [0, 1, 5, 9])
def test_top_k(dtype, k):
    x = few_values(RNG, (3, 9), dtype)
    if dtype == "bfloat16":  # JAX leaves the order of NaNs open there
        x = np.nan_to_num(x.astype(np.float32)).astype(dtype)
    check_against_jax(lambda x: lax.top_k(x, k), lambda x: jax_lax.top_k(x, k), x)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_top_k_of_many_equal_elements(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, (int(rng.integers(1, 4)), int(rng.integers(1, 40)))).astype(np.int8)
    k = int(rng.integers(0, x.shape[1] + 1))
    values, indices = map(np.asarray, lax.top_k(x, k))
    wanted = np.argsort(-x, 1, kind="stable")[:, :k]
    np.testing.assert_array_equal(indices, wanted)
    np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, 1))


def test_top_k_of_another_axis():
    x = random_array(RNG, (5, 3))
    check_against_jax(lambda x: lax.top_k(x, 2, axis=0), lambda x: jax_lax.top_k(x, 2, axis=0), x)


def test_top_k_of_signed_zeros_and_nan():
    x = np.array([1, np.nan, 3, np.inf, -0.0, 0.0, -0.0], np.float32)
    values, indices = lax.top_k(x, 7)
    assert indices.tolist() == [1, 3, 2, 0, 5, 4, 6]


X = np.ones((3, 4), np.float32)
ERRORS = [
    (lambda lax: lax.sort(X, dimension=2), ValueError),
    (lambda lax: lax.sort(()), TypeError),
    (lambda lax: lax.sort((X, X[0])), TypeError),
    (lambda lax: lax.sort((X, X), num_keys=3), ValueError),
    (lambda lax: lax.top_k(X, 5), ValueError),
    (lambda lax: lax.top_k(X, -1), ValueError),
    (lambda lax: lax.top_k(X[0, 0], 1), ValueError),
]


@pytest.mark.parametrize("call, kind", ERRORS)
def test_errors_are_those_of_jax(call, kind):
    with pytest.raises(kind) as ours:
        call(lax)
    with pytest.raises(kind) as theirs:
        call(jax_lax)
    assert str(ours.value).split("\n")[0] == str(theirs.value).split("\n")[0]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint32", "float16", "float32"])
@pytest.mark.parametrize("axis", [0, 1])
def test_long_orders_outside_of_programs_are_stable(dtype, axis):
    x = few_values(RNG, (60, 50), dtype)
    if np.dtype(dtype).kind == "u":
        x[::3] = np.iinfo(dtype).max
    order = np.argsort(x, axis, kind="stable")
    assert np.array_equal(np.asarray(lax.argsort(x, axis)), order)
