"""scikit-learn: FunctionTransformer, estimators whose methods are jitted, pipelines, searches in processes."""

import pickle

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import autojit, grad, jit

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed: jitcore[interop]")
from sklearn.base import BaseEstimator, RegressorMixin, clone  # noqa: E402
from sklearn.gaussian_process.kernels import PairwiseKernel  # noqa: E402
from sklearn.linear_model import LinearRegression, Ridge  # noqa: E402
from sklearn.metrics import make_scorer, mean_squared_error, pairwise_distances  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.neighbors import KNeighborsRegressor  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer, StandardScaler  # noqa: E402
from sklearn.svm import SVR  # noqa: E402

random = np.random.default_rng(0)
X = random.normal(size=(80, 3))
Y = X @ np.array([1.0, -2.0, 0.5]) + 0.3


@jit
def squash(x):
    return jnp.tanh(x) * 2


@jit
def loss(w, b, x, y, alpha):
    return jnp.mean((x @ w + b - y) ** 2) + alpha * jnp.sum(w * w)


slope = jit(grad(loss, argnums=(0, 1)))


class Descent(RegressorMixin, BaseEstimator):
    """Linear regression by gradient descent."""

    def __init__(self, alpha=0.0, steps=500):
        self.alpha, self.steps = alpha, steps

    def fit(self, x, y):
        w, b = np.zeros(x.shape[1]), 0.0
        for _ in range(self.steps):
            dw, db = slope(w, b, x, y, self.alpha)
            w, b = w - 0.1 * dw, b - 0.1 * db
        self.coef_, self.intercept_ = w, b
        return self

    def predict(self, x):
        return _predict(self.coef_, self.intercept_, x)


@jit
def _predict(w, b, x):
    return x @ w + b


@jit
def gap(a, b):
    return jnp.sqrt(((a - b) ** 2).sum())


@pytest.mark.parametrize("validate", [True, False])
def test_function_transformer(validate):
    transformer = FunctionTransformer(squash, validate=validate)
    found = transformer.fit_transform(X)
    np.testing.assert_allclose(found, np.tanh(X) * 2, rtol=1e-12)
    assert np.asarray(found).dtype == np.float64
    pipeline = make_pipeline(StandardScaler(), transformer, LinearRegression())
    expected = make_pipeline(StandardScaler(), FunctionTransformer(lambda x: np.tanh(x) * 2), LinearRegression())
    np.testing.assert_allclose(pipeline.fit(X, Y).predict(X), expected.fit(X, Y).predict(X), rtol=1e-9)
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))


def test_function_transformer_of_autojit():
    transformer = FunctionTransformer(autojit(lambda x: np.log1p(np.abs(x))))
    np.testing.assert_allclose(transformer.fit_transform(X), np.log1p(np.abs(X)), rtol=1e-12)


def test_estimator():
    model = Descent().fit(X, Y)
    np.testing.assert_allclose(model.coef_, [1, -2, 0.5], rtol=1e-5)
    np.testing.assert_allclose(model.predict(X), Ridge(alpha=0).fit(X, Y).predict(X), atol=1e-5)
    assert model.score(X, Y) > 0.999
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(np.asarray(again.predict(X)), np.asarray(model.predict(X)))
    clone(model).set_params(alpha=1.0)
    scores = cross_val_score(Descent(), X, Y, cv=3, scoring=make_scorer(mean_squared_error))
    np.testing.assert_allclose(scores, 0, atol=1e-6)


@pytest.mark.parametrize("jobs", [1, 2])
def test_search(jobs):
    search = GridSearchCV(Descent(steps=200), {"alpha": [0.0, 0.1, 1.0]}, cv=3, n_jobs=jobs).fit(X, Y)
    assert search.best_params_ == {"alpha": 0.0}


def test_arrays_as_data():
    data, target = jnp.asarray(X), jnp.asarray(Y)
    np.testing.assert_allclose(LinearRegression().fit(data, target).coef_, [1, -2, 0.5], rtol=1e-9)
    np.testing.assert_allclose(StandardScaler().fit_transform(data), StandardScaler().fit_transform(X))
    assert mean_squared_error(target, target) == 0


def test_callables_of_metrics_and_kernels():
    np.testing.assert_allclose(pairwise_distances(X[:9], metric=gap), pairwise_distances(X[:9]), atol=1e-7)
    near = KNeighborsRegressor(3, metric=gap, algorithm="brute").fit(X[:20], Y[:20]).predict(X[20:30])
    np.testing.assert_allclose(near, KNeighborsRegressor(3).fit(X[:20], Y[:20]).predict(X[20:30]))
    kernel = jit(lambda a, b: a @ b.T)
    np.testing.assert_allclose(SVR(kernel=kernel).fit(X, Y).predict(X), SVR(kernel="linear").fit(X, Y).predict(X),
                               atol=1e-6)
    assert PairwiseKernel(metric="rbf")(X[:3]).shape == (3, 3)
