"""Gradients of public functions at ordinary and at special points (ties, kinks, zeros, infinities) are JAX's."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
from jitcore import nn, numpy as jnp
from jitcore.scipy import special
from tests.jax_answers import jax

jax_nn = jax.nn
jax_np = jax.numpy
jax_special = jax.scipy.special

POINTS = np.array([-2.5, -1.0, -0.5, -0.0, 0.0, 0.3, 0.5, 1.0, 1.5, 3.0, 6.0, 50.0])
UNIT = np.array([0.1, 0.5, 0.9, 0.3])
POSITIVE = np.array([0.1, 0.5, 1.0, 2.0, 7.5])
PAIRS = (np.array([0.5, 1.2, 2.0, -3.0, 1.0, 0.7]), np.array([0.3, -0.4, 2.0, 2.0, 1.0, -0.7]))
POSITIVE_PAIRS = (np.array([0.5, 1.2, 2.0, 0.3]), np.array([0.3, 0.4, 1.0, 2.0]))
VECTOR = np.array([0.7, -1.2, 0.4, 2.0, 2.0, -0.3])
MATRIX = np.array([[1.3, -0.4, 0.7], [0.2, 2.1, -0.5], [0.8, 0.1, 1.7]])

NN = """\
relu relu6 sigmoid hard_sigmoid softplus soft_sign silu hard_silu log_sigmoid leaky_relu elu celu selu gelu
mish hard_tanh sparse_plus sparse_sigmoid squareplus softmax log_softmax logsumexp standardize""".split()

SPECIAL = {
    **dict.fromkeys("erf erfc expit log_ndtr ndtr".split(), (POINTS,)),
    "i0": (POINTS[POINTS != 0],), "i0e": (POINTS,),  # at 0 the slope of JAX's i0 is 1
    "i1": (POINTS,), "i1e": (POINTS,), "logit": (UNIT,),
    "logit at the ends": (np.array([0.0, 1.0]),), "entr": (POSITIVE,), "entr at 0": (np.array([0.0, 2.0]),),
    "gammaln": (POSITIVE,), "digamma": (POSITIVE,), "erfinv": (UNIT,), "ndtri": (UNIT,),
    **dict.fromkeys("xlogy xlog1py rel_entr kl_div betaln".split(), POSITIVE_PAIRS),
    "xlogy at 0": (np.array([0.0, 0.0]), np.array([0.5, 2.0])),
    "xlog1py at 0": (np.array([0.0, 0.0]), np.array([0.5, 2.0])),
    "logsumexp": (VECTOR,), "logsumexp of infinities": (np.array([-np.inf, 1.0, 2.0]),),
}

NUMPY = {
    **dict.fromkeys("""abs sign sinc i0 modf square tanh arctan arcsinh expm1 floor ceil rint trunc fabs
    deg2rad exp2 nan_to_num heaviside_half cbrt""".split(), (POINTS,)),
    **dict.fromkeys("log sqrt log1p reciprocal".split(), (POSITIVE,)),
    "sqrt at 0": (np.array([0.0, 4.0]),),
    **dict.fromkeys("""maximum minimum fmax fmin logaddexp logaddexp2 hypot arctan2 copysign multiply divide fmod
    remainder float_power_of_magnitudes""".split(), PAIRS),
    "power": (np.array([0.0, 0.0, 2.0, 3.0]), np.array([2.0, 1.0, 0.0, -1.5])),
    **dict.fromkeys("""sort argsort_values max min ptp prod cumprod cumsum mean var std median average sum_of_ties
    nansum nanmax nanmean nanvar quantile percentile trapezoid diff ediff1d gradient interp clip_ends norm
    convolve polyval corrcoef where_log amax_of_ties unwrap roll_3 select_cases piecewise_parts""".split(), (VECTOR,)),
    "prod with zeros": (np.array([0.0, 2.0, 3.0]),), "prod with two zeros": (np.array([0.0, 0.0, 3.0]),),
    "cumprod with zeros": (np.array([1.0, 0.0, 3.0]),), "nansum with nan": (np.array([1.0, np.nan, 3.0]),),
    "nanmax with nan": (np.array([1.0, np.nan, 3.0]),), "nanstd with nan": (np.array([1.0, np.nan, 3.0]),),
    **dict.fromkeys("trace diag tril triu outer_self kron_self einsum_trace cov vander_like".split(), (MATRIX,)),
}


def build(np_):
    """Functions that the library has under no name of their own."""
    return {
        "heaviside_half": lambda x: np_.heaviside(x, 0.5),
        "float_power_of_magnitudes": lambda x, y: np_.float_power(np_.abs(x), y),
        "argsort_values": lambda x: x[np_.argsort(x)],
        "sum_of_ties": lambda x: np_.max(np_.concatenate([x, x])),
        "amax_of_ties": lambda x: np_.amax(np_.stack([x, x]), axis=0),
        "quantile": lambda x: np_.quantile(x, np.array([0.1, 0.5, 0.77])),
        "percentile": lambda x: np_.percentile(x, 30.0),
        "interp": lambda x: np_.interp(x, np.array([-1.0, 0.0, 1.0]), np.array([0.0, 2.0, 3.0])),
        "clip_ends": lambda x: np_.clip(x, -1.2, 2.0),
        "norm": np_.linalg.norm,
        "convolve": lambda x: np_.convolve(x, x[:3]),
        "polyval": lambda x: np_.polyval(x, x[:3]),
        "corrcoef": lambda x: np_.corrcoef(x, x**2),
        "where_log": lambda x: np_.where(x > 0, np_.log(np_.where(x > 0, x, 1.0)), 0.0),
        "roll_3": lambda x: np_.roll(x, 3),
        "select_cases": lambda x: np_.select([x > 1, x < 0], [x**2, np_.sin(x)], 0.0),
        "piecewise_parts": lambda x: np_.piecewise(x, [x < 0, x >= 0], [lambda x: -x, lambda x: x**3]),
        "outer_self": lambda x: np_.outer(x, x),
        "kron_self": lambda x: np_.kron(x, x),
        "einsum_trace": lambda x: np_.einsum("ij,jk,ki->", x, x, x),
        "vander_like": lambda x: np_.cumsum(np_.cumprod(x, 0), 1),
    }


def weigh(outs):
    """A number that depends on all parts of the floating outputs."""
    total = 0.0
    for out in outs if isinstance(outs, (tuple, list)) else [outs]:
        if np.dtype(out.dtype).kind == "f":
            total = total + (out * np.cos(np.arange(out.size)).reshape(out.shape)).sum()
    return total


def find(module, np_, name: str):
    name = name.split(" ")[0]
    return build(np_).get(name) or getattr(module, name)


CASES = [
    *(pytest.param(nn, jax_nn, name, (POINTS,), id=f"nn.{name}") for name in NN),
    pytest.param(nn, jax_nn, "softmax", (MATRIX,), id="nn.softmax of rows"),
    *(pytest.param(special, jax_special, name, operands, id=f"special.{name}")
      for name, operands in SPECIAL.items()),
    *(pytest.param(jnp, jax_np, name, operands, id=f"numpy.{name}") for name, operands in NUMPY.items()),
]


@pytest.mark.parametrize(("ours", "theirs", "name", "operands"), CASES)
def test_gradient(ours, theirs, name, operands):
    numbers = tuple(range(len(operands)))
    ours, theirs = find(ours, jnp, name), find(theirs, jax_np, name)
    with jax.enable_x64(True):
        wanted = jax.grad(lambda *x: weigh(theirs(*x)), numbers)(*operands)
    for found, value in zip(jitcore.grad(lambda *x: weigh(ours(*x)), numbers)(*operands), wanted):
        np.testing.assert_allclose(found, value, rtol=1e-6, atol=1e-9)


@pytest.mark.cpu
@pytest.mark.parametrize("name", NN)
def test_activations_of_single_precision_are_compiled(name):
    """Nothing in the gradient of an activation calls Python, and it is that of double precision."""
    function = getattr(nn, name)
    compiled = jitcore.jit(jitcore.grad(lambda x: weigh(function(x))))
    x = POINTS.astype(np.float32)
    found = compiled(x)
    assert found.dtype == np.float32 and "call" not in compiled.inspect("loop program")
    wanted = jitcore.grad(lambda x: weigh(function(x)))(x.astype(np.float64))
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-4)
