"""Cumulative reductions against JAX."""

import numpy as np
import pytest

from jitcore import lax
from tests.jax_answers import jax
from tests.lax.oracle import check_against_jax, random_array

jax_lax = jax.lax

RNG = np.random.default_rng(5)
FLOATS = ["float16", "bfloat16", "float32", "float64"]
NAMES = ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]
CASES = [(name, dtype) for name in NAMES for dtype in FLOATS]
CASES += [(name, dtype) for name in NAMES[:4] for dtype in ("int8", "uint16", "int32", "int64")]
CASES += [(name, "complex64") for name in NAMES[:2]]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name, dtype", CASES)
def test_against_jax(name, dtype, reverse):
    for axis in (0, 1):
        # JAX accumulates halves in their own dtype
        check_against_jax(
            lambda x: getattr(lax, name)(x, axis, reverse),
            lambda x: getattr(jax_lax, name)(x, axis, reverse),
            random_array(RNG, (5, 6), dtype),
            tolerance={"float16": 2e-2, "bfloat16": 1e-1}.get(dtype),
        )


@pytest.mark.parametrize("name", NAMES)
def test_nan_stays(name):
    x = np.array([1, np.nan, 2], np.float32)
    assert np.isnan(np.asarray(getattr(lax, name)(x))).tolist() == [False, True, True]


@pytest.mark.parametrize("name", NAMES)
def test_empty(name):
    assert getattr(lax, name)(np.zeros((0, 2), np.float32)).shape == (0, 2)


def test_halves_accumulate_in_float32():
    last = np.asarray(lax.cumsum(np.ones(4096, np.float16)))[-1]
    assert last == 4096


def test_large_logarithms_do_not_overflow():
    out = np.asarray(lax.cumlogsumexp(np.array([1000.0, 1000.0], np.float32)))
    np.testing.assert_allclose(out, [1000, 1000 + np.log(2)], rtol=1e-6)


@pytest.mark.parametrize("call, kind, text", [
    (lambda: lax.cumsum(np.ones(2, np.float32), 1), ValueError, "axis 1 is out of bounds for array of shape"),
    (lambda: lax.cumsum(np.ones(2, np.float32), -1), ValueError, "negative axes"),
    (lambda: lax.cumsum(np.ones(2, bool)), TypeError, "cumsum does not accept dtype bool"),
    (lambda: lax.cumlogsumexp(np.ones(2, np.int32)), TypeError, "cumlogsumexp does not accept dtype int32"),
])
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
