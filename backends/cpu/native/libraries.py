"""Libraries: machine code of modules, compiled, linked and kept on disk, some of it ahead of its use.

In: an llvmlite module (or its text) whose exported functions are complete kernels. Out: a `Library` that
holds machine code and gives addresses. Stage: the last one of compilation, after rendering a loop program to
LLVM IR.

`translate` makes object files, linked by `objects` into images, which `images` loads, in this process and
from disk in others. Where `objects` does not know the form of object files, LLVM's own linker (ORC) loads
them, and they are not kept on disk.

Modules that a module calls are compiled ahead: another thread translates them while this one translates the
first, see `images.foresee`. Who asks for what nobody has begun makes it itself, and who has to wait makes
something else that waits. The thread ends when nothing is left to begin.

`NativeProgram` is the machine code of a program, found by key in this process or on disk without a compiler.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import re
import struct
import threading
import zlib
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.native import images, objects
from jitcore.backends.cpu.native.images import Image, LoadedImage
from jitcore.backends.cpu.native.translate import (NativeCodeError, ObjectCode, compiler_lock, emit_assembly,
                                                   in_second_lane, load_compiler, optimize_ir, translate)
from jitcore.config import config
from jitcore.dispatch import disk_cache
from jitcore.events.publishing import span
from jitcore.process.concurrency import Lock, RecentlyUsed, available_cores
from jitcore.process.lazy import LazyModule

conversions = LazyModule("jitcore.backends.cpu.native.conversions")
llvm = LazyModule("llvmlite.binding")

if TYPE_CHECKING:
    import llvmlite.ir


class _Job:
    """make: gives what is asked for; None if there is nothing, or it failed: who needs it tries again."""

    __slots__ = ("make", "made", "is_begun", "is_done")

    def __init__(self, make: Callable[[], Any]):
        self.make, self.made = make, None
        self.is_begun, self.is_done = False, threading.Event()

    def run(self) -> None:
        try:
            self.made = self.make()
        except Exception:
            self.made = None
        finally:
            self.is_done.set()


_lock = Lock()
_jobs: dict[Hashable, _Job] = {}  # what nobody has asked for yet
_worker: threading.Thread | None = None


def begin(key: Hashable, make: Callable[[], Any]) -> None:
    """Lets `make` run soon, unless something of this key waits for being asked for.

    It runs in the second lane of `translate`, or in that of who asks for what it makes."""
    global _worker
    with _lock:
        if key in _jobs:
            return
        _jobs[key] = _Job(make)
        if _worker is not None:
            return
        _worker = threading.Thread(target=_work, name="jitcore compiler")
    try:
        _worker.start()
    except RuntimeError:  # there can be no more threads, or the interpreter ends
        with _lock:
            _worker = None


def finish(key: Hashable) -> Any:
    """What was made under a key, once; None if nothing was."""
    with _lock:
        job = _jobs.pop(key, None)
        if job is None:
            return None
        is_mine, job.is_begun = not job.is_begun, True
    if is_mine:
        job.run()
    while not job.is_done.is_set():
        other = _take_next()
        if other is None:
            job.is_done.wait()
        else:
            other.run()
    return job.made


def _take_next() -> _Job | None:
    with _lock:
        job = next((job for job in _jobs.values() if not job.is_begun), None)
        if job is not None:
            job.is_begun = True
        return job


def _work() -> None:
    global _worker
    with in_second_lane() as lane_lock:
        while True:
            with lane_lock:
                job = _take_next()
                if job is not None:
                    job.run()
                    continue
            with _lock:
                if all(job.is_begun for job in _jobs.values()):
                    _worker = None
                    return


def _forget() -> None:
    """In a forked child, which does not have the thread."""
    global _worker
    _worker = None
    _jobs.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


DEFAULT_OPT_LEVEL = 1

# What a module expects of others, in LLVM's text.
_DECLARATION = re.compile(r"^declare [^@]*@([\w.]+)\(", re.MULTILINE)

_IR_SIZE = struct.Struct("<I")
_library_numbers = itertools.count()


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (("ml_name", ctypes.c_char_p), ("ml_meth", ctypes.c_void_p), ("ml_flags", ctypes.c_int),
                ("ml_doc", ctypes.c_char_p))


_METH_FASTCALL = 0x0080


@functools.cache
def _define_method(library: Library, name: str, symbol: str, doc: str) -> _MethodDef:
    """Kept for good, with the library: CPython reads it as long as one of its functions lives."""
    return _MethodDef(name.encode(), library.address(symbol), _METH_FASTCALL, doc.encode())


class Library:
    """Machine code of one module. Keep it alive for as long as one of its addresses may be called.

    Attributes:
        name: what the caller called it; need not be unique.
        opt_level: 0 to 3, see `compile_module`.
        symbols: names of the exported functions."""

    def __init__(self, name: str, opt_level: int, packed_ir: bytes, code, exports):
        self.name = name
        self.opt_level = opt_level
        self.symbols = tuple(exports)
        self._packed_ir = packed_ir
        self._code = code

    @property
    def llvm_ir(self) -> str:
        """The IR text that was compiled."""
        return zlib.decompress(self._packed_ir).decode()

    def address(self, symbol: str) -> int:
        """Address of an exported function. Raises: NativeCodeError when the module does not define it."""
        if symbol not in self.symbols:
            raise NativeCodeError(f"library {self.name} exports {', '.join(self.symbols)}, not {symbol!r}")
        return self._code[symbol]

    def make_builtin(self, name: str, symbol: str, doc: str, owner: Any = None) -> Callable:
        """A built-in function of Python around an exported `PyObject *(PyObject *self, PyObject *const *args,
        Py_ssize_t nargs)`. The library stays loaded. owner: what it gets as `self`; None for NULL."""
        new_function = ctypes.pythonapi.PyCFunction_NewEx
        new_function.restype = ctypes.py_object
        new_function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        method = _define_method(self, name, symbol, doc)
        return new_function(ctypes.addressof(method), None if owner is None else id(owner), None)

    def optimized_ir(self) -> str:
        """IR text after the passes. Recomputed at each call, so that kernels do not keep their modules."""
        with compiler_lock():
            return str(optimize_ir(self.llvm_ir, self.opt_level))

    def assembly(self) -> str:
        """Assembly text of the machine code. Recomputed at each call."""
        return emit_assembly(self.llvm_ir, self.opt_level)

    def __repr__(self):
        return f"Library({self.name}: {', '.join(self.symbols)})"


def compile_module(module: llvmlite.ir.Module | str, name: str, *, opt_level: int | None = None) -> Library:
    """Compile LLVM IR for this processor.

    Args:
        module: a module or its text. Triple and data layout are set here. Every function with external
            linkage is exported; declared ones are looked up among the provided ones (`images`) and
            the process's own.
        name: for messages and `repr`; libraries of the same name do not clash, and neither do their symbols.
        opt_level: 0 none; 1 (default) the cleaning passes that explicit vector code needs, and those of level
            3 for functions of scalar loops (`translate`); 2 LLVM's O2
            pipeline (adds inlining, loop-invariant code motion, value numbering) without vectoriser and
            unrolling; 3 LLVM's O3 with both, for scalar loops that LLVM shall vectorise. The machine-code
            stage is the same for all; it is a fifth as long for a module whose functions all are `optnone`:
            code that runs seldom beside what it prepares.
    Returns: the linked library.
    Raises: NativeCodeError for IR that does not parse or verify, and for symbols nobody defines.
    Cost: 4.8 ms for a fused SELU (vector loop and scalar rest), 23 ms for 500 fused operations; level 2 takes
        twice, level 3 three times that. Numba's own library takes 26 and 127 ms."""
    level = _check_level(opt_level)
    return _link(name, level, _translate(name, module, level))


