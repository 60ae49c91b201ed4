"""Dtypes: the set jitcore knows, JAX's promotion lattice, and weak types.

In: anything that has or is a dtype. Out: NumPy dtypes and a flag that says whether the type is weak.
A weak type belongs to a Python scalar (or to what was computed from Python scalars alone): it takes the
dtype of what it meets. Unlike JAX, an explicit 64-bit dtype is never truncated; only Python scalars and
creation functions default to 32 bits (`config.enable_x64` widens that default).
"""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np

from jitcore import errors
from jitcore.config import config
from jitcore.errors import arguments

bfloat16 = np.dtype(ml_dtypes.bfloat16)
#: Of derivatives of integers and bools, which say nothing. No array that takes part in operations has it.
float0 = np.dtype([("float0", np.void, 0)])
_NAMES = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64 complex128"
_OF_NUMPY = (bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, float32, float64,
             complex64, complex128) = tuple(map(np.dtype, _NAMES.split()))
SUPPORTED = (*_OF_NUMPY[:9], bfloat16, *_OF_NUMPY[9:])

#: Of fewer than 8 bits of numbers, or floats of 8: stored a byte each, converted, and nothing else.
NARROW = tuple(np.dtype(getattr(ml_dtypes, name)) for name in (
    "float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
    "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int2 int4 uint1 uint2 uint4").split())
#: Kinds of the dtypes that are not NumPy's.
_KINDS = {dtype: {"b": "f"}.get(dtype.name[0], dtype.name[0]) for dtype in (bfloat16, *NARROW)}
_NARROW_FLOATS = frozenset(dtype for dtype in NARROW if _KINDS[dtype] == "f")
_BY_NAME = {dtype.name: dtype for dtype in _KINDS}
_ABSTRACT_OF_KIND = {"f": np.floating, "i": np.signedinteger, "u": np.unsignedinteger}

# Short names of the jaxpr text: `f32[3]`.
SHORT_NAMES = {bool_: "bool", int8: "i8", int16: "i16", int32: "i32", int64: "i64", uint8: "u8",
               uint16: "u16", uint32: "u32", uint64: "u64", bfloat16: "bf16", float16: "f16", float32: "f32",
               float64: "f64", complex64: "c64", complex128: "c128",
               **{dtype: dtype.name.replace("float", "f").replace("int", "i").replace("ui", "u")
                  for dtype in NARROW}}

PYTHON_SCALARS = (bool, int, float, complex)


def name_of(dtype) -> str:
    """The name as messages show it: `float32`, `float0`."""
    return "float0" if dtype == float0 else dtype.name if is_key(dtype) else np.dtype(dtype).name


def short_name_of(dtype) -> str:
    """The name as jaxprs show it: `f32`."""
    return SHORT_NAMES.get(dtype) or name_of(dtype)


class extended(np.generic):  # noqa: N801  JAX's name
    """The scalar type of dtypes that NumPy does not have. Source: jax.dtypes.extended."""


class prng_key(extended):  # noqa: N801
    """The scalar type of the dtype of keys: `issubdtype(key.dtype, prng_key)`, as in JAX."""


class KeyDtype:
    """The dtype of keys, which NumPy does not have: prints as `key<fry>`. Operations that move elements take
    it. tag: short name of the implementation, whose name is that of `random.key(seed, impl=...)`.

    Attributes:
        dtype: of the ndarrays that hold keys; equal to this one.
        carrier: of as many bits; what compiled programs hold keys in."""

    kind = "V"
    type = prng_key
    names = None  # of fields, which a dtype of NumPy's may have

    def __init__(self, tag: str, implementation: str, n_words: int):
        self.tag, self.implementation, self.n_words, self.name = tag, implementation, n_words, f"key<{tag}>"
        self.dtype = np.dtype([(tag, np.uint32, (n_words,))])
        self.carrier = {2: uint64, 4: complex128}[n_words]
        self.itemsize = self.dtype.itemsize

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other) -> bool:
        return self is other or getattr(other, "dtype", other) == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __reduce__(self):
        return find_key_dtype, (self.implementation,)


KEY_DTYPES = {dtype.implementation: dtype for dtype in (
    KeyDtype("fry", "threefry2x32", 2), KeyDtype("rbg", "rbg", 4), KeyDtype("urbg", "unsafe_rbg", 4))}
