"""Functions of each element by itself: of the frames, where the operands have the same places.

In: a ufunc, or a function of the list below, and operands. Out: a padded array in the frame where they
meet.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore.numpy_semantics.dynamic_extents.align import align, finish
from jitcore.numpy_semantics.dynamic_extents.array import FUNCTIONS, accepts_padded, not_supported, wrap
from jitcore.numpy_semantics.functions.ufunc_methods import METHODS, is_function
from jitcore.numpy_semantics.functions.ufuncs import raise_casting


# -- ufuncs -------------------------------------------------------------------------------------------------
def apply_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence, kwargs: dict) -> Any:
    """`getattr(ufunc, method)(*inputs, **kwargs)`. Raises: NotTraceable for methods that are no functions."""
    if is_function(ufunc, method):
        return METHODS[method](ufunc, *inputs, **kwargs)
    if method != "__call__" or ufunc.signature is not None and ufunc is not np.matmul:
        raise not_supported(f"np.{ufunc.__name__}.{method}")
    options = {name: value for name, value in kwargs.items() if name not in ("out", "where")}
    if ufunc is np.matmul:
        results: Any = FUNCTIONS[np.matmul](*inputs, **options)
    else:
        frames, items = align(inputs)
        results = wrap(ufunc(*frames, **options), items)
    outs, where, casting = kwargs.get("out"), kwargs.get("where", True), kwargs.get("casting", "same_kind")
    outs = outs if isinstance(outs, tuple) else (outs,) * ufunc.nout
    many = results if isinstance(results, tuple) else (results,)
    found = tuple(_put(ufunc, inputs, *pair, where, casting) for pair in zip(many, outs))
    return found if ufunc.nout > 1 else found[0]


def _put(ufunc: np.ufunc, inputs: Sequence, result: Any, out: Any, where: Any, casting: str) -> Any:
    """A result as NumPy hands it out. Raises: NumPy's UFuncTypeError where `out` may not hold its dtype."""
    if out is not None and not np.can_cast(result.dtype, out.dtype, casting):
        raise_casting(ufunc, inputs, out.dtype, casting)
    if where is not True:  # NumPy leaves the others undefined
        result = np.where(where, result, result.dtype.type(0) if out is None else out)
    return finish(result, out)


# -- functions ----------------------------------------------------------------------------------------------
def _map_elements(function: Callable, *mapped: str, method: str | None = None) -> None:
    """mapped: the parameters that are arrays of elements; all if none are named."""
    signature = inspect.signature(function)

    def implementation(*args, **kwargs):
        call = signature.bind(*args, **kwargs)
        out = call.arguments.pop("out", None)
        names = mapped or tuple(call.arguments)
        frames, items = align([call.arguments[name] for name in names])
        if any(getattr(x, "is_padded", False) for name, x in call.arguments.items() if name not in names):
            raise not_supported(f"np.{function.__name__}")
        call.arguments.update(zip(names, frames))
        return finish(wrap(function(*call.args, **call.kwargs), items), out)

    accepts_padded(function, method=method)(implementation)


for _function in (np.real, np.imag, np.angle, np.isreal, np.iscomplex, np.real_if_close, np.isclose, np.i0,
                  np.sinc):
    _map_elements(_function)
for _function in (np.clip, np.round, np.around):
    _map_elements(_function, method=_function.__name__)
_map_elements(np.isin, "element")
_map_elements(np.interp, "x")
_map_elements(np.digitize, "x")
_map_elements(np.searchsorted, "v")


def _map_method(name: str) -> None:
    def implementation(a, *args, **kwargs):
        return wrap(getattr(a.frame, name)(*args, **kwargs), a.items)

    accepts_padded(method=name)(implementation)


for _name in ("astype", "conj", "conjugate", "copy"):
    _map_method(_name)


@accepts_padded(np.where)
def where(condition, x=None, y=None):
    if x is None:
        return np.nonzero(condition)
    frames, items = align([condition, x, y])
    return wrap(np.where(*frames), items)
