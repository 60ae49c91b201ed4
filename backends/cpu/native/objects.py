"""Object files of LLVM, linked into images that any process can load without LLVM.

In: the bytes of a relocatable ELF64 file for x86-64, compiled as position-independent code of the small code
model. Out: an `Image`, in which only addresses of other libraries are open. Stage: after code generation.

Sections that are needed at run time are laid out one after the other. Distances between them are known then
and written into the code; what lies outside is reached through a table of addresses at the end of the image,
calls through a jump beside it, because another library may be more than 2 GiB away.
Source: System V ABI, AMD64 supplement, chapter 4 (object files); ELF-64 object file format 1.5.
"""

from __future__ import annotations

import platform
import struct
import sys
from typing import NamedTuple

from jitcore.backends.cpu.native.images import Image, Slot


class UnknownObjectError(ValueError):
    """An object file that this linker does not understand; LLVM's own has to load it."""


def can_link() -> bool:
    """Whether LLVM's object files are, on this system, of the kind that `link_object` takes."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 2**32


class _Section(NamedTuple):
    """A section header: which kind, with which flags, where in the file."""

    name_at: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Symbol(NamedTuple):
    """A row of the symbol table."""

    name_at: int
    info: int
    other: int
    section: int
    value: int
    size: int


_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")  # offset, type, symbol, addend

_IDENTITY = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian, version 1
_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _REL = 1, 2, 4, 8, 9
_WRITABLE, _ALLOCATED, _EXECUTABLE, _THREAD_LOCAL = 1, 2, 4, 0x400
_UNDEFINED, _FIRST_RESERVED = 0, 0xFF00
_GLOBAL, _FUNCTION, _THREAD_LOCAL_SYMBOL = 1, 2, 6

# Types of relocations: S symbol, A addend, P place, G slot in the table of addresses.
_ABSOLUTE_64 = 1  # S + A
_RELATIVE_32 = (2, 4)  # S + A - P; the second one for calls, which may go through a jump
_RELATIVE_64 = 24  # S + A - P
_SLOT_32 = (9, 41, 42)  # G + A - P
_CALL = 4

_JUMP = b"\xff\x25"  # jmp [rip + distance]
_JUMP_SIZE = 8
_CACHE_LINE = 64  # constants and code share no line


def link_object(data: bytes) -> Image:
    """The image of an object file.

    Raises: UnknownObjectError for other machines, writable or thread-local data, and relocations that
        position-independent code of the small model does not have.
    Cost: 0.1 ms and 1 us for each relocation."""
    try:
        return _Linker(data).link()
    except (struct.error, IndexError, UnicodeDecodeError) as damage:
        raise UnknownObjectError(f"object file is damaged: {damage}") from None


def list_functions(data: bytes) -> list[tuple[str, int, int]]:
    """(name, offset in the image, bytes) of each function of an object file that `link_object` takes."""
    linker = _Linker(data)
    linker._lay_out()
    return linker.list_functions()


class _Linker:
    """One object file on its way into an image."""

    def __init__(self, data: bytes):
        self.data = data
        self.sections = self._read_sections()
        self.symbols, self.names_at = self._read_symbols()
        self.places: dict[int, int] = {}  # section -> offset in the image
        self.code = bytearray()
        self.slots: dict[tuple[str, int], int] = {}  # (symbol or "", addend) -> place in the table
        self.jumps: dict[str, int] = {}
        self.fixups: list[Slot] = []

    def link(self) -> Image:
        self._lay_out()
        relocations = list(self._read_relocations())
        self._make_table(relocations)
        for section, offset, kind, symbol, addend in relocations:
            self._relocate(self.places[section] + offset, kind, symbol, addend)
        return Image(bytes(self.code), self._list_exports(), tuple(self.fixups))

    # -- reading -------------------------------------------------------------------------------------------
    def _read_sections(self) -> list[_Section]:
        header = _HEADER.unpack_from(self.data)
        identity, kind, machine = header[0], header[1], header[2]
        if not identity.startswith(_IDENTITY) or kind != _RELOCATABLE or machine != _X86_64:
            raise UnknownObjectError("not a relocatable ELF64 file for x86-64")
        table, entry_size, count = header[6], header[11], header[12]
        if entry_size != _SECTION.size or count == 0:
            raise UnknownObjectError("section headers of an unknown form")
        return [
            _Section(*_SECTION.unpack_from(self.data, table + k * entry_size)) for k in range(count)
        ]

    def _read_symbols(self) -> tuple[list[_Symbol], int]:
        """The symbols, and where their names begin in the file."""
        tables = [section for section in self.sections if section.kind == _SYMTAB]
        if len(tables) != 1:
            raise UnknownObjectError(f"{len(tables)} symbol tables")
        (table,) = tables
        rows = range(table.offset, table.offset + table.size, _SYMBOL.size)
        return [_Symbol(*_SYMBOL.unpack_from(self.data, at)) for at in rows], self.sections[table.link].offset

    def _read_name(self, symbol: _Symbol) -> str:
        start = self.names_at + symbol.name_at
        return self.data[start : self.data.index(b"\0", start)].decode()

    def _read_relocations(self):
        """(section, offset in it, type, symbol, addend) of everything that is loaded."""
        for table in self.sections:
            if table.info not in self.places or table.kind not in (_RELA, _REL):
                continue
            if table.kind == _REL:
                raise UnknownObjectError("relocations without addends")
            for at in range(table.offset, table.offset + table.size, _RELOCATION.size):
                offset, kind, symbol, addend = _RELOCATION.unpack_from(self.data, at)
                yield table.info, offset, kind, self.symbols[symbol], addend

    # -- layout --------------------------------------------------------------------------------------------
    def _lay_out(self) -> None:
        """Code first, then constants. Tables for unwinding are left out: nothing unwinds through kernels."""
        loaded = [
            k for k, section in enumerate(self.sections) if section.flags & _ALLOCATED and self._is_loaded(k)
        ]
        for k in sorted(loaded, key=lambda k: not self.sections[k].flags & _EXECUTABLE):
            section = self.sections[k]
            self._align(max(section.alignment, _CACHE_LINE if section.size else 1))
            self.places[k] = len(self.code)
            content = self.data[section.offset : section.offset + section.size]
            if len(content) != section.size:
                raise UnknownObjectError("the file ends within a section")
            self.code += content

    def _is_loaded(self, number: int) -> bool:
        section = self.sections[number]
        if section.kind not in (_PROGBITS, _NOBITS):
            return False
        start = self.sections[_HEADER.unpack_from(self.data)[13]].offset + section.name_at
        name = self.data[start : self.data.index(b"\0", start)]
        if name == b".eh_frame":
            return False
        is_constant = not section.flags & _WRITABLE or name.startswith(b".data.rel.ro")
        if section.kind == _NOBITS or section.flags & _THREAD_LOCAL or not is_constant:
            if section.size:
                raise UnknownObjectError(f"section {name.decode()} is data that code can change")
            return False
        return True

    def _align(self, alignment: int) -> None:
        self.code += bytes(-len(self.code) % alignment)

    def _make_table(self, relocations: list) -> None:
        """Room for the addresses that are reached indirectly, and the jumps to functions elsewhere."""
        called: dict[str, None] = {}
        for _, _, kind, symbol, _ in relocations:
            if kind in _SLOT_32:
                self._make_slot(*self._find_target(symbol))
            elif kind == _CALL and symbol.section == _UNDEFINED:
                name, _ = self._find_target(symbol)
                called[name] = None
                self._make_slot(name, 0)
        for name in called:
            self.jumps[name] = len(self.code)
            distance = self.slots[name, 0] - (len(self.code) + len(_JUMP) + 4)
            self.code += (_JUMP + distance.to_bytes(4, "little", signed=True)).ljust(_JUMP_SIZE, b"\xcc")

    def _make_slot(self, name: str, addend: int) -> None:
        if (name, addend) in self.slots:
            return
        self._align(8)
        self.slots[name, addend] = len(self.code)
        self.fixups.append(Slot(len(self.code), name, addend))
        self.code += bytes(8)

    # -- relocation ----------------------------------------------------------------------------------------
    def _find_target(self, symbol: _Symbol) -> tuple[str, int]:
        """(name, 0) of a symbol of another library, ("", offset in the image) of one of this file."""
        if symbol.info & 15 == _THREAD_LOCAL_SYMBOL:
            raise UnknownObjectError("a thread-local symbol")
        if symbol.section == _UNDEFINED:
            name = self._read_name(symbol)
            if not name:
                raise UnknownObjectError("a relocation without symbol")
            return name, 0
        if symbol.section >= _FIRST_RESERVED or symbol.section not in self.places:
            raise UnknownObjectError(f"symbol {self._read_name(symbol)!r} lies in no section that is loaded")
        return "", self.places[symbol.section] + symbol.value

    def _relocate(self, place: int, kind: int, symbol: _Symbol, addend: int) -> None:
        name, target = self._find_target(symbol)
        if kind in _SLOT_32:
            self._write(place, self.slots[name, target] + addend - place, 4)
        elif kind in _RELATIVE_32 and name and kind == _CALL:
            self._write(place, self.jumps[name] + addend - place, 4)
        elif kind in _RELATIVE_32 and not name:
            self._write(place, target + addend - place, 4)
        elif kind == _RELATIVE_64 and not name:
            self._write(place, target + addend - place, 8)
        elif kind == _ABSOLUTE_64:
            self._write(place, 0, 8)
            self.fixups.append(Slot(place, name, target + addend))
        else:
            raise UnknownObjectError(f"relocation of type {kind} to {name or 'a place in this file'}")

    def _write(self, place: int, value: int, size: int) -> None:
        if place + size > len(self.code):
            raise UnknownObjectError("a relocation beyond the end of its section")
        try:
            self.code[place : place + size] = value.to_bytes(size, "little", signed=True)
        except OverflowError:
            raise UnknownObjectError("a distance of more than 2 GiB") from None

    def list_functions(self) -> list[tuple[str, int, int]]:
        found = [symbol for symbol in self.symbols
                 if symbol.info & 15 == _FUNCTION and symbol.section in self.places]
        rows = [(self._read_name(symbol), self.places[symbol.section] + symbol.value, symbol.size)
                for symbol in found]
        return sorted(rows, key=lambda row: row[1])

    def _list_exports(self) -> dict[str, int]:
        return {
            self._read_name(symbol): self.places[symbol.section] + symbol.value
            for symbol in self.symbols
            if symbol.info >> 4 == _GLOBAL and symbol.section in self.places
        }
