"""Arrays as text and in files: printing, and NumPy's formats.

In: arrays outside of traces, files, sequences. Out: text, files, Arrays. Bits that NumPy's files do not
name, such as those of bfloat16, are written as raw bytes, and `load` is told the dtype.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.exceptions import ComplexWarning

from jitcore import dtypes
from jitcore.array import Array
from jitcore.numpy.creation import asarray

__all__ = ["ComplexWarning", "array_repr", "array_str", "fromfile", "fromiter", "load", "save", "savez"]


def array_repr(arr: Any, max_line_width: int | None = None, precision: int | None = None,
               suppress_small: bool | None = None) -> str:
    """The text that `repr` gives, with options of printing.

    Args:
        arr: array of any shape. max_line_width: characters. precision: digits behind the point.
        suppress_small: whether numbers near 0 print as 0.

    Returns: str. Example: `array_repr(jnp.arange(3))` is `'Array([0, 1, 2], dtype=int32)'`.
    Source: numpy.array_repr."""
    arr = asarray(arr)
    with np.printoptions(**_options(max_line_width, precision, suppress_small)):
        return repr(arr)


def array_str(a: Any, max_line_width: int | None = None, precision: int | None = None,
              suppress_small: bool | None = None) -> str:
    """The text that `str` gives, with options of printing, as those of `array_repr`.

    Returns: str. Example: `array_str(jnp.arange(3))` is `'[0 1 2]'`. Source: numpy.array_str."""
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def _options(width: int | None, precision: int | None, suppress: bool | None) -> dict[str, Any]:
    given = {"linewidth": width, "precision": precision, "suppress": suppress}
    return {name: value for name, value in given.items() if value is not None}


def fromfile(file: Any, dtype: Any = float, count: int = -1, sep: str = "",
             offset: int = 0) -> Array:
    """A vector of the numbers in a file.

    Args:
        file: its path, or an open file. dtype: of the numbers; the default float by default.
        count: how many; -1 for all. sep: what is between numbers in text; empty for bytes. offset: bytes to
            skip.

    Returns: [count]. Example: after `np.arange(3.0).tofile(path)`, `fromfile(path, "float64")` is
    `[0, 1, 2]`.
    Source: numpy.fromfile."""
    return asarray(np.fromfile(file, dtypes.canonicalize(dtype), count, sep, offset))


def fromiter(iter: Iterable, dtype: Any, count: int = -1) -> Array:
    """A vector of what an iterable gives.

    Args:
        iter: of numbers, outside of traces. dtype: of the vector. count: how many; -1 for all.

    Returns: [count]. Example: `fromiter(range(3), int)` is `[0, 1, 2]`. Source: numpy.fromiter."""
    return asarray(np.fromiter(iter, dtypes.canonicalize(dtype), count))


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Writes an array to a file of NumPy's format `.npy`, whose ending is added to a path without one.

    Args:
        file: its path, or an open file. arr: array of any shape. allow_pickle: as NumPy's; no array needs it.

    Raises: TypeError for narrow dtypes, whose name files do not tell.
    Example: `save("x.npy", jnp.arange(3))`. Source: numpy.save."""
    np.save(file, _to_storable(arr), allow_pickle)


def _to_storable(x: Any) -> np.ndarray:
    x = np.asarray(x)
    if dtypes.is_narrow(x.dtype):
        raise TypeError(f"files do not tell dtype {x.dtype.name}. To fix: save x.view(jnp.uint8), and view "
                        f"what is loaded as jnp.{x.dtype.name}.")
    return x


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Writes several arrays to one file of NumPy's format `.npz`.

    Args:
        file: its path, or an open file. args: arrays, named `arr_0` and so on. kwds: arrays by names.

    Example: `savez("x.npz", a=jnp.arange(3))`; `load("x.npz")["a"]` is `[0, 1, 2]`. Source: numpy.savez."""
    np.savez(file, *map(_to_storable, args), allow_pickle=allow_pickle,
             **{name: _to_storable(value) for name, value in kwds.items()})


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """What a file of NumPy's formats has: an Array of `.npy`; of `.npz` NumPy's mapping from names to
    ndarrays.

    Args:
        file: its path, or an open file. args, kwargs: as `numpy.load`; pickles are not loaded unless asked
            for.

    Returns: an Array, or a mapping. Example: `load("x.npy")`. Source: numpy.load."""
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    return asarray(found.view(dtypes.bfloat16) if found.dtype == np.dtype("V2") else found)
