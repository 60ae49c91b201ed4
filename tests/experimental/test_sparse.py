"""Sparse arrays against dense ones."""

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse

import jitcore
import jitcore.numpy as jnp
from jitcore import lax
from jitcore.experimental import sparse
from jitcore.experimental.sparse import BCOO, sparsify

LAYOUTS = [((4, 5), 0, 0), ((4, 5), 1, 0), ((4, 5), 0, 1), ((4, 5), 1, 1), ((4, 5), 2, 0), ((3, 4, 2), 1, 1),
           ((3, 4, 2), 2, 0), ((5,), 0, 0), ((2, 3, 2, 3), 1, 1)]


@pytest.fixture(autouse=True)
def double():
    with jitcore.enable_x64(True):
        yield


def draw(*shape, density=0.4, seed=0):
    random = np.random.default_rng([seed, *shape])
    return np.where(random.random(shape) < density, random.normal(size=shape), 0.0)


def agree(found, want):
    found = found.todense() if isinstance(found, BCOO) else found
    assert np.shape(found) == np.shape(want)
    np.testing.assert_allclose(found, want, atol=1e-12)


@pytest.fixture(params=LAYOUTS, ids=str)
def pair(request):
    """A dense array, and a sparse one of twice its elements, each of which is two entries."""
    shape, n_batch, n_dense = request.param
    dense = draw(*shape)
    m = BCOO.fromdense(dense, n_batch=n_batch, n_dense=n_dense)
    entries = [jnp.concatenate([part, part], n_batch) for part in (m.data, m.indices)]
    return dense, m, BCOO(entries, shape=shape)


def test_conversion(pair):
    dense, m, twice = pair
    agree(m, dense)
    agree(twice, 2 * dense)
    agree(twice.sum_duplicates(), 2 * dense)
    agree(jitcore.jit(lambda m: m.sum_duplicates())(twice), 2 * dense)
    assert twice.sum_duplicates().nse <= m.nse
    agree(twice.sort_indices(), 2 * dense)
    agree(m.update_layout(n_batch=0, n_dense=0), dense)
    agree(pickle.loads(pickle.dumps(m)), dense)
    agree(sparse.bcoo_extract(m, jnp.asarray(dense)), dense)
    assert (m.shape, m.ndim, m.size, m.dtype) == (dense.shape, dense.ndim, dense.size, dense.dtype)


def test_axes(pair):
    dense, m, twice = pair
    for order in itertools.permutations(range(dense.ndim)):
        agree(m.transpose(order), dense.transpose(order))
    for count in range(dense.ndim + 1):
        for axes in itertools.combinations(range(dense.ndim), count):
            agree(twice.sum(axes), 2 * dense.sum(axes))
    for shape in (-1, (*dense.shape[:-1], 1, dense.shape[-1]), dense.shape[::-1]):
        agree(twice.reshape(shape), 2 * dense.reshape(shape))
    shape = 2, *dense.shape, 3
    agree(sparse.bcoo_broadcast_in_dim(m, shape=shape, broadcast_dimensions=range(1, dense.ndim + 1)),
          np.broadcast_to(dense[None, ..., None], shape))
    agree(sparse.bcoo_concatenate([m, twice], dimension=0), np.concatenate([dense, 2 * dense]))


@pytest.mark.parametrize("index", [
    0, -1, slice(None), slice(1, None), slice(None, None, -1), slice(None, None, 2), (Ellipsis, 0),
    (Ellipsis, slice(1, 3)),
    (Ellipsis, None), (None, 0), slice(2, 1)], ids=str)
def test_index(pair, index):
    dense, _, twice = pair
    agree(twice[index], 2 * dense[index])


def test_arithmetic(pair):
    dense, m, twice = pair
    shape = dense.shape
    for v in (2.0, draw(*shape, density=1), draw(shape[-1], density=1), draw(*[1] * dense.ndim, density=1)):
        agree(twice * v, 2 * dense * v)
        agree(jnp.asarray(v) * m, dense * v)
        agree(m / v, dense / v)
    other = draw(*shape, seed=1)
    n = BCOO.fromdense(other, n_batch=m.n_batch, n_dense=m.n_dense)
    agree(twice + n, 2 * dense + other)
    agree(twice - n, 2 * dense - other)
    agree(twice * n, 2 * dense * other)
    agree(m + other, dense + other)
    agree(jnp.asarray(other) - m, other - dense)
    agree(-m, -dense)
    agree(abs(twice), abs(2 * dense))
    agree(twice**2, 4 * dense**2)


