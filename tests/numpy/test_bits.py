"""`unpackbits` against NumPy, as a function of `jitcore.numpy` and as NumPy's under autojit."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import autojit, jit

X = np.arange(0, 240, 20, dtype=np.uint8).reshape(3, 4)
OPTIONS = [{}, {"axis": 0}, {"axis": -1, "bitorder": "little"}, {"count": 11}, {"axis": 1, "count": -3},
           {"axis": 0, "count": 30}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_bits_are_numpys(options):
    expected = np.unpackbits(X, **options)
    for found in (jit(lambda x: jnp.unpackbits(x, **options))(X),
                  autojit(lambda x: np.unpackbits(x, **options), strict=True)(X)):
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, expected)


def test_other_dtypes_are_refused():
    with pytest.raises(TypeError, match="unsigned byte"):
        jnp.unpackbits(np.ones(3))