#: What people call a function of a module; "" where that is its own name.
Describe = Callable[[str], str]


class LoadedCode(NamedTuple):
    """What profilers and debuggers are told of: which library, where its image begins; the object file that
    it was linked from, b"" where it comes from disk."""

    library: str
    start: int
    image: Image
    content: bytes
    describe: Describe | None

    def list_functions(self) -> list[tuple[str, str, int, int]]:
        """(line of the user's or "", name, offset, bytes); the whole image where its functions are not
        known."""
        whole = [(self.library, 0, len(self.image.code))]
        known = objects.list_functions(self.content) if self.content else whole
        return [(self.describe(name) if self.describe else "", name, *place) for name, *place in known]


class _Code(NamedTuple):
    packed_ir: bytes
    object_code: ObjectCode


def _translate(name: str, module: llvmlite.ir.Module | str, level: int) -> _Code:
    text = str(module)
    with span("compile", library=name) as facts:
        code = _translate_text(text, level)
        facts["bytes"] = len(code.object_code.content)
        return code


def _translate_text(text: str, level: int) -> _Code:
    for symbol in _DECLARATION.findall(text):
        images.foresee(symbol)
    return _Code(zlib.compress(text.encode(), level=1), translate(text, level))


def _link(name: str, level: int, code: _Code, describe: Describe | None = None) -> Library:
    packed_ir, (content, image, exports, imports) = code
    if image is not None:
        return _load_image(name, level, packed_ir, image, content, describe)
    return Library(name, level, packed_ir, _link_by_llvm(name, content, exports, imports), exports)


