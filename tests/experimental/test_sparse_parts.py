"""Parts of sparse arrays at traced places, products at given places, and Jacobians by sparse arrays, against dense ones."""

import itertools

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax, vmap
from jitcore.experimental import sparse
from jitcore.experimental.sparse import BCOO

RANDOM = np.random.default_rng(3)
DENSE = np.where(RANDOM.random((3, 4, 5)) < 0.5, RANDOM.normal(size=(3, 4, 5)), 0)
LAYOUTS = [(b, d) for b, d in itertools.product(range(4), repeat=2) if b + d <= 3]


def make(layout, dense=DENSE):
    return BCOO.fromdense(dense, n_batch=layout[0], n_dense=layout[1])


@pytest.fixture(params=LAYOUTS, ids=str)
def mat(request):
    return make(request.param)


@pytest.mark.parametrize("starts", [(0, 0, 0), (1, 2, 3), (-2, -1, -5), (2, 9, 1)])
def test_dynamic_slices(mat, starts):
    expected = lax.dynamic_slice(DENSE, starts, (2, 2, 3))
    found = sparse.bcoo_dynamic_slice(mat, starts, (2, 2, 3))
    assert (found.shape, found.n_batch, found.n_dense) == (expected.shape, mat.n_batch, mat.n_dense)
    np.testing.assert_array_equal(found.todense(), expected)
    found = jit(lambda m, at: sparse.bcoo_dynamic_slice(m, at, (2, 2, 3)))(mat, starts)
    np.testing.assert_array_equal(found.todense(), expected)
    assert mat.n_sparse == 0 or found.nse <= np.prod(found.sparse_shape)


def test_dynamic_slices_with_entries_of_one_place():
    mat = make((0, 0))
    twice = BCOO([jnp.concatenate([part, part]) for part in (mat.data, mat.indices)], shape=mat.shape)
    found = sparse.bcoo_dynamic_slice(twice, (1, 1, 1), (1, 2, 2))
    assert found.nse == 4
    np.testing.assert_allclose(found.todense(), 2 * DENSE[1:2, 1:3, 1:3])


def test_refused_slices():
    with pytest.raises(TypeError, match="slice_sizes"):
        sparse.bcoo_dynamic_slice(make((0, 0)), (0, 0, 0), (4, 1, 1))
    with pytest.raises(TypeError, match="start_indices"):
        sparse.bcoo_dynamic_slice(make((0, 0)), (0, 0), (1, 1, 1))


NUMBERS = [
    (lax.GatherDimensionNumbers((1, 2), (0,), (0,)), (1, 4, 5), np.array([[2], [0], [1], [2]])),
    (lax.GatherDimensionNumbers((2,), (0, 2), (2, 0)), (1, 2, 1), np.array([[[4, 1], [0, 2]], [[3, 0], [1, 1]], [[2, 2], [0, 0]]])),
    (lax.GatherDimensionNumbers((0, 2), (1,), (1, 2)), (3, 1, 2), np.array([[2, 1], [3, 3]])),
    (lax.GatherDimensionNumbers((0, 1), (1,), (0, 1)), (2, 1, 5), np.array([1, 3])),
]


@pytest.mark.parametrize("numbers, sizes, at", NUMBERS)
def test_gathers(mat, numbers, sizes, at):
    expected = lax.gather(DENSE, at, numbers, sizes)
    np.testing.assert_array_equal(sparse.bcoo_gather(mat, at, numbers, sizes).todense(), expected)
    found = jit(lambda m, at: sparse.bcoo_gather(m, at, numbers, sizes, mode="clip"))(mat, at)
    np.testing.assert_array_equal(found.todense(), expected)


def test_refused_gathers():
    numbers, sizes, at = NUMBERS[0]
    with pytest.raises(NotImplementedError, match="mode"):
        sparse.bcoo_gather(make((0, 0)), at, numbers, sizes, mode="fill")
    with pytest.raises(NotImplementedError, match="along"):
        sparse.bcoo_gather(make((0, 0)), at, lax.GatherDimensionNumbers((1,), (), (1,), (0,), (0,)), (1, 1, 5))


