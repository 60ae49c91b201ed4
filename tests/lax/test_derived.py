"""Functions that are made of others, and shapes of convolutions, against JAX."""

import numpy as np
import pytest
import scipy.special

import jitcore
import jitcore.numpy as jnp
from jitcore import grad, jit, lax, vmap
from jitcore.lax.indexing.dimension_numbers import ScatterDimensionNumbers
from jitcore.test_util import check_grads
from tests.jax_answers import jax
from tests.lax.oracle import check_against_jax

RNG = np.random.default_rng(8)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_upper_half_of_products(kind):
    info = np.iinfo(kind)
    corners = np.array([info.min, info.max, 0, 1], kind)
    x, y = (np.concatenate([RNG.integers(info.min, info.max, 50, dtype=kind, endpoint=True), corners]) for _ in range(2))
    exact = [int(a) * int(b) >> (8 * np.dtype(kind).itemsize) for a, b in zip(x, y)]
    found = jit(lax.mulhi)(x, y)
    assert found.dtype == kind and [int(v) for v in found] == exact
    with pytest.raises(TypeError, match="integers"):
        lax.mulhi(1.0, 2.0)


def test_shapes_and_dtypes():
    assert lax.dtype(1.0) == np.float32 and lax.dtype(np.zeros(2)) == np.float64 and lax.dtype(jnp.bfloat16) == jnp.bfloat16
    np.testing.assert_array_equal(lax.shape_as_value((2, 3)), [2, 3])
    assert lax.broadcast_like(np.arange(3), np.zeros((2, 3))).shape == (2, 3) and lax.empty((2,), np.int8).shape == (2,)
    with pytest.raises(TypeError, match="broadcast"):
        lax.broadcast_like(np.zeros((2, 3)), np.zeros(3))
    with pytest.raises(TypeError, match="None"):
        lax.dtype(None)


@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (2, 0), (1,)])
def test_index_take(axes):
    src = RNG.normal(size=(3, 4, 5))
    indices = [np.array([0, 2, -1, 1]) for _ in axes]
    wanted = np.moveaxis(src, axes, range(len(axes)))[tuple(index % src.shape[axis] for index, axis in zip(indices, axes))]
    np.testing.assert_array_equal(jit(lambda src: lax.index_take(src, indices, axes))(src), wanted)


@pytest.mark.parametrize("unique", [True, False])
def test_scatter_apply(unique):
    numbers = ScatterDimensionNumbers((1,), (0,), (0,))
    x, indices = RNG.normal(size=(5, 3)), np.array([[1], [4]] if unique else [[1], [4], [1]])
    found = jit(lambda x, i: lax.scatter_apply(x, i, jnp.square, numbers, update_shape=(len(indices), 3)))(x, indices)
    expected = x.copy()
    for (i,) in indices:
        expected[i] = expected[i] ** 2
    np.testing.assert_allclose(found, expected)


def test_approximate_top_k():
    x = RNG.normal(size=(4, 9)).astype(np.float32)
    for name, order in (("approx_max_k", -1), ("approx_min_k", 1)):
        for axis in (0, 1):
            values, indices = jit(lambda x: getattr(lax, name)(x, 3, axis))(x)
            np.testing.assert_array_equal(values, np.take(np.sort(x, axis)[:, ::order] if axis else np.sort(x, 0)[::order], range(3), axis))
            np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(indices), axis), values)
    with pytest.raises(ValueError, match="floats"):
        lax.approx_max_k(np.arange(3), 1)


def test_programs():
    assert lax.platform_dependent(3.0, cpu=jnp.square, tpu=jnp.sin, default=jnp.square) == 9
    with pytest.raises(NotImplementedError, match="no branch"):
        lax.platform_dependent(3.0, abacus=jnp.sin)
    with pytest.raises(TypeError, match="callable"):
        lax.platform_dependent(3.0, cpu=3)
    assert grad(lax.composite(jnp.square, "my.square"))(3.0) == 6


def test_samples_of_gamma():
    a, x = np.float64([0.3, 1.0, 5.0]), np.float64([0.2, 1.0, 4.0])
    step = 1e-5
    probability = scipy.special.gammainc(a, x)
    moved = (scipy.special.gammaincinv(a + step, probability) - scipy.special.gammaincinv(a - step, probability)) / (2 * step)
    np.testing.assert_allclose(jit(lambda a, x: lax.random_gamma_grad(a, x, dtype=np.float64))(a, x), moved, rtol=1e-6)


def test_uniform_numbers_of_the_process():
    draw = jit(lambda: lax.rng_uniform(np.float32(2), np.float32(3), (1000,)))
    first, second = np.asarray(draw()), np.asarray(draw())
    assert first.dtype == np.float32 and (first >= 2).all() and (first < 3).all() and (first != second).any()
    assert set(np.asarray(lax.rng_uniform(np.int32(0), np.int32(3), (200,)))) == {0, 1, 2}


def groups(sizes, count):
    return np.repeat(np.arange(len(sizes)), sizes)[:count]


