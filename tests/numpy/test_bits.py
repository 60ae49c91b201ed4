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


VIEWED = "bool int8 uint8 int16 int32 float16 float32 int64 float64 complex64 complex128".split()


@pytest.mark.parametrize("own", VIEWED)
@pytest.mark.parametrize("other", VIEWED)
def test_traced_views_are_those_of_numpy(own, other):
    random = np.random.default_rng(0)
    for shape in ((), (16,), (2, 16)):
        octets = random.integers(0, 2, (*shape, np.dtype(own).itemsize)).astype(np.uint8)
        x = octets.astype(bool)[..., 0] if own == "bool" else (0x3B * octets).reshape(*shape[:-1], -1).view(own).reshape(shape)
        try:
            expected = x.view("uint8") != 0 if other == "bool" else x.view(other)
        except ValueError:
            with pytest.raises(ValueError):
                jit(lambda x: x.view(other))(x)
            continue
        found = np.asarray(jit(lambda x: x.view(other))(x))
        assert (found.shape, found.dtype, found.tobytes()) == (expected.shape, expected.dtype, np.ascontiguousarray(expected).tobytes())
