"""Promotion: every pair of dtypes and Python scalar types against JAX, and where jitcore differs on purpose."""

import itertools

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import config, dtypes, errors, jit
from tests.jax_answers import ask

SCALARS = {"int": 1, "float": 1.0, "complex": 1j, "bool": True}


def ask_with_64_bits(question):
    def wide(jax):
        with jax.enable_x64(True):
            return question(jax.numpy)

    return ask(wide)


@pytest.mark.parametrize("a, b", list(itertools.product(dtypes.SUPPORTED, repeat=2)), ids=lambda d: d.name)
def test_promotion_of_every_pair(a, b):
    expected = ask_with_64_bits(lambda numpy: numpy.promote_types(a, b))
    assert dtypes.promote_types(a, b) == expected
    ours = jnp.zeros(2, a) + jnp.zeros(2, b)
    theirs = ask_with_64_bits(lambda numpy: numpy.zeros(2, a) + numpy.zeros(2, b))
    assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)


@pytest.mark.parametrize("dtype", dtypes.SUPPORTED, ids=lambda d: d.name)
@pytest.mark.parametrize("scalar", SCALARS)
def test_python_scalar_meets_array(dtype, scalar):
    with config.override(enable_x64=True):
        ours = jnp.zeros(2, dtype) * SCALARS[scalar]
    theirs = ask_with_64_bits(lambda numpy: numpy.zeros(2, dtype) * SCALARS[scalar])
    assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)


@pytest.mark.parametrize("first, second", list(itertools.product(SCALARS, repeat=2)))
def test_python_scalars_meet(first, second):
    with config.override(enable_x64=True):
        ours = dtypes.result_type(SCALARS[first], SCALARS[second], return_weak_type_flag=True)
    theirs = ask_with_64_bits(lambda numpy: numpy.asarray(SCALARS[first]) + numpy.asarray(SCALARS[second]))
    assert ours == (theirs.dtype, theirs.weak_type)


def test_defaults_are_32_bits_and_explicit_64_bits_stay():
    assert jnp.asarray([1, 2]).dtype == np.int32
    assert jnp.asarray([1.0]).dtype == np.float32
    assert jnp.asarray(1j).dtype == np.complex64
    assert jnp.asarray(np.arange(3)).dtype == np.int64
    assert (jnp.asarray(np.arange(3.0)) * 2.0).dtype == np.float64
    assert (jnp.asarray(np.arange(3)) * 0.5).dtype == np.float64
    assert (jnp.asarray(np.arange(3, dtype=np.int32)) * 0.5).dtype == np.float32


def test_a_python_int_of_the_default_dtype_wraps_around():
    """As in XLA: 32 bits of a Python int are converted to the dtype that they meet."""
    assert (jnp.asarray(np.int8(1)) + 1000).tolist() == -23
    assert (jnp.asarray(np.uint32(5)) ^ -1).tolist() == 2**32 - 6
    assert jnp.full(1, 300, np.uint8).tolist() == [44]
    assert jnp.zeros(1, np.uint8).at[0].set(-1).tolist() == [255]
    assert jit(lambda x: x & -2)(np.uint32(5)).tolist() == 4


def test_a_python_int_that_does_not_fit_raises():
    with pytest.raises(OverflowError, match="too large to convert to int8"):
        jnp.asarray(np.int8(1)) + 2**40
    with pytest.raises(OverflowError, match="too large to convert to int32"):
        jnp.asarray(np.int32(1)) * 2**31
    with pytest.raises(OverflowError, match="too large to convert to uint8"):
        jnp.asarray(-1, np.uint8)


@pytest.mark.parametrize("bad", [object, "datetime64[s]", "S3", [("a", "i4")]])
def test_foreign_dtypes_are_refused(bad):
    with pytest.raises(TypeError):
        dtypes.canonicalize(bad)


def test_strict_promotion():
    with config.override(numpy_dtype_promotion="strict"):
        assert (jnp.ones(3, np.float32) * 2).dtype == np.float32
        assert (jnp.arange(3) + 1).dtype == np.int32
        with pytest.raises(errors.TypePromotionError, match="'int32', 'float32'"):
            jnp.arange(3) + jnp.ones(3)
        with pytest.raises(errors.TypePromotionError):
            jnp.arange(3) * 0.5


@pytest.mark.parametrize("given", [np.int32, np.dtype("int32"), "int32", jnp.int32, np.ones(1, np.int32), np.int32(1)],
                         ids=["class", "dtype", "name", "jitcore's", "array", "value"])
def test_every_spelling_of_a_dtype(given):
    assert jnp.ones(2).astype(given).dtype == jnp.zeros(2, given).dtype == jnp.asarray([1.0], given).dtype == np.int32
    assert jit(lambda x: (x > 0).astype(given))(np.ones(2)).dtype == np.int32