_KEY_OF_NUMPY = {dtype.dtype: dtype for dtype in KEY_DTYPES.values()}


def find_key_dtype(implementation: str) -> KeyDtype:
    return KEY_DTYPES[implementation]


def is_key(dtype) -> bool:
    return dtype.__class__ is KeyDtype


def of_ndarray(dtype: np.dtype) -> np.dtype | KeyDtype:
    """The dtype of an Array whose elements are in an ndarray of this dtype."""
    return _KEY_OF_NUMPY.get(dtype, dtype)


TypePromotionError = errors.TypePromotionError

# The lattice: each node's immediate successors. `int`, `float`, `complex` are the weak nodes.
_LATTICE = {
    bool_: ("int",),
    "int": (uint8, int8, *(dtype for dtype in NARROW if dtype not in _NARROW_FLOATS)),
    uint8: (int16, uint16),
    uint16: (int32, uint32),
    uint32: (int64, uint64),
    uint64: ("float",),
    int8: (int16,),
    int16: (int32,),
    int32: (int64,),
    int64: ("float",),
    "float": (bfloat16, float16, "complex", *_NARROW_FLOATS),
    bfloat16: (float32,),
    float16: (float32,),
    float32: (float64, complex64),
    float64: (complex128,),
    "complex": (complex64,),
    complex64: (complex128,),
    complex128: (),
    **dict.fromkeys(NARROW, ()),
}
#: Python's types, by kinds of dtypes.
PYTHON_OF_KIND = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
_WEAK_NODE_OF_KIND = {"b": bool_, "i": "int", "u": "int", "f": "float", "c": "complex"}


@functools.cache
def _upper_bounds(node) -> frozenset:
    bounds = {node}
    for successor in _LATTICE[node]:
        bounds |= _upper_bounds(successor)
    return frozenset(bounds)


@functools.cache
def _join_nodes(nodes: frozenset):
    common = frozenset.intersection(*map(_upper_bounds, nodes))
    if not common:
        names = ", ".join(sorted(repr(getattr(node, "name", node)) for node in nodes))
        raise errors.TypePromotionError(
            f"Input dtypes ({names}) have no available implicit dtype promotion path: narrow dtypes meet "
            "only Python scalars, and floats of them integers.\nTo fix: cast explicitly, "
            "x.astype('float32').")
    (join,) = (node for node in common if _upper_bounds(node) == common)
    return join


def kind_of(dtype) -> str:
    """`'b'`, `'i'`, `'u'`, `'f'` (bfloat16 too) or `'c'`; `'V'` of narrow dtypes: nothing is computed in
    them; `'k'` of keys."""
    if is_key(dtype):
        return "k"
    dtype = np.dtype(dtype)
    if dtype.kind == "V":
        return "f" if dtype == bfloat16 else "V"
    return "V" if dtype.kind == "f" and dtype.itemsize == 1 else dtype.kind


def number_kind_of(dtype) -> str:
    """`kind_of`, in which narrow dtypes are the floats and integers they are."""
    if is_key(dtype):
        return "k"
    dtype = np.dtype(dtype)
    return _KINDS.get(dtype) or dtype.kind


def is_narrow(dtype: np.dtype) -> bool:
    """Whether numbers of this dtype are only stored and converted."""
    return dtype.itemsize == 1 and kind_of(dtype) == "V"


def is_narrow_float(dtype) -> bool:
    return dtype in _NARROW_FLOATS


def reject_narrow(name: str, *given: np.dtype) -> None:
    """Raises: TypeError for a narrow dtype, or that of keys, in which nothing is computed."""
    for dtype in given:
        if is_key(dtype):
            raise TypeError(f"{name} does not accept dtype {dtype}.")
        if is_narrow(dtype):
            wide = "float32" if is_narrow_float(dtype) else "int32"
            raise TypeError(f"{name} does not accept dtype {dtype.name}: narrow dtypes are for storing. "
                            f"To fix: convert first, x.astype('{wide}').")


def reject_conversion(old, new) -> None:
    """Raises: ValueError from or to keys, whose words are no numbers."""
    if (is_key(old) or is_key(new)) and old != new:
        raise ValueError(f"Cannot convert_element_type from {name_of(old)} to {name_of(new)}")


def is_floating(dtype) -> bool:
    return kind_of(dtype) == "f"


