"""`COO`, `CSR` and `CSC` against SciPy's matrices of these names."""

import numpy as np
import pytest
import scipy.sparse

import jitcore
import jitcore.numpy as jnp
from jitcore import jit
from jitcore.experimental import sparse

RANDOM = np.random.default_rng(2)
DENSE = np.where(RANDOM.random((5, 4)) < 0.5, RANDOM.normal(size=(5, 4)), 0)
DENSE[2] = 0
COUNT = np.count_nonzero(DENSE)
FORMATS = pytest.mark.parametrize("make, theirs, parts", [
    (sparse.COO, scipy.sparse.coo_array, ("data", "row", "col")), (sparse.CSR, scipy.sparse.csr_array, ("data", "indices", "indptr")),
    (sparse.CSC, scipy.sparse.csc_array, ("data", "indices", "indptr"))], ids=["COO", "CSR", "CSC"])


@FORMATS
def test_entries_are_those_of_scipy(make, theirs, parts):
    expected = theirs(DENSE)
    for found in (make.fromdense(DENSE), jit(lambda x: make.fromdense(x, nse=COUNT))(DENSE)):
        for part in parts:
            np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
        assert (found.shape, found.dtype, found.nse, found.size, found.ndim) == (DENSE.shape, np.float64, COUNT, 20, 2)
        np.testing.assert_array_equal(found.todense(), DENSE)
        np.testing.assert_array_equal(jit(lambda m: m.todense())(found), DENSE)
    made = make(tuple(getattr(expected, part) for part in parts), shape=DENSE.shape)
    np.testing.assert_array_equal(made.todense(), DENSE)
    assert f"{make.__name__}(float64[5, 4], nse={COUNT})" == repr(made)


@FORMATS
def test_more_entries_than_there_are(make, theirs, parts):
    found = jit(lambda x: make.fromdense(x, nse=COUNT + 3))(DENSE)
    assert found.nse == COUNT + 3
    np.testing.assert_array_equal(found.todense(), DENSE)
    np.testing.assert_allclose(found @ np.ones(4), DENSE.sum(1))


@FORMATS
def test_products_and_transposes(make, theirs, parts):
    mat, vector, other = make.fromdense(DENSE), RANDOM.normal(size=4), RANDOM.normal(size=(4, 3))
    np.testing.assert_allclose(mat @ vector, DENSE @ vector, atol=1e-14)
    np.testing.assert_allclose(jit(lambda m, x: m @ x)(mat, other), DENSE @ other, atol=1e-14)
    np.testing.assert_array_equal(mat.T.todense(), DENSE.T)
    np.testing.assert_allclose(mat.T @ np.ones(5), DENSE.sum(0), atol=1e-14)
    with pytest.raises(NotImplementedError, match="two sparse"):
        mat @ mat.T
    with pytest.raises(NotImplementedError, match="axes"):
        mat.transpose((0, 1))


@FORMATS
def test_derivatives(make, theirs, parts):
    slopes = jitcore.grad(lambda m: jnp.sum((m @ np.arange(4.0)) ** 2), allow_int=True)(make.fromdense(DENSE))
    rows, columns = np.nonzero(DENSE) if make is not sparse.CSC else np.nonzero(DENSE.T)[::-1]
    expected = 2 * (DENSE @ np.arange(4.0))[rows] * columns
    np.testing.assert_allclose(slopes.data, expected, atol=1e-13)


@pytest.mark.parametrize("name", ["coo", "csr"])
def test_functions(name):
    make, dense, matvec, matmat = (getattr(sparse, f"{name}_{what}") for what in ("fromdense", "todense", "matvec", "matmat"))
    mat = make(DENSE, index_dtype=np.int64)
    assert mat.nse == COUNT
    np.testing.assert_array_equal(dense(mat), DENSE)
    np.testing.assert_allclose(matvec(mat, np.arange(4.0)), DENSE @ np.arange(4.0), atol=1e-14)
    np.testing.assert_allclose(matvec(mat, np.arange(5.0), transpose=True), DENSE.T @ np.arange(5.0), atol=1e-14)
    np.testing.assert_allclose(matmat(mat, np.ones((4, 2))), DENSE @ np.ones((4, 2)), atol=1e-14)
    np.testing.assert_allclose(matmat(mat, np.ones((5, 2)), transpose=True), DENSE.T @ np.ones((5, 2)), atol=1e-14)
    with pytest.raises(ValueError, match="axes"):
        matvec(mat, np.ones((4, 2)))


@pytest.mark.parametrize("name", ["bcoo", "bcsr", "coo", "csr", "csc"])
def test_every_format_has_what_all_have(name):
    mat, nothing = sparse.eye(3, 4, 1, sparse_format=name), sparse.empty((2, 5), sparse_format=name)
    expected = np.eye(3, 4, 1, dtype=np.float32)
    assert type(mat).__name__ == name.upper() and isinstance(mat, sparse.JAXSparse)
    assert (mat.shape, len(mat), mat.size, mat.ndim, mat.nse) == ((3, 4), 3, 12, 2, 3)
    assert mat.block_until_ready() is mat
    for dense in (mat.todense(), sparse.todense(mat), jit(sparse.todense)(mat)):
        np.testing.assert_array_equal(dense, expected)
    np.testing.assert_array_equal(jit(lambda mat: mat @ jnp.arange(4.0))(mat), expected @ np.arange(4.0))
    assert (nothing.nse, nothing.todense().shape) == (0, (2, 5))


def test_rows_of_scipy():
    theirs = scipy.sparse.random(4, 5, 0.5, random_state=0)
    np.testing.assert_allclose(sparse.BCSR.from_scipy_sparse(theirs).todense(), theirs.toarray())
