"""`jitcore.scipy` against SciPy in float64, and against `jax.scipy` for dtypes and weak types."""

import numpy as np
import pytest
from scipy import linalg as scipy_linalg, special as scipy_special, stats as scipy_stats

import jitcore
from jitcore.scipy import linalg, special, stats
from tests.jax_answers import jax

UNIT = np.linspace(0.05, 0.95, 9)
POSITIVE = np.linspace(0.2, 6, 9)
REAL = np.linspace(-3.3, 3.1, 9)
SPECIAL = [
    ("erf", REAL), ("erfc", REAL), ("erfinv", UNIT), ("ndtr", REAL * 5), ("ndtri", UNIT**9), ("log_ndtr", REAL * 9),
    ("expit", REAL), ("logit", UNIT), ("gammaln", REAL), ("gamma", REAL), ("gammasgn", REAL), ("factorial", POSITIVE),
    ("betaln", POSITIVE, UNIT), ("beta", POSITIVE, UNIT), ("betainc", POSITIVE, POSITIVE, UNIT),
    ("gammainc", POSITIVE, POSITIVE), ("gammaincc", POSITIVE, POSITIVE), ("digamma", REAL), ("polygamma", 2, POSITIVE),
    ("zeta", POSITIVE + 1.1, POSITIVE), ("zeta", POSITIVE + 1.1), ("multigammaln", POSITIVE + 3, 3), ("i0", REAL),
    ("i0e", REAL), ("i1", REAL), ("i1e", REAL), ("xlogy", REAL, POSITIVE), ("xlogy", 0.0, UNIT - 0.05),
    ("xlog1py", REAL, POSITIVE), ("entr", REAL), ("rel_entr", UNIT, REAL), ("kl_div", UNIT, POSITIVE),
    ("logsumexp", REAL), ("softmax", REAL), ("log_softmax", REAL), ("xlogy", REAL[:, None], POSITIVE),
    ("boxcox", POSITIVE, UNIT), ("boxcox", POSITIVE, 0.0), ("boxcox1p", UNIT, REAL), ("comb", POSITIVE + 2, UNIT), ("poch", POSITIVE, UNIT),
]
MATRIX = np.random.default_rng(0).normal(size=(4, 4))
POSITIVE_DEFINITE = MATRIX @ MATRIX.T + 4 * np.eye(4)
RIGHT = np.random.default_rng(1).normal(size=(4, 2))


def assert_close(ours, expected, tolerance=1e-12):
    ours = ours.data if hasattr(ours, "data") else ours
    assert ours.shape == np.shape(expected)
    np.testing.assert_allclose(ours, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name, args", [(row[0], row[1:]) for row in SPECIAL])
def test_special_function(name, args):
    expected = getattr(scipy_special, name)(*args)
    assert_close(getattr(special, name)(*args), expected)
    single = [np.asarray(arg, np.float32) if isinstance(arg, np.ndarray) else arg for arg in args]
    ours = getattr(special, name)(*single)
    assert ours.dtype == np.float32
    assert_close(ours, getattr(scipy_special, name)(*[np.asarray(a, float) if np.ndim(a) else a for a in single]), 2e-4)


@pytest.mark.parametrize("name, args", [(row[0], row[1:]) for row in SPECIAL])
def test_special_function_traced(name, args):
    arrays = [i for i, arg in enumerate(args) if isinstance(arg, np.ndarray)]

    def run(*values):
        given = dict(zip(arrays, values))
        return getattr(special, name)(*[given.get(i, arg) for i, arg in enumerate(args)])

    assert_close(jitcore.jit(run)(*[args[i] for i in arrays]), run(*[args[i] for i in arrays]).data, 1e-10)


@pytest.mark.parametrize("name, args", [
    ("erf", (2,)), ("expit", (1.0,)), ("ndtr", (1.0,)), ("xlogy", (1, 2.0)), ("logit", (0.5,)), ("entr", (0.5,)),
    ("gammaln", (np.arange(1, 4),)), ("logsumexp", (np.arange(3),)), ("log_ndtr", (0.5,)),
])
def test_types_are_those_of_jax(name, args):
    args = [np.asarray(arg, np.int32) if isinstance(arg, np.ndarray) else arg for arg in args]
    ours, theirs = getattr(special, name)(*args), getattr(jax.scipy.special, name)(*args)
    assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)
    np.testing.assert_allclose(ours.data, np.asarray(theirs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", [
    {}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}, {"axis": 1, "b": MATRIX}, {"axis": 1, "b": np.array([1, 0, 2, 3])},
])
def test_logsumexp(options):
    assert_close(special.logsumexp(MATRIX, **options), scipy_special.logsumexp(MATRIX, **options))


