"""What the array API standard asks a namespace about itself: `jitcore.numpy.__array_namespace_info__()`.

In: nothing but a device or kinds of dtypes. Out: dictionaries with the standard's keys.
Source: the array API standard, 2024.12, "Inspection".
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes
from jitcore.array import load_device_layer

#: The edition of the standard that the namespace follows.
VERSION = "2024.12"

_KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
          "complex floating": "c", "numeric": "iufc"}
_STANDARD = [dtype for dtype in dtypes.SUPPORTED if dtype not in (dtypes.bfloat16, dtypes.float16)]


class NamespaceInfo:
    """The answers. Example: `jnp.__array_namespace_info__().default_dtypes()["real floating"]`."""

    def capabilities(self) -> dict:
        """What depends on values: boolean masks index, and shapes follow from data, in eager calls and under
        `autojit`; inside of `jit` functions such as `unique` take `size=`."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        """The device on which arrays are made where none is named."""
        return self.devices()[0]

    def devices(self) -> list:
        """All devices on which arrays may lie."""
        return load_device_layer().devices()

    def default_dtypes(self, *, device=None) -> dict:
        """The dtypes of Python's numbers and creation functions: of 32 bits, or of 64 under `enable_x64`."""
        of = {"real floating": "f", "complex floating": "c", "integral": "i", "indexing": "i"}
        return {name: dtypes.default_dtype(kind) for name, kind in of.items()}

    def dtypes(self, *, device=None, kind: str | tuple[str, ...] | None = None) -> dict:
        """The standard's dtypes by name, those of a kind or of several.

        Raises: ValueError for a kind that the standard does not have."""
        kinds = tuple(_KINDS) if kind is None else (kind,) if isinstance(kind, str) else tuple(kind)
        unknown = [one for one in kinds if one not in _KINDS]
        if unknown:
            raise ValueError(f"kind={unknown[0]!r} is none of {list(_KINDS)}")
        letters = "".join(_KINDS[one] for one in kinds)
        return {np.dtype(dtype).name: dtype for dtype in _STANDARD if dtype.kind in letters}


def __array_namespace_info__() -> NamespaceInfo:
    """Devices, dtypes and capabilities of the namespace. Same as: `numpy.__array_namespace_info__`."""
    return NamespaceInfo()
