"""Random numbers from explicit keys (`jitcore.random`): a key always gives the same numbers, those of JAX.

In: a key (`key`, `split`, `fold_in`), a shape, parameters. Out: arrays. Everything traces, and compiles as
one kernel with what uses it: the bits are a hash of each element's position.

Modules:
    continuous    Real-valued distributions that map one uniform or normal number to one sample.
    counts        Counts of successes: the binomial distribution, and the multinomial one, which draws it once
                  for each outcome.
    discrete      Distributions over integers and choices from arrays.
    gamma         The gamma distribution and its relatives, and Poisson counts: samples accepted or rejected
                  in loops.
    keys          Keys: typed keys (`key`), raw uint32 keys (`PRNGKey`), and how new keys are made of old
                  ones.
    multivariate  Random vectors and matrices: correlated normal vectors, orthogonal matrices.
    parameters    What every distribution does with its arguments: the key, the shape, the dtype and the
                  parameters.
    placing       Where samples lie: the argument `out_sharding` of the functions that draw arrays.
"""

import sys

from jitcore.docstrings import document
from jitcore.random import continuous, counts, discrete, keys
from jitcore.random.continuous import *  # noqa: F403
from jitcore.random.counts import *  # noqa: F403
from jitcore.random.discrete import *  # noqa: F403
from jitcore.random.gamma import *  # noqa: F403
from jitcore.random.gamma import __all__ as _of_gamma  # the name is that of a function, too
from jitcore.random.keys import *  # noqa: F403
from jitcore.random.multivariate import multivariate_normal, orthogonal
from jitcore.random.placing import accept_sharding

#: Those that take `out_sharding`: what they draw may be too large for one device.
_PLACED = """ball bernoulli beta bits categorical cauchy chisquare dirichlet exponential f gamma
    generalized_normal geometric gumbel laplace loggamma logistic lognormal maxwell multivariate_normal normal
    orthogonal pareto permutation poisson rademacher randint rayleigh t triangular truncated_normal uniform
    wald"""
globals().update({name: accept_sharding(globals()[name]) for name in _PLACED.split()})

__all__ = [*continuous.__all__, *counts.__all__, *discrete.__all__, *_of_gamma, *keys.__all__,
           "multivariate_normal",
           "orthogonal"]

document(sys.modules[__name__], __all__)
