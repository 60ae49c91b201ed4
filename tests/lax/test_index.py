"""Static and dynamic slices and slice updates against JAX."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from jitcore import lax
from jitcore.core.jaxpr import ShapedArray
from jitcore.core.trace import trace_to_jaxpr
from tests.jax_answers import jax
from tests.lax.oracle import check_against_jax, random_array

jax_lax = jax.lax

RNG = np.random.default_rng(2)
DTYPES = ["bool", "int8", "bfloat16", "float32", "complex64", "float64"]

STATIC = {
    "slice": lambda lax, x: lax.slice(x, (0, 1), (2, 3)),
    "slice with strides": lambda lax, x: lax.slice(x, (0, 0), (3, 4), (2, 3)),
    "slice of nothing": lambda lax, x: lax.slice(x, (1, 1), (1, 4)),
    "slice_in_dim": lambda lax, x: lax.slice_in_dim(x, 1, None, axis=1),
    "slice_in_dim from the end": lambda lax, x: lax.slice_in_dim(x, -3, -1, 2, axis=-1),
    "index_in_dim": lambda lax, x: lax.index_in_dim(x, -1, 1, keepdims=False),
    "index_in_dim with keepdims": lambda lax, x: lax.index_in_dim(x, 2),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", STATIC)
def test_static(case, dtype):
    call = STATIC[case]
    check_against_jax(lambda x: call(lax, x), lambda x: call(jax_lax, x), random_array(RNG, (3, 4), dtype))


DYNAMIC = {
    "dynamic_slice": lambda lax, x, i: lax.dynamic_slice(x, (i, 1), (2, 2)),
    "dynamic_slice_in_dim": lambda lax, x, i: lax.dynamic_slice_in_dim(x, i, 3, axis=1),
    "dynamic_index_in_dim": lambda lax, x, i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False),
    "dynamic_update_slice": lambda lax, x, i: lax.dynamic_update_slice(
        x, lax.slice(x, (0, 0), (2, 1)), (i, 1)
    ),
    "dynamic_update_slice_in_dim": lambda lax, x, i: lax.dynamic_update_slice_in_dim(
        x, lax.slice(x, (0, 0), (3, 2)), i, axis=1
    ),
    "dynamic_update_index_in_dim": lambda lax, x, i: lax.dynamic_update_index_in_dim(
        x, lax.slice(x, (0, 0), (3, 1)), i, axis=1
    ),
}


@pytest.mark.parametrize("i", [0, 1, 2, 9, -1, -2, -9])
@pytest.mark.parametrize("case", DYNAMIC)
def test_dynamic(case, i):
    call, x = DYNAMIC[case], random_array(RNG, (3, 4))
    check_against_jax(lambda x, i: call(lax, x, i), lambda x, i: call(jax_lax, x, i), x, np.int32(i))
    check_against_jax(lambda x: call(lax, x, i), lambda x: call(jax_lax, x, i), x)


@pytest.mark.parametrize("i", [0, 2, 9])
def test_without_wrapping(i):
    check_against_jax(
        lambda x, i: lax.dynamic_slice(x, (i, i), (2, 2), allow_negative_indices=False),
        lambda x, i: jax_lax.dynamic_slice(x, (i, i), (2, 2), allow_negative_indices=False),
        random_array(RNG, (3, 4)), np.int32(i))


def test_without_wrapping_a_negative_index_is_clamped():
    x = random_array(RNG, (3,))
    assert lax.dynamic_slice(x, (-1,), (2,), allow_negative_indices=False).tolist() == x[:2].tolist()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64", "uint32"])
def test_index_dtypes(dtype):
    x, i = random_array(RNG, (300,)), np.array(-2).astype(dtype) if dtype[0] == "i" else np.array(7, dtype)
    out = lax.dynamic_slice(x, (i,), (2,))
    assert out.tolist() == x[int(i) :][:2].tolist()


def test_start_indices_as_one_array():
    x, starts = random_array(RNG, (3, 4)), np.array([1, -1], np.int32)
    check_against_jax(lambda x, i: lax.dynamic_slice(x, i, (2, 2)),
                      lambda x, i: jax_lax.dynamic_slice(x, i, (2, 2)), x, starts)


def test_update_that_lacks_the_axis():
    x, row = random_array(RNG, (3, 4)), random_array(RNG, (4,))
    out = lax.dynamic_update_index_in_dim(x, row, np.int32(-1), 0)
    np.testing.assert_array_equal(out, np.concatenate([x[:2], row[None]]))


def test_known_indices_make_no_equations():
    jaxpr, _ = trace_to_jaxpr(
        lambda x: [lax.dynamic_slice(x, (0, -1), (2, 2))], [ShapedArray((3, 4), np.float32)]
    )
    (eqn,) = jaxpr.eqns
    assert [int(atom.value) for atom in eqn.invars[1:]] == [0, 3]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_random_slices(seed, ndim):
    rng = np.random.default_rng(seed)
    extents = rng.integers(0, 6, ndim)
    starts = [int(rng.integers(0, extent + 1)) for extent in extents]
    limits = [int(rng.integers(start, extent + 1)) for start, extent in zip(starts, extents)]
    strides = [int(stride) for stride in rng.integers(1, 4, ndim)]
    check_against_jax(
        lambda x: lax.slice(x, starts, limits, strides),
        lambda x: jax_lax.slice(x, starts, limits, strides),
        random_array(rng, extents),
    )


X = np.ones((3, 4), np.float32)
ERRORS = [
    (lambda lax: lax.index_in_dim(X, 5), IndexError),
    (lambda lax: lax.index_in_dim(X, -4), IndexError),
    (lambda lax: lax.dynamic_slice(X, (0,), (2, 2)), ValueError),
    (lambda lax: lax.dynamic_slice(X, (0, 0), (2, 5)), TypeError),
    (lambda lax: lax.dynamic_slice(X, (0, 0), (2, -2)), TypeError),
    (lambda lax: lax.dynamic_slice(X, (0.0, 0), (2, 2)), TypeError),
    (lambda lax: lax.dynamic_update_slice(X, X[0], (0, 0)), TypeError),
    (lambda lax: lax.dynamic_update_slice(X, np.ones((4, 4), np.float32), (0, 0)), TypeError),
]


@pytest.mark.parametrize("call, kind", ERRORS)
def test_errors_are_those_of_jax(call, kind):
    with pytest.raises(kind) as ours:
        call(lax)
    with pytest.raises(kind) as theirs:
        call(jax_lax)
    assert str(ours.value).split("\n")[0] == str(theirs.value).split("\n")[0]


def test_dtypes_must_agree():
    with pytest.raises(TypeError, match="dynamic_update_slice requires arguments to have the same dtypes"):
        lax.dynamic_update_slice(X, X.astype(np.int32), (0, 0))


@pytest.mark.parametrize("bounds, strides, text", [
    (((0,), (3, 4)), None, "start_indices must have one entry for each dimension"),
    (((0, 0), (3, 5)), None, "limit_indices must be less than or equal to operand shape"),
    (((0, -1), (3, 4)), None, "start_indices must be greater than or equal to zero"),
    (((0, 3), (3, 2)), None, "limit_indices must be greater than or equal to start_indices"),
    (((0, 0), (3, 4)), (0, 1), "strides must be positive"),
])
def test_slices_that_do_not_fit(bounds, strides, text):
    with pytest.raises(TypeError, match=text):
        lax.slice(X, *bounds, strides)


def test_result_does_not_alias_the_operand():
    assert not np.shares_memory(lax.slice(X, (0, 0), (3, 4)).data, X)
    assert not np.shares_memory(lax.dynamic_slice(X, (0, 0), (3, 4)).data, X)
    assert not np.shares_memory(lax.dynamic_update_slice(X, X, (0, 0)).data, X)


def test_weak_types():
    def run(lax):
        def call():
            x = lax.full((3,), 2.0)
            part = lax.dynamic_slice(x, (0,), (2,))
            return [lax.slice(x, (0,), (2,)), part]

        return call

    check_against_jax(run(lax), run(jax_lax))
