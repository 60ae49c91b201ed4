"""A small network learns a function: keys, pytrees, gradients of a loss, a jitted step, a scan over epochs."""

import functools

import jax
import jax.numpy as jnp
from jax import grad, jit, random, value_and_grad, vmap
from jax.nn import gelu
from jax.nn.initializers import he_normal
from jax.tree_util import tree_map


def make_layers(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [{"weight": he_normal()(k, (m, n)), "bias": jnp.zeros(n)} for k, m, n in zip(keys, sizes, sizes[1:])]


def predict(layers, x):
    *inner, last = layers
    for layer in inner:
        x = gelu(x @ layer["weight"] + layer["bias"])
    return (x @ last["weight"] + last["bias"])[0]


def loss(layers, xs, ys):
    return jnp.mean((vmap(functools.partial(predict, layers))(xs) - ys) ** 2)


@jit
def step(layers, xs, ys):
    value, found = value_and_grad(loss)(layers, xs, ys)
    return tree_map(lambda p, g: p - 0.05 * g, layers, found), value


layers = make_layers(random.key(3), (2, 16, 16, 1))
xs = random.uniform(random.key(4), (64, 2), minval=-1, maxval=1)
ys = jnp.sin(3 * xs[:, 0]) * xs[:, 1]
before = loss(layers, xs, ys)
trained, losses = jax.lax.scan(lambda layers, _: step(layers, xs, ys), layers, None, length=60)

RESULTS = {
    "gradient": grad(loss)(layers, xs, ys),
    "losses": losses,
    "learned": losses[-1] < 0.5 * before,
    "sizes": jax.tree.map(jnp.shape, trained),
}
