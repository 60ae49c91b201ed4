"""What the array API standard asks for; its own suite is run by `tox -e array-api` (docs/conformance.md)."""

import re
from pathlib import Path

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import devices, enable_x64, jit
from jitcore.numpy.namespace_info import VERSION

TESTS = Path(__file__).parents[1]


def test_an_array_knows_its_namespace():
    x = jnp.arange(3)
    assert x.__array_namespace__() is jnp and x.__array_namespace__(api_version=VERSION) is jnp
    assert jnp.__array_api_version__ == VERSION
    with pytest.raises(ValueError, match="edition"):
        x.__array_namespace__(api_version="1999.01")
    jit(lambda x: x.__array_namespace__().sin(x))(1.0)


def test_the_namespace_says_what_it_has():
    info = jnp.__array_namespace_info__()
    assert info.capabilities()["max dimensions"] == 64  # as NumPy says from 2.2 on
    assert info.devices() == devices() and info.default_device() == devices()[0]
    assert info.default_dtypes()["real floating"] == np.float32
    with enable_x64():
        assert info.default_dtypes() == np.__array_namespace_info__().default_dtypes()
    theirs = np.__array_namespace_info__()
    for kind in (None, "bool", "integral", "numeric", ("unsigned integer", "complex floating"), ()):
        assert info.dtypes(kind=kind) == theirs.dtypes(kind=kind)
    with pytest.raises(ValueError, match="kind"):
        info.dtypes(kind="string")


def test_dtypes_are_compared_with_any_text():
    assert jnp.float32 != "format 1: 3 passing" and jnp.float32 == "float32" and jnp.float32 != "1["


def test_pinv_takes_a_tolerance_for_each_matrix():
    x = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32)
    rtol = np.array([1e-6, 0.99, 1e-6], np.float32)
    np.testing.assert_allclose(jnp.linalg.pinv(x, rtol), np.linalg.pinv(x, rcond=rtol), rtol=1e-4, atol=1e-5)
    assert jnp.linalg.pinv(np.ones((0, 2, 3, 1)), rtol=np.ones((0, 2))).shape == (0, 2, 1, 3)


def test_masks_may_be_empty():
    x = np.ones((1, 3))
    for mask in (np.zeros(0, bool), np.zeros((0, 3), bool), np.zeros((1, 0), bool)):
        assert jnp.asarray(x)[mask].shape == x[mask].shape
    with pytest.raises(IndexError, match="did not match"):
        jnp.asarray(x)[np.zeros((2, 0), bool)]
    with pytest.raises(IndexError):
        jnp.asarray(x)[np.zeros((1, 3, 0), bool)]


@pytest.mark.parametrize("k", [2**31, -(2**40), 2**70, 3, -2])
def test_diagonals_far_outside(k):
    for name in ("eye", "tri"):
        np.testing.assert_array_equal(getattr(jnp, name)(2, 3, k), getattr(np, name)(2, 3, max(min(k, 9), -9)))
    np.testing.assert_array_equal(jnp.triu(np.ones((2, 3)), k), np.triu(np.ones((2, 3)), max(min(k, 9), -9)))


@pytest.mark.parametrize("z", [complex(np.inf, 0), complex(np.nan, 0), complex(2, 1)])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_expm1_of_complex_infinities(z, dtype):
    with np.errstate(all="ignore"):
        expected = np.exp(dtype(z)) - dtype(1)
    for function in (jnp.expm1, jit(jnp.expm1)):
        out = np.asarray(function(np.array([z], dtype)))
        assert out.dtype == dtype
        np.testing.assert_allclose(out[0], expected, rtol=1e-5)


def test_dlpack_takes_the_options_of_the_standard():
    x = jnp.arange(3.0)
    assert np.from_dlpack(x, copy=True).tolist() == [0.0, 1.0, 2.0]
    assert x.__dlpack__(stream=None, max_version=(1, 0), dl_device=x.__dlpack_device__(), copy=None)


def test_the_document_counts_the_skipped_tests():
    skipped = (TESTS / "array_api_skips.txt").read_text()
    document = (TESTS.parent / "docs" / "conformance.md").read_text()
    groups = [group.splitlines() for group in skipped.split("\n\n")[1:]]
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", document, re.M)
    assert [(str(len(group) - 1), group[0].removeprefix("# ")) for group in groups] == rows
