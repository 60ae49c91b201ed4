"""Programs that more than one section measures, written against an `api`.

In: an api (jitcore, jax or `NUMPY_API`). Out: functions of arrays. This module imports no compiler, because a
process that times a first call imports it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.inputs import make_normal


class _Scipy:
    """SciPy's modules, imported when they are used."""

    def __getattr__(self, name: str) -> Any:
        return importlib.import_module(f"scipy.{name}")


#: NumPy and SciPy under the names by which programs reach them in an api.
NUMPY_API = SimpleNamespace(numpy=np, scipy=_Scipy())

ALPHA, LAMBDA = 1.67, 1.05
RATE, VOLATILITY = 0.02, 0.3
LEARNING_RATE = 0.01


def make_increment(api: Any) -> Callable:
    return lambda x: x + 1


def make_selu(api: Any) -> Callable:
    jnp = api.numpy

    def selu(x):
        return LAMBDA * jnp.where(x > 0, x, ALPHA * jnp.exp(x) - ALPHA)

    return selu


def make_softmax(api: Any, axis: int = 1) -> Callable:
    jnp = api.numpy

    def softmax(x):
        unnormalized = jnp.exp(x - jnp.max(x, axis=axis, keepdims=True))
        return unnormalized / jnp.sum(unnormalized, axis=axis, keepdims=True)

    return softmax


def make_price(api: Any) -> Callable:
    """Price of a European call option (Black and Scholes 1973): log, sqrt, exp and erf of three inputs."""
    jnp, erf = api.numpy, api.scipy.special.erf

    def price(spot, strike, years):
        spread = VOLATILITY * jnp.sqrt(years)
        d1 = (jnp.log(spot / strike) + (RATE + 0.5 * VOLATILITY**2) * years) / spread
        d2 = d1 - spread
        normal1 = 0.5 * (1 + erf(d1 * 0.5**0.5))
        normal2 = 0.5 * (1 + erf(d2 * 0.5**0.5))
        return spot * normal1 - strike * jnp.exp(-RATE * years) * normal2

    return price


def make_chain(api: Any, length: int) -> Callable:
    """`length` times a sine, a product and a sum."""
    jnp = api.numpy

    def chain(x):
        for _ in range(length):
            x = jnp.sin(x) * 1.01 + 0.1
        return x

    return chain


def make_operations(api: Any, count: int) -> Callable:
    """That many operations in a row."""
    steps = (api.numpy.sin, lambda x: x * 1.01, lambda x: x + 0.1)

    def run(x):
        for number in range(count):
            x = steps[number % 3](x)
        return x

    return run


def make_many_reductions(api: Any) -> Callable:
    """Thirty sums over the rows of different functions of a matrix."""
    jnp = api.numpy

    def reduce(x):
        total = 0.0
        for number in range(30):
            total = total + jnp.sum(jnp.sin(x * (number + 1)), axis=number % 2)
        return total

    return reduce


def make_jacobi(api: Any, steps: int) -> Callable:
    """Steps of the five-point relaxation of a square grid, its boundary fixed."""

    def step(_, u):
        return u.at[1:-1, 1:-1].set(0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]))

    return lambda u: api.lax.fori_loop(0, steps, step, u)


def make_distance_sum(api: Any) -> Callable:
    """The sum of all distances between points (n, 3)."""
    jnp = api.numpy
    return lambda p: jnp.sum(jnp.sqrt(((p[:, None] - p[None]) ** 2).sum(-1)))


def make_layer(api: Any) -> Callable:
    """A layer of a neural network: matrix product, bias, tanh."""
    jnp = api.numpy
    return lambda x, weights, bias: jnp.tanh(x @ weights + bias)


def make_train_step(api: Any) -> Callable:
    """One step of gradient descent of a network with one hidden layer, and its loss (cross-entropy)."""
    jnp = api.numpy

    def find_loss(network, images, targets):
        hidden = jnp.tanh(images @ network["w1"] + network["b1"])
        scores = hidden @ network["w2"] + network["b2"]
        largest = jnp.max(scores, axis=1, keepdims=True)
        logarithm = jnp.log(jnp.sum(jnp.exp(scores - largest), axis=1)) + largest[:, 0]
        return jnp.mean(logarithm - jnp.sum(targets * scores, axis=1))

    def step(network, images, targets):
        loss, slopes = api.value_and_grad(find_loss)(network, images, targets)
        return {name: network[name] - LEARNING_RATE * slopes[name] for name in network}, loss

    return step


def make_network(batch: int, layers: Sequence[int] = (784, 256, 10), dtype: str = "float32") -> tuple:
    """(network, images, targets) of `make_train_step`."""
    inside, hidden, classes = layers
    network = {
        "w1": make_normal(inside, hidden, dtype=dtype, seed=1) / np.dtype(dtype).type(inside**0.5),
        "b1": np.zeros(hidden, dtype),
        "w2": make_normal(hidden, classes, dtype=dtype, seed=2) / np.dtype(dtype).type(hidden**0.5),
        "b2": np.zeros(classes, dtype),
    }
    targets = np.eye(classes, dtype=dtype)[np.random.default_rng(3).integers(0, classes, batch)]
    return network, make_normal(batch, inside, dtype=dtype), targets
