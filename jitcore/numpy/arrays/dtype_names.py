"""Names of the NumPy namespace that are no functions of arrays: scalar types, constants, questions about
dtypes.

In: dtypes and names. Out: dtypes, numbers, and scalar types whose call makes an Array (`jnp.float32(3)`).
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.config import config
from jitcore.core.source import is_called_by_user
from jitcore.dtypes import finfo, iinfo, issubdtype
from jitcore.numpy.creation import array

pi, e, euler_gamma = np.pi, np.e, np.euler_gamma
inf, nan, newaxis = np.inf, np.nan, None

# The abstract classes of NumPy's type hierarchy, for `issubdtype`.
generic, number, integer, signedinteger, unsignedinteger = (
    np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger)
inexact, floating, complexfloating, character, flexible, object_ = (
    np.inexact, np.floating, np.complexfloating, np.character, np.flexible, np.object_)
dtype = np.dtype


class ScalarType(type):
    """The class of `jnp.float32` and its like: a dtype wherever one is asked for, a constructor of Arrays."""

    dtype: np.dtype

    def __call__(cls, x=0):
        return array(x, dtype=cls.dtype)

    def __eq__(cls, other) -> bool:
        return cls is other or (other is not None and _as_dtype(other) == cls.dtype)

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'jitcore.numpy.{cls.__name__}'>"

    def __instancecheck__(cls, x) -> bool:
        return isinstance(x, cls.dtype.type)


def _as_dtype(x):
    try:
        return np.dtype(x)
    except (TypeError, ValueError, SyntaxError):  # what NumPy says of a text that names no dtype
        return None


def _define_scalar_type(name: str, of: np.dtype) -> ScalarType:
    doc = f"The dtype {of.name}; called, an Array of it: `jnp.{name}(3)`."
    return ScalarType(name, (), {"dtype": of, "__doc__": doc, "__module__": "jitcore.numpy"})


bool_ = bool = _define_scalar_type("bool", dtypes.bool_)
int8, int16, int32, int64 = (_define_scalar_type(f"int{n}", np.dtype(f"int{n}")) for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_define_scalar_type(f"uint{n}", np.dtype(f"uint{n}"))
                                 for n in (8, 16, 32, 64))
float16, float32, float64 = (_define_scalar_type(f"float{n}", np.dtype(f"float{n}")) for n in (16, 32, 64))
bfloat16 = _define_scalar_type("bfloat16", dtypes.bfloat16)
(float4_e2m1fn, float6_e2m3fn, float6_e3m2fn, float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn,
 float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, int1, int2, int4, uint1, uint2, uint4) = (
    _define_scalar_type(of.name, of) for of in dtypes.NARROW)
complex64, complex128 = (_define_scalar_type(f"complex{n}", np.dtype(f"complex{n}")) for n in (64, 128))
half, single, double, csingle, cdouble = float16, float32, float64, complex64, complex128

# NumPy's names for the default widths.
int_, uint, float_, complex_ = int32, uint32, float32, complex64


def _check_strictly(args) -> None:
    if config.numpy_dtype_promotion == "strict" and is_called_by_user():
        dtypes.check_strictly([dtypes.type_of(arg) for arg in args])


def result_type(*args) -> np.dtype:
    """Dtype where these arrays, scalars or dtypes meet, by the promotion lattice. Same as:
    `jax.numpy.result_type`."""
    _check_strictly(args)
    return dtypes.result_type(*args)


def promote_types(a, b) -> np.dtype:
    """Dtype where two dtypes meet. Same as: `jax.numpy.promote_types`."""
    _check_strictly((a, b))
    return dtypes.promote_types(a, b)


def _names_of_dtypes() -> frozenset[str]:
    return frozenset(one.name for one in dtypes.SUPPORTED + dtypes.NARROW)


def isdtype(dtype, kind) -> "bool":  # noqa: UP037
    """Whether a dtype is of a kind ("bool", "real floating", ..., a dtype, or a tuple of those).

    Same as: `numpy.isdtype`."""
    dtype = np.dtype(dtype)
    kinds = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu",
             "real floating": "f", "complex floating": "c", "numeric": "iufc"}
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str) and one in kinds:
            if dtypes.number_kind_of(dtype) in kinds[one]:
                return True
        elif isinstance(one, str) and one not in _names_of_dtypes():
            raise ValueError(
                f"Unrecognized kind={one!r}; expected one of {list(kinds)}, a dtype, or a tuple.")
        elif np.dtype(one) == dtype:
            return True
    return False


def can_cast(from_, to, casting: str = "safe") -> "bool":  # noqa: UP037
    """Whether a cast is allowed by the rule `casting`. Same as: `numpy.can_cast`."""
    return np.can_cast(from_.dtype if isinstance(from_, Array) else from_, to, casting)


__all__ = ["ScalarType", "bfloat16", "bool", "bool_", "can_cast", "cdouble", "character", "complex128",
           "complex64", "complex_", "complexfloating", "csingle", "double", "dtype", "e", "euler_gamma",
           "finfo", "flexible", "float16", "float32", "float4_e2m1fn", "float64", "float6_e2m3fn",
           "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
           "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float_", "floating",
           "generic", "half", "iinfo", "inexact", "inf", "int1", "int16", "int2", "int32", "int4", "int64",
           "int8", "int_", "integer", "isdtype", "issubdtype", "nan", "newaxis", "number", "object_", "pi",
           "promote_types", "result_type", "signedinteger", "single", "uint", "uint1", "uint16", "uint2",
           "uint32", "uint4", "uint64", "uint8", "unsignedinteger"]
