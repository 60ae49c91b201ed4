"""NumPy's masked arrays are refused wherever their mask would be lost."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import device_put, grad, jit, lax, vmap

MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
ONES = np.ones(3)
DOUBLE = jit(lambda x: 2 * x)

USES = {
    "argument": lambda: DOUBLE(MASKED), "in a container": lambda: jit(lambda d: d["a"])({"a": MASKED}),
    "constant": lambda: jit(lambda x: x + MASKED)(ONES), "operand": lambda: jnp.ones(3) + MASKED,
    "function": lambda: jnp.sum(MASKED), "ufunc": lambda: jnp.sin(MASKED), "asarray": lambda: jnp.asarray(MASKED),
    "lax": lambda: lax.add(ONES, MASKED), "grad": lambda: grad(jnp.sum)(MASKED), "vmap": lambda: vmap(jnp.sin)(MASKED),
    "cond": lambda: lax.cond(True, lambda v: v, lambda v: v, MASKED), "device_put": lambda: device_put(MASKED),
    "result": lambda: jit(lambda x: MASKED)(ONES), "product": lambda: jit(lambda x: jnp.dot(MASKED, x))(ONES),
}


@pytest.mark.parametrize("name", USES)
def test_masked_array_is_refused(name):
    DOUBLE(ONES)  # what was compiled for an ndarray does not take it either
    with pytest.raises(TypeError, match="masked arrays are not supported|MaskedArray"):
        USES[name]()


def test_argument_is_named():
    with pytest.raises(TypeError, match=r"(?s)passed to the function at path d\['a'\].*x\.filled\(value\)"):
        jit(lambda d: d["a"])({"a": MASKED})


def test_other_subclasses_are_their_elements():
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(jit(lambda x: x * x)(matrix), [[1, 4], [9, 16]])  # as in JAX
    assert type(np.asarray(DOUBLE(matrix))) is np.ndarray