def test_logsumexp_with_sign_and_infinities():
    ours = special.logsumexp(MATRIX, axis=1, b=MATRIX, return_sign=True)
    expected = scipy_special.logsumexp(MATRIX, axis=1, b=MATRIX, return_sign=True)
    assert_close(ours[0], expected[0])
    assert_close(ours[1], expected[1])
    assert_close(special.logsumexp(np.full((2, 3), -np.inf), axis=1), [-np.inf, -np.inf])
    assert_close(special.logsumexp(np.array([np.inf, 1.0])), np.inf)


@pytest.mark.parametrize("name", ["pdf", "cdf", "logpdf", "logcdf", "sf", "logsf"])
def test_normal_distribution(name):
    assert_close(getattr(stats.norm, name)(REAL, 0.5, 2.0), getattr(scipy_stats.norm, name)(REAL, 0.5, 2.0))


@pytest.mark.parametrize("name", ["ppf", "isf"])
def test_normal_quantiles(name):
    assert_close(getattr(stats.norm, name)(UNIT, 0.5, 2.0), getattr(scipy_stats.norm, name)(UNIT, 0.5, 2.0))


# -- linear algebra -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("lower", [False, True])
def test_cholesky(lower):
    # Only one triangle is read.
    half = np.tril(POSITIVE_DEFINITE) if lower else np.triu(POSITIVE_DEFINITE)
    assert_close(linalg.cholesky(half, lower=lower), scipy_linalg.cholesky(POSITIVE_DEFINITE, lower=lower))
    solution = linalg.cho_solve(linalg.cho_factor(POSITIVE_DEFINITE, lower=lower), RIGHT)
    assert_close(solution, np.linalg.solve(POSITIVE_DEFINITE, RIGHT))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 1, "C"])
@pytest.mark.parametrize("right", [RIGHT, RIGHT[:, 0]], ids=["matrix", "vector"])
def test_solve_triangular(right, trans, lower):
    ours = linalg.solve_triangular(POSITIVE_DEFINITE, right, trans=trans, lower=lower)
    assert_close(ours, scipy_linalg.solve_triangular(POSITIVE_DEFINITE, right, trans=trans, lower=lower))


@pytest.mark.parametrize("assume_a", ["gen", "sym", "pos"])
def test_solve(assume_a):
    for right in (RIGHT, RIGHT[:, 0]):
        ours = linalg.solve(POSITIVE_DEFINITE, right, assume_a=assume_a)
        assert_close(ours, np.linalg.solve(POSITIVE_DEFINITE, right))


@pytest.mark.parametrize("matrix", [MATRIX, RIGHT, RIGHT.T], ids=["square", "tall", "wide"])
@pytest.mark.parametrize("permute_l", [False, True])
def test_lu(matrix, permute_l):
    for ours, expected in zip(linalg.lu(matrix, permute_l), scipy_linalg.lu(matrix, permute_l), strict=True):
        assert_close(ours, expected)


@pytest.mark.parametrize("trans", [0, 1])
def test_lu_solve(trans):
    assert_close(linalg.lu_solve(linalg.lu_factor(MATRIX), RIGHT, trans),
                 scipy_linalg.lu_solve(scipy_linalg.lu_factor(MATRIX), RIGHT, trans))


