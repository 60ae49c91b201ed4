"""Lists of numbers, and lists of such lists, as arrays and back.

In: a list of the caller's. Out: the array of its numbers; and the list with what an array holds, the same
object. Needs nothing of the compiler: the run time of compiled loops has it, too; nor NumPy, where it gives
an array of ctypes' (`pack_cells`).

Numbers are of one type, or ints and floats. Of the latter the array has 64 bits each: those of a float, or,
where a float would be NaN in a way in which none is, those of a small int.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from typing import Any

from jitcore.process.lazy import LazyModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy

np = LazyModule("numpy")  # scripts that do without it need not load it

__all__ = ["BOXED_BITS", "BOXED_LIMIT", "BOXED_SIGN", "CELLS", "CODES", "LIMIT", "MIXED", "NAN", "describe",
           "find_cells", "find_native", "guess", "loaders", "make", "native", "pack", "pack_cells",
           "pack_text", "pack_text_cells", "unpack"]

#: The type of numbers of which some are ints and some are floats.
MIXED = int, float
_NAMES = {bool: "bool", int: "int64", float: "float64", complex: "complex128", MIXED: "int64"}
#: What has so many bytes, by dtype.
CELLS = {"bool": ctypes.c_uint8, "int32": ctypes.c_int32, "int64": ctypes.c_int64, "float64": ctypes.c_double}
#: Of a type, for native code.
CODES = {kind: code for code, kind in enumerate(_NAMES)}
#: Ints that programs are given are smaller than this.
LIMIT = 1 << 62
#: Of an int among floats: its lowest bits, behind what is above them. So large it may be.
BOXED_BITS, BOXED_SIGN = 50, 0x1FFF
BOXED_LIMIT = 1 << (BOXED_BITS - 1)
#: Numbers of a list that a guess looks at: some 5 ms.
GUESSED = 1 << 18
#: The bits of what is no number.
NAN = 0x7FF8 << 48


def describe(items: list) -> tuple[Any, tuple[int, ...]] | None:
    """The type of a list's numbers and its shape; None where it is something else than numbers, or rows of as
    many numbers."""
    first = items[0] if items else None
    rows = items if type(first) is list else [items]
    kinds = {found for row in rows if type(row) is list for found in {*map(type, row)}}
    kind = MIXED if kinds == {int, float} else kinds.pop() if len(kinds) == 1 else None
    shape = (len(items), len(first)) if rows is items else (len(items),)
    is_told = kind in _NAMES and (rows is not items or _holds(kind, shape, items))
    return (kind, shape) if is_told else None


def guess(items: list) -> tuple[Any, tuple[int, ...]] | None:
    """The same as `describe`, by some of the numbers where there are many: `pack` looks at all of them."""
    width = len(items[0]) if items and type(items[0]) is list else 1
    step = max(1, len(items) * width // GUESSED)
    start = GUESSED // 8 // max(1, width)  # all of these: kinds may take turns
    found = describe([*items[:start], *items[start::step]] if step > 1 else items)
    return found and (found[0], (len(items), *found[1][1:]))


def _holds(kind: Any, shape: tuple[int, ...], items: list) -> bool:
    """Whether a list has this shape, its numbers are of this type, and no row stands in it twice."""
    kinds = {*kind} if kind == MIXED else {kind}
    if len(items) != shape[0]:
        return False
    if len(shape) == 1:
        return {*map(type, items)} <= kinds
    return (_has_rows(items, shape) and {*map(len, items)} == {shape[1]}
            and {found for row in items for found in {*map(type, row)}} <= kinds)


def _has_rows(items: list, shape: tuple[int, ...]) -> bool:
    return {*map(type, items)} == {list} and len({*map(id, items)}) == shape[0]


@functools.lru_cache(maxsize=256)
def find_cells(dtype: str, shape: tuple[int, ...]) -> type[ctypes.Array]:
    """The type of arrays where there is no NumPy: they own their memory, which is zero at first."""
    kind = CELLS[dtype] * math.prod(shape)
    return type(kind)("Cells", (kind,), {"shape": shape, "dtype": dtype, "base": None})


#: Native code that does the same, once it is loaded: two functions of a list, an array, a code and a shape.
#: Who has it adds to `loaders` what loads it.
native: tuple[Callable[..., int], ...] = ()
loaders: list[Callable[[], tuple[Callable[..., int], ...]]] = []
#: What is needed of NumPy each time, once it is loaded: dtypes by type, and a function by its name.
_numpy: dict[Any, Any] = {}


def find_native() -> tuple[Callable[..., int], ...]:
    """Native code, loaded if it was not; none where nobody has some."""
    global native
    while loaders and not native:
        native = loaders.pop()()
    return native


def pack(kind: Any, shape: tuple[int, ...], items: Any) -> numpy.ndarray | None:
    """The array of a list's numbers; None where they are not of this type, or not so many. Cost: 0.3 us and
    2 to 15 ns for each, 50 before there is native code."""
    if type(items) is not list:
        return None
    functions = (native or find_native()) if kind is not complex else ()
    if functions:
        if len(shape) > 1 and not _has_rows(items, shape):
            return None
        if not _numpy:
            _numpy.update([("empty", np.empty), *((one, np.dtype(name)) for one, name in _NAMES.items())])
        made = _numpy["empty"](shape, _numpy[kind])
        return made if functions[0](items, made, CODES[kind], *shape) else None
    if not _holds(kind, shape, items):
        return None
    try:
        if kind == MIXED:
            return _box(items, shape)
        made = np.array(items, _NAMES[kind])
    except OverflowError:
        return None
    return made if kind is not int or -LIMIT <= made.min() and made.max() < LIMIT else None


def pack_cells(kind: Any, shape: tuple[int, ...], items: Any) -> ctypes.Array | None:
    """The same by native code alone, and of ctypes'; not of complex numbers."""
    if type(items) is not list or len(shape) > 1 and not _has_rows(items, shape):
        return None
    made = find_cells(_NAMES[kind], shape)()
    return made if (native or find_native())[0](items, made, CODES[kind], *shape) else None


