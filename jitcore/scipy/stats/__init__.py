"""Distributions of `jitcore.scipy.stats`, one module each, and ranks of samples.

In: values and parameters. Out: densities, probabilities and their logarithms, as SciPy gives them.

Modules:
    bernoulli            The Bernoulli distribution: 1 with probability p, else 0.
    beta                 The beta distribution of shapes a and b.
    betabinom            The beta-binomial distribution: successes in n tries whose probability is beta
                         distributed.
    binom                The binomial distribution: successes of probability p in n tries.
    cauchy               The Cauchy distribution.
    chi2                 The chi-square distribution of df degrees of freedom.
    dirichlet            The Dirichlet distribution of shape parameters alpha: points of the simplex.
    expon                The exponential distribution.
    gamma                The gamma distribution of shape a.
    gennorm              The generalised normal distribution of shape p: a density of exp(-|x| ** p).
    geom                 The geometric distribution: the first success, of probability p, is at the k-th try.
    gumbel_l             The Gumbel distribution of smallest values.
    gumbel_r             The Gumbel distribution of largest values.
    kde                  Densities of samples, as sums of normal densities around them
                         (`jitcore.scipy.stats.gaussian_kde`).
    laplace              The Laplace distribution.
    logistic             The logistic distribution.
    multinomial          The multinomial distribution: how often each of k outcomes comes in n tries.
    multivariate_normal  The normal distribution of vectors.
    nbinom               The negative binomial distribution: failures before the n-th success of probability
                         p.
    norm                 The normal distribution of mean `loc` and standard deviation `scale`.
    pareto               The Pareto distribution of shape b.
    poisson              The Poisson distribution of mean mu.
    ranks                Ranks and summaries of samples.
    support              What distributions are made of: operands of one dtype, densities that are zero
                         outside of the support.
    t                    Student's t distribution of df degrees of freedom.
    truncnorm            The normal distribution cut off below `a` and above `b` standard deviations.
    uniform              The uniform distribution on [loc, loc + scale].
    vonmises             The von Mises distribution of concentration kappa: a normal distribution around the
                         circle.
    wrapcauchy           The Cauchy distribution wrapped around the circle, of concentration c.
"""

from jitcore.scipy.stats import (bernoulli, beta, betabinom, binom, cauchy, chi2, dirichlet, expon, gamma,
                                 gennorm, geom, gumbel_l, gumbel_r, laplace, logistic, multinomial,
                                 multivariate_normal, nbinom, norm, pareto, poisson, t, truncnorm, uniform,
                                 vonmises, wrapcauchy)
from jitcore.scipy.stats.kde import gaussian_kde
from jitcore.scipy.stats.ranks import mode, rankdata, sem

__all__ = ["bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma",
           "gaussian_kde", "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "mode",
           "multinomial", "multivariate_normal", "nbinom", "norm", "pareto", "poisson", "rankdata", "sem",
           "t",
           "truncnorm", "uniform", "vonmises", "wrapcauchy"]
