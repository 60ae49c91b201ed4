"""Functions of elements on whole arrays: `np.vectorize`; NumPy's polynomials, traced through their source."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import dtype_of
from jitcore.numpy_semantics.functions.shaping import as_array
from jitcore.numpy_semantics.functions.tables import CREATION, creates, implements
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.promotion import as_operand
from jitcore.numpy_semantics.values.sequences import for_handles, has_handle
from jitcore.numpy_semantics.values.storage import find_joint_order
from jitcore.rewriter.functions import resolve
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
        given = list(map(as_array, args))
        arrays = np.broadcast_arrays(*given)
        if any(array.is_padded for array in arrays):
            raise not_traceable("np.vectorize on arrays of traced extents")
        function, shape = resolve(self.function), arrays[0].shape
        columns = [array.ravel() for array in arrays]
        kinds = [*map(np.dtype, self.otypes or ())] or self._find_kinds(function, columns)
        is_tuple = len(kinds) > 1
        outs = [CREATION[np.zeros](columns[0].size, kind) for kind in kinds]
        if columns[0].size:
            resolve(_fill, is_asked_for=True)(function, columns, outs, columns[0].size)
        order = find_joint_order(given)
        results = tuple(new_array(out.reshape(shape).read(), order) for out in outs)
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

    @for_handles(made, inside=True)
    def call(*args, **kwargs):
        if kwargs or made.excluded or made.signature is not None:
            raise not_traceable("np.vectorize with excluded arguments or a signature")
        return Vectorized(made.pyfunc, made.otypes)(*args)

    return call


# -- NumPy's source -----------------------------------------------------------------------------------------
def _trace_source(function: types.FunctionType) -> None:
    """Has a function of NumPy's that is plain Python, and looks for no handles, traced as it is written."""
    source = types.FunctionType(function.__code__, function.__globals__, function.__name__,
                                function.__defaults__, function.__closure__)
    source.__kwdefaults__ = function.__kwdefaults__

    @creates(function)
    @for_handles(function, inside=True)
    def call(*args, **kwargs):
        return resolve(source, is_asked_for=True)(*args, **kwargs)


for _module, _prefix in ((np.polynomial.polynomial, "poly"), (np.polynomial.chebyshev, "cheb"),
                         (np.polynomial.legendre, "leg"), (np.polynomial.hermite, "herm"),
                         (np.polynomial.hermite_e, "herme"), (np.polynomial.laguerre, "lag")):
    for _name in ("val", "vander", "der", "int"):
        _trace_source(getattr(_module, _prefix + _name))


@implements(np.polymul)
def polymul(a1, a2):
    """NumPy drops leading zeros: a call with such is Python's."""
    return np.convolve(*[Polynomial(x).c for x in (a1, a2)])


# -- roots and polynomials as objects -----------------------------------------------------------------------
def _read_coefficients(p: Any) -> NDArray:
    array = np.atleast_1d(as_array(p))
    if array.ndim != 1 or array.is_padded or not array.size:
        raise not_traceable("np.poly1d of such coefficients")
    return array


@implements(np.roots)
def roots(p):
    """NumPy drops zeros at both ends, and gives complex roots where one is: such calls are Python's."""
    array = _read_coefficients(p)
    array = array if dtype_of(array).kind in "fc" else array.astype(float)
    for end in (array[0], array[-1]):
        fail((end == 0).item(), ValueError("a coefficient at the end that is zero"))
    count = array.size - 1
    if not count:
        return CREATION[np.zeros](0, dtype_of(array))
    companion = CREATION[np.zeros]((count, count), dtype_of(array))
    companion[0] = -array[1:] / array[0]
    companion[np.arange(1, count), np.arange(count - 1)] = 1
    return np.linalg.eigvals(companion)


class Polynomial:
    """`np.poly1d` of traced coefficients; a leading one that is zero leaves the call to Python."""

    def __init__(self, coefficients: Any):
        self.c = _read_coefficients(coefficients)
        if self.c.size > 1:
            fail((self.c[0] == 0).item(), ValueError("a leading coefficient that is zero"))

    c: NDArray
    coeffs = coef = coefficients = property(lambda self: self.c)
    order = o = property(lambda self: self.c.size - 1)
    roots = r = property(lambda self: np.roots(self.c))

    def __call__(self, x: Any) -> Any:
        if isinstance(x, (Polynomial, np.poly1d)):
            raise not_traceable("np.poly1d of a polynomial")
        return np.polyval(self.c, x)

    def __len__(self) -> int:
        return self.order

    def __getitem__(self, power: int) -> Any:
        is_known = isinstance(power, (int, np.integer)) and 0 <= power <= self.order
        return self.c[self.order - power] if is_known else dtype_of(self.c).type(0)

    def deriv(self, m: int = 1) -> Polynomial:
        return Polynomial(np.polyder(self.c, m))

    def integ(self, m: int = 1, k: Any = 0) -> Polynomial:
        return Polynomial(np.polyint(self.c, m, k))

    def __neg__(self) -> Polynomial:
        return Polynomial(-self.c)

    def __add__(self, other: Any) -> Polynomial:
        return Polynomial(np.polyadd(self.c, _coefficients_of(other)))

    def __sub__(self, other: Any) -> Polynomial:
        return Polynomial(np.polysub(self.c, _coefficients_of(other)))

    def __rsub__(self, other: Any) -> Polynomial:
        return Polynomial(np.polysub(_coefficients_of(other), self.c))

    def __mul__(self, other: Any) -> Polynomial:
        return Polynomial(np.polymul(self.c, _coefficients_of(other)))

    __radd__, __rmul__ = __add__, __mul__


def _coefficients_of(x: Any) -> Any:
    return x.c if isinstance(x, (Polynomial, np.poly1d)) else np.atleast_1d(as_array(x))


@creates(np.poly1d)
def poly1d(c_or_r, r=False, variable=None):
    if isinstance(c_or_r, Polynomial):
        return c_or_r
    if not isinstance(c_or_r, Handle) and not has_handle(c_or_r):
        return np.poly1d(c_or_r, r, variable)
    return Polynomial(np.poly(c_or_r) if r else c_or_r)
