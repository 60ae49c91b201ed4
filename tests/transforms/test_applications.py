"""What derivatives are for: small whole programs, each against an independent answer."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.optimize

import jitcore
import jitcore.numpy as jnp
from jitcore import grad, hessian, jacfwd, jit, jvp, lax, random, value_and_grad, vmap

pytestmark = pytest.mark.machine_code  # hundreds of steps


# -- logistic regression by Newton's method -----------------------------------------------------------------
def make_classes(count=200):
    rng = np.random.default_rng(0)
    x = np.c_[np.ones(count), rng.standard_normal((count, 3))]
    y = (x @ [0.3, 1.0, -2.0, 0.5] + 0.8 * rng.standard_normal(count) > 0).astype(float)
    return x, y


def logistic_loss(w, x, y):
    z = x @ w
    return jnp.mean(jnp.logaddexp(0.0, z) - y * z) + 1e-3 * jnp.sum(w * w)


def test_logistic_regression_by_newton():
    x, y = make_classes()

    @jit
    def step(w):
        return w - jnp.linalg.solve(hessian(logistic_loss)(w, x, y), grad(logistic_loss)(w, x, y))

    w = jnp.zeros(4, np.float64)
    for _ in range(8):
        w = step(w)
    assert np.max(np.abs(grad(logistic_loss)(w, x, y))) < 1e-12
    best = scipy.optimize.minimize(lambda w: float(logistic_loss(w, x, y)), np.zeros(4), tol=1e-12)
    np.testing.assert_allclose(w, best.x, atol=1e-5)


# -- a network ----------------------------------------------------------------------------------------------
def make_network(sizes, key):
    keys = random.split(key, len(sizes))
    return [{"w": random.normal(k, (m, n)) / np.float32(np.sqrt(m)), "b": jnp.zeros(n)}
            for k, m, n in zip(keys, sizes, sizes[1:])]


def apply_network(layers, x):
    for layer in layers[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def test_a_network_learns_a_circle():
    rng = np.random.default_rng(1)
    points = rng.uniform(-1, 1, (256, 2)).astype(np.float32)
    inside = (np.sum(points**2, axis=1) < 0.5).astype(np.float32)

    def loss(layers):
        z = apply_network(layers, points)[:, 0]
        return jnp.mean(jnp.logaddexp(0.0, z) - inside * z)

    @jit
    def step(layers, speed):
        value, slope = value_and_grad(loss)(layers)
        speed = jitcore.tree.map(lambda v, g: 0.9 * v - 0.1 * g, speed, slope)
        return jitcore.tree.map(lambda p, v: p + v, layers, speed), speed, value

    layers = make_network((2, 16, 16, 1), random.key(0))
    speed = jitcore.tree.map(jnp.zeros_like, layers)
    first = loss(layers)
    for _ in range(400):
        layers, speed, value = step(layers, speed)
    assert step.cache_info().traces == 1
    assert first > 0.6 and value < 0.05
    right = (apply_network(layers, points)[:, 0] > 0) == (inside > 0)
    assert np.mean(right) > 0.98


# -- a differential equation with adaptive steps ------------------------------------------------------------
def integrate(slope, y, end, tolerance=1e-8):
    """Solves y' = slope(t, y) from 0 to `end` by the embedded method of Bogacki and Shampine."""

    def step(carry):
        t, y, h = carry
        h = jnp.minimum(h, end - t)
        k1 = slope(t, y)
        k2 = slope(t + h / 2, y + h / 2 * k1)
        k3 = slope(t + h * 0.75, y + 0.75 * h * k2)
        new = y + h / 9 * (2 * k1 + 3 * k2 + 4 * k3)
        k4 = slope(t + h, new)
        error = jnp.max(jnp.abs(h * (-5 * k1 + 6 * k2 + 8 * k3 - 9 * k4) / 72)) / tolerance
        factor = lax.stop_gradient(jnp.clip(0.9 / jnp.cbrt(error + 1e-12), 0.2, 3.0))
        accepted = error <= 1
        return jnp.where(accepted, t + h, t), jnp.where(accepted, new, y), lax.stop_gradient(h) * factor

    start = jnp.zeros_like(end), y, jnp.full_like(end, 0.01)
    return lax.while_loop(lambda carry: carry[0] < end, step, start)[1]


def decay(rate, y0):
    return jnp.sum(integrate(lambda t, y: -rate * y, y0, np.float64(1.0)))


Y0, RATE = np.array([1.0, 2.0]), np.float64(0.7)


def test_adaptive_solver_forward():
    value, slope = jvp(lambda rate: decay(rate, Y0), (RATE,), (np.float64(1),))
    np.testing.assert_allclose(value, 3 * np.exp(-RATE), rtol=1e-6)
    np.testing.assert_allclose(slope, -3 * np.exp(-RATE), rtol=1e-5)
    np.testing.assert_allclose(jit(jacfwd(decay))(RATE, Y0), slope, rtol=1e-9)


@pytest.mark.parametrize("transform", [lambda f: f, jit], ids=["eager", "jit"])
def test_adaptive_solver_in_reverse(transform):
    by_rate, by_start = transform(grad(decay, argnums=(0, 1)))(RATE, Y0)
    np.testing.assert_allclose(by_rate, -3 * np.exp(-RATE), rtol=1e-5)
    np.testing.assert_allclose(by_start, np.full(2, np.exp(-RATE)), rtol=1e-5)


