"""The formulas of complex arithmetic over NumPy's reals: they ask for real operations only, and nothing of a
backend."""

import numpy as np
import pytest

from jitcore.core.primitive import registry
from jitcore.lax.control_flow import control  # noqa: F401  registers every primitive
from jitcore.loopir.complex_math import OPERATIONS, Complex, Real, Reals

UFUNCS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.abs,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
    "not": np.logical_not, "is_finite": np.isfinite, "select": np.where, "max": np.maximum, "hypot": np.hypot,
    "copysign": np.copysign, "sqrt": np.sqrt, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "asinh": np.arcsinh, "atan2": np.arctan2,
    "pow": np.power,
}


class NumpyReals(Reals):
    def apply(self, name, operand_dtype, result_dtype, operands):
        result = np.asarray(UFUNCS[name](*operands))
        assert result.dtype == result_dtype
        return result


def evaluate(name, *numbers):
    reals = NumpyReals(np.float64)
    pairs = [Complex(Real(reals, z.real, reals.dtype), Real(reals, z.imag, reals.dtype)) for z in numbers]
    result = OPERATIONS[name](reals, *pairs)
    return result.re.value + 1j * result.im.value if isinstance(result, Complex) else result.value


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in ("complex", "max", "min")])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_formula_over_numpys_reals(name):
    rng = np.random.default_rng(0)
    operands = [rng.normal(size=200) + 1j * rng.normal(size=200) for _ in range(registry[name].traits["arity"])]
    expected = registry[name].impl(*operands)
    np.testing.assert_allclose(evaluate(name, *operands), expected, rtol=1e-11)


def test_extremes_compare_real_parts_first_and_nan_wins():
    x = np.array([1 + 5j, 2 + 1j, 2 + 3j, np.nan + 0j, 1 + 0j])
    y = np.array([1 + 2j, 3 + 0j, 2 - 3j, 1 + 0j, 0 + np.nan * 1j])
    np.testing.assert_array_equal(evaluate("max", x, y)[:3], [1 + 5j, 3 + 0j, 2 + 3j])
    np.testing.assert_array_equal(evaluate("min", x, y)[:3], [1 + 2j, 2 + 1j, 2 - 3j])
    assert np.isnan(evaluate("max", x, y)[3:]).all() and np.isnan(evaluate("min", x, y)[3:]).all()
