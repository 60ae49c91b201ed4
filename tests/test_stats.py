"""Distributions against SciPy's: inside and outside of the support, shifted, compiled, differentiated."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from jitcore import grad, jit
from jitcore.scipy import stats

POINTS = np.array([-3.2, -1.0, 0.0, 0.3, 0.99, 1.0, 1.7, 2.0, 5.5])
COUNTS = np.array([-1, 0, 1, 2, 3, 5, 9])
SHAPES = {"gamma": (2.5,), "chi2": (3.5,), "beta": (2.5, 1.7), "t": (3.5,), "pareto": (2.3,), "poisson": (2.7,),
          "bernoulli": (0.3,), "geom": (0.4,), "binom": (5, 0.3), "gennorm": (1.4,), "nbinom": (2.5, 0.3)}
CASES = [(name, function) for name in stats.__all__ for function in getattr(getattr(stats, name), "__all__", ())
         if name not in ("norm", "multivariate_normal")]


@pytest.mark.parametrize("name, function", CASES, ids=".".join)
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
        stats.sem(x, nan_policy="omit")
