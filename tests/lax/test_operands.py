"""Operands of elementwise `lax` functions: strict in their dtypes, as in JAX, but for Python scalars that fit."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import lax

INTEGERS, FLOATS = np.arange(2, dtype=np.int32), np.ones(2, np.float32)


def test_python_scalars_take_the_dtype_of_arrays():
    assert lax.add(INTEGERS, 1).dtype == np.int32
    assert lax.add(FLOATS, 1).dtype == lax.max(0, FLOATS).dtype == np.float32
    assert lax.mul(jnp.ones(2, np.int8), 2).dtype == np.int8


@pytest.mark.parametrize("x, y", [(1, 1.0), (INTEGERS, 1.0), (FLOATS, 1j), (INTEGERS, FLOATS), (INTEGERS, True),
                                  (INTEGERS, np.float32(1))], ids=repr)
def test_what_would_change_a_dtype_raises(x, y):
    jax_lax = pytest.importorskip("jax").lax
    for function, theirs in ((lax.mul, jax_lax.mul), (lax.max, jax_lax.max)):
        with pytest.raises(TypeError):
            theirs(x, y)
        with pytest.raises(TypeError, match="requires arguments to have the same dtypes, got"):
            function(x, y)
