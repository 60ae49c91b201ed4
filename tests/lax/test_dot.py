"""dot_general with random dimension numbers and dtypes against JAX, and its special cases."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from jitcore import lax
from tests.jax_answers import jax
from tests.lax.oracle import check_against_jax, random_array

jax_lax = jax.lax

RNG = np.random.default_rng(4)
DTYPES = ["bool", "int8", "int32", "uint8", "float16", "bfloat16", "float32", "complex64", "float64"]


def random_contraction(rng):
    """(lhs shape, rhs shape, dimension numbers) of random ranks; paired axes lie anywhere."""
    counts = {"batch": rng.integers(0, 3), "contract": rng.integers(0, 3)}
    shared = {kind: [int(extent) for extent in rng.integers(0, 4, count)] for kind, count in counts.items()}
    sides = []
    for _ in range(2):
        axes = [(kind, i, extent) for kind, extents in shared.items() for i, extent in enumerate(extents)]
        axes += [("free", i, int(extent)) for i, extent in enumerate(rng.integers(0, 4, rng.integers(0, 3)))]
        order = [axes[position] for position in rng.permutation(len(axes))]
        where = {(kind, i): dim for dim, (kind, i, _) in enumerate(order)}
        dims = {kind: [where[kind, i] for i in range(len(extents))] for kind, extents in shared.items()}
        sides.append((tuple(extent for _, _, extent in order), dims))
    (lhs, lhs_dims), (rhs, rhs_dims) = sides
    numbers = ((lhs_dims["contract"], rhs_dims["contract"]), (lhs_dims["batch"], rhs_dims["batch"]))
    return lhs, rhs, numbers


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(DTYPES))
def test_random_dimension_numbers(seed, dtype):
    rng = np.random.default_rng(seed)
    lhs, rhs, numbers = random_contraction(rng)
    check_against_jax(
        lambda x, y: lax.dot_general(x, y, numbers),
        lambda x, y: jax_lax.dot_general(x, y, numbers),
        random_array(rng, lhs, dtype),
        random_array(rng, rhs, dtype),
    )


MATMUL = (((1,), (0,)), ((), ()))


@pytest.mark.parametrize("lhs, rhs, preferred", [
    ("int8", "int8", "int32"), ("int32", "int32", "float32"), ("float32", "float32", "float16"),
    ("bfloat16", "bfloat16", "float32"), ("float16", "float16", None), ("float32", "int32", None),
    ("float32", "float32", "float64"),
])
def test_dtype_of_the_result(lhs, rhs, preferred):
    x, y = random_array(RNG, (3, 40), lhs), random_array(RNG, (40, 5), rhs)
    out = lax.dot_general(x, y, MATMUL, preferred_element_type=preferred)
    wanted = preferred or np.result_type(lhs, "float32" if rhs == "int32" else rhs).name
    assert out.dtype.name == (wanted if lhs != "float32" or rhs != "int32" else "float32")
    wide = np.matmul(x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(np.asarray(out, np.float64), wide, rtol=1e-2, atol=1e-2)


def test_halves_accumulate_in_float32():
    ones = np.ones(4096, np.float16)
    assert float(lax.dot(ones, ones)) == 4096


def test_int8_accumulates_in_the_preferred_type():
    x = np.full((1, 100), 100, np.int8)
    out = lax.dot_general(x, x, (((1,), (1,)), ((), ())), preferred_element_type=np.int32)
    assert out.tolist() == [[1000000]]


@pytest.mark.parametrize("lhs, rhs", [((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((3, 4), (4, 5))])
def test_dot(lhs, rhs):
    check_against_jax(lax.dot, jax_lax.dot, random_array(RNG, lhs), random_array(RNG, rhs))


def test_batch_matmul():
    check_against_jax(lax.batch_matmul, jax_lax.batch_matmul, random_array(RNG, (2, 3, 4, 5)),
                      random_array(RNG, (2, 3, 5, 2)))


def test_weak_types():
    def run(lax):
        def call(x):
            weak = lax.full((3,), 2.0)
            return [lax.dot(weak, weak), lax.dot(weak, x)]

        return call

    check_against_jax(run(lax), run(jax_lax), np.ones(3, np.float32))


X = np.ones((3, 4), np.float32)
ERRORS = [
    (lambda lax: lax.dot_general(X, X, (((0,), (1,)), ((), ())))),
    (lambda lax: lax.dot_general(X, X, (((0,), (0,)), ((0,), (0,))))),
    (lambda lax: lax.dot_general(X, X, (((0, 1), (0,)), ((), ())))),
    (lambda lax: lax.dot_general(X, X, (((2,), (0,)), ((), ())))),
    (lambda lax: lax.dot_general(X, X, (((), ()), ((0,), (1,))))),
]


@pytest.mark.parametrize("call", ERRORS)
def test_errors_are_those_of_jax(call):
    with pytest.raises(TypeError) as ours:
        call(lax)
    with pytest.raises(TypeError) as theirs:
        call(jax_lax)
    assert str(ours.value).split("\n")[0] == str(theirs.value).split("\n")[0]


@pytest.mark.parametrize("lhs, rhs", [(X, X), (2.0, X), (X[None], X)])
def test_dot_of_shapes_that_do_not_fit(lhs, rhs):
    with pytest.raises(ValueError, match="dimension_numbers must be specified when not performing simple"):
        lax.dot(lhs, rhs)


def test_precision_is_accepted():
    x = random_array(RNG, (2, 2))
    np.testing.assert_array_equal(lax.dot(x, x, precision=lax.Precision.HIGHEST), lax.dot(x, x))
