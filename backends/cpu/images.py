"""Images: machine code that any process of the same kind of machine can load.

In: an `Image`, from the linker (`objects.py`) or from a file. Out: `LoadedImage`, executable memory with the
addresses of what it exports. Stage: the last one before a call. No compiler is needed, and none is imported.

Memory is never writable and executable at once: it is filled, completed with the addresses of other
libraries, and then made read-only and executable.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Image", "LoadedImage", "Slot"]

_COUNTS = struct.Struct("<III")  # exports, slots, bytes of their names
_EXPORT = struct.Struct("<QH")  # offset, bytes of the name
_SLOT = struct.Struct("<QqH")  # offset, addend, bytes of the name
_ADDRESS = struct.Struct("<Q")


class Slot(NamedTuple):
    """Eight bytes of an image that hold, once it is loaded, the address of `symbol` plus `addend`; an empty
    symbol stands for the beginning of the image."""

    offset: int
    symbol: str
    addend: int


class Image(NamedTuple):
    """Position-independent code with its constants.

    Attributes:
        code: the bytes; wherever they are loaded, they begin at a page.
        exports: offset of each function that others may call.
        slots: what is filled in at loading.
    """

    code: bytes
    exports: dict[str, int]
    slots: tuple[Slot, ...]

    def encode(self) -> bytes:
        """Bytes from which `decode` makes an equal image."""
        rows = [_EXPORT.pack(offset, len(name.encode())) for name, offset in self.exports.items()]
        rows += [_SLOT.pack(offset, addend, len(name.encode())) for offset, name, addend in self.slots]
        names = "".join([*self.exports, *(slot.symbol for slot in self.slots)]).encode()
        counts = _COUNTS.pack(len(self.exports), len(self.slots), len(names))
        return b"".join((counts, *rows, names, self.code))

    @classmethod
    def decode(cls, data: bytes) -> Image:
        """Raises: ValueError for bytes that no image can have."""
        try:
            n_exports, n_slots, names_size = _COUNTS.unpack_from(data)
            slots_at = _COUNTS.size + n_exports * _EXPORT.size
            names_at = slots_at + n_slots * _SLOT.size
            code_at, at = names_at + names_size, names_at
            exports, slots = {}, []
            for offset, size in _EXPORT.iter_unpack(data[_COUNTS.size : slots_at]):
                exports[data[at : at + size].decode()] = offset
                at += size
            for offset, addend, size in _SLOT.iter_unpack(data[slots_at:names_at]):
                slots.append(Slot(offset, data[at : at + size].decode(), addend))
                at += size
        except (struct.error, UnicodeDecodeError) as damage:
            raise ValueError(f"image is damaged: {damage}") from None
        image = cls(data[code_at:], exports, tuple(slots))
        if at != code_at or not image._is_consistent():
            raise ValueError("image is damaged: its tables do not fit its code")
        return image

    def _is_consistent(self) -> bool:
        size = len(self.code)
        return all(0 <= offset < size for offset in self.exports.values()) and all(
            0 <= slot.offset <= size - _ADDRESS.size for slot in self.slots
        )


class LoadedImage:
    """An image in executable memory, which is given back when this object goes.

    Args:
        image: to load.
        find_address: address of a symbol of another library.
    Raises: OSError when the system gives no such memory; what `find_address` raises.
    Cost: 30 us.
    """

    def __init__(self, image: Image, find_address: Callable[[str], int]):
        found = {slot.symbol: find_address(slot.symbol) for slot in image.slots if slot.symbol}
        memory = mmap.mmap(-1, max(len(image.code), 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory[: len(image.code)] = image.code
        start = found[""] = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for offset, symbol, addend in image.slots:
            _ADDRESS.pack_into(memory, offset, found[symbol] + addend)
        _forbid_writing(start, len(memory))
        self._memory = memory
        self._addresses = {name: start + offset for name, offset in image.exports.items()}

    def __getitem__(self, symbol: str) -> int:
        """The address of an exported function. Raises: KeyError."""
        return self._addresses[symbol]


@functools.cache
def _open_mprotect() -> Callable[..., int]:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function


def _forbid_writing(start: int, size: int) -> None:
    if _open_mprotect()(start, size, mmap.PROT_READ | mmap.PROT_EXEC):
        number = ctypes.get_errno()
        raise OSError(number, f"no executable memory: {os.strerror(number)}")
