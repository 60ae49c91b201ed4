"""lmfit: jitted models and residuals, and derivatives of residuals by `jacobian`."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import autojit, enable_x64, jacobian, jit

lmfit = pytest.importorskip("lmfit", reason="lmfit is not installed: jitcore[interop]")

T = np.linspace(0, 4, 60)
Y = 2.5 * np.exp(-1.3 * T) + 0.5
EXACT = {"a": 2.5, "k": 1.3, "c": 0.5}


def decay(t, a, k, c):
    return a * jnp.exp(-k * t) + c


def make_parameters():
    return lmfit.create_params(a=1.0, k={"value": 0.5, "min": 0.0}, c=0.0)


@pytest.mark.parametrize("decorate", [jit, autojit])
def test_model(decorate):
    def plain(t, a, k, c):
        return a * np.exp(-k * t) + c

    model = lmfit.Model(decorate(plain), independent_vars=["t"])
    assert model.param_names == ["a", "k", "c"]  # read off the signature
    found = model.fit(Y, make_parameters(), t=T)
    assert found.success and found.best_fit.dtype == np.float64
    np.testing.assert_allclose([found.params[name].value for name in EXACT], list(EXACT.values()), rtol=1e-6)


def test_minimize_with_jacobian():
    residual = jit(lambda v: decay(T, v[0], v[1], v[2]) - Y)
    slope = jit(jacobian(residual))
    calls = []

    def read(params):
        return np.array([params[name].value for name in EXACT])

    def find_slope(params, **_):
        calls.append(1)
        return np.array(slope(read(params)))  # lmfit writes into it, and Arrays are immutable

    # lmfit's parameters without bounds: derivatives with respect to the values are those it wants.
    params = lmfit.create_params(a=1.0, k=0.5, c=0.0)
    found = lmfit.minimize(lambda p: residual(read(p)), params, Dfun=find_slope)
    assert calls and found.success
    np.testing.assert_allclose([found.params[name].value for name in EXACT], list(EXACT.values()), rtol=1e-6)


def test_results_of_methods_agree():
    """Python's floats are float32 under `jit`, too few digits for differences: NumPy's, or `enable_x64`."""
    residual = jit(lambda v: decay(T, v["a"], v["k"], v["c"]) - Y)
    for method in ("leastsq", "least_squares", "nelder"):
        in_double = lmfit.minimize(lambda p: residual({key: np.float64(one) for key, one in p.valuesdict().items()}),
                                   make_parameters(), method=method)
        with enable_x64():
            found = lmfit.minimize(lambda p: residual(dict(p.valuesdict())), make_parameters(), method=method)
        for one in (found, in_double):
            np.testing.assert_allclose(one.params["k"].value, 1.3, rtol=1e-3)
