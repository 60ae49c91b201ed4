"""LAPACK from native code: values against definitions and NumPy in double precision, parameters, failures."""

import functools
import itertools
import threading

import jax
import numpy as np
import pytest

import jitcore.numpy as jnp
import jitcore.scipy.linalg as jsl
from jitcore import jit, lax
from jitcore.backends.cpu.machine.tuning import Linalg
from jitcore.backends.cpu.native import images
from jitcore.backends.cpu.routines.linalg import lapack_symbols, routine
from jitcore.lax import linalg
from tests.combinations import pairwise, spread

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
BATCHES = [(), (2, 5), (40,)]
SHAPES = [(1, 1), (4, 2), (2, 4), (17, 17), (33, 10), (10, 70)]


def make(shape, dtype, seed=0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def make_positive(shape, dtype) -> np.ndarray:
    x = make(shape, dtype)
    return (x @ adjoint(x) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def adjoint(x) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def run(function, *args) -> list[np.ndarray]:
    """The results of the compiled function, of which no step calls Python."""
    compiled = jit(function)
    results = compiled(*args)
    assert "call " not in str(compiled.inspect("loop program"))
    return [np.asarray(x) for x in (results if isinstance(results, (tuple, list)) else [results])]


def assert_close(got, expected, factor=1.0) -> None:
    eps = np.finfo(got.dtype).eps
    scale = np.abs(expected).max(initial=1e-30)
    np.testing.assert_allclose(got, expected, rtol=0, atol=factor * 40 * eps * scale * max(got.shape[-2:]))


def assert_unitary(q) -> None:
    assert_close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *q.shape[-1:] * 2)))


# -- factorisations -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("n, batch, dtype", pairwise([1, 3, 33, 66], BATCHES, DTYPES))
def test_cholesky(n, batch, dtype):
    x = make_positive((*batch, n, n), dtype)
    (factor,) = run(linalg.cholesky, x)
    assert_close(factor @ adjoint(factor), x)
    assert not np.triu(factor, 1).any()
    garbage = x + np.triu(make(x.shape, dtype, 1), 1).astype(dtype)
    (lower_only,) = run(functools.partial(linalg.cholesky, symmetrize_input=False), garbage)
    assert_close(lower_only, factor)


@pytest.mark.parametrize("shape, batch, dtype", pairwise(SHAPES, BATCHES, DTYPES))
def test_lu(shape, batch, dtype):
    x = make((*batch, *shape), dtype)
    factors, pivots, permutation = run(lambda x: tuple(linalg.lu(x)), x)
    rows, columns = shape
    count = min(shape)
    lower = np.tril(factors, -1)[..., :count] + np.eye(rows, count)
    upper = np.triu(factors)[..., :count, :]
    assert_close((lower @ upper).astype(dtype), np.take_along_axis(x, permutation[..., None], -2))
    assert (np.abs(lower) <= 1.5 if np.dtype(dtype).kind == "c" else np.abs(lower) <= 1 + 1e-5).all()
    assert pivots.dtype == permutation.dtype == np.int32
    np.testing.assert_array_equal(linalg.lu_pivots_to_permutation(pivots, rows), permutation)
    (again,) = run(lambda p: linalg.lu_pivots_to_permutation(p, rows), pivots)
    np.testing.assert_array_equal(again, permutation)


@pytest.mark.parametrize("shape, batch, dtype, full", pairwise(SHAPES, BATCHES, DTYPES, [False, True]))
def test_qr(shape, batch, dtype, full):
    x = make((*batch, *shape), dtype)
    q, r = run(functools.partial(linalg.qr, full_matrices=full), x)
    inner = shape[0] if full else min(shape)
    assert q.shape == (*batch, shape[0], inner) and r.shape == (*batch, inner, shape[1])
    assert_close(q @ r, x)
    assert_unitary(q)
    assert not np.tril(r, -1).any()
    q, r, order = run(functools.partial(linalg.qr, full_matrices=full, pivoting=True), x)
    assert_close(q @ r, np.take_along_axis(x, order[..., None, :], -1))
    assert_unitary(q)
    sizes = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
    assert (sizes[..., 1:] <= sizes[..., :-1] * 1.001).all()