def test_factorisations_multiply_back():
    q, r = linalg.qr(RIGHT, mode="economic")
    assert_close(q.data @ r.data, RIGHT)
    (r_alone,) = linalg.qr(RIGHT, mode="r")
    assert r_alone.shape == (4, 2)
    q, r, order = linalg.qr(MATRIX, pivoting=True)
    assert_close(q.data @ r.data, MATRIX[:, order.data])
    u, s, vh = linalg.svd(RIGHT, full_matrices=False)
    assert_close(u.data * s.data @ vh.data, RIGHT)
    values, vectors = linalg.eigh(POSITIVE_DEFINITE)
    assert_close(vectors.data * values.data @ vectors.data.T, POSITIVE_DEFINITE)
    assert_close(linalg.eigh(POSITIVE_DEFINITE, eigvals_only=True), values.data)
    assert_close(linalg.inv(MATRIX).data @ MATRIX, np.eye(4))
    assert_close(linalg.det(MATRIX), np.linalg.det(MATRIX))


@pytest.mark.parametrize("scale", [0.0, 0.1, 3.0, 20.0])
def test_expm(scale):
    expected = scipy_linalg.expm(MATRIX * scale)
    size = np.abs(expected).max()
    assert_close(linalg.expm(MATRIX * scale).data / size, expected / size, 1e-11)
    batch = linalg.expm(np.stack([MATRIX, MATRIX * scale])).data
    assert_close(batch[1] / size, expected / size, 1e-11)


def test_expm_gives_up_where_it_would_take_too_many_squarings():
    assert np.isnan(linalg.expm(MATRIX * 1e9).data).all()


def test_block_diag():
    assert_close(linalg.block_diag(MATRIX, RIGHT, RIGHT[:, 0]), scipy_linalg.block_diag(MATRIX, RIGHT, RIGHT[:, 0]))


@pytest.mark.parametrize("call, error", [
    (lambda: special.factorial(3, exact=True), NotImplementedError),
    (lambda: special.polygamma(1.5, POSITIVE), ValueError),
    (lambda: linalg.solve_triangular(MATRIX, RIGHT, trans=5), ValueError),
    (lambda: linalg.solve(MATRIX, RIGHT, assume_a="other"), ValueError),
    (lambda: linalg.qr(MATRIX, mode="other"), ValueError), (lambda: linalg.expm(RIGHT), ValueError),
    (lambda: linalg.block_diag(np.zeros((1, 1, 1))), ValueError),
    (lambda: linalg.eigh(MATRIX, MATRIX), NotImplementedError),
])
def test_errors(call, error):
    with pytest.raises(error):
        call()


def test_routines_read_reshapes():
    """Routines that read the shapes of memory get memory of the shape of their operand."""
    matrices = POSITIVE_DEFINITE.ravel()
    triangle = np.tril(POSITIVE_DEFINITE)
    compiled = jitcore.jit(lambda a, b: linalg.solve_triangular(a.reshape(4, 4), b, lower=True))
    assert_close(compiled(matrices, RIGHT[:, 0]), np.linalg.solve(triangle, RIGHT[:, 0]))
    assert_close(jitcore.jit(lambda a: linalg.cholesky(a.reshape(4, 4), lower=True))(matrices),
                 np.linalg.cholesky(POSITIVE_DEFINITE))
    largest = jitcore.jit(lambda a: jitcore.lax.top_k(a.reshape(2, 8), 3)[0])(MATRIX)
    assert_close(largest, np.sort(MATRIX.reshape(2, 8))[:, :-4:-1])


def test_counts():
    for args in ((5.0, 2.0), (3.0, 5.0), (4.0, -1.0), (np.arange(6.0), 2.0)):
        assert_close(special.comb(*args), scipy_special.comb(*args), 1e-6)
    assert_close(special.comb(np.float64(5), 2, repetition=True), scipy_special.comb(5, 2, repetition=True))
    assert_close(special.poch(np.array([-1.5, 3.0]), np.array([3.0, 0.0])), scipy_special.poch([-1.5, 3.0], [3.0, 0.0]))
    assert_close(special.bernoulli(12), scipy_special.bernoulli(12), 1e-6)
    with pytest.raises(NotImplementedError, match="math.comb"):
        special.comb(5, 2, exact=True)
    with pytest.raises(ValueError, match="non-negative"):
        special.bernoulli(-1)
