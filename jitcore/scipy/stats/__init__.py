"""Distributions of `jitcore.scipy.stats`, one module each."""

from jitcore.scipy.stats import (
    bernoulli,
    beta,
    binom,
    cauchy,
    chi2,
    expon,
    gamma,
    geom,
    laplace,
    logistic,
    norm,
    pareto,
    poisson,
    t,
    uniform,
)

__all__ = [
    "bernoulli",
    "beta",
    "binom",
    "cauchy",
    "chi2",
    "expon",
    "gamma",
    "geom",
    "laplace",
    "logistic",
    "norm",
    "pareto",
    "poisson",
    "t",
    "uniform",
]
