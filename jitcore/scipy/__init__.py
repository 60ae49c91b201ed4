"""The parts of SciPy that trace (`jitcore.scipy`): special functions, distributions, linear algebra,
solvers, signals.

In: arrays and numbers. Out: Arrays or tracers, with the promotion of `jitcore.numpy`.

Modules:
    cluster/          Clusters (`jitcore.scipy.cluster`).
    fft               Cosine transforms with SciPy's names and arguments (`jitcore.scipy.fft`).
    gamma_ratios      Ratios of gamma functions, whose logarithms do not cancel for large arguments.
    integrate         Integrals of samples (`jitcore.scipy.integrate`).
    interpolate       Interpolation with SciPy's names and arguments (`jitcore.scipy.interpolate`).
    linalg            Dense linear algebra with SciPy's names and arguments (`jitcore.scipy.linalg`).
    matrix_functions  Functions of matrices and what they are made of, under SciPy's names
                      (`jitcore.scipy.linalg`): Schur forms, square roots, Sylvester's equation, Hessenberg
                      forms, eigenvalues of tridiagonal matrices.
    ndimage           Images of any number of axes with SciPy's names and arguments (`jitcore.scipy.ndimage`).
    optimize          Minima of functions with SciPy's names and arguments (`jitcore.scipy.optimize`).
    signal            Signals with SciPy's names and arguments (`jitcore.scipy.signal`): convolution, trends,
                      spectra.
    sparse/           Systems of which only products with vectors are known (`jitcore.scipy.sparse`).
    spatial/          Geometry (`jitcore.scipy.spatial`).
    special           Special functions with NumPy's broadcasting and promotion (`jitcore.scipy.special`).
    special_matrices  Matrices of a known form, under SciPy's names (`jitcore.scipy.linalg`).
    stats/            Distributions of `jitcore.scipy.stats`, one module each, and ranks of samples.
"""

from jitcore.core.source import bound_module
from jitcore.docstrings import document
from jitcore.scipy import (cluster, fft, integrate, interpolate, linalg, ndimage, optimize, signal, sparse,
                           spatial, special, stats)

__all__ = ["cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse",
           "spatial", "special", "stats"]

for _module in (cluster.vq, fft, linalg, ndimage, optimize, signal, special):
    bound_module(_module, _module.__all__)

for _module in (integrate, sparse.linalg, stats, *(getattr(stats, _name) for _name in stats.__all__)):
    document(_module, getattr(_module, "__all__", ()))