def is_half(dtype) -> bool:
    """float16 or bfloat16: types in which nothing is accumulated."""
    return dtype == float16 or dtype == bfloat16


def is_complex(dtype) -> bool:
    return kind_of(dtype) == "c"


def part_size(dtype: np.dtype) -> int:
    """Bytes of a number, or of the parts of a complex one."""
    return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize


def is_inexact(dtype) -> bool:
    return kind_of(dtype) in "fc"


def has_derivatives(dtype) -> bool:
    """Whether derivatives by or of numbers of this dtype say something; narrow floats hand them on."""
    return is_inexact(dtype) or is_narrow_float(dtype)


def is_integer(dtype) -> bool:
    return kind_of(dtype) in "iu"


def default_dtype(kind: str) -> np.dtype:
    """The dtype a Python scalar of this kind becomes when nothing else decides: 32 bits, 64 under
    `enable_x64`."""
    wide = config.enable_x64
    return {"b": bool_, "i": int64 if wide else int32, "u": uint64 if wide else uint32,
            "f": float64 if wide else float32, "c": complex128 if wide else complex64}[kind]


def differ_in_width(a: np.dtype, b: np.dtype) -> bool:
    """Whether two dtypes are one in 32 bits, the default, and in 64: where JAX narrows, the other widens."""
    may_differ = a != b and not config.enable_x64 and kind_of(a) == kind_of(b) and kind_of(a) in "iufc"
    return may_differ and min(a.itemsize, b.itemsize) == default_dtype(kind_of(a)).itemsize


def of_python_scalar(value) -> np.dtype:
    """Dtype of a Python scalar; its type is weak unless it is a bool."""
    if isinstance(value, bool):
        return bool_
    return default_dtype("i" if isinstance(value, int) else "f" if isinstance(value, float) else "c")


def is_python_type(dtype) -> bool:
    """Whether this is `int`, `float` or `complex` itself, which stand for weak types."""
    return dtype is int or dtype is float or dtype is complex  # np.dtype("float64") == float


def canonicalize(dtype) -> np.dtype | KeyDtype:
    """A NumPy dtype, or that of keys, for any dtype-like; Python's `int`, `float`, `complex` give the default
    width.

    Raises: TypeError for what jitcore has no arrays of (object, string, datetime, structured)."""
    if dtype is bool:
        return bool_
    if is_key(dtype):
        return dtype
    if is_python_type(dtype):
        return default_dtype({int: "i", float: "f", complex: "c"}[dtype])
    if isinstance(dtype, str) and dtype in _BY_NAME:
        return _BY_NAME[dtype]
    named = getattr(dtype, "dtype", None)  # of an array, a value or a scalar type; NumPy's have a slot
    if is_key(named):
        return named
    dtype = named if isinstance(named, np.dtype) else np.dtype(dtype)
    if dtype not in SHORT_NAMES:
        if dtype in _KEY_OF_NUMPY:
            return _KEY_OF_NUMPY[dtype]
        native = dtype.newbyteorder("=")
        if native in SHORT_NAMES:
            return native
        raise TypeError(
            f"Dtype {dtype} is not a valid jitcore array type. Only arrays of bool, integer, floating "
            "and complex types are supported.")
    return dtype


def canonicalize_for(dtype, given) -> np.dtype:
    """`canonicalize` for what is made from an array of dtype `given`: Python's `int`, `float`, `complex` keep
    the 64 bits of its numbers."""
    if is_python_type(dtype) and given in (int64, uint64, float64, complex128):
        return {int: int64, float: float64, complex: complex128}[dtype]
    return canonicalize(dtype)


@functools.cache
def real_dtype(dtype) -> np.dtype:
    """float32 for complex64, float64 for complex128, the dtype itself otherwise."""
    return {complex64: float32, complex128: float64}.get(np.dtype(dtype), np.dtype(dtype))


def complex_dtype(dtype) -> np.dtype:
    return complex128 if np.dtype(dtype) in (float64, complex128) else complex64


def inexact_dtype(dtype) -> np.dtype:
    """Dtype of `sin(x)` for an x of this dtype: floats stay, 64-bit integers give float64, others float32."""
    dtype = np.dtype(dtype)
    if is_inexact(dtype):
        return dtype
    if is_narrow_float(dtype):
        reject_narrow("a function of floats", dtype)
    return float64 if dtype in (int64, uint64) else float32


