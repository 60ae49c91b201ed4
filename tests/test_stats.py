"""Distributions against SciPy's: inside and outside of the support, shifted, compiled, differentiated."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from jitcore import grad, jit, random
from jitcore.scipy import stats
from jitcore.test_util import check_grads

POINTS = np.array([-3.2, -1.0, 0.0, 0.3, 0.99, 1.0, 1.7, 2.0, 5.5])
COUNTS = np.array([-1, 0, 1, 2, 3, 5, 9])
SHAPES = {"gamma": (2.5,), "chi2": (3.5,), "beta": (2.5, 1.7), "t": (3.5,), "pareto": (2.3,), "poisson": (2.7,),
          "bernoulli": (0.3,), "geom": (0.4,), "binom": (5, 0.3), "gennorm": (1.4,), "nbinom": (2.5, 0.3),
          "betabinom": (5, 2.5, 1.7), "truncnorm": (-1.5, 2.0), "vonmises": (1.7,), "wrapcauchy": (0.4,)}
CASES = [(name, function) for name in stats.__all__ for function in getattr(getattr(stats, name), "__all__", ())
         if name not in ("norm", "multivariate_normal", "dirichlet", "multinomial") and function != "entropy"]


@pytest.mark.parametrize("name, function", CASES, ids=[".".join(case) for case in CASES])
def test_distribution(name, function):
    ours, theirs = getattr(getattr(stats, name), function), getattr(getattr(scipy_stats, name), function)
    is_discrete = hasattr(getattr(stats, name), "pmf")
    points = COUNTS if is_discrete else POINTS
    for places in ((), (1,), *(() if is_discrete else ((0.5, 1.5),))):
        parameters = (*map(np.float64, SHAPES.get(name, ())), *map(np.float64, places))
        x = points.astype(np.float64) if is_discrete else points
        with np.errstate(all="ignore"):
            expected = theirs(x, *parameters)
        np.testing.assert_allclose(jit(ours)(x, *parameters), expected, rtol=1e-9, atol=1e-12)
    assert ours(np.float32(0.5), *SHAPES.get(name, ())).dtype == np.float32
    if not is_discrete:
        total = lambda x: ours(x, *map(np.float64, SHAPES.get(name, ())))  # noqa: E731
        for x in (-1.3, 0.6, 1.8):
            slope = (theirs(x + 1e-6, *SHAPES.get(name, ())) - theirs(x - 1e-6, *SHAPES.get(name, ()))) / 2e-6
            if np.isfinite(slope):
                np.testing.assert_allclose(float(grad(total)(np.float64(x))), slope, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mean, cov", [(np.zeros(3), np.eye(3)), (np.arange(3.0), np.diag([1.0, 2, 3]) + 0.5)])
def test_multivariate_normal(mean, cov):
    x = np.random.default_rng(0).normal(size=(4, 3))
    for function in ("logpdf", "pdf"):
        ours, theirs = getattr(stats.multivariate_normal, function), getattr(scipy_stats.multivariate_normal, function)
        np.testing.assert_allclose(jit(ours)(x, mean, cov), theirs(x, mean, cov), rtol=1e-10)
    np.testing.assert_allclose(stats.multivariate_normal.logpdf(0.3, 0.1, 2.0), scipy_stats.multivariate_normal.logpdf(0.3, 0.1, 2.0), rtol=1e-6)
    assert np.isnan(stats.multivariate_normal.logpdf(x[0], mean, -cov))
    with pytest.raises(ValueError, match="incompatible"):
        stats.multivariate_normal.logpdf(x, mean, np.eye(2))


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_ranks(axis):
    x = np.random.default_rng(0).integers(0, 5, (6, 7))
    for method in ("average", "min", "max", "dense", "ordinal"):
        expected = scipy_stats.rankdata(x, method, axis=axis)
        np.testing.assert_array_equal(jit(lambda x: stats.rankdata(x, method, axis=axis))(x), expected)
    for keepdims in (False, True):
        for ours, theirs in zip(stats.mode(x, axis, keepdims=keepdims), scipy_stats.mode(x, axis, keepdims=keepdims), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_allclose(stats.sem(x * 1.0, axis), scipy_stats.sem(x, axis), rtol=1e-12)
    with pytest.raises(ValueError, match="method"):
        stats.rankdata(x, "best")
    with pytest.raises(NotImplementedError, match="nan_policy"):
        stats.mode(x, nan_policy="omit")


@pytest.mark.parametrize("a, b", [(-1.5, 2.0), (3.0, 9.0), (-40.0, -30.0), (-np.inf, -1.0), (5.0, np.inf), (-8.0, 8.0)])
def test_truncnorm_in_the_tails(a, b):
    x = np.concatenate([np.linspace(max(a, -50), min(b, 50), 9), [-60, 60]])
    for name in stats.truncnorm.__all__:
        expected = getattr(scipy_stats.truncnorm, name)(x, a, b)
        np.testing.assert_allclose(jit(getattr(stats.truncnorm, name))(x, a, b), expected, rtol=1e-9, atol=1e-300)
    slope = grad(lambda x: stats.truncnorm.logcdf(x, a, b))(x[4])
    np.testing.assert_allclose(slope, np.exp(scipy_stats.truncnorm.logpdf(x[4], a, b) - scipy_stats.truncnorm.logcdf(x[4], a, b)), rtol=1e-6)


@pytest.mark.parametrize("mu", [0.0, 1e-3, 0.7, 4.2, 31.0, 99.9, 100.1, 250.0, 1e6])
def test_poisson_entropy(mu):
    expected = float(scipy_stats.poisson.entropy(mu)) if mu < 200 else float(exact_entropy(mu))
    np.testing.assert_allclose(jit(stats.poisson.entropy)(np.float64(mu)), expected, rtol=1e-8)
    assert stats.poisson.entropy(np.float32(mu)).dtype == np.float32 and np.isnan(stats.poisson.entropy(-1.0))
    if mu:
        np.testing.assert_allclose(stats.poisson.entropy(mu * np.ones((2, 0))).shape, (2, 0))


def exact_entropy(mu):
    mpmath = pytest.importorskip("mpmath")
    return mpmath.log(2 * mpmath.pi * mpmath.e * mu) / 2 - 1 / (12 * mu) - 1 / (24 * mu**2) - mpmath.mpf(19) / (360 * mu**3)


def test_dirichlet():
    x, alpha = np.array([[0.2, 0.5, 0.1], [0.3, 0.25, 0.1], [0.5, 0.25, 0.9]]), np.array([1.5, 2.0, 0.7])
    expected = [scipy_stats.dirichlet.logpdf(x[:, i], alpha) for i in range(2)]
    np.testing.assert_allclose(jit(stats.dirichlet.logpdf)(x, alpha), [*expected, -np.inf], rtol=1e-12)
    np.testing.assert_allclose(stats.dirichlet.pdf(x[:2, :2], alpha), np.exp(expected), rtol=1e-12)
    check_grads(lambda a: stats.dirichlet.logpdf(x[:, 0], a), (alpha,), order=2, rtol=1e-4)
    with pytest.raises(ValueError, match="one-dimensional"):
        stats.dirichlet.pdf(x, x)
    with pytest.raises(ValueError, match="same number of entries"):
        stats.dirichlet.pdf(x, np.ones(5))


def test_multinomial():
    x, p = np.array([[1, 2, 0], [0, 0, 3], [1, 1, 2]]), np.array([0.2, 0.5, 0.3])
    for name in ("pmf", "logpmf"):
        np.testing.assert_allclose(jit(getattr(stats.multinomial, name))(x, 3, p), getattr(scipy_stats.multinomial, name)(x, 3, p), rtol=1e-6)
    check_grads(lambda p: stats.multinomial.logpmf(x[0], 3, p), (p,), order=1, rtol=1e-4)


@pytest.mark.parametrize("method", [None, "silverman", 0.4, lambda kde: 0.3])
@pytest.mark.parametrize("d", [1, 2])
def test_gaussian_kde(d, method):
    rng = np.random.default_rng(0)
    data, weights, points = rng.normal(size=(d, 30)), rng.uniform(size=30), rng.normal(size=(d, 7))
    ours, theirs = stats.gaussian_kde(data, method, weights), scipy_stats.gaussian_kde(data, method, weights)
    np.testing.assert_allclose(ours(points), theirs(points), rtol=1e-10)
    np.testing.assert_allclose(jit(lambda kde, x: kde.logpdf(x))(ours, points), theirs.logpdf(points), rtol=1e-10)
    mean, cov = np.ones(d), np.eye(d)
    np.testing.assert_allclose(ours.integrate_gaussian(mean, cov), theirs.integrate_gaussian(mean, cov), rtol=1e-10)
    np.testing.assert_allclose(ours.integrate_kde(ours), theirs.integrate_kde(theirs), rtol=1e-10)
    if d == 1:
        np.testing.assert_allclose(ours.integrate_box_1d(-0.5, 1.0), theirs.integrate_box_1d(-0.5, 1.0), rtol=1e-10)
    assert ours.resample(random.key(0), (4, 3)).shape == (d, 4, 3)
    drawn = ours.resample(random.key(1), (20000,))
    np.testing.assert_allclose(np.mean(drawn, 1), np.average(data, 1, weights), atol=0.05)
    check_grads(lambda x: stats.gaussian_kde(x, "scott", weights).logpdf(points), (data,), order=1, rtol=1e-3)
    with pytest.raises(ValueError, match="dimension"):
        ours(np.ones((3, 4)))


@pytest.mark.parametrize("name, function", CASES, ids=[".".join(case) for case in CASES])
def test_what_no_distribution_has_is_nan(name, function):
    """Points that are NaN, and parameters out of their domains, inside and outside of the support."""
    ours, theirs = getattr(getattr(stats, name), function), getattr(getattr(scipy_stats, name), function)
    is_discrete = hasattr(getattr(stats, name), "pmf") and function != "ppf"
    points = np.array([-1.0, 0.0, 1.0, 4.0, 0.25, np.nan, np.inf, -np.inf])[[0, 1, 2, 3, 5, 6, 7] if is_discrete else slice(None)]
    shapes = SHAPES.get(name, ())
    cases = [(*shapes[:place], wrong, *shapes[place + 1:]) for place in range(len(shapes))
             for wrong in (-1.5, np.nan)] + [shapes]
    places = [()] if hasattr(getattr(stats, name), "pmf") else [(), (0.0, -1.0), (0.0, np.nan)]
    for parameters in [(*case, *place) for case in cases for place in places]:
        if name == "truncnorm" and parameters[0] < parameters[1]:
            continue  # bounds of any sign
        with np.errstate(all="ignore"):
            expected = theirs(points, *parameters)
        if name == "bernoulli" and parameters != shapes and function == "ppf":
            expected = np.full_like(expected, np.nan)  # SciPy 1.16 has a value at 0
        if name in ("poisson", "nbinom") and parameters == shapes and function != "cdf":
            expected[points == np.inf] = -np.inf if function == "logpmf" else 0  # NaN in SciPy
        got = ours(points, *map(np.float64, parameters))
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12, err_msg=str(parameters))


@pytest.mark.parametrize("name", ["uniform", "expon", "laplace", "logistic", "pareto", "wrapcauchy", "gumbel_r", "beta"])
def test_no_complex_numbers(name):
    with pytest.raises(TypeError):
        getattr(stats, name).pdf(np.complex64(0.5 + 1j), *SHAPES.get(name, ()))
