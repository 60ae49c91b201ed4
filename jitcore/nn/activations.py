"""Activation functions of neural networks.

In: an array or a number. Out: an array of its shape; integers become floats where the function is not exact
on them.
"""

from __future__ import annotations

import math

from jitcore import dtypes, lax, numpy as jnp
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import ensure_array, promote
from jitcore.scipy.special import expit
from jitcore.transforms.custom_derivatives import custom_jvp

__all__ = ["celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity",
           "leaky_relu", "log1mexp", "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu",
           "soft_sign", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "swish", "tanh"]

tanh = jnp.tanh


def identity(x) -> Array:
    """x itself, as an array."""
    return ensure_array("identity", x)


# -- built of max, min and select -------------------------------------------------------------------------
@custom_jvp
def relu(x) -> Array:
    """max(x, 0), with slope 0 at 0."""
    return jnp.maximum(x, 0)


relu.defjvps(lambda t, ans, x: jnp.where(x > 0, t, 0))


@custom_jvp
def relu6(x) -> Array:
    """min(max(x, 0), 6), with slope 0 at 0 and 6."""
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


relu6.defjvps(lambda t, ans, x: jnp.where((x > 0) & (x < 6), t, 0))


def leaky_relu(x, negative_slope=1e-2) -> Array:
    """x where x >= 0, else negative_slope * x."""
    x = ensure_array("leaky_relu", x)
    return jnp.where(x >= 0, x, negative_slope * x)


def hard_tanh(x) -> Array:
    """x limited to [-1, 1]."""
    x = ensure_array("hard_tanh", x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


def hard_sigmoid(x) -> Array:
    """relu6(x + 3) / 6."""
    return relu6(ensure_array("hard_sigmoid", x) + 3.0) / 6.0


def hard_silu(x) -> Array:
    """x * hard_sigmoid(x)."""
    x = ensure_array("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def sparse_plus(x) -> Array:
    """0 for x <= -1, x for x >= 1, (x + 1)**2 / 4 between."""
    x = ensure_array("sparse_plus", x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


def sparse_sigmoid(x) -> Array:
    """0 for x <= -1, 1 for x >= 1, (x + 1) / 2 between."""
    return 0.5 * jnp.clip(ensure_array("sparse_sigmoid", x) + 1.0, 0.0, 2.0)


# -- built of exp -----------------------------------------------------------------------------------------
def sigmoid(x) -> Array:
    """1 / (1 + exp(-x))."""
    return expit(x)


def softplus(x) -> Array:
    """log(1 + exp(x))."""
    return jnp.logaddexp(x, 0)


def log_sigmoid(x) -> Array:
    """log(sigmoid(x)) = -softplus(-x)."""
    return -softplus(-ensure_array("log_sigmoid", x))


def soft_sign(x) -> Array:
    """x / (|x| + 1)."""
    x = ensure_array("soft_sign", x)
    return x / (jnp.abs(x) + 1)


def silu(x) -> Array:
    """x * sigmoid(x)."""
    x = ensure_array("silu", x)
    return x * sigmoid(x)


swish = silu


def mish(x) -> Array:
    """x * tanh(softplus(x))."""
    x = ensure_array("mish", x)
    return x * jnp.tanh(softplus(x))


def squareplus(x, b=4) -> Array:
    """(x + sqrt(x**2 + b)) / 2."""
    x = ensure_array("squareplus", x)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


def elu(x, alpha=1.0) -> Array:
    """x where x > 0, else alpha * (exp(x) - 1)."""
    x = ensure_array("elu", x)
    # The inner selection keeps expm1, and its derivative, from overflowing where x is large.
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


def celu(x, alpha=1.0) -> Array:
    """max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)."""
    x = ensure_array("celu", x)
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


def selu(x) -> Array:
    """`elu` with the slope and scale under which layers normalise themselves.

    Source: Klambauer, Unterthiner, Mayr, Hochreiter: Self-normalizing neural networks (2017)."""
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def gelu(x, approximate: bool = True) -> Array:
    """x times the probability that a normal number is below x; approximate: by tanh instead of erf."""
    x = ensure_array("gelu", promote("gelu", x, to=dtypes.inexact_dtype)[0])
    if approximate:
        inner = x.dtype.type(math.sqrt(2 / math.pi)) * (x + 0.044715 * x**3)
        return x * (0.5 * (1.0 + jnp.tanh(inner)))
    return 0.5 * x * lax.erfc(-x * x.dtype.type(math.sqrt(0.5)))


def glu(x, axis: int = -1) -> Array:
    """First half of x along an axis, times the sigmoid of the second half.

    Raises: ValueError for an odd extent."""
    x = ensure_array("glu", x)
    if x.shape[axis] % 2:
        raise ValueError(f"axis size must be divisible by 2, got {x.shape[axis]}")
    values, gates = jnp.split(x, 2, axis)
    return values * sigmoid(gates)


def log1mexp(x) -> Array:
    """log(1 - exp(-x)), accurate near 0 and for large x."""
    x = ensure_array("log1mexp", x)
    near = x < math.log(2)
    return jnp.where(near, jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x)))
