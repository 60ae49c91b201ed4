"""The parts of SciPy that trace (`jitcore.scipy`): special functions, distributions, linear algebra,
iterative solvers.

In: arrays and numbers. Out: Arrays or tracers, with the promotion of `jitcore.numpy`.

Modules:
    linalg   Dense linear algebra with SciPy's names and arguments (`jitcore.scipy.linalg`).
    sparse/  Systems of which only products with vectors are known (`jitcore.scipy.sparse`).
    special  Special functions with NumPy's broadcasting and promotion (`jitcore.scipy.special`).
    stats/   Distributions of `jitcore.scipy.stats`, one module each.
"""

from jitcore.core.source import bound_module
from jitcore.scipy import linalg, sparse, special, stats

__all__ = ["linalg", "sparse", "special", "stats"]

for _module in (linalg, special):
    bound_module(_module, _module.__all__)
