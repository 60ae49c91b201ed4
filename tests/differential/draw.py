"""Arguments of calls: arrays that are drawn from the text of the call, so that they need not be kept.

In: a text such as `add(f32[2, 3], i8.special[9])`. Out: the names that it may use, of which `f32[2, 3]` is an array
of this shape, `f32[()]` one of no axes, and `f32.special[9]` one of this kind:

`special`: nan, infinities, zeros of both signs, extremes; `positive`, `unit` (between -0.95 and 0.95), `probability`,
`count` (0 to 4), `small` (-0.3 to 0.3), `sorted`, `definite` (symmetric matrices with positive eigenvalues).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

DTYPES = {
    "b": "bool", "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32", "u32": "uint32",
    "i64": "int64", "u64": "uint64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "c64": "complex64", "c128": "complex128",
}


class Draw:
    """An array of a dtype by indexing with its shape; `draw.kind` draws one of that kind."""

    def __init__(self, dtype: str, random: np.random.RandomState, make: Callable[[np.ndarray], Any], kind: str = ""):
        self._dtype, self._random, self._make, self._kind = np.dtype(dtype), random, make, kind

    def __getattr__(self, kind: str) -> Draw:
        if kind not in KINDS:
            raise AttributeError(kind)
        return Draw(self._dtype, self._random, self._make, kind)

    def __getitem__(self, shape: int | tuple[int, ...]) -> Any:
        shape = shape if isinstance(shape, tuple) else (shape,)
        with np.errstate(all="ignore"):
            return self._make(np.array(KINDS[self._kind](self._dtype, shape, self._random)).astype(self._dtype))


def make_names(text: str, make: Callable[[np.ndarray], Any]) -> dict[str, Draw]:
    """The names of arrays in a text; `make` is given each ndarray. Seeds are the text's, and streams of
    RandomState are the same in each version of NumPy."""
    random = np.random.RandomState(zlib.crc32(text.encode()))
    return {name: Draw(dtype, random, make) for name, dtype in DTYPES.items()}


def is_wide(text: str) -> bool:
    """Whether an array or an option of 64 bits is in a text."""
    return re.search(r"\b(i64|u64|f64|c128)\b|int64|float64|complex128", text) is not None


def _between(low: float, high: float, least: int, most: int):
    def draw(dtype: np.dtype, shape: tuple, random: np.random.RandomState) -> np.ndarray:
        if dtype.kind == "c":
            return random.uniform(low, high, shape) + 1j * random.uniform(low, high, shape)
        if dtype.kind in "iub":
            return random.randint(least if dtype.kind == "i" else max(least, 0), 2 if dtype.kind == "b" else most + 1, shape)
        return random.uniform(low, high, shape)

    return draw


def _special(dtype: np.dtype, shape: tuple, random: np.random.RandomState) -> np.ndarray:
    """Values at edges, in an order of their own; without subnormal numbers, which JAX takes for zero."""
    if dtype.kind == "c":
        real = _list_special(np.dtype(f"f{dtype.itemsize // 2}"))
        values = np.array([complex(real[i], real[j]) for i in range(len(real)) for j in (i, -1 - i, 3)], dtype)
    else:
        values = _list_special(dtype)
    size = int(np.prod(shape, dtype=int))
    rounds = [random.permutation(len(values)) for _ in range(-(-size // len(values)))] or [np.zeros(0, int)]
    return values[np.concatenate(rounds)[:size]].reshape(shape)


def _list_special(dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        near = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 7, dtype.itemsize * 8 - 1]
        return np.array(near + ([-1, -2, -7] if dtype.kind == "i" else []), dtype)
    info = ml_dtypes.finfo(dtype)
    inf = float("inf")
    return np.array([float("nan"), inf, -inf, 0.0, -0.0, info.max, info.min, info.tiny, -info.tiny, 1, -1, 0.5, -2.5],
                    dtype)


def _sorted(dtype: np.dtype, shape: tuple, random: np.random.RandomState) -> np.ndarray:
    return np.sort(_between(-3, 3, -9, 9)(dtype, shape, random), axis=-1)


def _definite(dtype: np.dtype, shape: tuple, random: np.random.RandomState) -> np.ndarray:
    x = _between(-1, 1, -2, 2)(dtype, shape, random)
    return x @ np.conj(np.swapaxes(x, -1, -2)) + shape[-1] * np.eye(shape[-1])


KINDS: dict[str, Callable] = {
    "": _between(-3, 3, -9, 9),
    "special": _special,
    "positive": _between(0.2, 3, 1, 9),
    "unit": _between(-0.95, 0.95, 0, 1),
    "probability": _between(0.05, 0.95, 0, 1),
    "small": _between(-0.3, 0.3, 0, 1),
    "count": _between(0, 4, 0, 4),
    "sorted": _sorted,
    "definite": _definite,
}
