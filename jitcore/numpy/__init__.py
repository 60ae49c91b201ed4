"""The NumPy namespace on Arrays and tracers (`import jitcore.numpy as jnp`).

In: arrays, ndarrays, numbers. Out: Arrays, or tracers inside a traced function. Names, signatures and
semantics are NumPy's, with JAX's promotion (weak Python scalars, 32-bit defaults) and immutable arrays.
One module per chapter; importing this package also installs operators, methods and NumPy's dispatch hooks
on `Array`.
"""

from types import FunctionType

# Arrays print with NumPy's options.
from numpy import get_printoptions, printoptions, set_printoptions  # noqa: F401

from jitcore.array import Array
from jitcore.array import Array as ndarray
from jitcore.core.source import api_boundary
from jitcore.numpy import (
    array_methods,
    closeness,
    creation,
    cumulative,
    diagonals,
    dtype_names,
    fft,
    grids,
    joining,
    linalg,
    logic,
    nan_reductions,
    operators,
    padding,
    polynomial,
    products,
    protocols,
    reductions,
    rounding,
    searching,
    selection,
    sets,
    shaping,
    sorting,
    statistics,
    taking,
    ufuncs,
    vectorizing,
)
from jitcore.numpy.closeness import *  # noqa: F403
from jitcore.numpy.creation import *  # noqa: F403
from jitcore.numpy.cumulative import *  # noqa: F403
from jitcore.numpy.diagonals import *  # noqa: F403
from jitcore.numpy.dtype_names import *  # noqa: F403
from jitcore.numpy.grids import *  # noqa: F403
from jitcore.numpy.joining import *  # noqa: F403
from jitcore.numpy.logic import *  # noqa: F403
from jitcore.numpy.nan_reductions import *  # noqa: F403
from jitcore.numpy.padding import *  # noqa: F403
from jitcore.numpy.polynomial import *  # noqa: F403
from jitcore.numpy.products import *  # noqa: F403
from jitcore.numpy.reductions import *  # noqa: F403
from jitcore.numpy.rounding import *  # noqa: F403
from jitcore.numpy.searching import *  # noqa: F403
from jitcore.numpy.selection import *  # noqa: F403
from jitcore.numpy.sets import *  # noqa: F403
from jitcore.numpy.shaping import *  # noqa: F403
from jitcore.numpy.sorting import *  # noqa: F403
from jitcore.numpy.statistics import *  # noqa: F403
from jitcore.numpy.taking import *  # noqa: F403
from jitcore.numpy.ufunc import Ufunc as ufunc
from jitcore.numpy.ufuncs import *  # noqa: F403
from jitcore.numpy.vectorizing import *  # noqa: F403

operators.install_operators(Array)
array_methods.install_methods(Array)
protocols.install_protocols(Array)

__all__ = ["ndarray", "ufunc", "linalg", "fft"]
for _chapter in (
    closeness,
    creation,
    cumulative,
    diagonals,
    dtype_names,
    grids,
    joining,
    logic,
    nan_reductions,
    padding,
    polynomial,
    products,
    reductions,
    rounding,
    searching,
    selection,
    sets,
    shaping,
    sorting,
    statistics,
    taking,
    ufuncs,
    vectorizing,
):
    __all__ += _chapter.__all__

# An exception leaves a public function without frames of the inside; the chapters call one another unwrapped.
for _name, _value in [(name, globals()[name]) for name in __all__]:
    if isinstance(_value, FunctionType):
        globals()[_name] = _public = api_boundary(_value)
        _public.__module__, _public.__qualname__ = __name__, _name  # by which it is pickled