def _check_level(opt_level: int | None) -> int:
    level = DEFAULT_OPT_LEVEL if opt_level is None else opt_level
    if level not in (0, 1, 2, 3):
        raise ValueError(f"opt_level is 0, 1, 2 or 3, not {opt_level!r}")
    return level


def find_or_compile(name: str, facts: str, render: Callable[[], llvmlite.ir.Module | str], *,
                    opt_level: int | None = None, describe: Describe | None = None) -> tuple[Library, bool]:
    """The library of a module, from disk if an earlier process compiled it.

    Args:
        name: as for `compile_module`.
        facts: text that differs whenever `render` gives another module in this installation.
        render: makes the module, which holds no address of this process.
        opt_level: as for `compile_module`.
        describe: what profilers and debuggers call a function of the module.
    Returns: (library, whether it was compiled now).
    Raises: as `compile_module`.
    Cost: 0.15 ms from disk."""
    level = _check_level(opt_level)
    cache = disk_cache.open_cache()
    key = None if cache is None else make_key(name, facts, opt_level=opt_level)
    found = None if key is None else find_stored(name, key, opt_level=opt_level)
    if found is not None:
        return found, False
    code = finish((name, facts, level))
    if code is None:
        with span("render"):
            module = render()
        code = _translate(name, module, level)
    library = _link(name, level, code, describe)
    image = code.object_code.image
    if key is not None and image is not None:
        cache.add(key, b"".join((_IR_SIZE.pack(len(code.packed_ir)), code.packed_ir, image.encode())))
    return library, True


def compile_ahead(name: str, facts: str, render: Callable[[], llvmlite.ir.Module | str], *,
                  opt_level: int | None = None) -> None:
    """Lets another thread begin with what `find_or_compile` will be asked for, unless it is on disk.

    Where this process is to use one core, or object code is linked by LLVM, this does nothing. The other
    thread takes no lock of those which compile."""
    level = _check_level(opt_level)
    cache = disk_cache.open_cache()  # that of this thread

    def make() -> _Code | None:
        key = None if cache is None else make_key(name, facts, opt_level=level)
        return _translate(name, render(), level) if key is None or cache.find(key) is None else None

    if objects.can_link() and config.num_threads != 1 and available_cores() > 1:
        load_compiler()
        begin((name, facts, level), make)


def make_key(name: str, facts: str, *, opt_level: int | None = None) -> bytes | None:
    """The key under which `find_or_compile` keeps a library; None where it cannot."""
    return host.make_key(name, str(_check_level(opt_level)), facts)


def find_stored(name: str, key: bytes, *, opt_level: int | None = None) -> Library | None:
    """The library that is on disk under a key of `make_key`, or None."""
    cache = disk_cache.open_cache()
    # What is on disk has no names, for which profilers and debuggers ask.
    stored = None if cache is None or config.code_map else cache.find(key)
    if stored is None:
        return None
    try:
        return _load_stored(name, _check_level(opt_level), stored)
    except ValueError:  # what was written is not what is read: it will be replaced
        return None


