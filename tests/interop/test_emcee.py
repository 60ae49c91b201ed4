"""emcee: jitted logarithms of densities, one by one and vectorized, by a pool of processes too."""

import multiprocessing

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit, vmap

emcee = pytest.importorskip("emcee", reason="emcee is not installed: jitcore[interop]")

WALKERS, STEPS = 12, 400


@jit
def log_density(x):
    return -0.5 * jnp.sum((x - 1) ** 2 / jnp.array([1.0, 4.0]))


def plain(x):
    return -0.5 * np.sum((x - 1) ** 2 / np.array([1.0, 4.0]))


def sample(density, **options):
    start = np.random.default_rng(0).normal(size=(WALKERS, 2))
    sampler = emcee.EnsembleSampler(WALKERS, 2, density, **options)
    sampler._random.seed(0)
    sampler.run_mcmc(start, STEPS)
    return sampler.get_chain(flat=True)


def test_chains_are_those_of_numpy():
    expected = sample(plain)
    for density, options in ((log_density, {}), (jit(vmap(log_density)), {"vectorize": True})):
        found = sample(density, **options)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_pool_of_processes():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        np.testing.assert_allclose(sample(log_density, pool=pool), sample(plain), atol=1e-9)
