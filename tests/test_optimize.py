"""`jitcore.scipy.optimize.minimize` against SciPy's: eager, compiled, batched, of both widths."""

import numpy as np
import pytest
from scipy import optimize as scipy_optimize

import jitcore.numpy as jnp
from jitcore import jit, vmap
from jitcore.scipy.optimize import minimize

rng = np.random.default_rng(0)
MATRIX = (lambda x: x @ x.T + np.eye(5))(rng.normal(size=(5, 5)))


def rosenbrock(x):
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11.0) ** 2 + (x[0] + x[1] ** 2 - 7.0) ** 2


def quadratic(x):
    return 0.5 * x @ MATRIX @ x - x.sum()


@pytest.mark.parametrize("function, x0", [(rosenbrock, np.array([-1.2, 1.0])), (rosenbrock, np.zeros(4)), (himmelblau, np.ones(2)),
                                          (quadratic, np.zeros(5))])
def test_minimum(function, x0):
    found = minimize(function, x0, method="BFGS")
    theirs = scipy_optimize.minimize(function, x0, method="BFGS")
    assert found.success and found.status == 0
    np.testing.assert_allclose(found.x, theirs.x, atol=1e-4)
    np.testing.assert_allclose(found.fun, function(np.asarray(found.x)))
    assert found.nit <= 3 * theirs.nit and np.abs(found.jac).max() < 1e-5
    np.testing.assert_allclose(jit(lambda x0: minimize(function, x0, method="BFGS").x)(x0), found.x, atol=1e-8)
    many = vmap(lambda x0: minimize(function, x0, method="BFGS").x)(np.stack([x0, x0 + 0.1]))
    np.testing.assert_allclose(many[0], found.x, atol=1e-6)
    single = minimize(function, x0.astype(np.float32), method="BFGS", tol=1e-2)
    assert single.x.dtype == np.float32
    np.testing.assert_allclose(single.fun, theirs.fun, atol=1e-2)


def test_arguments_and_ends():
    found = minimize(lambda x, a: jnp.sum((x - a) ** 2), jnp.zeros(2), (jnp.array([1.0, 2.0]),), method="bfgs")
    np.testing.assert_allclose(found.x, [1, 2], atol=1e-6)
    few = minimize(rosenbrock, np.zeros(3), method="BFGS", options={"maxiter": 2})
    assert not few.success and few.status == 1 and few.nit == 2
    stuck = minimize(lambda x: jnp.sum(jnp.abs(x)) * jnp.nan, np.ones(2), method="BFGS")
    assert not stuck.success and stuck.status == 3
    for options, error in (({"x0": np.ones((2, 2))}, ValueError), ({"args": [1]}, TypeError), ({"method": "Powell"}, ValueError),
                           ({"options": {"eps": 1}}, ValueError)):
        with pytest.raises(error):
            minimize(rosenbrock, **{"x0": np.zeros(2), "method": "BFGS", **options})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_first_guess_of_another_scale(dtype):
    """The curvature is 1e8 times that of the identity, which the second step has to know."""
    found = minimize(lambda x: jnp.mean((1e4 * x) ** 2), np.ones(2, dtype), method="BFGS")
    np.testing.assert_allclose(found.x, 0, atol=1e-6)
