"""Programs whose PTX Numba's code generator makes, on the device in software: a second compiler, equal results."""

from __future__ import annotations

import numpy as np
import pytest

from jitcore import jit
from jitcore.tree_util import tree_leaves
from tests.backends.cuda.test_programs import DEVICE, PROGRAMS

NUMBA = {"codegen": "numba"}


def is_there() -> bool:
    try:
        jit(lambda x: x + 1, backend=DEVICE, compiler_options=NUMBA)(np.ones(3))
    except Exception:  # an old NVVM refuses even this
        return False
    return True


@pytest.fixture(scope="module", autouse=True)
def numba():
    if not is_there():
        pytest.skip("Numba's CUDA target, or NVVM, is missing")


@pytest.mark.parametrize("name", PROGRAMS)
def test_equals_the_reference(name):
    function, args, _ = PROGRAMS[name]
    found = tree_leaves(jit(function, backend=DEVICE, compiler_options=NUMBA)(*args))
    for one, other in zip(found, tree_leaves(jit(function, backend="reference")(*args)), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        tolerance = {2: 1e-3, 4: 2e-6}.get(one.dtype.itemsize, 1e-12) if one.dtype.kind in "fc" else 0
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=10 * tolerance)


def test_products_of_halves_have_the_usual_arithmetic():
    x, y = np.ones((40, 24), np.float16), np.ones((24, 40), np.float16)
    mapping = jit(lambda x, y: x @ y, backend=DEVICE, compiler_options=NUMBA).lower(x, y).compile().as_text("mapping")
    assert mapping.startswith("k0: tiles") and "tensor" not in mapping
