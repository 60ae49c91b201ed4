"""Python control flow on traced values, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from jitcore import jit
from jitcore.rewrite import rewrite_function
from tests.rewrite.control_flow_cases import CASES

CALLS = [pytest.param(function, inputs, id=f"{function.__name__}{inputs}") for function, cases in CASES for inputs in cases]


@pytest.mark.parametrize(("function", "inputs"), CALLS)
def test_rewritten_functions_on_python_values(function, inputs):
    expected = function(*inputs)
    found = rewrite_function(function)(*inputs)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(("function", "inputs"), CALLS)
def test_rewritten_functions_on_traced_values(function, inputs):
    np.testing.assert_allclose(jit(function, rewrite=True)(*inputs), function(*inputs), rtol=1e-5)