@pytest.mark.parametrize(("left", "right", "n_batch", "n_dense"), [
    ((4, 5), (5, 3), 0, 0), ((4, 5), (5,), 0, 0), ((5,), (5,), 0, 0), ((5,), (5, 2), 0, 0),
    ((4, 5), (5, 3), 1, 0), ((4, 5), (5, 3), 0, 1), ((2, 4, 5), (5, 3), 1, 0), ((2, 4, 5), (2, 5, 3), 1, 0),
    ((2, 4, 5), (2, 5, 3), 2, 0), ((4, 5), (2, 5, 3), 0, 0)])
def test_products(left, right, n_batch, n_dense):
    a, b = draw(*left), draw(*right)
    m = BCOO.fromdense(a, n_batch=n_batch, n_dense=n_dense)
    agree(m @ b, a @ b)
    agree(jitcore.jit(lambda m, b: m @ b)(m, b), a @ b)
    agree(sparsify(jnp.matmul)(m, b), a @ b)
    n = BCOO.fromdense(b, n_batch=1 if len(left) == len(right) == 3 else 0)
    if len(right) < 3 and len(left) < 3 or n.n_batch:
        agree(jnp.asarray(a) @ n, a @ b)
        agree(m @ n, a @ b)
        assert isinstance(m @ n, BCOO)
        agree(jitcore.jit(lambda m, n: m @ n)(m, n), a @ b)


def test_derivatives():
    dense, v = draw(4, 5), np.random.default_rng(1).normal(size=5)
    m = BCOO.fromdense(dense)

    def loss(m, v):
        return jnp.sum((m @ v) ** 2)

    want = np.where(dense != 0, 2 * np.outer(dense @ v, v), 0)
    agree(sparse.grad(loss)(m, v), want)
    agree(jitcore.jit(sparse.grad(loss))(m, v), want)
    value, (by_m, by_v) = sparse.value_and_grad(loss, argnums=(0, 1))(m, v)
    agree(by_m, want)
    agree(by_v, 2 * dense.T @ (dense @ v))
    assert np.isclose(value, np.sum((dense @ v) ** 2))
    agree(jitcore.grad(loss, 1)(m, v), 2 * dense.T @ (dense @ v))
    agree(jitcore.jvp(lambda v: m @ v, (v,), (v,))[1], dense @ v)
    agree(jitcore.hessian(loss, 1)(m, v), 2 * dense.T @ dense)
    gradient, aux = sparse.grad(lambda m: (m.sum(), m.nse), has_aux=True)(m)
    assert aux == m.nse and (gradient.data == 1).all()
    agree(jitcore.grad(lambda x: jnp.sum(BCOO.fromdense(x, nse=20).data ** 2))(dense), 2 * dense)


def test_batches():
    dense, v = draw(3, 4, 5), np.random.default_rng(1).normal(size=(3, 5))
    m = BCOO.fromdense(dense, n_batch=1)
    agree(jitcore.vmap(lambda m, v: m @ v)(m, v), np.einsum("bij,bj->bi", dense, v))
    doubled = jitcore.vmap(lambda m: m * 2)(m)
    assert doubled.n_batch == 1
    agree(doubled, 2 * dense)
    agree(jitcore.vmap(lambda d: BCOO.fromdense(d, nse=20))(dense), dense)
    agree(jitcore.vmap(lambda v: BCOO.fromdense(dense[0]) @ v)(v), v @ dense[0].T)
    agree(lax.scan(lambda c, m: (c, m @ v[0]), 0, m)[1], dense @ v[0])


@pytest.mark.parametrize(("f", "kind"), [
    (lambda m, v: jnp.sin(2 * m) @ v, None), (lambda m, v: (m + m * 2).sum(0), BCOO),
    (lambda m, v: jnp.einsum("ij,j->i", m, v), None), (lambda m, v: -m.T.reshape(-1)[1:3], BCOO),
    (lambda m, v: m * v, BCOO), (lambda m, v: m / 3, BCOO), (lambda m, v: m.mean(), None),
    (lambda m, v: jnp.concatenate([m, m], 1), BCOO), (lambda m, v: m[::-1, 1:], BCOO),
    (lambda m, v: lax.cond(v[0] > 0, lambda m: m * 2, lambda m: m * 3, m), BCOO),
    (lambda m, v: lax.scan(lambda c, x: (c + 1, m @ x), 0, jnp.stack([v, v]))[1], None),
    (lambda m, v: lax.fori_loop(0, 3, lambda i, x: m.T @ (m @ x), v), None),
    (lambda m, v: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, m.T @ (m @ c[1])), (0, v))[1],
     None),
    (jitcore.jit(lambda m, v: jnp.square(m) @ v), None), (lambda m, v: jnp.tanh(m) - m, BCOO)])
