"""`erfcx` under all of its names, against SciPy and against differences."""

import numpy as np
import pytest
import scipy.special

import jitcore
from jitcore import autojit, grad, jit, lax, vmap
from jitcore.scipy import special

X = np.concatenate([np.linspace(-6, 6, 97), 10.0 ** np.arange(1, 300, 17), [np.inf, np.nan]])


@pytest.mark.parametrize("function", [lax.erfcx, special.erfcx, autojit(lambda x: scipy.special.erfcx(x), strict=True)],
                         ids=["lax", "scipy.special", "autojit"])
def test_values_are_those_of_scipy(function):
    np.testing.assert_allclose(jit(function)(X) if function in (lax.erfcx, special.erfcx) else function(X),
                               scipy.special.erfcx(X), rtol=1e-15)


def test_a_loop_of_a_script():
    @autojit(strict=True)
    def total(x):
        found = 0.0
        for i in range(len(x)):
            found += scipy.special.erfcx(x[i])
        return found

    x = np.linspace(-2, 2, 50)
    np.testing.assert_allclose(total(x), sum(scipy.special.erfcx(x)), rtol=1e-14)


def test_slopes():
    x = np.linspace(-2, 4, 13)
    slopes = jit(vmap(grad(special.erfcx)))(x)
    np.testing.assert_allclose(slopes, (scipy.special.erfcx(x + 1e-6) - scipy.special.erfcx(x - 1e-6)) / 2e-6, rtol=1e-6)


@pytest.mark.cpu
def test_code_is_native():
    assert "erfcx" in jit(lax.erfcx).lower(jitcore.ShapeDtypeStruct((9,), np.float32)).compile().as_text("llvm")
