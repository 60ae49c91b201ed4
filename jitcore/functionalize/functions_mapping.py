"""Functions of elements on whole arrays: `np.vectorize`; NumPy's polynomials, traced through their source."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore.functionalize.arithmetic import fail
from jitcore.functionalize.calls import dtype_of
from jitcore.functionalize.errors import not_traceable
from jitcore.functionalize.functions_shaping import as_array
from jitcore.functionalize.ndarray import NDArray
from jitcore.functionalize.promotion import as_operand
from jitcore.functionalize.sequences import has_handle
from jitcore.functionalize.tables import CREATION, creates, implements
from jitcore.rewriter.handles import Handle


# -- element by element -------------------------------------------------------------------------------------
def _fill(function, columns, outs, count):
    """What `np.vectorize` does with the elements, which are Python's numbers. It is traced as a loop."""
    for i in range(count):
        found = function(*[column[i].item() for column in columns])
        if len(outs) == 1:
            outs[0][i] = found
        else:
            for k in range(len(outs)):
                outs[k][i] = found[k]


class Vectorized:
    """`np.vectorize(function)`, for arrays of which some are traced."""

    def __init__(self, function: Callable, otypes: Any):
        self.function, self.otypes = function, otypes

    def __call__(self, *args: Any) -> Any:
        from jitcore.rewriter.functions import resolve

        arrays = np.broadcast_arrays(*map(as_array, args))
        if any(array.is_partial for array in arrays):
            raise not_traceable("np.vectorize on arrays of traced extents")
        function, shape = resolve(self.function), arrays[0].shape
        columns = [array.ravel() for array in arrays]
        kinds = [*map(np.dtype, self.otypes or ())] or self._find_kinds(function, columns)
        is_tuple = len(kinds) > 1
        outs = [CREATION[np.zeros](columns[0].size, kind) for kind in kinds]
        if columns[0].size:
            resolve(_fill, is_asked_for=True)(function, columns, outs, columns[0].size)
        results = tuple(out.reshape(shape) for out in outs)
        return results if is_tuple else results[0]

    def _find_kinds(self, function: Callable, columns: list[NDArray]) -> list[np.dtype]:
        """The dtypes of what the first elements give, as NumPy's scalars."""
        if not columns[0].size:
            raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        found = function(*[column[0] for column in columns])
        parts = found if isinstance(found, tuple) else (found,)
        if any(np.ndim(part) for part in parts):
            raise not_traceable("np.vectorize of a function that gives arrays")
        return [dtype_of(as_operand(part)) for part in parts]


def find_vectorized(made: np.vectorize) -> Callable:
    """What is called instead of an object of `np.vectorize`."""

    def call(*args, **kwargs):
        if not any(isinstance(x, Handle) or has_handle(x) for x in (*args, *kwargs.values())):
            return made(*args, **kwargs)
        if kwargs or made.excluded or made.signature is not None:
            raise not_traceable("np.vectorize with excluded arguments or a signature")
        return Vectorized(made.pyfunc, made.otypes)(*args)

    return call


# -- NumPy's source -----------------------------------------------------------------------------------------
def _trace_source(function: types.FunctionType) -> None:
    """Has a function of NumPy's that is plain Python, and looks for no handles, traced as it is written."""
    source = types.FunctionType(function.__code__, function.__globals__, function.__name__,
                                function.__defaults__, function.__closure__)  # fmt: skip
    source.__kwdefaults__ = function.__kwdefaults__

    def call(*args, **kwargs):
        from jitcore.rewriter.functions import resolve

        if not any(isinstance(x, Handle) or has_handle(x) for x in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        return resolve(source, is_asked_for=True)(*args, **kwargs)

    call.__name__ = function.__name__
    creates(function)(call)


for _module, _prefix in ((np.polynomial.polynomial, "poly"), (np.polynomial.chebyshev, "cheb"),
                         (np.polynomial.legendre, "leg"), (np.polynomial.hermite, "herm"),
                         (np.polynomial.hermite_e, "herme"), (np.polynomial.laguerre, "lag")):  # fmt: skip
    for _name in ("val", "vander", "der", "int"):
        _trace_source(getattr(_module, _prefix + _name))


@implements(np.polymul)
def polymul(a1, a2):
    """NumPy drops leading zeros: a call with such is Python's."""
    one, other = (np.atleast_1d(as_array(x)) for x in (a1, a2))
    for array in (one, other):
        if array.ndim != 1 or array.is_partial or not array.size:
            raise not_traceable("np.polymul of such an array")
        if array.size > 1:
            is_zero = array[0] == 0
            fail(is_zero.item(), ValueError("a leading coefficient that is zero"))
    return np.convolve(one, other)
