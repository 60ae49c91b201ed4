"""optax: its optimizers on gradients of jitcore.

optax is written in jax.numpy, which takes ndarrays and JAX's own arrays, no other library's; jitcore takes ndarrays
too. So parameters are ndarrays on their way between both, and what optax makes is no part of a jitted function.
"""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import grad, jit, value_and_grad
from jitcore.tree_util import tree_map

optax = pytest.importorskip("optax", reason="optax is not installed: jitcore[interop]")

random = np.random.default_rng(0)
X = random.normal(size=(40, 3)).astype(np.float32)
Y = X @ np.array([1, -2, 0.5], np.float32) + np.float32(0.3)
START = {"w": np.zeros(3, np.float32), "b": np.float32(0)}


@jit
def loss(params):
    return jnp.mean((X @ params["w"] + params["b"] - Y) ** 2)


slope = jit(grad(loss))


def to_numpy(tree):
    return tree_map(np.asarray, tree)


def descend(optimizer, steps, **given):
    params, state = START, optimizer.init(START)
    for _ in range(steps):
        more = {key: f(params) for key, f in given.items()}
        updates, state = optimizer.update(to_numpy(slope(params)), state, params, **more)
        params = {key: np.asarray(one) for key, one in optax.apply_updates(params, updates).items()}
    return params


def test_sgd():
    params = START
    for _ in range(20):
        params = tree_map(lambda p, g: p - 0.1 * g, params, slope(params))
    found = descend(optax.sgd(0.1), 20)
    np.testing.assert_allclose(found["w"], params["w"], rtol=1e-4)
    assert found["w"].dtype == np.float32


def test_adam():
    def adam(params, steps):
        m = v = tree_map(lambda p: p * 0, params)
        for t in range(1, steps + 1):
            g = slope(params)
            m = tree_map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
            v = tree_map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
            params = tree_map(lambda p, m, v: p - 0.1 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), params, m, v)
        return params

    found = descend(optax.adam(0.1), 20)
    np.testing.assert_allclose(found["w"], adam(START, 20)["w"], rtol=1e-3)
    np.testing.assert_allclose(descend(optax.adam(0.1), 300)["w"], [1, -2, 0.5], atol=1e-3)


@pytest.mark.parametrize("make", [optax.adamw, optax.rmsprop, lambda rate: optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(rate))])
def test_others(make):
    assert float(loss(descend(make(0.05), 200))) < 0.05 * float(loss(START))


def test_lbfgs():
    """Without its line search, which would call the loss inside of JAX."""
    found = descend(optax.lbfgs(learning_rate=0.3, linesearch=None), 60)
    np.testing.assert_allclose(found["w"], [1, -2, 0.5], atol=1e-2)


def test_arrays_are_taken_as_ndarrays_alone():
    value, gradient = value_and_grad(loss)(START)
    arrays = tree_map(jnp.asarray, START)
    with pytest.raises((TypeError, AttributeError)):
        optax.adam(0.1).init(arrays)
    optimizer = optax.adam(0.1)
    updates, _ = optimizer.update(to_numpy(gradient), optimizer.init(START))
    with pytest.raises(TypeError, match="ArrayImpl"):
        loss(optax.apply_updates(START, updates))