def _box(items: list, shape: tuple[int, ...]) -> numpy.ndarray | None:
    """Raises: OverflowError."""
    numbers = items if len(shape) == 1 else [number for row in items for number in row]
    are_ints = np.array([type(number) is int for number in numbers])
    ints = np.array([number if type(number) is int else 0 for number in numbers], np.int64)
    if (ints < -BOXED_LIMIT).any() or (ints >= BOXED_LIMIT).any():
        return None
    floats = np.array([0.0 if type(number) is int else number for number in numbers])
    bits = np.where(np.isnan(floats), NAN, floats.view(np.int64))
    low = ints & ((1 << BOXED_BITS) - 1)
    return np.where(are_ints, BOXED_SIGN << BOXED_BITS | low, bits).reshape(shape)


def _unbox(bits: numpy.ndarray) -> list:
    """The numbers of an array of one axis."""
    ints = bits << (64 - BOXED_BITS) >> (64 - BOXED_BITS)
    are_ints = bits >> BOXED_BITS == BOXED_SIGN
    choices = zip(are_ints.tolist(), ints.tolist(), bits.view(np.float64).tolist())
    return [whole if is_int else number for is_int, whole, number in choices]


def pack_text(length: int, text: Any) -> numpy.ndarray | None:
    """The code points of a str of so many letters; None for other objects. Cost: 0.3 us and 1 ns for each."""
    letters = _encode(length, text)
    return None if letters is None else np.frombuffer(letters, np.int32)


def pack_text_cells(length: int, text: Any) -> ctypes.Array | None:
    """The same of ctypes'."""
    letters = _encode(length, text)
    return None if letters is None else find_cells("int32", (length,)).from_buffer(letters)


def _encode(length: int, text: Any) -> bytearray | None:
    if type(text) is not str or len(text) != length:
        return None
    return bytearray(text.encode("utf-32-le", "surrogatepass"))


def unpack(kind: Any, items: list, array: numpy.ndarray) -> None:
    """Gives a list, or its rows, what an array holds. Numbers that stay the same stay these objects, where
    there is native code."""
    are_cells = isinstance(array, ctypes.Array)
    is_dense = are_cells or array.flags.c_contiguous
    functions = (native or find_native()) if kind is not complex and is_dense else ()
    if functions and functions[1](items, array, CODES[kind], *array.shape):
        return
    array = _read_cells(array) if are_cells else array
    for row, numbers in zip([items], [array]) if array.ndim == 1 else zip(items, array):
        row[:] = _unbox(numbers) if kind == MIXED else numbers.tolist()


def make(kind: Any, array: numpy.ndarray) -> list:
    """A new list of what an array of one axis holds."""
    if isinstance(array, ctypes.Array):
        items = [None] * len(array)
        unpack(kind, items, array)
        return items
    return _unbox(array) if kind == MIXED else array.tolist()


def _read_cells(array: ctypes.Array) -> numpy.ndarray:
    """The same memory."""
    return np.frombuffer(array, array.dtype).reshape(array.shape)