@pytest.mark.parametrize("n, batch, dtype", pairwise([1, 9, 66], BATCHES, DTYPES))
def test_eigh(n, batch, dtype):
    x = make((*batch, n, n), dtype)
    symmetric = ((x + adjoint(x)) / 2).astype(dtype)
    expected = np.linalg.eigvalsh(symmetric.astype(np.result_type(dtype, np.float64)))
    vectors, values = run(linalg.eigh, x)
    assert_close(values, expected.astype(values.dtype))
    assert_close(symmetric @ vectors, vectors * values[..., None, :])
    assert_unitary(vectors)
    for lower in (True, False):
        triangle = np.tril(symmetric) if lower else np.triu(symmetric)
        vectors, values = run(functools.partial(linalg.eigh, lower=lower, symmetrize_input=False), triangle)
        assert_close(values, expected.astype(values.dtype))
        assert_close(symmetric @ vectors, vectors * values[..., None, :])
    (values,) = run(lambda x: linalg.eigh(x)[1], x)
    assert_close(values, expected.astype(values.dtype))


@pytest.mark.parametrize("shape, batch, dtype", pairwise(SHAPES, BATCHES, DTYPES))
def test_svd(shape, batch, dtype):
    x = make((*batch, *shape), dtype)
    expected = np.linalg.svd(x.astype(np.result_type(dtype, np.float64)), compute_uv=False)
    count = min(shape)
    for full in (False, True):
        left, values, right = run(functools.partial(linalg.svd, full_matrices=full), x)
        assert left.shape[-1] == (shape[0] if full else count)
        assert right.shape[-2] == (shape[1] if full else count)
        assert_close(values, expected.astype(values.dtype))
        product = (left[..., :count] * values[..., None, :]) @ right[..., :count, :]
        assert_close(product, x)
        assert_unitary(left)
        assert_unitary(adjoint(right))
    (values,) = run(functools.partial(linalg.svd, compute_uv=False), x)
    assert_close(values, expected.astype(values.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_signs_are_those_of_jax(dtype):
    x = make((3, 20, 11), dtype)
    square = make((20, 20), dtype)
    square = square + adjoint(square)
    with jax.enable_x64(True):
        pairs = [
            (run(linalg.svd, x), jax.lax.linalg.svd(x)),
            (run(linalg.qr, x), jax.lax.linalg.qr(x)),
            (run(linalg.eigh, square), jax.lax.linalg.eigh(square)),
        ]
        for got, expected in pairs:
            for ours, theirs in zip(got, expected):
                assert_close(ours, np.asarray(theirs), factor=10)


# -- solvers ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "dtype, options", spread(DTYPES, list(itertools.product([False, True], repeat=4)), times=2), ids=str
)
def test_triangular_solve(dtype, options):
    left, lower, transpose, conjugate = options
    for batch, n, others in (((), 1, 1), ((3,), 4, 1), ((2, 2), 5, 7), ((), 40, 30), ((40,), 12, 2),
                             ((3,), 40, 1)):
        a = make((*batch, n, n), dtype) / n + 2 * np.eye(n, dtype=dtype)
        b = make((*batch, n, others) if left else (*batch, others, n), dtype, 1)
        for unit in (False, True):
            solve = functools.partial(
                linalg.triangular_solve, left_side=left, lower=lower, transpose_a=transpose,
                conjugate_a=conjugate, unit_diagonal=unit)
            x = np.asarray(jit(solve)(a, b))
            t = np.tril(a) if lower else np.triu(a)
            if unit:
                t = t - t * np.eye(n) + np.eye(n)
            t = np.conj(t) if conjugate else t
            t = np.swapaxes(t, -1, -2) if transpose else t
            assert_close((t @ x if left else x @ t).astype(dtype), b, factor=10)


def test_triangular_solve_by_a_zero_gives_infinities():
    for n in (2, 40):
        a, b = np.tril(np.ones((n, n), np.float32)), np.ones((n, 1), np.float32)
        a[0, 0] = 0
        (x,) = run(functools.partial(linalg.triangular_solve, left_side=True, lower=True), a, b)
        assert not np.isfinite(x).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 3, 4, 20, 66])