def _load_stored(name: str, level: int, stored: bytes) -> Library:
    """Raises: ValueError for bytes that `find_or_compile` did not write."""
    try:
        (size,) = _IR_SIZE.unpack_from(stored)
    except struct.error as damage:
        raise ValueError(str(damage)) from None
    start = _IR_SIZE.size
    packed_ir, image = stored[start : start + size], Image.decode(stored[start + size :])
    return _load_image(name, level, packed_ir, image)


def _load_image(name: str, level: int, packed_ir: bytes, image: Image, content: bytes = b"",
                describe: Describe | None = None) -> Library:
    def find_address(symbol):
        address = images.address_of(symbol) or images.find_in_process(symbol)
        if address is None:
            raise NativeCodeError(f"library {name} calls {symbol}, which no loaded library defines")
        return address

    with span("load", library=name, bytes=len(image.code)) as facts:
        try:
            code = LoadedImage(image, find_address)
        except OSError as refusal:
            raise NativeCodeError(f"library {name} cannot be loaded: {refusal}") from None
        facts["code"] = LoadedCode(name, code.start, image, content, describe)
    return Library(name, level, packed_ir, code, image.exports)


@functools.cache
def _open_linker():
    return llvm.create_lljit_compiler()


def _link_by_llvm(name, object_code, exports, imports):
    calls = [*imports, *(symbol for symbol in _CONVERSIONS if symbol.encode() in object_code)]
    addresses = {symbol: images.address_of(symbol) for symbol in calls if symbol not in exports}
    with compiler_lock():
        builder = llvm.JITLibraryBuilder().add_object_img(object_code).add_current_process()
        for symbol in exports:
            builder.export_symbol(symbol)
        for symbol, address in addresses.items():
            address = address or images.find_in_process(symbol) or llvm.address_of_symbol(symbol)
            if address is None:
                raise NativeCodeError(f"library {name} calls {symbol}, which no loaded library defines")
            builder.import_symbol(symbol, address)
        try:
            return builder.link(_open_linker(), f"{name}.{next(_library_numbers)}")
        except RuntimeError as refusal:
            raise NativeCodeError(f"library {name} does not link: {refusal}") from None


# What LLVM calls where the processor has no instruction for short floats: functions of a compiler's run-time
# library, which a Python process need not contain. The second library calls the first where need be.
_CONVERSIONS = {"__truncsfhf2": "short floats", "__truncsfbf2": "short floats",
                "__extendhfsf2": "short floats", "__truncdfhf2": "conversions", "__truncdfbf2": "conversions"}


@functools.cache
def _open_conversions(name: str) -> Library:
    return find_or_compile(name, "", functools.partial(conversions.render, name))[0]


for _symbol in _CONVERSIONS:
    images.provide(_symbol, lambda symbol: _open_conversions(_CONVERSIONS[symbol]).address(symbol))


class NativeProgram:
    """Machine code of the native steps of one canonical program.

    Attributes:
        library: that holds it; None for a program without native steps.
        addresses: an entry point per native step.
        key: under which it is kept on disk, if it is; None without a library.
        plans: how many call plans for it this process has read or written."""

    __slots__ = ("library", "addresses", "key", "plans")

    def __init__(self, library: Library | None = None, key: bytes | None = None):
        self.library, self.key, self.plans = library, key, 0
        names = [] if library is None else [name_entry(number) for number in range(len(library.symbols))]
        self.addresses = [library.address(name) for name in names]


#: Machine code of programs, by the key of their text.
code_cache = RecentlyUsed(lambda: config.cache_size)

#: Of the libraries.
NAME = "program"


def name_entry(number: int) -> str:
    return f"entry{number}"


def find_program(key: bytes, opt_level: int) -> NativeProgram | None:
    """The machine code of an earlier `compile_program`, from memory or disk, or None."""
    found = code_cache.find(key)
    if found is None:
        library = find_stored(NAME, key, opt_level=opt_level)
        if library is None:
            return None
        found = NativeProgram(library, key)
        code_cache.add(key, found)
    return found
