"""h5py: datasets as arguments of functions, Arrays as what is stored."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import Array, jit

h5py = pytest.importorskip("h5py", reason="h5py is not installed: jitcore[interop]")

X = np.linspace(0, 1, 12).reshape(3, 4)


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "data.h5", "w") as file:
        yield file


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.complex64, np.float16, bool])
def test_arrays_are_stored(file, dtype):
    values = jnp.asarray(X.astype(dtype))
    stored = file.create_dataset("a", data=values)
    assert stored.dtype == dtype and stored.shape == (3, 4)
    np.testing.assert_array_equal(stored[...], X.astype(dtype))
    file["b"] = values
    stored[1] = values[0]
    np.testing.assert_array_equal(stored[1], X[0].astype(dtype))
    stored.attrs["scale"] = values[0, 1]
    assert stored.attrs["scale"] == X[0, 1].astype(dtype)
    again = jnp.asarray(file["b"][...])
    assert isinstance(again, Array) and again.dtype == dtype


def test_datasets_are_read(file):
    stored = file.create_dataset("a", data=X, chunks=(1, 4))
    norm = jit(lambda x: jnp.sqrt((x * x).sum(axis=-1)))
    np.testing.assert_allclose(norm(stored[...]), np.linalg.norm(X, axis=1))
    np.testing.assert_allclose([norm(row) for row in stored], np.linalg.norm(X, axis=1))
    for made in (jnp.asarray(stored), jnp.array(stored)):
        np.testing.assert_array_equal(made, X)
    np.testing.assert_array_equal(stored[jnp.asarray(1)], X[1])  # an Array as an index


def test_a_dataset_is_no_argument(file):
    with pytest.raises(TypeError, match="Dataset"):
        jit(lambda x: x + 1)(file.create_dataset("a", data=X))
