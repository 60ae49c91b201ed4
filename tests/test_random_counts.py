"""`random.binomial` and `random.multinomial`: JAX's draws, and the moments of the distributions."""

import numpy as np
import pytest

from jitcore import jit, random, vmap
from tests.jax_answers import jax

CASES = [(10, 0.3), (100, 0.7), (5.5, 0.99), (1e5, 0.2), (1e5, 0.001), (np.inf, 0.4), (-1, 0.3), (10, np.nan), (0, 0.5)]


@pytest.mark.parametrize("n, p", CASES)
def test_binomial(n, p):
    ours = np.asarray(jit(lambda key: random.binomial(key, n, p, (2000,)))(random.key(3)))
    assert ours.dtype == np.float32
    if np.isfinite(n + p) and n > 0:
        theirs = np.asarray(jax.random.binomial(jax.random.key(3), n, p, (2000,)))
        np.testing.assert_allclose(np.mean(ours == theirs), 1, atol=0.01)
    if np.isfinite(n + p) and n >= 0:
        tries = np.floor(n)
        np.testing.assert_allclose(np.mean(ours, dtype=float), tries * p, atol=4 * np.sqrt(tries * p * (1 - p) / 2000) + 1e-6)
    else:
        assert not np.isfinite(ours).any() and np.isinf(ours).all() == np.isinf(n)


def test_shapes_and_types():
    key, n, p = random.key(0), np.float32([3, 50, 200]), np.float32([[0.1], [0.5]])
    assert random.binomial(key, n, p).shape == (2, 3) and random.binomial(key, n, p, dtype="float16").dtype == np.float16
    assert random.binomial(key, n, 0.5, (0, 3)).shape == (0, 3)
    assert vmap(lambda key: random.binomial(key, 5, 0.5))(random.split(key, 4)).shape == (4,)
    with pytest.raises(ValueError, match="float dtype"):
        random.binomial(key, n, p, dtype=int)
    with pytest.raises(ValueError, match="broadcast"):
        random.binomial(key, n, p, (4,))


def test_multinomial():
    n, p = np.float32([20, 300]), np.float32([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    ours = jit(random.multinomial)(random.key(1), n, p)
    np.testing.assert_array_equal(ours, jax.random.multinomial(jax.random.key(1), n, p))
    many = np.asarray(random.multinomial(random.key(2), 30, p, shape=(3000, 2, 3)))
    np.testing.assert_array_equal(many.sum(-1), 30)
    np.testing.assert_allclose(many.mean(0), 30 * p, atol=0.2)
    with pytest.raises(ValueError, match="float dtype"):
        random.multinomial(random.key(1), n, p, dtype=int)