def test_sparsify(f, kind):
    dense, v = draw(4, 5), np.random.default_rng(1).normal(size=5)
    found = sparsify(f)(BCOO.fromdense(dense), v)
    agree(found, f(jnp.asarray(dense), jnp.asarray(v)))
    assert kind is None or isinstance(found, kind)
    agree(jitcore.jit(sparsify(f))(BCOO.fromdense(dense), v), f(jnp.asarray(dense), jnp.asarray(v)))


def test_todense_in_sparsify():
    dense = draw(4, 5)
    agree(sparsify(lambda m: jnp.cos(sparse.todense(m)))(BCOO.fromdense(dense)), np.cos(dense))
    agree(jitcore.grad(lambda x: jnp.sum(sparse.todense(x) ** 2))(dense), 2 * dense)


def test_constructors():
    agree(BCOO.from_scipy_sparse(scipy.sparse.csr_matrix(draw(4, 5))), draw(4, 5))
    for arguments in ((3,), (3, 4), (3, 4, 1), (4, 3, -1), (2, 2, 5)):
        agree(sparse.eye(*arguments), np.eye(*arguments))
    agree(sparse.empty((2, 3), nse=2), np.zeros((2, 3)))
    drawn = sparse.random_bcoo(jitcore.random.key(0), (4, 5, 2), nse=0.3, n_batch=1, sorted_indices=True)
    assert drawn.shape == (4, 5, 2) and drawn.nse == 3 and (drawn.todense() != 0).sum() == 12


def test_dtypes_and_empty_arrays():
    whole = BCOO.fromdense(np.array([[1, 0], [0, 2]]))
    assert (whole @ np.array([1, 2])).dtype == np.int64
    agree(BCOO.fromdense(np.eye(2) > 0), np.eye(2) > 0)
    agree(BCOO.fromdense(np.array([1j, 0])) * 2, np.array([2j, 0]))
    for dtype in (np.float16, jnp.bfloat16):
        m = BCOO.fromdense(draw(4, 5).astype(dtype))
        assert (m @ jnp.ones(5, dtype)).dtype == dtype
    agree(BCOO.fromdense(np.zeros((2, 3))) @ np.ones(3), np.zeros(2))
    agree(BCOO.fromdense(np.zeros((0, 3))) @ np.ones(3), np.zeros(0))
    assert jitcore.eval_shape(lambda m: m.T, whole).shape == (2, 2)
    assert repr(jitcore.tree.map(np.shape, whole)) == "BCOO((2,), (2, 2))"


@pytest.mark.parametrize(("error", "text", "f"), [
    (NotImplementedError, "sparse rule for cos", lambda m: sparsify(jnp.cos)(m)),
    (ValueError, "differ in extent", lambda m: m @ np.ones(3)),
    (TypeError, "indices must be integers", lambda m: BCOO((1.0, 2), shape=())),
    (ValueError, "do not make an array", lambda m: BCOO((np.ones(3), np.zeros((3, 2), int)), shape=(4,))),
    (ValueError, "n_batch=3", lambda m: BCOO.fromdense(m.todense(), n_batch=3)),
    (TypeError, "pass nse", lambda m: jitcore.jit(BCOO.fromdense)(m.todense())),
    (ValueError, "does not broadcast", lambda m: m * np.ones((3, 1, 1))),
    (ValueError, "different shapes", lambda m: m + sparse.eye(2)),
    (ValueError, "different shapes", lambda m: m * sparse.eye(2)),
    (NotImplementedError, "ints and slices", lambda m: m[jnp.array([0])]),
    (IndexError, "out of bounds", lambda m: m[9]),
    (IndexError, "Too many indices", lambda m: m[0, 0, 0]),
    (NotImplementedError, "n_batch=0", lambda m: sparse.bcoo_dot_general(
        m, m.todense(), dimension_numbers=(((1,), (1,)), ((0,), (0,))))),
    (NotImplementedError, "without batch axis",
     lambda m: sparsify(lambda m: lax.scan(lambda c, r: (c, r), 0, m))(m)),
    (TypeError, "scalar is multiplied", lambda m: m @ 2.0),
    (ValueError, "no permutation", lambda m: m.transpose((0, 0))),
    (NotImplementedError, "only positive numbers", lambda m: m**-1),
    (ValueError, "must be one of", lambda m: sparse.eye(2, sparse_format="dok")),
])
def test_errors(error, text, f):
    with pytest.raises(error, match=text):
        f(BCOO.fromdense(draw(4, 5)))
