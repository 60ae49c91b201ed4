"""`custom_vmap`: the rule computes batches; all else is as if it were not there."""

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import lax
from jitcore.custom_batching import custom_vmap, sequential_vmap

xs = jnp.arange(3.0)


@pytest.fixture
def product():
    calls = []

    @custom_vmap
    def product(x, y):
        return {"sin": jnp.sin(x) * y, "y": y}

    @product.def_vmap
    def rule(axis_size, in_batched, x, y):
        calls.append((axis_size, in_batched))
        return {"sin": jnp.sin(x) * y + 0.0, "y": y}, {"sin": True, "y": in_batched[1]}

    product.calls = calls
    return product


def test_the_rule_computes_batches(product):
    found = jitcore.vmap(product, (0, None))(xs, 2.0)
    np.testing.assert_allclose(found["sin"], 2 * np.sin(np.arange(3.0)), rtol=1e-6)
    np.testing.assert_array_equal(found["y"], [2, 2, 2])
    assert product.calls == [(3, [True, False])]
    assert jitcore.vmap(jitcore.vmap(product, (None, 0)), (0, None))(xs, xs)["sin"].shape == (3, 3)
    assert product(1.0, y=2.0)["y"] == 2


def test_it_is_compiled_and_looped_over(product):
    np.testing.assert_allclose(jitcore.jit(jitcore.vmap(product))(xs, xs)["sin"], np.sin(xs) * xs, rtol=1e-6)
    _, ys = lax.scan(lambda c, x: (c, product(x, c)["sin"]), 2.0, xs)
    np.testing.assert_allclose(ys, 2 * np.sin(np.arange(3.0)), rtol=1e-6)
    looped = jitcore.vmap(lambda c: lax.scan(lambda c, x: (c, product(x, c)["y"]), c, xs)[1])(xs)
    assert looped.shape == (3, 3)


def test_derivatives(product):
    def f(x):
        return product(x, 2.0)["sin"]

    want = 2 * np.cos(np.arange(3.0))
    np.testing.assert_allclose(jitcore.vmap(jitcore.grad(f))(xs), want, rtol=1e-6)
    np.testing.assert_allclose(jitcore.grad(lambda x: jitcore.vmap(f)(x).sum())(xs), want, rtol=1e-6)
    np.testing.assert_allclose(jitcore.jvp(jitcore.vmap(f), (xs,), (jnp.ones(3),))[1], want, rtol=1e-6)
    np.testing.assert_allclose(jitcore.hessian(f)(1.0), -2 * np.sin(1.0), rtol=1e-6)
    assert jitcore.linear_transpose(custom_vmap(lambda x: 2 * x), 1.0)(3.0) == (6.0,)


def test_sequential_vmap():
    shapes = []

    @sequential_vmap
    def dot(a, b):
        shapes.append(a.shape)
        return jnp.dot(a, b)

    np.testing.assert_array_equal(jitcore.vmap(dot, (0, None))(jnp.ones((3, 2)), jnp.array([1.0, 2.0])),
                                  [3, 3, 3])
    assert set(shapes) == {(2,)}


def test_errors(product):
    with pytest.raises(AttributeError,
                       match="No batching rule defined for custom_vmap function sin using def_vmap"):
        jitcore.vmap(custom_vmap(jnp.sin))(xs)
    with pytest.raises(ValueError, match="closes over a value that vmap maps"):
        jitcore.vmap(lambda z: custom_vmap(lambda x: x * z)(1.0))(xs)
    product.def_vmap(lambda n, b, x, y: x)
    with pytest.raises(TypeError, match="must return a pair"):
        jitcore.vmap(product)(xs, xs)
    product.def_vmap(lambda n, b, x, y: (x, True))
    with pytest.raises(ValueError, match="structure of the result"):
        jitcore.vmap(product)(xs, xs)
    with pytest.raises(TypeError, match="not a valid jitcore type"):
        product("a", 1.0)
    with pytest.raises(TypeError, match="Expected a callable"):
        custom_vmap(3)