def join_types(*types: tuple[np.dtype, bool]) -> tuple[np.dtype, bool]:
    """The promotion lattice: joins (dtype, weak) pairs into one."""
    first = types[0]
    if all(other == first for other in types[1:]):
        return first
    for dtype, _ in types:
        if is_key(dtype):
            raise ValueError(f"dtype={dtype} is not a valid dtype for type promotion.")
    return _join_distinct(frozenset(types), config.enable_x64)


def check_strictly(types) -> None:
    """Raises: TypePromotionError unless one strong dtype meets weak ones of its own or a lesser kind."""
    strong = {dtype for dtype, weak in types if not weak}
    if any(map(is_key, strong)):
        return  # which have no kind, and meet nothing but themselves
    rank = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    limit = max((rank[number_kind_of(dtype)] for dtype in strong), default=3)
    if len(strong) > 1 or any(weak and rank[number_kind_of(dtype)] > limit for dtype, weak in types):
        names = ", ".join(repr(dtype.name + "*" * weak) for dtype, weak in types)
        raise errors.TypePromotionError(
            f"Input dtypes ({names}) have no available implicit dtype promotion path when "
            "numpy_dtype_promotion=strict.\nTo fix: cast explicitly, x.astype(dtype), or "
            "config.update('numpy_dtype_promotion', 'standard').")


@functools.lru_cache(maxsize=4096)
def _join_distinct(types: frozenset, enable_x64: bool) -> tuple[np.dtype, bool]:
    all_weak = all(weak for _, weak in types)
    nodes = frozenset(dtype if all_weak or not weak else _WEAK_NODE_OF_KIND[kind_of(dtype)]
                      for dtype, weak in types)
    join = _join_nodes(nodes)
    if isinstance(join, str):  # only integers of 64 bits or weak scalars lead here
        wide_types = {True: (float64, complex128), False: (int64, uint64)}
        wide = any(dtype in wide_types[weak] for dtype, weak in types)
        kind = {"int": "i", "float": "f", "complex": "c"}[join]
        dtype = {"f": float64, "c": complex128}.get(kind) if wide else None
        return dtype or default_dtype(kind), True
    return join, all_weak and join != bool_


def promote_types(a, b) -> np.dtype:
    """Least upper bound of two dtypes in JAX's lattice (Python's `int`, `float`, `complex` count as weak)."""
    return join_types(*[(canonicalize(d), is_python_type(d)) for d in (a, b)])[0]


def type_of(x) -> tuple[np.dtype, bool]:
    """(dtype, weak) of an array, tracer, aval, NumPy or Python scalar, or dtype-like."""
    if isinstance(x, PYTHON_SCALARS) and not isinstance(x, np.generic):
        return of_python_scalar(x), not isinstance(x, bool)
    dtype = getattr(x, "dtype", None)
    reject_mask(x)
    if dtype is not None and not isinstance(x, type):
        return canonicalize(dtype), bool(getattr(x, "weak_type", False))
    return canonicalize(x), is_python_type(x)


def result_type(*args, return_weak_type_flag: bool = False):
    """Dtype of an operation on these arrays, scalars or dtypes, by JAX's promotion rules."""
    if not args:
        raise ValueError("at least one array or dtype is required")
    dtype, weak = join_types(*map(type_of, args))
    return (dtype, weak) if return_weak_type_flag else dtype


def is_masked(x) -> bool:
    """Whether this is one of NumPy's masked arrays, of which the mask would be lost."""
    return x.__class__ is not np.ndarray and isinstance(x, np.ndarray) and hasattr(x, "mask")


def reject_mask(x) -> None:
    """Raises: TypeError for a masked array."""
    if is_masked(x):
        raise arguments.masked_array_error()


def check_integer_fits(value: int, dtype) -> None:
    """Raises: OverflowError when a Python int does not fit the integer dtype it is about to take."""
    if kind_of(dtype) in "iu":
        info = np.iinfo(dtype)
        if not info.min <= value <= info.max:
            raise OverflowError(f"Python int {value} too large to convert to {np.dtype(dtype).name}")


