"""A user's file, type-checked and run: a small network, its loss, its training."""

from functools import partial
from typing import NamedTuple

import numpy as np

import jitcore
import jitcore.numpy as jnp
from jitcore import Array, lax, nn, random
from jitcore.typing import ArrayLike, DTypeLike


class Layer(NamedTuple):
    weight: Array
    bias: Array


Parameters = list[Layer]


def init_layers(key: Array, sizes: list[int], dtype: DTypeLike = jnp.float32) -> Parameters:
    keys = random.split(key, len(sizes) - 1)
    init = nn.initializers.he_normal()
    return [Layer(init(k, (m, n), dtype), jnp.zeros(n, dtype)) for k, m, n in zip(keys, sizes[:-1], sizes[1:])]


def predict(layers: Parameters, x: ArrayLike) -> Array:
    hidden = jnp.asarray(x)
    for weight, bias in layers[:-1]:
        hidden = nn.relu(hidden @ weight + bias)
    last = layers[-1]
    return nn.log_softmax(hidden @ last.weight + last.bias, axis=-1)


def loss(layers: Parameters, x: ArrayLike, labels: Array) -> Array:
    picked = jnp.take_along_axis(predict(layers, x), labels[:, None], axis=1)
    return -picked.mean()


@partial(jitcore.jit, static_argnames="rate")
def step(layers: Parameters, x: Array, labels: Array, rate: float = 0.1) -> tuple[Parameters, Array]:
    value, gradient = jitcore.value_and_grad(loss)(layers, x, labels)
    return [Layer(w - rate * dw, b - rate * db) for (w, b), (dw, db) in zip(layers, gradient)], value


def accuracy(layers: Parameters, x: Array, labels: Array) -> float:
    return float((jnp.argmax(predict(layers, x), axis=1) == labels).mean())


def smooth(values: Array, decay: float) -> Array:
    def one(mean: Array, value: Array) -> tuple[Array, Array]:
        mean = decay * mean + (1 - decay) * value
        return mean, mean

    return lax.scan(one, 0.0, values)[1]


def main() -> None:
    key, data_key = random.split(random.key(0))
    x = random.normal(data_key, (256, 8))
    labels = (x.sum(axis=1) > 0).astype(jnp.int32)
    layers, losses = init_layers(key, [8, 32, 2]), []
    for _ in range(100):
        layers, value = step(layers, x, labels, rate=0.05)
        losses.append(value)
    curve: np.ndarray = np.asarray(smooth(jnp.stack(losses), 0.9))
    print(curve[-1], accuracy(layers, x, labels), f"{losses[-1]:.3f}", layers[0].weight.at[0].set(0.0).shape)
