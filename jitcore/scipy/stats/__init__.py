"""Distributions of `jitcore.scipy.stats`, one module each.

In: values and parameters. Out: densities, probabilities and their logarithms, as SciPy gives them.

Modules:
    bernoulli  The Bernoulli distribution: 1 with probability p, else 0.
    beta       The beta distribution of shapes a and b.
    binom      The binomial distribution: successes of probability p in n tries.
    cauchy     The Cauchy distribution.
    chi2       The chi-square distribution of df degrees of freedom.
    expon      The exponential distribution.
    gamma      The gamma distribution of shape a.
    geom       The geometric distribution: the first success, of probability p, is at the k-th try.
    laplace    The Laplace distribution.
    logistic   The logistic distribution.
    norm       The normal distribution of mean `loc` and standard deviation `scale`.
    pareto     The Pareto distribution of shape b.
    poisson    The Poisson distribution of mean mu.
    support    What distributions are made of: operands of one dtype, densities that are zero outside of the
               support.
    t          Student's t distribution of df degrees of freedom.
    uniform    The uniform distribution on [loc, loc + scale].
"""

from jitcore.scipy.stats import (bernoulli, beta, binom, cauchy, chi2, expon, gamma, geom, laplace, logistic,
                                 norm, pareto, poisson, t, uniform)

__all__ = ["bernoulli", "beta", "binom", "cauchy", "chi2", "expon", "gamma", "geom", "laplace", "logistic",
           "norm", "pareto", "poisson", "t", "uniform"]