def wrap_integer(value: int, dtype) -> int:
    """A Python int as it meets an array of this dtype: one of the default dtype wraps around, as in XLA.

    Raises: OverflowError for a larger one that does not fit the dtype."""
    if kind_of(dtype) in "iu":
        info, default = np.iinfo(dtype), np.iinfo(default_dtype("i"))
        if not info.min <= value <= info.max and default.min <= value <= default.max:
            return int(np.array(value, default.dtype).astype(dtype))
        check_integer_fits(value, dtype)
    return value


def scalar_to_numpy(value, dtype=None) -> np.ndarray:
    """A Python scalar as a 0-d ndarray of its (default) dtype."""
    dtype = of_python_scalar(value) if dtype is None else dtype
    if isinstance(value, int):
        check_integer_fits(value, dtype)
    return np.array(value, dtype)


# -- questions ----------------------------------------------------------------------------------------------
def canonicalize_dtype(dtype, allow_extended_dtype: bool = False) -> np.dtype | KeyDtype:
    """The dtype that arrays have which are asked for with this one; dtypes of 64 bits stay.

    Args:
        dtype: dtype-like. allow_extended_dtype: whether the dtype of keys may come.

    Returns: np.dtype, or the dtype of keys. Raises: TypeError for what no array has, ValueError for the dtype
    of keys unless it is allowed. Example: `canonicalize_dtype(float)` is float32. Source:
    jax.dtypes.canonicalize_dtype."""
    if isinstance(dtype, KeyDtype):
        if not allow_extended_dtype:
            raise ValueError(f"Internal: canonicalize_dtype called on extended dtype {dtype}")
        return dtype
    return canonicalize(dtype)


def finfo(dtype):
    """Limits of a floating dtype: `eps`, `max`, `min`, `tiny`, `bits` ... Same as: `numpy.finfo`."""
    dtype = canonicalize(dtype)
    return ml_dtypes.finfo(dtype) if dtype == bfloat16 or is_narrow(dtype) else np.finfo(dtype)


def iinfo(int_type):
    """Limits of an integer dtype: `max`, `min`, `bits`. Same as: `numpy.iinfo`."""
    is_value = not isinstance(int_type, type)  # NumPy's scalar types have attributes of that name
    dtype = canonicalize(getattr(int_type, "dtype", int_type) if is_value else int_type)
    return ml_dtypes.iinfo(dtype) if is_narrow(dtype) else np.iinfo(dtype)


def issubdtype(a, b) -> bool:
    """Whether a dtype belongs to another or to an abstract class; bfloat16 is floating, keys are `prng_key`.

    Returns: bool. Example: `issubdtype(bfloat16, np.floating)` is True. Source: jax.dtypes.issubdtype."""
    if isinstance(a, KeyDtype) or isinstance(a, type) and issubclass(a, extended):
        kind = a.type if isinstance(a, KeyDtype) else a
        return a == b or isinstance(b, type) and issubclass(kind, b)
    if isinstance(b, KeyDtype) or isinstance(b, type) and issubclass(b, extended):
        return False
    first, second = (_unwrap_dtype(one) for one in (a, b))
    own = _as_dtype(first)
    if own in _KINDS:
        is_class = isinstance(second, type) and second is not object
        return is_class and issubclass(_ABSTRACT_OF_KIND[_KINDS[own]], second) or _as_dtype(second) == own
    return bool(np.issubdtype(first, second))


def _unwrap_dtype(x):
    named = getattr(x, "dtype", None)
    return named if isinstance(named, np.dtype) else x


def _as_dtype(x) -> np.dtype | None:
    try:
        return np.dtype(x)
    except (TypeError, ValueError, SyntaxError):  # what NumPy says of a text that names no dtype
        return None


def itemsize_bits(dtype) -> int:
    """Bits of a number of this dtype; narrow ones are stored a byte each.

    Returns: int. Example: `itemsize_bits(np.int16)` is 16. Source: jax.dtypes.itemsize_bits."""
    dtype = canonicalize(dtype)
    info = finfo if is_narrow_float(dtype) else iinfo
    return info(dtype).bits if is_narrow(dtype) else 8 * dtype.itemsize


def scalar_type_of(x) -> type:
    """Python's type, `bool`, `int`, `float` or `complex`, of an array, number or dtype-like.

    Example: `scalar_type_of(np.zeros(3))` is float. Source: jax.dtypes.scalar_type_of."""
    return PYTHON_OF_KIND[number_kind_of(type_of(x)[0])]
