"""The normal form of products and convolutions: what the pass leaves, and that it computes the same."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import lax, make_jaxpr
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.lax.convolution.conv import is_plain_convolution
from jitcore.passes import run_pipeline
from jitcore.passes.contractions import keep_halves, normalize_contractions

RNG = np.random.default_rng(5)
PARAMS = [{}, {"lhs_dilation": (1, 2)}, {"feature_group_count": 2}, {"batch_group_count": 2}]
ORDERS = [("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW"), ("CWHN", "IOWH", "NHWC")]


def draw(*shape) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def normalize(function, *arguments) -> list[str]:
    """Primitives after the pass; the program computes what it did."""
    closed = make_jaxpr(function)(*arguments)
    after = normalize_contractions(closed)
    for new, old in zip(run_jaxpr_numpy(after, arguments), run_jaxpr_numpy(closed, arguments)):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-5)
    return [eqn.primitive.name for eqn in run_pipeline(closed).eqns]


@pytest.mark.parametrize(
    "function", [lambda x, y: x.T @ y, lambda x, y: jnp.einsum("ki,kj->ij", x, y), lambda x, y: y.T @ x.T.T]
)
def test_transposed_operands_are_read_as_they_are(function):
    assert normalize(function, draw(5, 6), draw(5, 7)) == ["dot_general"]


@pytest.mark.parametrize("function", [
    lambda x, y, w: 0.1 * x.T @ y, lambda x, y, w: y @ (x - 1), lambda x, y, w: (x * x) @ w,
    lambda x, y, w: (x.T + x.T) @ y, lambda x, y, w: w @ (x.T / 3), lambda x, y, w: (x + x.mean(0)) @ w,
])
def test_a_computed_matrix_times_a_vector_is_a_sum(function):
    names = normalize(function, abs(draw(900, 20)) + 1, abs(draw(900)), abs(draw(20)))
    assert "dot_general" not in names and "transpose" not in names


def test_a_vector_is_contracted_with_any_axis():
    x, y = abs(draw(30, 40, 20)), abs(draw(40))
    for expression in ("ijk,j->ik", "ijk,j->ki"):
        names = normalize(lambda x, y: jnp.einsum(expression, x, y), x, y)  # noqa: B023
        assert "dot_general" not in names


@pytest.mark.parametrize("function", [
    lambda x, y: x.T @ y,  # not computed
    lambda x, y: (0.1 * x[:100].T) @ y[:100],  # small
    lambda x, y: jnp.exp(x).T @ y,  # dear
    lambda x, y: (0.1 * x.T) @ x,  # two matrices
    lambda x, y: (0.1 * x.T) @ y.astype("float64"),
])
def test_other_products_stay(function):
    assert normalize(function, draw(900, 20), draw(900)).count("dot_general") == 1


def test_axes_that_do_not_run_together_are_transposed():
    def contract(axes):
        return lambda x, y: lax.dot_general(x, y, ((axes, (0, 1)), ((), ())))

    assert normalize(contract((0, 2)), draw(3, 4, 5), draw(3, 5, 6)) == ["transpose", "dot_general"]
    assert normalize(contract((0, 1)), draw(3, 5, 4), draw(3, 5, 6)) == ["dot_general"]


def test_a_transposition_stays_where_free_axes_would_change_places():
    names = normalize(lambda x, y: lax.dot_general(x.transpose(1, 0, 2), y, (((2,), (0,)), ((), ()))),
                      draw(3, 4, 5), draw(5, 6))
    assert names == ["transpose", "dot_general"]


def test_halves_are_converted_outside():
    closed = make_jaxpr(jnp.matmul)(draw(3, 4).astype(np.float16), draw(4, 5).astype(np.float16))
    eqns = run_pipeline(closed).eqns
    names = [eqn.primitive.name for eqn in eqns]
    assert names == ["convert_element_type", "convert_element_type", "dot_general", "convert_element_type"]
    assert eqns[2].outvars[0].aval.dtype == np.float32


@pytest.mark.parametrize(("shapes", "dtypes", "converts"), [
    (((3, 4), (4, 5)), ("float16", "float16"), 0),
    (((2, 3, 4), (2, 4, 5)), ("bfloat16", "bfloat16"), 0),
    (((3, 4), (4,)), ("float16", "float16"), 3),  # a vector
    (((3, 4), (4, 5)), ("float16", "bfloat16"), 2),  # float32 by promotion
    (((3, 4), (4, 5)), ("float32", "float32"), 0),
])
def test_matrices_of_halves_are_kept_for_backends_that_multiply_them(shapes, dtypes, converts):
    closed = make_jaxpr(jnp.matmul)(*[draw(*shape).astype(dtype) for shape, dtype in zip(shapes, dtypes)])
    names = [eqn.primitive.name for eqn in keep_halves(closed).eqns]
    assert (names.count("dot_general"), names.count("convert_element_type")) == (1, converts)


def test_integers_and_complex_numbers_are_left_alone():
    for dtype in (np.int32, np.complex64):
        x = draw(3, 4, 5).astype(dtype)
        closed = make_jaxpr(lambda x: lax.dot_general(x, x, (((0, 2), (0, 2)), ((), ()))))(x)
        assert normalize_contractions(closed).eqns[0].primitive.name == "dot_general"


@pytest.mark.parametrize("numbers", ORDERS)
@pytest.mark.parametrize("params", PARAMS)
def test_convolutions_become_plain(numbers, params):
    sizes = {"N": 4, "C": 4, "H": 7, "W": 40}
    filters = {"O": 6, "I": 4 // params.get("feature_group_count", 1), "H": 3, "W": 2}
    x, w = draw(*(sizes[axis] for axis in numbers[0])), draw(*(filters[axis] for axis in numbers[1]))

    def convolve(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), ((1, 1), (0, 1)), dimension_numbers=numbers, **params)

    assert normalize(convolve, x, w).count("conv_general_dilated") == 1
    eqns = run_pipeline(make_jaxpr(convolve)(x, w)).eqns
    (plain,) = [eqn for eqn in eqns if eqn.primitive.name == "conv_general_dilated"]
    assert is_plain_convolution(**plain.params)


def test_what_is_plain_stays():
    def convolve(x, w):
        return lax.conv_general_dilated(x, w, (2, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    assert normalize(convolve, draw(2, 6, 7, 3), draw(3, 3, 3, 4)) == ["conv_general_dilated"]