PRODUCTS = [((4, 3), (3, 5), (((1,), (0,)), ((), ()))), ((4,), (5,), (((), ()), ((), ()))),
            ((2, 4, 3), (3, 2, 5), (((2,), (0,)), ((0,), (1,)))), ((3, 4, 2), (2, 5, 3), (((0, 2), (2, 0)), ((), ())))]


@pytest.mark.parametrize("shape, other_shape, numbers", PRODUCTS)
def test_products_at_places(shape, other_shape, numbers):
    lhs, rhs = RANDOM.normal(size=shape), RANDOM.normal(size=other_shape)
    product = np.asarray(lax.dot_general(lhs, rhs, numbers))
    mask = np.where(RANDOM.random(product.shape) < 0.4, product, 0)
    for n_batch, n_dense in itertools.product(range(product.ndim + 1), repeat=2):
        if n_batch + n_dense <= product.ndim:
            places = make((n_batch, n_dense), mask)
            call = lambda a, b, at: sparse.bcoo_dot_general_sampled(a, b, at, dimension_numbers=numbers)  # noqa: E731
            expected = sparse.bcoo_extract(places, jnp.asarray(product)).data
            np.testing.assert_allclose(call(lhs, rhs, places.indices), expected, atol=1e-14)
            np.testing.assert_allclose(jit(call)(lhs, rhs, places.indices), expected, atol=1e-14)
    outside = jnp.full((1, product.ndim), 9)
    assert call(lhs, rhs, outside).tolist() == [0]
    with pytest.raises(ValueError, match="axes"):
        call(lhs, rhs, jnp.zeros((1, product.ndim + 1), int))


def test_derivatives_of_products_at_places():
    lhs, rhs, at = RANDOM.normal(size=(4, 3)), RANDOM.normal(size=(3, 5)), np.array([[0, 1], [3, 4], [2, 2]])
    call = lambda a, b: sparse.bcoo_dot_general_sampled(a, b, at, dimension_numbers=(((1,), (0,)), ((), ())))  # noqa: E731
    jitcore.test_util.check_grads(call, (lhs, rhs), order=2)
    np.testing.assert_allclose(vmap(call)(lhs[None], rhs[None])[0], call(lhs, rhs))


MATRIX, VECTOR = DENSE[0], RANDOM.normal(size=5)


@pytest.mark.parametrize("find, find_dense", [(sparse.jacfwd, jitcore.jacfwd), (sparse.jacrev, jitcore.jacrev),
                                              (sparse.jacobian, jitcore.jacobian)])
@pytest.mark.parametrize("layout", [(0, 0), (1, 0), (0, 1), (1, 1)], ids=str)
def test_jacobians(find, find_dense, layout):
    mat = make(layout, MATRIX)
    function = lambda m, v: {"product": (m * m) @ v if isinstance(m, np.ndarray) or not hasattr(m, "nse")  # noqa: E731
                             else sparse.sparsify(lambda m: m * m)(m) @ v, "other": jnp.sin(v)}
    expected = find_dense(function, (0, 1))(jnp.asarray(MATRIX), VECTOR)
    for found in (find(function, (0, 1))(mat, VECTOR), jit(find(function, (0, 1)))(mat, VECTOR)):
        by_matrix, by_vector = found["product"]
        assert (by_matrix.shape, by_matrix.n_batch) == ((4, 4, 5), 1 + mat.n_batch)
        at = np.broadcast_to(MATRIX != 0, (4, 4, 5))
        np.testing.assert_allclose(np.where(at, by_matrix.todense(), 0), np.where(at, expected["product"][0], 0), atol=1e-14)
        np.testing.assert_allclose(by_vector, expected["product"][1], atol=1e-14)
        np.testing.assert_allclose(found["other"][0].todense(), 0)
        np.testing.assert_allclose(found["other"][1], expected["other"][1], atol=1e-14)


def test_jacobians_with_more_results():
    found, aux = sparse.jacrev(lambda m: (m @ VECTOR, m.nse), has_aux=True)(make((0, 0), MATRIX))
    assert found.shape == (4, 4, 5) and aux == np.count_nonzero(MATRIX)
    with pytest.raises(NotImplementedError, match="sparse"):
        sparse.jacfwd(lambda m: m)(make((0, 0), MATRIX))
