"""Convolutions with random geometry, groups and axis orders against JAX."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from jitcore import jit, lax
from tests.jax_answers import jax
from tests.lax.oracle import check_against_jax, random_array

jax_lax = jax.lax

RNG = np.random.default_rng(6)


class Problem:
    """Shapes, axis orders and parameters of one random convolution."""

    def __init__(self, seed: int):
        rng = self.rng = np.random.default_rng(seed)
        rank = int(rng.integers(1, 4))
        feature_groups, batch_groups = [(1, 1), (1, 1), (2, 1), (3, 1), (1, 2)][rng.integers(5)]
        images, in_per_group = int(rng.integers(1, 3)) * batch_groups, int(rng.integers(1, 3))
        out_features = int(rng.integers(1, 3)) * feature_groups * batch_groups
        letters = "HWD"[:rank]

        def draw(low, high):
            return tuple(int(value) for value in rng.integers(low, high, rank))

        sizes = {"N": images, "C": in_per_group * feature_groups, **dict(zip(letters, draw(3, 7)))}
        filters = {"O": out_features, "I": in_per_group, **dict(zip(letters, draw(1, 4)))}
        orders = [
            "".join(rng.permutation(list(axes))) for axes in ("NC" + letters, "OI" + letters, "NC" + letters)
        ]
        self.lhs_shape = tuple(sizes[axis] for axis in orders[0])
        self.rhs_shape = tuple(filters[axis] for axis in orders[1])
        self.params = {
            "window_strides": draw(1, 3),
            "dimension_numbers": tuple(orders),
            "rhs_dilation": draw(1, 3),
            "feature_group_count": feature_groups,
            "batch_group_count": batch_groups,
        }
        if rng.random() < 0.5:
            self.params["padding"] = str(rng.choice(["SAME", "SAME_LOWER", "VALID"]))
        else:
            self.params |= {"padding": tuple(zip(draw(0, 3), draw(-1, 3))), "lhs_dilation": draw(1, 3)}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["float32", "float32", "int32", "bfloat16", "complex64"]))
def test_random_convolutions(seed, dtype):
    problem = Problem(seed)
    check_against_jax(
        lambda x, k: lax.conv_general_dilated(x, k, **problem.params),
        lambda x, k: jax_lax.conv_general_dilated(x, k, **problem.params),
        random_array(problem.rng, problem.lhs_shape, dtype),
        random_array(problem.rng, problem.rhs_shape, dtype),
        tolerance={"bfloat16": 5e-2}.get(dtype, 1e-4),
    )


IMAGES, FILTERS = random_array(RNG, (2, 3, 8, 7)), random_array(RNG, (4, 3, 3, 2))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_conv(padding):
    check_against_jax(
        lambda x, k: lax.conv(x, k, (2, 1), padding),
        lambda x, k: jax_lax.conv(x, k, (2, 1), padding),
        IMAGES,
        FILTERS,
    )


def test_conv_with_general_padding():
    arguments = ((1, 2), ((1, 0), (2, 3)), (2, 1), (1, 2))
    check_against_jax(
        lambda x, k: lax.conv_with_general_padding(x, k, *arguments),
        lambda x, k: jax_lax.conv_with_general_padding(x, k, *arguments),
        IMAGES,
        FILTERS,
    )


def test_preferred_element_type():
    x, k = random_array(RNG, (1, 2, 5), "int8"), random_array(RNG, (3, 2, 2), "int8")
    check_against_jax(
        lambda x, k: lax.conv(x, k, (1,), "SAME", preferred_element_type=np.int32),
        lambda x, k: jax_lax.conv(x, k, (1,), "SAME", preferred_element_type=np.int32),
        x,
        k,
    )


@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (4, 4)])
@pytest.mark.parametrize("padding", ["SAME", "VALID", ((1, 2), (0, 1))])
@pytest.mark.parametrize("transpose_kernel", [False, True])
def test_conv_transpose(strides, padding, transpose_kernel):
    x, k = random_array(RNG, (2, 5, 6, 3)), random_array(RNG, (3, 2, 3, 4))
    if transpose_kernel:
        k = random_array(RNG, (3, 2, 4, 3))
    check_against_jax(
        lambda x, k: lax.conv_transpose(x, k, strides, padding, transpose_kernel=transpose_kernel),
        lambda x, k: jax_lax.conv_transpose(x, k, strides, padding, transpose_kernel=transpose_kernel),
        x, k, tolerance=1e-4)


X, K = np.ones((2, 3, 8), np.float32), np.ones((4, 3, 3), np.float32)
ERRORS = [
    (lambda lax: lax.conv(X, K, (1,), "FOO"), RuntimeError),
    (lambda lax: lax.conv(X, K[:, :2], (1,), "SAME"), ValueError),
    (lambda lax: lax.conv_general_dilated(X, K, (1,), "SAME", feature_group_count=3), ValueError),
    (lambda lax: lax.conv_general_dilated(X, K, (1,), "SAME", feature_group_count=2), ValueError),
    (lambda lax: lax.conv_general_dilated(X, K, (1, 1), "SAME"), ValueError),
    (lambda lax: lax.conv_general_dilated(X, K, (1,), [(1, 1), (1, 1)]), TypeError),
    (lambda lax: lax.conv_general_dilated(X, K[0], (1,), "SAME"), TypeError),
    (
        lambda lax: lax.conv_general_dilated(X, K, (1,), "SAME", dimension_numbers=("NCX", "OIH", "NHC")),
        TypeError,
    ),
    (lambda lax: lax.conv_general_dilated(X, K, (1,), "SAME", lhs_dilation=(2,)), ValueError),
]


@pytest.mark.parametrize("call, kind", ERRORS)
def test_errors_are_those_of_jax(call, kind):
    with pytest.raises(kind) as ours:
        call(lax)
    with pytest.raises(kind) as theirs:
        call(jax_lax)
    assert str(ours.value).split("\n")[0] == str(theirs.value).split("\n")[0]


@pytest.mark.parametrize("numbers", [("NC", "IO", "NC"), ("CN", "OI", "CN"), None])
def test_a_convolution_of_no_axes_is_a_product(numbers):
    images, filters = np.arange(10.0).reshape(2, 5), np.cos(np.arange(15.0)).reshape(5, 3)
    expected = images @ filters
    given = {("NC", "IO", "NC"): (images, filters), ("CN", "OI", "CN"): (images.T, filters.T), None: (images, filters.T)}[numbers]
    run = lambda x, y: lax.conv_general_dilated(x, y, (), "VALID", dimension_numbers=numbers)  # noqa: E731
    for found in (run(*given), jit(run)(*given)):
        np.testing.assert_allclose(np.asarray(found).T if numbers == ("CN", "OI", "CN") else found, expected, rtol=1e-12)
