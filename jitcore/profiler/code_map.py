"""Names of compiled code for profilers and debuggers: a perf map, a JITDUMP file, and GDB's registration.

In: events of code that is put into memory. Out, as `config.code_map` says: lines of `/tmp/perf-PID.map`,
which `perf report` and py-spy read; records of `jit-PID.dump`, which `perf inject --jit` reads; an ELF file
in memory, which GDB reads where it stops at `__jit_debug_register_code`. A function is named by the user's
function and line: "selu (model.py:12) kernel1".
Sources: perf's `Documentation/perf-record` and `jitdump-specification.txt` of Linux; "JIT Compilation
Interface" of GDB's manual; ELF-64 object file format 1.5.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
import threading
import warnings
from collections.abc import Sequence
from time import clock_gettime_ns
from typing import Any, NamedTuple

import numpy as np

from jitcore.config import config
from jitcore.events.publishing import Event
from jitcore.process.concurrency import Lock
from jitcore.process.lazy import LazyModule

llvm = LazyModule("llvmlite.binding")

_lock = Lock()
_failed: set[str] = set()


class Function(NamedTuple):
    """start: its address; code: its bytes."""

    name: str
    start: int
    code: bytes


def read(event: Event) -> None:
    """Writes down what has been loaded."""
    if event.kind != "load" or not event.seconds or "code" not in event.facts:
        return
    functions = list_functions(event)
    wanted = config.code_map
    with _lock:
        for name, write in (("perf", write_perf_map), ("jitdump", write_jitdump), ("gdb", register_with_gdb)):
            if wanted in (name, "all") and name not in _failed:
                try:
                    write(functions)
                except OSError as failure:
                    _failed.add(name)
                    warnings.warn(f"code_map {name!r} ends: {failure}", RuntimeWarning, stacklevel=2)


def list_functions(event: Event) -> list[Function]:
    """The functions that an event of loading tells of, by their names for people."""
    loaded, found = event.facts["code"], []
    for line, symbol, offset, size in loaded.list_functions():
        own = symbol.removeprefix("entry0_").replace("entry0", "entry")
        place = line.rpartition(" (")[0] or os.path.basename(event.place)
        is_of_user = event.name and loaded.describe is not None
        whose = f"{event.name} ({place})" if is_of_user else loaded.library
        code = loaded.image.code[offset : offset + size]
        found.append(Function(f"jitcore: {whose} {own}", loaded.start + offset, code))
    return found


# -- perf's map ---------------------------------------------------------------------------------------------
def find_perf_map() -> str:
    return f"/tmp/perf-{os.getpid()}.map"


def write_perf_map(functions: list[Function]) -> None:
    """One line for each function: start and size as hexadecimal numbers, name."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW  # where everybody may put links
    descriptor = os.open(find_perf_map(), flags, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.writelines(f"{start:x} {len(code):x} {name}\n" for name, start, code in functions)


# -- JITDUMP ------------------------------------------------------------------------------------------------
_HEADER = struct.Struct("<IIIIIIQQ")  # magic, version, size, ELF machine, padding, process, time, flags
_RECORD = struct.Struct("<IIQ")  # kind, size, time
_LOAD = struct.Struct("<IIQQQQ")  # process, thread, address, address, size, number
_MAGIC, _VERSION, _CODE_LOAD, _X86_64 = 0x4A695444, 1, 0, 62
_CLOCK_MONOTONIC = 1  # as `perf record -k mono`


class _Dump:
    """The file of this process."""

    def __init__(self):
        self.process, self.count = os.getpid(), 0
        self.file = open(f"jit-{self.process}.dump", "w+b")  # noqa: SIM115  for the life of the process
        self.file.write(_HEADER.pack(_MAGIC, _VERSION, _HEADER.size, _X86_64, 0, self.process, _now(), 0))
        self.file.flush()
        # perf finds the file by this mapping, of which nothing is read.
        self.mark = mmap.mmap(self.file.fileno(), _HEADER.size, mmap.MAP_PRIVATE,
                              mmap.PROT_READ | mmap.PROT_EXEC)

    def add(self, function: Function) -> None:
        name = function.name.encode() + b"\0"
        body = _LOAD.pack(self.process, threading.get_native_id(), function.start, function.start,
                          len(function.code), self.count)
        size = _RECORD.size + len(body) + len(name) + len(function.code)
        self.file.write(b"".join((_RECORD.pack(_CODE_LOAD, size, _now()), body, name, function.code)))
        self.count += 1


def _now() -> int:
    return clock_gettime_ns(_CLOCK_MONOTONIC)


_dump: _Dump | None = None


def write_jitdump(functions: list[Function]) -> None:
    global _dump
    if _dump is None or _dump.process != os.getpid():
        _dump = _Dump()
    for function in functions:
        _dump.add(function)
    _dump.file.flush()


# -- GDB ----------------------------------------------------------------------------------------------------
class _Entry(ctypes.Structure):
    """`struct jit_code_entry`."""


_Entry._fields_ = [("next", ctypes.POINTER(_Entry)), ("previous", ctypes.POINTER(_Entry)),
                   ("start", ctypes.c_void_p), ("size", ctypes.c_uint64)]


class _Descriptor(ctypes.Structure):
    """`struct jit_descriptor`."""

    _fields_ = (("version", ctypes.c_uint32), ("action", ctypes.c_uint32),
                ("relevant", ctypes.POINTER(_Entry)), ("first", ctypes.POINTER(_Entry)))


_REGISTER = 1
_entries: list[tuple[_Entry, Any]] = []


def register_with_gdb(functions: list[Function]) -> None:
    """Adds code to the list that GDB reads."""
    places = find_registration()
    if not functions or places is None:
        return
    descriptor_at, notify_at = places
    content = make_elf(functions)
    memory = ctypes.create_string_buffer(content, len(content))
    descriptor = _Descriptor.from_address(descriptor_at)
    entry = _Entry(descriptor.first, None, ctypes.addressof(memory), len(content))
    if descriptor.first:
        descriptor.first.contents.previous = ctypes.pointer(entry)
    descriptor.first = descriptor.relevant = ctypes.pointer(entry)
    descriptor.version, descriptor.action = 1, _REGISTER
    _entries.append((entry, memory))
    ctypes.CFUNCTYPE(None)(notify_at)()


@functools.cache
def find_registration() -> tuple[int, int] | None:
    """Where LLVM has the list, and the function at which GDB stops: names of llvmlite's library that only its
    own table of symbols has. None where that was stripped."""
    path, known = llvm.ffi.lib._name, "LLVMPY_InitializeNativeTarget"
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = find_symbols(data, (known, "__jit_debug_descriptor", "__jit_debug_register_code"))
    if len(found) < 3:
        warnings.warn(f"code_map: {path} has no table of symbols, so that GDB is told nothing",
                      RuntimeWarning, stacklevel=2)
        return None
    known_at, *others = found
    base = ctypes.cast(getattr(ctypes.CDLL(path), known), ctypes.c_void_p).value - known_at
    return tuple(base + at for at in others)


def find_symbols(data: Any, names: Sequence[str]) -> list[int]:
    """Values of symbols of an ELF file, as far as it has them."""
    header = _ELF_HEADER.unpack_from(data)
    places = [header[6] + number * _SECTION.size for number in range(header[12])]
    sections, found = [_SECTION.unpack_from(data, place) for place in places], []
    for _, kind, _, _, at, size, link, *_ in sections:
        if kind == _SYMTAB:
            names_at = sections[link][4]
            fields = [("name", "<u4"), ("", "<u4"), ("value", "<u8"), ("", "<u8")]
            rows = np.ndarray(size // _SYMBOL.size, fields, data[at : at + size])
            for name in names:
                place = data.find(b"\0%b\0" % name.encode(), names_at) + 1 - names_at
                found += rows["value"][rows["name"] == place][:1].tolist()
    return found


_ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_GLOBAL_FUNCTION, _NOBITS, _SYMTAB, _STRTAB = 0x12, 8, 2, 3


def make_elf(functions: list[Function]) -> bytes:
    """An ELF file with nothing but symbols: the code stands in memory already."""
    start = min(function.start for function in functions)
    end = max(function.start + len(function.code) for function in functions)
    names, symbols = bytearray(b"\0"), bytearray(_SYMBOL.size)
    for function in functions:
        at = function.start - start
        symbols += _SYMBOL.pack(len(names), _GLOBAL_FUNCTION, 0, 1, at, len(function.code))
        names += function.name.encode() + b"\0"
    sections_names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    symbols_at = _ELF_HEADER.size
    names_at = symbols_at + len(symbols)
    sections_names_at = names_at + len(names)
    table_at = sections_names_at + len(sections_names) + -(sections_names_at + len(sections_names)) % 8
    table = b"".join((
        bytes(_SECTION.size),
        _SECTION.pack(1, _NOBITS, 6, start, 0, end - start, 0, 0, 16, 0),  # allocated and executable
        _SECTION.pack(7, _SYMTAB, 0, 0, symbols_at, len(symbols), 3, 1, 8, _SYMBOL.size),
        _SECTION.pack(15, _STRTAB, 0, 0, names_at, len(names), 0, 0, 1, 0),
        _SECTION.pack(23, _STRTAB, 0, 0, sections_names_at, len(sections_names), 0, 0, 1, 0)))
    kind = 1  # relocatable: symbols count from their section
    header = _ELF_HEADER.pack(b"\x7fELF\x02\x01\x01", kind, _X86_64, 1, 0, 0, table_at, 0,
                              _ELF_HEADER.size, 0, 0, _SECTION.size, 5, 4)
    return (header + symbols + names + sections_names).ljust(table_at, b"\0") + table
