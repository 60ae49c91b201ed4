"""The parts of SciPy that trace (`jitcore.scipy`): special functions, normal distribution, linear algebra.

In: arrays and numbers. Out: Arrays or tracers, with the promotion of `jitcore.numpy`.
"""

from jitcore.scipy import linalg, special, stats

__all__ = ["linalg", "special", "stats"]