@pytest.mark.parametrize("sizes", [[2, 0, 3], [1, 1, 1], [0, 0, 5]])
def test_ragged_dot(sizes):
    lhs, rhs, sizes = RNG.normal(size=(5, 4)), RNG.normal(size=(3, 4, 6)), np.array(sizes, np.int32)
    expected = np.zeros((5, 6))
    for row, group in enumerate(groups(sizes, 5)):
        expected[row] = lhs[row] @ rhs[group]
    np.testing.assert_allclose(jit(lax.ragged_dot)(lhs, rhs, sizes), expected, atol=1e-12)
    check_grads(lambda lhs, rhs: lax.ragged_dot(lhs, rhs, sizes), (lhs, rhs), order=1, rtol=1e-3)
    np.testing.assert_allclose(vmap(lax.ragged_dot, (0, None, None))(np.stack([lhs, 2 * lhs]), rhs, sizes)[1], 2 * expected, atol=1e-12)
    contracted = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    right = RNG.normal(size=(5, 6))
    found = jit(lambda a, b: lax.ragged_dot_general(a, b, sizes, contracted))(lhs, right)
    for group in range(3):
        rows = np.arange(5)[np.append(groups(sizes, 5), [-1] * 5)[:5] == group]
        np.testing.assert_allclose(found[group], lhs[rows].T @ right[rows], atol=1e-12)
    batched = lax.RaggedDotDimensionNumbers((((2,), (1,)), ((0,), (0,))), (0,), ())
    a, b = RNG.normal(size=(5, 2, 3)), RNG.normal(size=(5, 3, 2))
    expected = a @ b * (np.arange(5) < sum(sizes))[:, None, None]
    np.testing.assert_allclose(lax.ragged_dot_general(a, b, sizes, batched), expected, atol=1e-12)


def test_scaled_dot():
    lhs, rhs = RNG.normal(size=(2, 4, 8)), RNG.normal(size=(2, 8, 3))
    one, other = 2.0 ** RNG.integers(-2, 3, (2, 4, 2)), 2.0 ** RNG.integers(-2, 3, (2, 4, 3))
    found = jit(lambda *args: lax.scaled_dot(args[0], args[1], lhs_scale=args[2], rhs_scale=args[3], preferred_element_type=np.float32))(
        lhs, rhs, one, other)
    expected = (lhs * np.repeat(one, 4, 2)) @ (rhs * np.repeat(other, 2, 1))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert lax.scaled_dot(lhs, rhs).dtype == jnp.bfloat16
    with pytest.raises(ValueError, match="factors of shape"):
        lax.scaled_dot(lhs, rhs, lhs_scale=np.ones((2, 4, 3)))


def test_swaps_and_broadcasts_between_elements():
    x = RNG.normal(size=(4, 4, 2))
    np.testing.assert_array_equal(vmap(lambda row: lax.pswapaxes(row, "i", 0), axis_name="i")(x), np.swapaxes(x, 0, 1))
    np.testing.assert_array_equal(vmap(lambda row: lax.pbroadcast(row, "i", 2), axis_name="i")(x), np.broadcast_to(x[2], x.shape))
    assert vmap(lambda b: lax.pbroadcast(b, "i", 1), axis_name="i")(np.array([False, True])).all()


# -- convolutions -----------------------------------------------------------------------------------------------
NUMBERS = [None, ("NHWC", "HWIO", "NHWC"), ("NCHW", "WHIO", "HWNC")]


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 2), (0, 1)]])
def test_patches(numbers, padding):
    lhs = RNG.normal(size=(2, 6, 7, 3)).astype(np.float32)
    if numbers is None or numbers[0] == "NCHW":
        lhs = np.moveaxis(lhs, -1, 1)
    options = {"rhs_dilation": (1, 2), "dimension_numbers": numbers}
    check_against_jax(lambda x: lax.conv_general_dilated_patches(x, (3, 2), (1, 2), padding, **options),
                      lambda x: jax.lax.conv_general_dilated_patches(x, (3, 2), (1, 2), padding, **options), lhs, tolerance=1e-5)


def test_local_convolution():
    for numbers, lhs, rhs in ((None, RNG.normal(size=(2, 3, 5, 6)), RNG.normal(size=(4, 12, 4, 5))),
                              (("NHWC", "HWIO", "NHWC"), RNG.normal(size=(2, 5, 6, 3)), RNG.normal(size=(4, 5, 12, 4)))):
        lhs, rhs = lhs.astype(np.float32), rhs.astype(np.float32)
        check_against_jax(lambda a, b: lax.conv_general_dilated_local(a, b, (1, 1), "VALID", (2, 2), dimension_numbers=numbers),
                          lambda a, b: jax.lax.conv_general_dilated_local(a, b, (1, 1), "VALID", (2, 2), dimension_numbers=numbers),
                          lhs, rhs, tolerance=1e-5)


@pytest.mark.parametrize("numbers", [("NWC", "WIO", "NWC"), ("NCW", "OIW", "WNC")])
@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 2)]])
def test_shapes_of_convolutions(numbers, padding):
    shapes = {"N": 2, "C": 3, "W": 9}, {"I": 3, "O": 3, "W": 4}
    lhs, rhs = (tuple(sizes[letter] for letter in text) for sizes, text in zip(shapes, numbers))
    ours = jitcore.eval_shape(lambda a, b: lax.conv_general_dilated(a, b, (2,), padding, dimension_numbers=numbers), *map(np.zeros, (lhs, rhs)))
    assert lax.conv_general_shape_tuple(lhs, rhs, (2,), padding, numbers) == ours.shape
    ours = jitcore.eval_shape(lambda a, b: lax.conv_transpose(a, b, (2,), padding, dimension_numbers=numbers), *map(np.zeros, (lhs, rhs)))
    assert lax.conv_transpose_shape_tuple(lhs, rhs, (2,), padding, numbers) == ours.shape
    assert lax.conv_general_permutations(("NHWC", "HWIO", "NHWC")) == ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    assert lax.reduce_window_shape_tuple((8, 5), (3, 2), (2, 1), [(0, 1), (1, 1)], (1, 2), (2, 1)) == (3, 10)
    with pytest.raises(TypeError, match="exactly once"):
        lax.conv_general_permutations(("NHHC", "HWIO", "NHWC"))