def test_a_neural_equation_learns_a_rotation():
    target = np.array([[0.0, 1.0], [-1.0, 0.0]])
    starts = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    ends = starts @ np.array([[np.cos(1), -np.sin(1)], [np.sin(1), np.cos(1)]])

    def loss(a):
        found = vmap(lambda y: integrate(lambda t, y: a @ y, y, np.float64(1.0), 1e-5))(starts)
        return jnp.mean((found - ends) ** 2)

    step = jit(lambda a: a - 0.5 * grad(loss)(a))
    a = jnp.zeros((2, 2), np.float64)
    for _ in range(60):
        a = step(a)
    assert loss(a) < 1e-6
    np.testing.assert_allclose(a, target, atol=5e-3)


# -- a Gaussian process -------------------------------------------------------------------------------------
def likelihood(parameters, x, y):
    """Logarithm of the density of y under a process with a squared-exponential kernel."""
    length, noise = jnp.exp(parameters["length"]), jnp.exp(parameters["noise"])
    kernel = jnp.exp(-((x[:, None] - x[None]) ** 2) / (2 * length**2)) + noise * jnp.eye(
        x.size, dtype=x.dtype
    )
    factor = jnp.linalg.cholesky(kernel)
    white = jitcore.scipy.linalg.solve_triangular(factor, y, lower=True)
    return -0.5 * white @ white - jnp.sum(jnp.log(jnp.diagonal(factor)))


def test_gradient_of_a_gaussian_process():
    x = np.linspace(0, 3, 12)
    y = np.sin(2 * x) + 0.1 * np.cos(31 * x)
    at = {"length": np.float64(-0.3), "noise": np.float64(-2.0)}
    found = jit(grad(likelihood))(at, x, y)
    length, noise = np.exp(-0.3), np.exp(-2.0)
    square = (x[:, None] - x[None]) ** 2
    smooth = np.exp(-square / (2 * length**2))
    inverse = np.linalg.inv(smooth + noise * np.eye(12))
    alpha = inverse @ y
    for name, slope in (("length", smooth * square / length**2), ("noise", noise * np.eye(12))):
        expected = 0.5 * np.trace((np.outer(alpha, alpha) - inverse) @ slope)
        np.testing.assert_allclose(found[name], expected, rtol=1e-9)


# -- implicit functions -------------------------------------------------------------------------------------
def solve_by_newton(f, start):
    def step(carry):
        x, _ = carry
        new = x - f(x) / jitcore.jvp(f, (x,), (jnp.ones_like(x),))[1]
        return new, jnp.abs(new - x)

    return lax.while_loop(lambda carry: carry[1] > 1e-14, step, (start, jnp.ones_like(start)))[0]


def kepler(eccentricity, mean):
    """The eccentric anomaly: the root of x - e sin x - m."""
    return lax.custom_root(lambda x: x - eccentricity * jnp.sin(x) - mean, mean, solve_by_newton,
                           lambda g, y: y / g(jnp.ones_like(y)))


def test_derivative_of_a_root():
    e, m = np.float64(0.3), np.float64(1.1)
    x = kepler(e, m)
    np.testing.assert_allclose(x - e * np.sin(x) - m, 0, atol=1e-14)
    by_e, by_m = grad(kepler, argnums=(0, 1))(e, m)
    np.testing.assert_allclose(by_m, 1 / (1 - e * np.cos(x)), rtol=1e-12)
    np.testing.assert_allclose(by_e, np.sin(x) / (1 - e * np.cos(x)), rtol=1e-12)
    np.testing.assert_allclose(jit(jacfwd(kepler))(e, m), by_e, rtol=1e-12)
    many = vmap(grad(kepler, argnums=1), (None, 0))(e, np.array([0.5, m]))
    np.testing.assert_allclose(many[1], by_m, rtol=1e-12)


# -- many gradients, and products with Hessians -------------------------------------------------------------
def test_gradients_of_single_examples():
    x, y = make_classes(20)
    w = np.linspace(-1, 1, 4)

    def loss(w, x, y):
        return jnp.logaddexp(0.0, x @ w) - y * (x @ w)

    each = jit(vmap(grad(loss), (None, 0, 0)))(w, x, y)
    assert each.shape == (20, 4)
    np.testing.assert_allclose(each, (1 / (1 + np.exp(-x @ w)) - y)[:, None] * x, rtol=1e-12)
    together = grad(lambda w: jnp.sum(vmap(functools.partial(loss, w))(x, y)))(w)
    np.testing.assert_allclose(each.sum(axis=0), together, rtol=1e-12)


def test_products_with_a_hessian():
    def energy(x):
        return jnp.sum((x[1:] - x[:-1] ** 2) ** 2) + jnp.sum((1 - x) ** 2)

    x, v = np.linspace(-1, 1, 6), np.arange(6.0)
    dense = hessian(energy)(x) @ v
    forward_over_reverse = jit(lambda x, v: jvp(grad(energy), (x,), (v,))[1])(x, v)
    reverse_over_reverse = grad(lambda x: grad(energy)(x) @ v)(x)
    reverse_over_forward = grad(lambda x: jvp(energy, (x,), (v,))[1])(x)
    for found in (forward_over_reverse, reverse_over_reverse, reverse_over_forward):
        np.testing.assert_allclose(found, dense, rtol=1e-12, atol=1e-12)
