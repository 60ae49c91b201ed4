"""The NumPy namespace on Arrays and tracers (`import jitcore.numpy as jnp`).

In: arrays, ndarrays, numbers. Out: Arrays, or tracers inside a traced function. Names, signatures and
semantics are NumPy's, with JAX's promotion (weak Python scalars, 32-bit defaults) and immutable arrays.
One module per chapter; importing this package also installs operators, methods and NumPy's dispatch hooks
on `Array`.

Modules:
    arrays/         What `Array` is to NumPy: operators, methods, dtype promotion and NumPy's dispatch
                    protocols.
    closeness       Comparison of whole arrays: equal or close, element by element and altogether.
    creation        Making arrays: from Python values, filled, as ranges, grids and special matrices.
    cumulative      Cumulative sums and products, differences, integrals.
    determinants    Determinants and their derivatives, by LU decomposition.
    diagonals       Diagonals, triangles and special matrices.
    fft             Discrete Fourier transforms (`jitcore.numpy.fft`).
    files           Arrays as text and in files: printing, and NumPy's formats.
    grids           Index grids, index expressions and window functions.
    indexing/       Elements of arrays by index expressions, index arrays, conditions and searches.
    joining         Joining and splitting arrays.
    linalg          Linear algebra (`jitcore.numpy.linalg`): factorisations, solvers, norms.
    namespace_info  What the array API standard asks a namespace about itself:
                    `jitcore.numpy.__array_namespace_info__()`.
    padding         `pad`: arrays with values put around them.
    polynomial      Polynomials, interpolation, convolution, phase unwrapping.
    products        Products of vectors, matrices and tensors: `dot`, `matmul`, `einsum`, `tensordot`, `outer`
                    and their like.
    reductions      Reductions: sums, products, extrema, means and their NaN-ignoring forms, over any axes.
    sets            Sets of values: unique elements and operations on them.
    shaping         Shapes: reshaping, moving axes, joining, splitting, repeating, padding, broadcasting.
    sorting         Sorting and partitioning.
    statistics      Histograms, order statistics, covariance.
    ufuncs/         Universal functions of `jitcore.numpy`: what works element by element, with broadcasting.
    vectorizing     `vectorize` and `apply_along_axis`: functions of elements or slices on whole arrays, by
                    `vmap`.
"""

import sys

# Arrays print with NumPy's options.
from numpy import get_printoptions, printoptions, set_printoptions  # noqa: F401

from jitcore.array import Array, Array as ndarray
from jitcore.core.source import bound_module
from jitcore.numpy import (closeness, creation, cumulative, diagonals, fft, files, grids, joining, linalg,
                           padding, polynomial, products, reductions, sets, shaping, sorting, statistics,
                           vectorizing)
from jitcore.numpy.arrays import dtype_names, methods, operators, protocols
from jitcore.numpy.arrays.dtype_names import *  # noqa: F403
from jitcore.numpy.closeness import *  # noqa: F403
from jitcore.numpy.creation import *  # noqa: F403
from jitcore.numpy.cumulative import *  # noqa: F403
from jitcore.numpy.diagonals import *  # noqa: F403
from jitcore.numpy.files import *  # noqa: F403
from jitcore.numpy.grids import *  # noqa: F403
from jitcore.numpy.indexing import searching, taking
from jitcore.numpy.indexing.searching import *  # noqa: F403
from jitcore.numpy.indexing.taking import *  # noqa: F403
from jitcore.numpy.joining import *  # noqa: F403
from jitcore.numpy.namespace_info import VERSION as __array_api_version__, __array_namespace_info__
from jitcore.numpy.padding import *  # noqa: F403
from jitcore.numpy.polynomial import *  # noqa: F403
from jitcore.numpy.products import *  # noqa: F403
from jitcore.numpy.reductions import *  # noqa: F403
from jitcore.numpy.sets import *  # noqa: F403
from jitcore.numpy.shaping import *  # noqa: F403
from jitcore.numpy.sorting import *  # noqa: F403
from jitcore.numpy.statistics import *  # noqa: F403
from jitcore.numpy.ufuncs import arithmetic, logic, methods as ufunc_methods, rounding, scaled
from jitcore.numpy.ufuncs.arithmetic import *  # noqa: F403
from jitcore.numpy.ufuncs.arithmetic import Ufunc as ufunc
from jitcore.numpy.ufuncs.logic import *  # noqa: F403
from jitcore.numpy.ufuncs.rounding import *  # noqa: F403
from jitcore.numpy.ufuncs.scaled import *  # noqa: F403
from jitcore.numpy.vectorizing import *  # noqa: F403

operators.install_operators(Array)
methods.install_methods(Array)
protocols.install_protocols(Array, sys.modules[__name__])
ufunc_methods.install_methods()

__all__ = ["__array_api_version__", "__array_namespace_info__", "ndarray", "ufunc", "linalg", "fft"]
for _chapter in (closeness, creation, cumulative, diagonals, dtype_names, files, grids, joining, logic,
                 reductions,
                 padding, polynomial, products, rounding, scaled, searching, sets, shaping, sorting,
                 statistics, taking, arithmetic, vectorizing):
    __all__ += _chapter.__all__

# An exception leaves a public function without frames of the inside; the chapters call one another unwrapped.
for _module in (sys.modules[__name__], linalg, fft):
    bound_module(_module, _module.__all__)
