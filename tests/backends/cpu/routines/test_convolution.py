"""Native convolutions against a direct sum in float64 and against JAX: layouts, groups, threads, special values."""

import itertools

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.backends.cpu.runtime import threads
from tests.jax_answers import jax

jax_lax = jax.lax

RNG = np.random.default_rng(23)


def draw(shape, dtype="float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def convolve(x, w, **params):
    """(the result of a compiled convolution, its loop program)."""
    function = jit(lambda x, w: lax.conv_general_dilated(x, w, **params))
    return np.asarray(function(x, w)), function.inspect("loop program")


def check(x, w, routine: str | None, **params) -> None:
    """Against JAX; routine: the name that the loop program has to show, None for loops."""
    got, text = convolve(x, w, **params)
    expected = np.asarray(jax_lax.conv_general_dilated(x, w, **params))
    assert got.dtype == expected.dtype and got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    assert " call " not in text
    names = ("planes_convolution_f", "= convolution_f", "product_f")
    assert [name for name in names if name in text] == ([] if routine is None else [routine])


LAST, FIRST = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
FEATURES, PLANES, PRODUCT = "= convolution_f", "planes_convolution_f", "product_f"


@pytest.mark.parametrize(
    ("features", "positions"), [(4, 1), (7, 3), (16, 13), (31, 14), (32, 15), (33, 29), (65, 14), (65, 1)]
)
def test_features_last(features, positions):
    x, w = draw((2, 5, positions + 2, 3)), draw((3, 3, 3, features))
    check(x, w, FEATURES, window_strides=(1, 1), padding="VALID", dimension_numbers=LAST)


@pytest.mark.parametrize(("positions", "sizes"), [(32, (1, 1)), (33, (2, 5)), (64, (5, 14)), (70, (3, 31))])
def test_features_first(positions, sizes):
    features, outs = sizes
    x, w = draw((2, features, 6, positions + 2)), draw((outs, features, 2, 3))
    check(x, w, PLANES, window_strides=(2, 1), padding="VALID")


@pytest.mark.parametrize("layout", [LAST, FIRST])
@pytest.mark.parametrize(
    "params",
    [dict(padding="SAME", window_strides=(2, 3)), dict(padding=((1, 2), (0, 3)), rhs_dilation=(2, 1)),
     dict(padding=((3, 0), (-1, 2)), lhs_dilation=(2, 3)), dict(padding="SAME", feature_group_count=2),
     dict(padding="SAME", batch_group_count=2), dict(padding="VALID", rhs_dilation=(1, 3))],
)
def test_parameters(layout, params):
    """The routine runs whatever the parameters; wide images take both forms."""
    for width in (10, 50):
        sizes = {"N": 4, "C": 6, "H": 11, "W": width}
        filters = {"O": 8, "I": 6 // params.get("feature_group_count", 1), "H": 3, "W": 4}
        x, w = draw([sizes[axis] for axis in layout[0]]), draw([filters[axis] for axis in layout[1]])
        full = {"window_strides": (1, 1), "dimension_numbers": layout} | params
        stays = layout is FIRST and width == 50 and full["window_strides"][1] == 1
        check(x, w, PLANES if stays and "batch_group_count" not in params else FEATURES, **full)


def test_axis_orders():
    """Each order of each operand's axes, with some orders of the others'."""
    sizes = {"N": 2, "C": 4, "W": 12}
    filters = {"O": 5, "I": 4, "W": 3}
    orders = itertools.product(*map(itertools.permutations, ("NCW", "OIW", "NCW")))
    for lhs, rhs, out in itertools.islice(orders, 0, None, 7):
        x, w = draw([sizes[axis] for axis in lhs]), draw([filters[axis] for axis in rhs])
        numbers = tuple(map("".join, (lhs, rhs, out)))
        got, _ = convolve(x, w, window_strides=(1,), padding="SAME", dimension_numbers=numbers)
        expected = jax_lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=numbers)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_three_dimensions():
    x, w = draw((2, 3, 6, 7, 8)), draw((5, 3, 2, 3, 2))
    check(x, w, FEATURES, window_strides=(1, 2, 1), padding="SAME")
    x = draw((2, 3, 6, 7, 40))
    check(x, w, PLANES, window_strides=(1, 2, 1), padding="SAME", rhs_dilation=(1, 1, 2))


def test_single_channel_signals_and_pictures():
    """One feature in and out is both layouts; results are NumPy's."""
    x, w = draw(5000, "float64"), draw(33, "float64")
    function = jit(lambda x, w: jnp.convolve(x, w))
    np.testing.assert_allclose(function(x, w), np.convolve(x, w), rtol=1e-10, atol=1e-10)
    assert PLANES in function.inspect("loop program")
    check(draw((2, 40, 50, 1)), draw((5, 5, 1, 1)), PLANES, window_strides=(1, 1), padding="SAME",
          dimension_numbers=LAST)


def test_one_by_one_windows_are_matrix_products():
    check(draw((2, 9, 9, 12)), draw((1, 1, 12, 20)), PRODUCT, window_strides=(1, 1), padding="SAME",
          dimension_numbers=LAST)


@pytest.mark.parametrize("layout", [LAST, FIRST])
def test_few_features_per_group_take_loops(layout):
    sizes, filters = {"N": 2, "C": 6, "H": 9, "W": 10}, {"O": 12, "I": 1, "H": 3, "W": 3}
    x, w = draw([sizes[axis] for axis in layout[0]]), draw([filters[axis] for axis in layout[1]])
    check(x, w, None, window_strides=(1, 1), padding="SAME", dimension_numbers=layout, feature_group_count=6)


def test_integers_take_loops():
    x, w = RNG.integers(-9, 9, (2, 3, 9, 10)).astype(np.int32), RNG.integers(-9, 9, (4, 3, 2, 3)).astype(np.int32)
    check(x, w, None, window_strides=(1, 2), padding="SAME")


def test_halves_are_summed_in_float32():
    x, w = draw((2, 9, 10, 8)).astype(np.float16), draw((3, 3, 8, 16)).astype(np.float16)
    got, text = convolve(x, w, window_strides=(1, 1), padding="SAME", dimension_numbers=LAST)
    wide, _ = convolve(x.astype(np.float32), w.astype(np.float32), window_strides=(1, 1), padding="SAME",
                       dimension_numbers=LAST)
    assert "convolution_f32" in text
    np.testing.assert_array_equal(got, wide.astype(np.float16))


def test_empty_extents():
    for x, w in [((0, 5, 5, 3), (2, 2, 3, 4)), ((2, 5, 5, 0), (2, 2, 0, 4)), ((2, 5, 5, 3), (2, 2, 3, 0))]:
        got, _ = convolve(draw(x), draw(w), window_strides=(1, 1), padding="VALID", dimension_numbers=LAST)
        np.testing.assert_array_equal(got, np.zeros((x[0], 4, 4, w[3]), np.float32))


@pytest.mark.parametrize("width", [12, 60])
def test_nan_reaches_only_the_windows_that_hold_it(width):
    x, w = draw((1, 4, 9, width)), draw((5, 4, 3, 3))
    x[0, 2, 4, 6] = np.nan
    got, _ = convolve(x, w, window_strides=(1, 1), padding="VALID")
    reached = np.zeros((7, width - 2), bool)
    reached[2:5, 4:7] = True
    assert np.array_equal(np.isnan(got[0]), np.broadcast_to(reached, got[0].shape))


def test_threads_do_not_change_bits():
    before = threads.get_num_threads()
    cases = [(draw((4, 40, 40, 16)), draw((3, 3, 16, 40)), LAST), (draw((4, 16, 40, 64)), draw((20, 16, 3, 3)), FIRST)]
    try:
        results = []
        for count in (1, 2, 5):
            threads.set_num_threads(count)
            results.append([convolve(x, w, window_strides=(1, 1), padding="SAME", dimension_numbers=numbers)[0]
                            for x, w, numbers in cases])
    finally:
        threads.set_num_threads(before)
    for others in results[1:]:
        for first, other in zip(results[0], others):
            np.testing.assert_array_equal(first, other)


def test_new_sizes_compile_nothing():
    function = jit(lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=LAST))
    for images, height, width, features, outs in [(10, 20, 21, 12, 13), (11, 30, 44, 15, 40)]:
        function(draw((images, height, width, features)), draw((3, 3, features, outs)))
    assert function.cache_info().compiles <= 1


def test_inside_a_native_loop():
    x, w = draw((1, 12, 12, 4)), draw((3, 3, 4, 4)) / 6

    @jit
    def run(x, w):
        def step(_, x):
            return jnp.tanh(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=LAST))

        return lax.fori_loop(0, 4, step, x)

    expected = x
    for _ in range(4):
        expected = np.tanh(jax_lax.conv_general_dilated(expected, w, (1, 1), "SAME", dimension_numbers=LAST))
    np.testing.assert_allclose(run(x, w), expected, rtol=1e-4, atol=1e-5)
    assert "while:" in run.inspect("loop program") and " call " not in run.inspect("loop program")
