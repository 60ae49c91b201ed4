"""Abstract values: what a tracer knows of an array before it has a value."""

from __future__ import annotations

import numpy as np

from jitcore import array, dtypes
from jitcore.array import Array

NOWHERE: frozenset = frozenset()


class ShapedArray:
    """Shape, dtype and weak type of an array. Extents are ints or symbolic dimensions.

    Args:
        shape: tuple of ints or symbolic dimensions.
        dtype: a supported dtype.
        weak_type: whether the dtype yields in promotion.
        varying: inside of `shard_map`, the axes of the mesh along which the value may differ from device to
            device. It is no part of the type: avals that differ in it are equal.
    """

    __slots__ = ("shape", "dtype", "weak_type", "varying", "_hash")

    def __init__(self, shape, dtype, weak_type: bool = False, varying: frozenset = NOWHERE):
        self.shape = shape if shape.__class__ is tuple else tuple(shape)
        self.dtype = dtype if dtype.__class__ is not type and isinstance(dtype, np.dtype) else np.dtype(dtype)
        self.weak_type = weak_type
        self.varying = varying

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for extent in self.shape:
            size = size * extent
        return size

    @property
    def vma(self) -> frozenset:
        """JAX's name for `varying`."""
        return self.varying

    def update(self, **changes) -> ShapedArray:
        facts = {name: getattr(self, name) for name in ("shape", "dtype", "weak_type", "varying")} | changes
        return ShapedArray(**facts)

    def short(self) -> str:
        """The jaxpr text: `f32[3,4]`."""
        return f"{dtypes.short_name_of(self.dtype)}[{','.join(map(str, self.shape))}]"

    def long(self) -> str:
        """The text of error messages: `float32[3,4]`."""
        return f"{dtypes.name_of(self.dtype)}[{','.join(map(str, self.shape))}]"

    def __eq__(self, other) -> bool:
        return self is other or (
            other.__class__ is ShapedArray and self.shape == other.shape
            and self.dtype == other.dtype and self.weak_type == other.weak_type
        )

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash((self.shape, self.dtype, self.weak_type))
            return self._hash

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.long()}{weak})"

    def __str__(self) -> str:
        return ("~" if self.weak_type else "") + self.long()


class ShapeDtypeStruct:
    """A shape and dtype that stands for an array: argument of `.lower`, result of `eval_shape`.

    sharding: where the array would lie, or None."""

    __slots__ = ("shape", "dtype", "weak_type", "sharding")
    is_committed = True

    def __init__(self, shape, dtype, *, weak_type: bool = False, sharding=None):
        self.shape, self.dtype, self.weak_type = tuple(shape), dtypes.canonicalize(dtype), weak_type
        self.sharding = sharding

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def __eq__(self, other) -> bool:
        return isinstance(other, ShapeDtypeStruct) and (
            (self.shape, self.dtype, self.weak_type, self.sharding)
            == (other.shape, other.dtype, other.weak_type, other.sharding)
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type, self.sharding))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        where = "" if self.sharding is None else f", sharding={self.sharding}"
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak}{where})"


array.make_aval = ShapedArray


def aval_of(x) -> ShapedArray:
    """The aval of an array, tracer, NumPy array or scalar, or Python scalar.

    Raises: TypeError for anything that is not an array."""
    if isinstance(x, Array):
        return x.aval
    if isinstance(x, (np.ndarray, np.generic)):
        dtype = x.dtype
        dtypes.reject_mask(x)
        return ShapedArray(x.shape, dtype if dtype == dtypes.float0 else dtypes.canonicalize(dtype))
    if isinstance(x, dtypes.PYTHON_SCALARS):
        return ShapedArray((), *dtypes.type_of(x))
    if isinstance(x, ShapedArray):
        return x
    if isinstance(x, ShapeDtypeStruct):
        return ShapedArray(x.shape, x.dtype, x.weak_type)
    raise TypeError(f"Value {x!r} with type {type(x)} is not a valid jitcore type")


def is_array_like(x) -> bool:
    """Whether x can be an operand: Array, ndarray or scalar of a supported dtype, Python scalar."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype in dtypes.SHORT_NAMES and not dtypes.is_masked(x)
    return isinstance(x, (Array, *dtypes.PYTHON_SCALARS))
