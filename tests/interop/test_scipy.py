"""SciPy's solvers call jitted functions, their derivatives included, as they call plain ones."""

import numpy as np
import pytest
from scipy import integrate, optimize

import jitcore.numpy as jnp
from jitcore import grad, hessian, jacobian, jit

METHODS = ["Nelder-Mead", "Powell", "CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "COBYLA", "COBYQA", "SLSQP",
           "trust-constr", "dogleg", "trust-ncg", "trust-exact", "trust-krylov"]
WITHOUT_JACOBIAN = {"Nelder-Mead", "Powell", "COBYLA", "COBYQA"}
WITH_HESSIAN = {"Newton-CG", "trust-constr", "dogleg", "trust-ncg", "trust-exact", "trust-krylov"}
START = [1.1, 0.9, 1.2]


def valley(x):
    return jnp.sum(jnp.cosh(x - 1)) + (x[0] - x[1]) ** 2


VALLEY, SLOPE, CURVATURE = jit(valley), jit(grad(valley)), jit(hessian(valley))


@pytest.mark.parametrize("method", METHODS)
def test_minimize(method):
    options = {} if method in WITHOUT_JACOBIAN else {"jac": SLOPE}
    if method in WITH_HESSIAN:
        options["hess"] = CURVATURE
    for start in (START, jnp.asarray(np.array(START))):
        found = optimize.minimize(VALLEY, start, method=method, **options)
        np.testing.assert_allclose(found.x, 1, atol=2e-3)
        assert found.x.dtype == np.float64


def test_minimize_by_values_and_gradients_together():
    from jitcore import value_and_grad

    for method in ("BFGS", "L-BFGS-B", "SLSQP", "TNC"):
        found = optimize.minimize(jit(value_and_grad(valley)), START, method=method, jac=True, tol=1e-9)
        np.testing.assert_allclose(found.x, 1, atol=1e-3)


T = np.linspace(0, 4, 30)
SOLVERS = {
    "least_squares": lambda: [optimize.least_squares(F_LINE, [0.0, 0.0], jac=jit(jacobian(line)), method=method).x for method in ("trf", "dogbox", "lm")],
    "root": lambda: [optimize.root(F_LINE_2, [0.8, 1.7], jac=jit(jacobian(square)), method=method).x for method in ("hybr", "lm")],
    "fsolve": lambda: [optimize.fsolve(F_LINE_2, [0.8, 1.7], fprime=jit(jacobian(square)))],
    "curve_fit": lambda: [optimize.curve_fit(jit(lambda t, a, b: a * jnp.exp(-b * t)), T, 2 * np.exp(-T), [1.0, 0.5])[0]],
    "solve_ivp": lambda: [integrate.solve_ivp(jit(lambda t, y: jnp.stack([y[1], -y[0]])), (0, 1), [1.0, 0.0], method=method,
                                              rtol=1e-8, atol=1e-10).y[:, -1] for method in ("RK45", "LSODA", "Radau")],
    "odeint": lambda: [integrate.odeint(jit(lambda y, t: -y), [1.0], [0, 1.0])[-1]],
    "quad": lambda: [integrate.quad(jit(lambda x: jnp.exp(-x * x)), 0, 1)[0]],
    "brentq": lambda: [optimize.brentq(jit(lambda x: x * x - 2), 0.0, 2.0), optimize.newton(jit(lambda x: x * x - 2), 1.0, jit(grad(lambda x: x * x - 2.0)))],
    "basinhopping": lambda: [optimize.basinhopping(VALLEY, START, niter=2, minimizer_kwargs={"jac": SLOPE, "method": "L-BFGS-B"}, rng=1).x],
    "fixed_point": lambda: [optimize.fixed_point(jit(jnp.cos), 0.5)],
}
EXPECTED = {
    "least_squares": [2.0, -1.0], "root": [1.0, 2.0], "fsolve": [1.0, 2.0], "curve_fit": [2.0, 1.0], "solve_ivp": [np.cos(1), -np.sin(1)],
    "odeint": [np.exp(-1)], "quad": 0.746824132812427, "brentq": 2**0.5, "basinhopping": 1.0, "fixed_point": 0.7390851332151607,
}


def line(p):
    return p[0] * T + p[1] - (2 * T - 1)


def square(x):
    return jnp.stack([x[0] ** 2 + x[1] - 3, x[0] + x[1] ** 2 - 5])


F_LINE, F_LINE_2 = jit(line), jit(square)


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers(name):
    for got in SOLVERS[name]():
        np.testing.assert_allclose(got, EXPECTED[name], rtol=2e-5, atol=2e-5)
