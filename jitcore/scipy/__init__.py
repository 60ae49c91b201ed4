"""The parts of SciPy that trace (`jitcore.scipy`): special functions, distributions, linear algebra,
iterative solvers.

In: arrays and numbers. Out: Arrays or tracers, with the promotion of `jitcore.numpy`.
"""

from jitcore.scipy import linalg, sparse, special, stats

__all__ = ["linalg", "sparse", "special", "stats"]
