"""Types for annotations: the names of `jax.typing`, and what else signatures of jitcore consist of.

In: nothing. Out: aliases. The signatures themselves stand in the stubs (`.pyi`) beside the modules, which
`scripts/write_stubs.py` writes from the functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from jitcore.array import Array

__all__ = ["ArrayLike", "AxisLike", "DTypeLike", "NestedArrayLike", "ShapeLike", "SupportsDType"]


class SupportsDType(Protocol):
    """What has a dtype, such as `jnp.float32`."""

    @property
    def dtype(self) -> np.dtype: ...


#: What counts as one array: functions take no lists in the place of arrays.
ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
#: Arrays, or lists and tuples of numbers or arrays, where functions make arrays.
NestedArrayLike: TypeAlias = ArrayLike | list[Any] | tuple[Any, ...]
DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType
#: One extent or several.
ShapeLike: TypeAlias = int | Sequence[int]
#: One axis, several, or None for what the function says: most often all of them.
AxisLike: TypeAlias = int | Sequence[int] | None
