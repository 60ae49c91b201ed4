"""`jitcore.nn` against `jax.nn`: values, dtypes, weak types, eager and traced; initialisers from the same keys."""

import inspect

import numpy as np
import pytest

import jitcore
from jitcore import nn, random
from tests.jax_answers import jax, list_parameters

INPUTS = {
    "float32": np.linspace(-4, 4, 24, dtype=np.float32).reshape(4, 6),
    "float16": np.linspace(-3, 3, 8).astype(np.float16),
    "special": np.array([-np.inf, np.inf, np.nan, 0, -0.0, 100, -100, 3e38], np.float32),
    "int32": np.arange(-3, 5, dtype=np.int32),
    "float": 1.5,
}
ELEMENTWISE = (
    "relu relu6 sigmoid hard_sigmoid softplus soft_sign silu swish hard_silu hard_swish log_sigmoid leaky_relu elu celu "
    "selu gelu hard_tanh tanh squareplus mish sparse_plus sparse_sigmoid identity log1mexp"
).split()
ALONG_AXIS = ["softmax", "log_softmax", "logsumexp", "standardize", "logmeanexp"]
TOLERANCE = {"float16": 2e-3}


def assert_same(ours, theirs, tolerance=2e-6):
    """Equal values, dtype, shape and weak type."""
    assert (ours.dtype, ours.shape, ours.weak_type) == (theirs.dtype, theirs.shape, theirs.weak_type)
    np.testing.assert_allclose(
        ours.data.astype(complex), np.asarray(theirs).astype(complex), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_activation(name, kind):
    x = INPUTS[kind]
    if kind == "int32" and name in ("sigmoid", "silu", "swish"):
        # jax.nn refuses integers here.
        expected = getattr(jax.nn, name)(x.astype(np.float32))
    else:
        expected = getattr(jax.nn, name)(x)
    assert_same(getattr(nn, name)(x), expected, TOLERANCE.get(kind, 2e-6))


@pytest.mark.parametrize("kind", ["float32", "float16", "special"])
@pytest.mark.parametrize("name", ALONG_AXIS)
def test_along_axis(name, kind):
    x = INPUTS[kind]
    assert_same(getattr(nn, name)(x), getattr(jax.nn, name)(x), TOLERANCE.get(kind, 2e-6))


@pytest.mark.parametrize("options", [{"axis": 0}, {"axis": (0, 1)}, {"axis": 1, "where": INPUTS["float32"] > -1}])
@pytest.mark.parametrize("name", ALONG_AXIS)
def test_along_axis_options(name, options):
    x = INPUTS["float32"]
    assert_same(getattr(nn, name)(x, **options), getattr(jax.nn, name)(x, **options))


@pytest.mark.parametrize("name, args, options", [
    ("gelu", (), {"approximate": False}), ("glu", (), {}), ("glu", (0,), {}), ("elu", (0.3,), {}), ("celu", (0.3,), {}),
    ("leaky_relu", (0.3,), {}), ("squareplus", (2.0,), {}), ("standardize", (), {"algorithm": "stable"}),
    ("standardize", (), {"mean": np.float32(1), "variance": np.float32(2)}),
])
def test_options(name, args, options):
    x = INPUTS["float32"]
    assert_same(getattr(nn, name)(x, *args, **options), getattr(jax.nn, name)(x, *args, **options))


@pytest.mark.parametrize("indices, options", [
    (np.array([0, 2, 5]), {}), (np.array([[0, 2]]), {"axis": 0, "dtype": "int32"}), (1, {}), (np.array([-1, 1]), {}),
])
def test_one_hot(indices, options):
    assert_same(nn.one_hot(indices, 3, **options), jax.nn.one_hot(indices, 3, **options))


@pytest.mark.parametrize("call", [
    lambda: nn.glu(np.zeros(3, np.float32)), lambda: nn.standardize(INPUTS["float32"], algorithm="other"),
    lambda: nn.initializers.glorot_normal()(random.key(0), (3,)),
    lambda: nn.initializers.orthogonal()(random.key(0), (3,)),
    lambda: nn.initializers.variance_scaling(1.0, "other", "normal")(random.key(0), (3, 3)),
    lambda: nn.initializers.variance_scaling(1.0, "fan_in", "other")(random.key(0), (3, 3)),
    lambda: nn.initializers.delta_orthogonal()(random.key(0), (3, 3)),
])
def test_errors(call):
    with pytest.raises(ValueError):
        call()


@pytest.mark.parametrize("name", [*ELEMENTWISE, *ALONG_AXIS])
def test_traced_agrees_with_eager(name):
    x, function = INPUTS["float32"], getattr(nn, name)
    got, expected = jitcore.jit(function)(x), function(x)
    assert (got.dtype, got.shape, got.weak_type) == (expected.dtype, expected.shape, expected.weak_type)
    np.testing.assert_allclose(got.data, expected.data, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name, equations", [("relu", 1), ("sigmoid", 1), ("selu", 7), ("silu", 2), ("elu", 6)])
def test_jaxpr_is_lean(name, equations):
    closed = jitcore.make_jaxpr(getattr(nn, name))(INPUTS["float32"])
    assert len(closed.jaxpr.eqns) <= equations


@pytest.mark.parametrize("name", [*ELEMENTWISE, *ALONG_AXIS, "glu", "one_hot"])
def test_argument_names_are_those_of_jax(name):
    ours, theirs = list(inspect.signature(getattr(nn, name)).parameters), list_parameters(getattr(jax.nn, name))
    # Newer releases of JAX add a placement on several devices to some functions.
    assert ours == [parameter for parameter in theirs if parameter != "out_sharding"]
    assert getattr(nn, name).__doc__


# -- initial weights ------------------------------------------------------------------------------------------
SCALED = "glorot_normal glorot_uniform he_normal he_uniform lecun_normal lecun_uniform".split()


def assert_same_weights(make, shape, *dtype, tolerance=1e-5):
    ours = make(nn.initializers)(random.key(5), shape, *dtype)
    theirs = make(jax.nn.initializers)(jax.random.key(5), shape, *dtype)
    assert_same(ours, theirs, tolerance)


@pytest.mark.parametrize("name", [*SCALED, "normal", "uniform", "truncated_normal", "orthogonal"])
@pytest.mark.parametrize("shape", [(3, 4), (3, 2, 4, 5)])
def test_initializer(name, shape):
    assert_same_weights(lambda module: getattr(module, name)(), shape)


@pytest.mark.parametrize("name", ["glorot_normal", "he_uniform", "normal"])
def test_complex_initializer(name):
    assert_same_weights(lambda module: getattr(module, name)(), (3, 4), "complex64", tolerance=5e-5)


def test_other_initializers():
    assert_same_weights(lambda module: module.zeros, (2,))
    assert_same_weights(lambda module: module.ones, (2,), "float16")
    assert_same_weights(lambda module: module.constant(3), (2,))
    assert_same_weights(lambda module: module.delta_orthogonal(), (3, 3, 2, 4))
    assert_same_weights(lambda module: module.variance_scaling(2.0, "fan_geo_avg", "normal", (0, 1), -1), (2, 3, 4))


def test_other_names_are_the_same_initializers():
    assert nn.initializers.xavier_normal is nn.initializers.glorot_normal
    assert nn.initializers.kaiming_uniform is nn.initializers.he_uniform
