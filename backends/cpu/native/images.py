"""Images: machine code that any process of the same kind of machine can load, and the symbols it needs.

In: an `Image`, from the linker (`objects.py`) or from a file. Out: `LoadedImage`, executable memory with the
addresses of what it exports. Stage: the last one before a call. No compiler is needed, and none is imported.

External symbols are what a compiled module may call that another library defines. Who owns a family of
symbols provides it under a prefix; it is opened (compiled or loaded) when the first module that calls it is
linked.

Memory that native code shares with Python is a structure of *cells*, which LLVM text names.

Memory of code is never writable and executable at once: it is filled, completed with the addresses of other
libraries, and then made read-only and executable.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
import threading
from collections.abc import Callable
from typing import NamedTuple

_addresses: dict[str, int] = {}


class _Provider(NamedTuple):
    open: Callable[[str], int]
    foresee: Callable[[str], None] | None


_providers: dict[str, _Provider] = {}

#: Held while symbols are opened. Who needs it and the compiler's lock takes this one first. A fork waits for
#: it: in the child nobody would give it back.
link_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=link_lock.acquire, after_in_parent=link_lock.release,
                        after_in_child=link_lock.release)


def provide(prefix: str, open_symbol: Callable[[str], int],
            foresee: Callable[[str], None] | None = None) -> None:
    """Declares who knows the addresses of all symbols that begin with `prefix`.

    open_symbol: name -> address; called once for each name, and what is there stays for the process's life.
    foresee: begins with what takes time of that, without any lock."""
    _providers[prefix] = _Provider(open_symbol, foresee)


def _find_provider(symbol: str) -> _Provider | None:
    provider = _providers.get(symbol)
    if provider is None:
        provider = next((_providers[prefix] for prefix in _providers if symbol.startswith(prefix)), None)
    return provider


def address_of(symbol: str) -> int | None:
    """The address of a provided symbol; None when nobody provides it."""
    with link_lock:
        if symbol not in _addresses:
            provider = _find_provider(symbol)
            if provider is None:
                return None
            _addresses[symbol] = provider.open(symbol)
        return _addresses[symbol]


def foresee(symbol: str) -> None:
    """Says that a symbol's address will be asked for soon."""
    provider = None if symbol in _addresses else _find_provider(symbol)
    if provider is not None and provider.foresee is not None:
        provider.foresee(symbol)


def find_in_process(symbol: str) -> int | None:
    """The address of a symbol of the libraries that this process shares with all: C's, the interpreter's."""
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, symbol))
    except ValueError:
        return None


# A statically linked interpreter need not export its functions to LLVM. Asked for most often, so the first.
provide("Py", find_in_process)


class Cells(ctypes.Structure):
    """What native code reads and writes; it lives as long as the process. symbol: by which code finds it."""

    symbol: str

    def __init_subclass__(cls) -> None:
        cls.declaration = f"@{cls.symbol} = external global i8"

    def __init__(self):
        provide(self.symbol, lambda _: ctypes.addressof(self))

    @classmethod
    def locate(cls, name: str) -> str:
        """A field as an LLVM constant."""
        return f"getelementptr (i8, ptr @{cls.symbol}, i64 {getattr(cls, name).offset})"

    def clear(self) -> None:
        ctypes.memset(ctypes.addressof(self), 0, ctypes.sizeof(self))


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
        slots: what is filled in at loading."""

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
    Cost: 30 us."""

    def __init__(self, image: Image, find_address: Callable[[str], int]):
        found = {slot.symbol: find_address(slot.symbol) for slot in image.slots if slot.symbol}
        memory = mmap.mmap(-1, max(len(image.code), 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory[: len(image.code)] = image.code
        start = found[""] = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for offset, symbol, addend in image.slots:
            _ADDRESS.pack_into(memory, offset, found[symbol] + addend)
        _forbid_writing(start, len(memory))
        self.start, self._memory = start, memory
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
