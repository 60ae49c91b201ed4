"""`odeint` against SciPy, closed forms and finite differences."""

import numpy as np
import pytest
import scipy.integrate

import jitcore
import jitcore.numpy as jnp
from jitcore.experimental.ode import odeint

TIMES = np.linspace(0.0, 2.0, 5)


def swing(y, t, a, b):
    return {"angle": y["speed"], "speed": -a * jnp.sin(y["angle"]) - b * y["speed"] + 0.1 * t}


START = {"angle": jnp.array([1.0, 0.5]), "speed": jnp.array([0.0, 0.2])}


@pytest.fixture
def double():
    with jitcore.enable_x64(True):
        yield


def solve(start, times, a, b):
    return odeint(swing, start, times, a, b, rtol=1e-10, atol=1e-10)


def loss(start, times, a, b):
    return jnp.sum(solve(start, times, a, b)["angle"] ** 2)


def in_double(tree):
    return jitcore.tree.map(lambda x: jnp.asarray(np.asarray(x, np.float64)), tree)


def test_against_scipy(double):
    found = jitcore.jit(solve)(in_double(START), TIMES, 2.0, 0.3)

    def rate(t, y):
        return np.concatenate([y[2:], -2.0 * np.sin(y[:2]) - 0.3 * y[2:] + 0.1 * t])

    want = scipy.integrate.solve_ivp(rate, (0, 2), [1, 0.5, 0, 0.2], rtol=1e-11, atol=1e-12, t_eval=TIMES).y
    np.testing.assert_allclose(found["angle"], want[:2].T, atol=1e-7)
    np.testing.assert_allclose(found["speed"], want[2:].T, atol=1e-7)


def test_adjoint_by_all_arguments(double):
    start = in_double(START)
    found = jitcore.jit(jitcore.grad(loss, (0, 1, 2, 3)))(start, TIMES, 2.0, 0.3)
    value, step = jitcore.jit(loss), 1e-5

    def difference(move):
        return (value(*move(step)) - value(*move(-step))) / (2 * step)

    assert np.isclose(found[2], difference(lambda e: (start, TIMES, 2.0 + e, 0.3)), rtol=1e-5)
    assert np.isclose(found[3], difference(lambda e: (start, TIMES, 2.0, 0.3 + e)), rtol=1e-5)
    for i in (0, 2, 4):
        moved = difference(lambda e: (start, TIMES + e * np.eye(5)[i], 2.0, 0.3))
        assert np.isclose(found[1][i], moved, rtol=1e-5)
    moved = difference(lambda e: (start | {"speed": start["speed"] + e * np.eye(2)[1]}, TIMES, 2.0, 0.3))
    assert np.isclose(found[0]["speed"][1], moved, rtol=1e-5)


def test_values_from_outside_and_repeated_derivatives(double):
    def decay(rate):
        return odeint(lambda y, t: -rate * y, 1.0, jnp.array([0.0, 1.0]))[-1]

    rate = jnp.float64(0.7)
    np.testing.assert_allclose(jitcore.grad(decay)(rate), -np.exp(-0.7), rtol=1e-7)
    np.testing.assert_allclose(jitcore.jit(jitcore.grad(jitcore.grad(decay)))(rate), np.exp(-0.7), rtol=1e-7)


def test_batches(double):
    start = in_double(START)
    batch = jitcore.jit(jitcore.vmap(lambda a: solve(start, TIMES, a, 0.3)["angle"]))(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(batch[1], solve(start, TIMES, 2.0, 0.3)["angle"], rtol=1e-7)
    slope = jitcore.grad(lambda a: loss(start, TIMES, a, 0.3))
    slopes = jitcore.jit(jitcore.vmap(slope))(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(slopes[1], slope(2.0), rtol=1e-5)


def test_complex(double):
    found = odeint(lambda y, t: 1j * y, jnp.array([1.0 + 0j]), jnp.array([0.0, 1.0]))
    np.testing.assert_allclose(found[-1, 0], np.exp(1j), rtol=1e-7)
    slope = jitcore.grad(lambda w: jnp.abs(odeint(lambda y, t: (1j - w) * y, 1.0 + 0j,
                                                  jnp.array([0.0, 1.0]))[-1]))(0.5)
    np.testing.assert_allclose(slope, -np.exp(-0.5), rtol=1e-6)


def test_dtypes_and_integer_arguments():
    found = jitcore.jit(lambda y: odeint(lambda y, t, n: y * n, y, jnp.arange(3), 2))(1)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.exp([0, 2, 4]), rtol=1e-4)
    slope = jitcore.grad(lambda y: odeint(lambda y, t, n: y * n, y, jnp.arange(2.0), 2)[-1])(1.0)
    np.testing.assert_allclose(slope, np.exp(2), rtol=1e-4)


def test_steps_are_bounded():
    stopped = odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 1.0]), mxstep=2, hmax=0.01)
    assert stopped[-1] > 0.9
    short = odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 1.0]), hmax=0.1, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(short[-1], np.exp(-1), rtol=1e-5)
    assert odeint(lambda y, t: y * 0, 1.5, jnp.array([0.0])).shape == (1,)


def test_errors():
    with pytest.raises(ValueError, match="must increase"):
        odeint(lambda y, t: y, 1.0, jnp.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="vector of real times"):
        odeint(lambda y, t: y, 1.0, 1.0)
    with pytest.raises(TypeError, match="not a valid jitcore type"):
        odeint(lambda y, t: y, "a", jnp.arange(2.0))
    with pytest.raises(TypeError, match="forward-mode"):
        jitcore.jvp(lambda y: odeint(lambda y, t: y, y, jnp.arange(2.0)), (1.0,), (1.0,))
