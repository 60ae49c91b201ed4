"""`BCSR` against dense arrays."""

import numpy as np
import pytest
import scipy.sparse

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, vmap
from jitcore.experimental import sparse
from jitcore.experimental.sparse import BCSR

RANDOM = np.random.default_rng(1)
DENSE = np.where(RANDOM.random((3, 4, 5, 2)) < 0.5, RANDOM.normal(size=(3, 4, 5, 2)), 0)
CASES = [(DENSE[0, ..., 0], 0, 0), (DENSE[..., 0], 1, 0), (DENSE[0], 0, 1), (DENSE, 1, 1), (np.stack([DENSE, DENSE]), 2, 1)]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].ndim} {case[1]} {case[2]}")
def pair(request):
    dense, n_batch, n_dense = request.param
    return dense, BCSR.fromdense(dense, n_batch=n_batch, n_dense=n_dense)


def test_conversion(pair):
    dense, mat = pair
    assert (mat.shape, mat.ndim, mat.dtype, mat.n_sparse) == (dense.shape, dense.ndim, np.float64, 2)
    assert mat.n_batch + mat.n_dense == dense.ndim - 2
    np.testing.assert_array_equal(mat.todense(), dense)
    np.testing.assert_array_equal(jit(sparse.bcsr_todense)(mat), dense)
    again = jit(lambda x: sparse.bcsr_fromdense(x, nse=mat.nse + 2, n_batch=mat.n_batch, n_dense=mat.n_dense))(dense)
    np.testing.assert_array_equal(again.todense(), dense)
    np.testing.assert_array_equal(BCSR.from_bcoo(mat.to_bcoo()).indptr, mat.indptr)
    np.testing.assert_array_equal(sparse.bcsr_extract(mat.indices, mat.indptr, dense), mat.data)


def test_entries_are_those_of_scipy():
    expected, found = scipy.sparse.csr_array(CASES[0][0]), BCSR.fromdense(CASES[0][0])
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
    assert repr(found) == f"BCSR(float64[4, 5], nse={found.nse})"


def test_entries_of_one_place():
    twice = BCSR((np.ones(4), np.array([1, 1, 0, 0]), np.array([0, 2, 4])), shape=(2, 3))
    found = sparse.bcsr_sum_duplicates(twice)
    assert found.nse == 2
    np.testing.assert_array_equal(found.todense(), [[0, 2, 0], [2, 0, 0]])
    np.testing.assert_array_equal(jit(lambda m: m.sum_duplicates(nse=3))(twice).todense(), twice.todense())


def test_products():
    dense, mat, other = DENSE[..., 0], BCSR.fromdense(DENSE[..., 0], n_batch=1), RANDOM.normal(size=(3, 5, 2))
    found = sparse.bcsr_dot_general(mat, other, dimension_numbers=(((2,), (1,)), ((0,), (0,))))
    np.testing.assert_allclose(found, dense @ other, atol=1e-14)
    np.testing.assert_allclose(jit(lambda m, x: m @ x)(mat, other), dense @ other, atol=1e-14)
    one = BCSR.fromdense(dense[0])
    np.testing.assert_allclose(one @ np.ones(5), dense[0].sum(1), atol=1e-14)
    slopes = jitcore.grad(lambda data: jnp.sum(BCSR((data, one.indices, one.indptr), shape=one.shape) @ np.arange(5.0)))(one.data)
    np.testing.assert_allclose(slopes, one.indices)


def test_batches():
    mat = BCSR.fromdense(DENSE[..., 0], n_batch=1)
    np.testing.assert_allclose(vmap(lambda m: m @ np.ones(5))(mat), DENSE[..., 0].sum(-1), atol=1e-14)
    assert vmap(lambda m: m)(mat).shape == mat.shape


@pytest.mark.parametrize("dimension", [0, 1, 2, 3])
def test_concatenation(dimension):
    mat = BCSR.fromdense(DENSE, n_batch=1, n_dense=1)
    found = sparse.bcsr_concatenate([mat, mat], dimension=dimension)
    np.testing.assert_array_equal(found.todense(), np.concatenate([DENSE, DENSE], dimension))
    padded = jit(lambda x: BCSR.fromdense(x, n_batch=1, n_dense=1, nse=20))(DENSE)
    found = jit(lambda m, n: sparse.bcsr_concatenate([m, n, m], dimension=dimension))(padded, mat)
    np.testing.assert_array_equal(found.todense(), np.concatenate([DENSE, DENSE, DENSE], dimension))
    with pytest.raises(ValueError, match="along axis"):
        sparse.bcsr_concatenate([mat, BCSR.fromdense(DENSE[:, :2, :1, :1], n_batch=1, n_dense=1)], dimension=dimension)


def test_repetition():
    mat = BCSR.fromdense(DENSE[0, ..., 0])
    for shape, axes in (((3, 4, 5), (1, 2)), ((4, 5, 2), (0, 1)), ((2, 3, 4, 5, 6), (2, 3))):
        found = sparse.bcsr_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=axes)
        np.testing.assert_array_equal(found.todense(), jitcore.lax.broadcast_in_dim(DENSE[0, ..., 0], shape, axes))
    with pytest.raises(NotImplementedError, match="side by side"):
        sparse.bcsr_broadcast_in_dim(mat, shape=(4, 3, 5), broadcast_dimensions=(0, 2))


def test_refusals():
    with pytest.raises(ValueError, match="sparse axes"):
        BCSR.fromdense(DENSE)
    with pytest.raises(ValueError, match="shape"):
        BCSR((np.ones(2), np.zeros(2, int), np.zeros(2, int)), shape=(2, 3))
    with pytest.raises(ValueError, match="n_sparse"):
        BCSR.from_bcoo(sparse.BCOO.fromdense(DENSE))
