"""The table of what stands for SciPy's functions; `scipy_functions` and `scipy_filters` fill it.

In: a function or ufunc of SciPy's, as traced code calls it. Out: its implementation of the same parameters
over handles. Rows are names, so that nothing of SciPy is imported that a program does not use.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions import tables
from jitcore.numpy_semantics.values.sequences import has_handle

#: By module (or object in a module) and name.
_FUNCTIONS: dict[tuple[str, str], Callable] = {}
#: Ufuncs of `scipy.special`: name -> function of Arrays of one real dtype.
UFUNCS: dict[str, Callable] = {}


def implements_scipy(*paths: str) -> Callable[[Callable], Callable]:
    """Decorator: the implementation of functions, "scipy.linalg.inv"."""

    def register(implementation: Callable) -> Callable:
        for path in paths:
            owner, _, name = path.rpartition(".")
            _FUNCTIONS[owner, name] = implementation
        return implementation

    return register


def find_scipy(callee: Any) -> Callable | None:
    """What traced code calls instead of a function of SciPy's, or None."""
    name = getattr(callee, "__name__", None)
    for (path, own_name), implementation in _FUNCTIONS.items():
        if own_name == name and _read(path, name) == callee:
            return functools.partial(_call, callee, implementation)
    return None


def _read(path: str, name: str) -> Any:
    """What a name of an imported module, or of an object in one, is now."""
    found, rest = sys.modules.get(path), ""
    if found is None:
        path, _, rest = path.rpartition(".")
        found = getattr(sys.modules.get(path), rest, None)
    return getattr(found, name, None)


def _call(callee: Callable, implementation: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """The implementation where something is traced, else SciPy itself."""
    values = (*args, *kwargs.values())
    if not has_handle(values):
        return callee(*args, **kwargs)
    if any(getattr(x, "is_padded", False) for x in values):
        raise not_traceable(f"scipy's {callee.__name__} of an array whose extent is traced")
    return implementation(*args, **kwargs)


def find_kernel(ufunc: np.ufunc) -> Callable | None:
    """What a ufunc of `scipy.special` computes, as the rows of `ufuncs.KERNELS`."""
    tables.load()
    if getattr(sys.modules.get("scipy.special"), ufunc.__name__, None) is not ufunc:
        return None
    compute = UFUNCS.get(ufunc.__name__)
    return compute and functools.partial(_compute_reals, ufunc.__name__, compute)


def _compute_reals(name: str, compute: Callable, *operands: Any) -> Any:
    if operands[0].dtype.kind != "f":
        raise not_traceable(f"scipy.special.{name} of complex numbers")
    return compute(*operands)
