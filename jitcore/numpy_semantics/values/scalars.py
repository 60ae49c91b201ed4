"""NumPy scalars whose value is traced: what elements and full reductions of arrays are.

In: Arrays without axes. Out: `Scalar`s: immutable, of a strong dtype, with the operators of NumPy's ufuncs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitcore import lax
from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray
from jitcore.numpy_semantics.values.numbers import NumberKind
from jitcore.numpy_semantics.values.operators import WithoutValue, refuse
from jitcore.rewriter.handles import CompoundHandle, ConflictError, Handle, Kind, LeafType


class ScalarKind(Kind):
    """What a carried NumPy scalar is. Where it may be a Python number too, its kind is carried (`mixed`)."""

    __slots__ = ()

    def __eq__(self, other) -> bool:
        return type(other) is ScalarKind

    def __hash__(self) -> int:
        return hash(ScalarKind)

    def __repr__(self) -> str:
        return "NumPy scalar"

    def join(self, aval: ShapedArray, other: LeafType) -> LeafType:
        if type(other.kind) is NumberKind:
            raise ConflictError(f"a {self!r} of {aval.dtype} and a {other.kind!r}")
        if type(other.kind) is not ScalarKind or other.aval != aval:
            raise ConflictError(f"a {self!r} of {aval.dtype} and {other.kind!r} {other.aval}")
        return LeafType(aval, self)

    def wrap(self, raw: Array, aval: ShapedArray) -> Scalar:
        return Scalar(raw)


SCALAR = ScalarKind()


class Scalar(WithoutValue, Handle):
    """A traced NumPy scalar; immutable."""

    __slots__ = ("_raw",)
    __array_priority__ = 300
    shape, ndim, size, strides = (), 0, 1, ()
    is_padded, python_type = False, None  # what is asked of every operand: `__getattr__` would take long

    def __init__(self, raw: Array):
        self._raw = raw

    # -- as a handle ----------------------------------------------------------------------------------------
    @property
    def dtype(self) -> np.dtype:
        return self._raw.dtype

    @property
    def leaf_type(self) -> LeafType:
        return LeafType(ShapedArray((), self.dtype), SCALAR)

    def read(self) -> Array:
        return self._raw

    def is_same(self, other: Handle) -> bool:
        return type(other) is Scalar and other._raw is self._raw

    def is_object(self, other: Any) -> Any:
        """Of bools there is one object for each value."""
        if isinstance(other, CompoundHandle):  # of several types
            return other.is_object(self)
        if self.dtype != np.bool_ or not isinstance(other, (Scalar, np.generic)) or other.dtype != np.bool_:
            return self is other
        return lax.eq(self._raw, other._raw if type(other) is Scalar else other)

    def is_made_in(self, trace) -> bool:
        return getattr(self._raw, "owner", None) is trace

    def as_predicate(self):
        return self._raw if self.dtype == np.bool_ else lax.ne(self._raw, self.dtype.type(0))

    def mark_shared(self, alias=None) -> None:
        """Nothing: it never changes."""

    tobytes = refuse("its value")

    def __repr__(self) -> str:
        return f"Traced<np.{self.dtype}>"

    # -- attributes -----------------------------------------------------------------------------------------
    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    nbytes = itemsize

    @property
    def T(self) -> Scalar:  # noqa: N802  NumPy's name
        return self

    @property
    def real(self) -> Scalar:
        return Scalar(lax.real(self._raw)) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> Scalar:
        return Scalar(lax.imag(self._raw) if self.dtype.kind == "c" else lax.full_like(self._raw, 0))

    def conjugate(self):
        return np.conjugate(self)

    conj = conjugate

    def __getitem__(self, index):
        if index == () or index is Ellipsis:
            return self if index == () else self.as_array()
        raise IndexError("invalid index to scalar variable.")

    def __len__(self) -> int:
        raise TypeError(f"object of type 'numpy.{self.dtype}' has no len()")

    def __iter__(self):
        raise TypeError(f"'numpy.{self.dtype}' object is not iterable")
