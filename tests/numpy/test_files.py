"""Arrays as text, in files, and functions of Python as ufuncs: as NumPy's."""

import pickle

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import Array, jit


def combine(x, y):
    return x + 2 * y


@pytest.mark.parametrize("dtype", ["int32", "float16", "bfloat16", "complex64", "bool"])
def test_files(tmp_path, dtype):
    x = jnp.arange(6).reshape(2, 3).astype(dtype)
    jnp.save(tmp_path / "x.npy", x)
    found = jnp.load(tmp_path / "x.npy")
    assert isinstance(found, Array) and found.dtype == x.dtype
    np.testing.assert_array_equal(found, x)


def test_several_arrays_and_raw_bytes(tmp_path):
    jnp.savez(tmp_path / "x.npz", jnp.arange(2), b=jnp.ones(3))
    with jnp.load(tmp_path / "x.npz") as found:
        assert sorted(found) == ["arr_0", "b"]
    np.arange(3.0).tofile(tmp_path / "raw")
    np.testing.assert_array_equal(jnp.fromfile(tmp_path / "raw", "float64", offset=8), [1, 2])
    found = jnp.fromiter((i * i for i in range(4)), int)
    assert found.dtype == np.int32 and list(found) == [0, 1, 4, 9]


def test_texts():
    x = jnp.array([1.23456, 1e-9], np.float32)
    assert jnp.array_str(x, precision=2, suppress_small=True) == np.array_str(np.asarray(x), precision=2, suppress_small=True)
    assert jnp.array_repr(x, precision=2, suppress_small=True) == "Array([1.23, 0.  ], dtype=float32)"
    assert jnp.array_repr(np.arange(3)) == "Array([0, 1, 2], dtype=int64)" and jnp.ComplexWarning is np.exceptions.ComplexWarning


def test_ufunc_of_a_python_function():
    ours, theirs = jnp.frompyfunc(combine, 2, 1, identity=0), np.frompyfunc(combine, 2, 1, identity=0)
    x = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(jit(ours)(x, x[0]), theirs(x, x[0]).astype(int))
    for axis in (0, 1):
        np.testing.assert_array_equal(ours.reduce(x, axis), theirs.reduce(x, axis, initial=0).astype(int))
        np.testing.assert_array_equal(ours.accumulate(x, axis), theirs.accumulate(x, axis).astype(int))
    np.testing.assert_array_equal(ours.outer(x[0], x[1]), theirs.outer(x[0], x[1]).astype(int))
    assert ours.reduce(np.zeros((0,), int)) == 0 and (ours.nin, ours.nout, ours.nargs) == (2, 1, 2)
    assert pickle.loads(pickle.dumps(ours))(1, 2) == 5
    both = jnp.frompyfunc(lambda x: (x, -x), 1, 2)
    np.testing.assert_array_equal(both(x)[1], -x)
    with pytest.raises(TypeError, match="takes 2 positional"):
        ours(1)


def test_functions_over_axes():
    x = np.arange(24).reshape(2, 3, 4)
    np.testing.assert_array_equal(jnp.apply_over_axes(jnp.sum, x, (0, -1)), np.apply_over_axes(np.sum, x, (0, -1)))
    with pytest.raises(ValueError, match="correct shape"):
        jnp.apply_over_axes(lambda a, axis: jnp.sum(a), x, 0)


@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": -1, "bitorder": "little"}])
def test_packed_bits(options):
    x = np.random.default_rng(0).integers(0, 2, (11, 9))
    for form in (x, x.astype(bool), x.astype(np.uint8), x[:0]):
        np.testing.assert_array_equal(jit(lambda x: jnp.packbits(x, **options))(form), np.packbits(form, **options))
    with pytest.raises(TypeError, match="integer or boolean"):
        jnp.packbits(x * 1.0)