def test_what_is_built_of_them(n, dtype):
    a, b = make((5, n, n), dtype) + 3 * np.eye(n, dtype=dtype), make((5, n, 2), dtype, 1)
    precise = a.astype(np.result_type(dtype, np.float64))
    condition = np.linalg.cond(precise).max()
    close = functools.partial(assert_close, factor=max(condition, 10))
    close(run(jnp.linalg.solve, a, b)[0], np.linalg.solve(precise, b).astype(dtype))
    close(run(jnp.linalg.inv, a)[0], np.linalg.inv(precise).astype(dtype))
    sign, logarithm = run(jnp.linalg.slogdet, a)
    expected = np.linalg.slogdet(precise)
    np.testing.assert_allclose(sign, expected[0], rtol=1e-3)
    np.testing.assert_allclose(logarithm, expected[1], rtol=1e-3, atol=1e-3)
    positive = make_positive((5, n, n), dtype)
    solved = run(lambda a, b: jsl.cho_solve(jsl.cho_factor(a, lower=True), b), positive, b)[0]
    close(solved, np.linalg.solve(positive.astype(precise.dtype), b).astype(dtype))


# -- failures -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 5, 40])
def test_what_is_not_positive_definite_gives_nan(n, dtype):
    x = make_positive((4, n, n), dtype)
    x[2] -= 100 * n * np.eye(n, dtype=dtype)
    (factor,) = run(linalg.cholesky, x)
    assert np.isnan(factor[2][np.tril_indices(n)]).all()
    assert not factor[2][np.triu_indices(n, 1)].any()
    good = [0, 1, 3]
    assert_close(factor[good] @ adjoint(factor[good]), x[good])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 40])
def test_nan_stays_in_its_matrix(n, dtype):
    x = make_positive((3, n, n), dtype)
    x[1, 0, 0] = np.nan
    good = [0, 2]
    for function in (linalg.eigh, linalg.svd, linalg.qr, lambda x: linalg.svd(x, compute_uv=False)):
        results = run(function, x)
        assert any(np.isnan(got[1]).any() for got in results)
        for got, expected in zip(results, run(function, x[good])):
            assert_close(got[good], expected)
    for got, expected in zip(run(linalg.svd, x), run(linalg.svd, x[good])):
        assert np.isnan(got[1]).all() and np.isfinite(expected).all()


@pytest.mark.parametrize("n", [2, 8, 30])
def test_singular_matrices_have_factors(n):
    x = np.ones((n, n))
    factors, pivots, permutation = run(lambda x: tuple(linalg.lu(x)), x)
    assert factors[0].tolist() == [1.0] * n and not np.triu(factors)[1:].any()
    assert pivots.tolist() == permutation.tolist() == list(range(n))
    assert run(jnp.linalg.det, x)[0] == 0
    assert not np.isfinite(run(jnp.linalg.solve, x, np.arange(n) + 1.0)[0]).all()


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3), (0, 4, 4), (2, 0, 0), (2, 3, 0)])
def test_empty_matrices(shape):
    x = np.ones(shape, np.float32)
    q, r = jit(linalg.qr)(x)
    assert q.shape == (*shape[:-1], shape[-2]) and r.shape == shape
    left, values, right = jit(linalg.svd)(x)
    assert left.shape == (*shape[:-1], shape[-2]) and values.shape == (*shape[:-2], min(shape[-2:]))
    assert right.shape == (*shape[:-2], shape[-1], shape[-1])
    factors, pivots, permutation = jit(lambda x: tuple(linalg.lu(x)))(x)
    assert factors.shape == shape and permutation.shape == shape[:-1]
    if shape[-1] == shape[-2]:
        assert jit(linalg.cholesky)(x).shape == shape
        assert jit(linalg.eigh)(x)[0].shape == shape
        assert jit(jnp.linalg.solve)(x, x).shape == shape


