"""Random numbers from explicit keys (`jitcore.random`): a key always gives the same numbers, those of JAX.

In: a key (`key`, `split`, `fold_in`), a shape, parameters. Out: arrays. Everything traces, and compiles as
one kernel with what uses it: the bits are a hash of each element's position.

Modules:
    continuous    Real-valued distributions that map one uniform or normal number to one sample.
    discrete      Distributions over integers and choices from arrays.
    gamma         The gamma distribution and its relatives, and Poisson counts: samples accepted or rejected
                  in loops.
    keys          Keys: typed key arrays (`key`), raw uint32 keys (`PRNGKey`), and how new keys are made of
                  old ones.
    multivariate  Random vectors and matrices: correlated normal vectors, orthogonal matrices.
    parameters    What every distribution does with its arguments: the key, the shape, the dtype and the
                  parameters.
    threefry      Raw keys to raw bits: seeding, splitting, folding and bits of every width, by the
                  Threefry-2x32 hash.
"""

from jitcore.random.continuous import (
    bits,
    cauchy,
    double_sided_maxwell,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    normal,
    pareto,
    rayleigh,
    triangular,
    truncated_normal,
    uniform,
    wald,
    weibull_min,
)
from jitcore.random.discrete import (
    bernoulli,
    categorical,
    choice,
    geometric,
    permutation,
    rademacher,
    randint,
)
from jitcore.random.gamma import (
    ball,
    beta,
    chisquare,
    dirichlet,
    f,
    gamma,
    generalized_normal,
    loggamma,
    poisson,
    t,
)
from jitcore.random.keys import (
    PRNGKey,
    PRNGKeyArray,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)
from jitcore.random.multivariate import multivariate_normal, orthogonal

__all__ = ["PRNGKey", "PRNGKeyArray", "ball", "bernoulli", "beta", "bits", "categorical", "cauchy",
           "chisquare", "choice", "clone", "dirichlet", "double_sided_maxwell", "exponential", "f", "fold_in",
           "gamma", "generalized_normal", "geometric", "gumbel", "key", "key_data", "key_dtype", "key_impl",
           "laplace", "loggamma", "logistic", "lognormal", "maxwell", "multivariate_normal", "normal",
           "orthogonal", "pareto", "permutation", "poisson", "rademacher", "randint", "rayleigh", "split",
           "t", "triangular", "truncated_normal", "uniform", "wald", "weibull_min", "wrap_key_data"]
