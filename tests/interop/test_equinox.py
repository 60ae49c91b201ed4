"""equinox: classes that are pytrees, registered with jitcore as they are with JAX.

An `equinox.Module` is a pytree of JAX's registry; a line for each class makes it one of jitcore's. What its methods
compute with is jitcore.numpy: layers of `equinox.nn` are written in jax.numpy, which takes no traced values of ours.
"""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import grad, jit, vmap
from jitcore.tree_util import register_pytree_node, tree_leaves, tree_map

eqx = pytest.importorskip("equinox", reason="equinox is not installed: jitcore[interop]")
jax = pytest.importorskip("jax")


def register(cls):
    """Registers a class of JAX's registry: its parts are those that JAX sees."""
    flatten = lambda tree: jax.tree.flatten(tree, is_leaf=lambda x: x is not tree)  # noqa: E731
    register_pytree_node(cls, flatten, jax.tree.unflatten)
    return cls


@register
class Linear(eqx.Module):
    weight: np.ndarray
    bias: np.ndarray
    activation: str = eqx.field(static=True)

    def __init__(self, inputs, outputs, activation="none"):
        random = np.random.default_rng(inputs)
        self.weight, self.bias = random.normal(size=(outputs, inputs)) / inputs**0.5, np.zeros(outputs)
        self.activation = activation

    def __call__(self, x):
        y = self.weight @ x + self.bias
        return jnp.tanh(y) if self.activation == "tanh" else y


@register
class Network(eqx.Module):
    layers: list

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


X = np.linspace(-1, 1, 32)[:, None]
Y = X**2


def make_network():
    return Network([Linear(1, 8, "tanh"), Linear(8, 1)])


@jit
def loss(network, x, y):
    return jnp.mean((vmap(network)(x) - y) ** 2)


def test_leaves_are_those_of_jax():
    network = make_network()
    assert [leaf.shape for leaf in tree_leaves(network)] == [leaf.shape for leaf in jax.tree.leaves(network)]
    twice = tree_map(lambda x: 2 * x, network)
    assert isinstance(twice, Network) and twice.layers[0].activation == "tanh"
    np.testing.assert_array_equal(twice.layers[1].weight, 2 * network.layers[1].weight)


def test_values():
    first, second = (network := make_network()).layers
    expected = np.tanh(X @ first.weight.T + first.bias) @ second.weight.T + second.bias
    np.testing.assert_allclose(jit(vmap(network))(X), expected, rtol=1e-12)
    np.testing.assert_allclose(jit(lambda network, x: vmap(network)(x))(network, X), expected, rtol=1e-12)


def test_training():
    network, slope = make_network(), jit(grad(loss))
    begin = float(loss(network, X, Y))
    for _ in range(300):
        network = tree_map(lambda p, g: p - 0.1 * g, network, slope(network, X, Y))
    assert isinstance(network, Network) and float(loss(network, X, Y)) < 0.1 * begin
    assert loss.cache_info().traces == 1 or loss.cache_info().compiles <= 2


def test_static_fields_are_part_of_the_signature():
    applied = jit(lambda layer, x: layer(x))
    x = np.ones(2)
    a, b = Linear(2, 2), Linear(2, 2, "tanh")
    np.testing.assert_allclose(np.tanh(applied(a, x)), applied(b, x))
    assert applied.cache_info().traces == 2


def test_tree_at():
    changed = eqx.tree_at(lambda n: n.layers[1].bias, make_network(), np.ones(1))
    np.testing.assert_allclose(jit(lambda n, x: n(x))(changed, X[0]), jit(lambda n, x: n(x))(make_network(), X[0]) + 1)