# -- programs -----------------------------------------------------------------------------------------------
def test_decompositions_within_loops_are_native():
    def iterate(x):
        return lax.fori_loop(0, 4, lambda i, x: jnp.linalg.qr(x @ jnp.linalg.inv(x + 20))[1] + i, x)

    x = make((12, 12), np.float64)
    expected = x
    for i in range(4):
        q, r = np.linalg.qr(expected @ np.linalg.inv(expected + 20))
        expected = r + i
    np.testing.assert_allclose(run(iterate, x)[0], expected, rtol=1e-6, atol=1e-6)


def test_new_sizes_compile_nothing():
    function = jit(lambda a, b: jnp.linalg.solve(a, b))
    for n in (40, 50, 90):
        a, b = make((n, n), np.float64) + n * np.eye(n), make((n, 11), np.float64)
        np.testing.assert_allclose(a @ np.asarray(function(a, b)), b, atol=1e-9)
    assert function.cache_info().compiles <= 1


def test_threads_call_lapack_at_the_same_time():
    function = jit(linalg.svd)
    inputs = [make((20, 9, 7), np.float64, seed) for seed in range(6)]
    expected = [[np.asarray(part) for part in function(x)] for x in inputs]
    wrong = []

    def work(k):
        for _ in range(20):
            if not all(np.array_equal(a, b) for a, b in zip(function(inputs[k]), expected[k])):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.fixture
def scipy_lapack(monkeypatch):
    """A process in which NumPy's library does not show its functions."""
    monkeypatch.setattr(lapack_symbols, "_open_numpy_library", lambda: None)
    monkeypatch.setattr(images, "_addresses", {
        name: address for name, address in images._addresses.items() if not name.startswith("lapack_")})


@pytest.mark.parametrize("letter", "sdcz")
def test_scipy_publishes_all_that_is_called(letter, scipy_lapack):
    assert lapack_symbols.integer_bits() == 32
    is_complex = letter in "cz"
    names = ["potrf", "getrf", "geqrf", "geqp3", "gesdd", "trsm", "trsv", "ungqr" if is_complex else "orgqr",
             "heevd" if is_complex else "syevd"]
    for name in names:
        assert images.address_of(f"lapack_{letter}{name}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_integers_of_32_bits(dtype, scipy_lapack):
    x = make((2, 11, 7), dtype)
    unlike = jit(lambda x: (*linalg.svd(x), *linalg.qr(x, pivoting=True), *linalg.lu(x), 32))
    left, values, right, q, r, order, factors, pivots, permutation, _ = map(np.asarray, unlike(x))
    assert "lapack32_svd" in str(unlike.inspect("loop program"))
    assert_close((left[..., :7] * values[..., None, :]) @ right, x)
    assert_close(q @ r, np.take_along_axis(x, order[..., None, :], -1))
    lower, upper = np.tril(factors, -1) + np.eye(11, 7), np.triu(factors)[..., :7, :]
    assert_close((lower @ upper).astype(dtype), np.take_along_axis(x, permutation[..., None], -2))
    square = make_positive((3, 9, 9), dtype)
    for got in run(lambda x: (*linalg.eigh(x), 32 * linalg.cholesky(x)), square):
        assert np.isfinite(got).all()


def test_pieces_of_batches():
    tuning = Linalg()
    assert routine._count_pieces((300, 300), tuning) == 1
    assert routine._count_pieces((8, 300, 300), tuning) == 1
    assert routine._count_pieces((8, 300, 300), tuning, on_one_thread=True) == 8
    assert routine._count_pieces((1000, 4, 4), tuning) == 3
    assert routine._count_pieces((100, 64, 64), tuning) == 16
    assert routine._count_pieces((3, 64, 64), tuning) == 3
