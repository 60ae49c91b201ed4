"""Memory of large arrays: where it begins, and what becomes of it when an array is gone.

In: shapes and dtypes of the outputs and temporaries of programs, and of copies. Out: ndarrays that own their
memory, like NumPy's. It begins at a cache line, where NumPy's begins in the midst of one: whole vectors that
lie across two lines take up to a fifth longer to sum. Blocks of large arrays begin at a huge page, and the
arrays at different lines of their blocks, as the processor's first cache holds few lines of equal places in
their pages: kernels that walk through many arrays would drive out their own.

Blocks that are free are kept for later arrays of about their size, the latest first, whose lines may still be
in the cache: the C library returns large ones to the system, and its zeroing of their pages takes longer than
many programs. What is kept is bounded; the oldest go first.

NumPy calls the functions of this module through a memory handler, which every array remembers for its end. It
is in force only while `allocate` runs: other arrays of the process are made as before.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.machine.tuning import Runtime
from jitcore.backends.cpu.native import images, libraries
from jitcore.backends.cpu.native.images import Cells
from jitcore.process.lazy import LazyModule

if TYPE_CHECKING:
    import numpy

    from jitcore.backends.cpu.native.text_writer import RuntimeWriter

np = LazyModule("numpy")  # scripts that do without it need not load it
#: It is loaded where the code is not on disk.
writing = LazyModule("jitcore.backends.cpu.native.text_writer")

_NAME = b"jitcore"
_LINE = 64  # bytes of a cache line; also those before an array's memory, which tell its block and capacity
_LINES_BITS = 6  # lines of a page, at one of which an array begins
_HUGE_PAGE = 1 << 21
_MAX_BLOCKS = 64
_SET_HANDLER = 304  # in NumPy's table of functions
_POINTER, _INT64 = ctypes.c_void_p, ctypes.c_int64


class _Cells(Cells):
    """blocks: pairs of address and capacity of what is kept, the oldest first."""

    symbol = "jitcore_memory_cells"
    _fields_ = (
        ("lock", _INT64),
        ("limit", _INT64),
        ("kept", _INT64),
        ("count", _INT64),
        ("set_handler", _POINTER),
        ("handler", _POINTER),
        ("empty", _POINTER),
        ("blocks", _INT64 * (2 * _MAX_BLOCKS)),
    )


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", _POINTER),
        ("malloc", _POINTER),
        ("calloc", _POINTER),
        ("realloc", _POINTER),
        ("free", _POINTER),
    )


_cells, _handler = _Cells(), _Handler()


def choose_allocator(nbytes: int) -> Callable[..., numpy.ndarray]:
    """A function of shape and dtype that makes arrays of about this size, their elements undefined."""
    tuning = host.MACHINE.tuning.runtime
    return np.empty if nbytes < tuning.large_bytes else _open(tuning)[0]


def foresee_allocator(nbytes: int) -> None:
    """Says that `choose_allocator` will soon be asked for arrays of about this size."""
    tuning = host.MACHINE.tuning.runtime
    if nbytes >= tuning.large_bytes and not _open.cache_info().currsize and hasattr(os, "fork"):
        libraries.compile_ahead(*_describe_module(tuning))


def count_kept_bytes() -> int:
    """Bytes of the blocks that wait for later arrays."""
    return _cells.kept


def drop_blocks() -> None:
    """Gives the blocks that are kept back to the C library."""
    if _cells.count:
        _open(host.MACHINE.tuning.runtime)[1]()


@functools.cache
def _open(tuning: Runtime) -> tuple[Callable[..., numpy.ndarray], Callable[[], None]]:
    """(what makes arrays, what gives kept blocks back), NumPy's own where this process allows no other."""
    with images.link_lock:
        plain = np.empty, lambda: None
        if not hasattr(os, "fork"):  # without posix_memalign
            return plain
        table = find_numpy_table()
        if table is None:
            return plain
        library, _ = libraries.find_or_compile(*_describe_module(tuning))
        _handler.name, _handler.version = _NAME, 1
        for name in ("malloc", "calloc", "realloc", "free"):
            setattr(_handler, name, library.address(f"jitcore_{name}"))
        new_capsule = ctypes.pythonapi.PyCapsule_New
        new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [_POINTER, ctypes.c_char_p, _POINTER]
        name = ctypes.create_string_buffer(b"mem_handler")
        capsule = new_capsule(ctypes.addressof(_handler), ctypes.cast(name, ctypes.c_char_p), None)
        _cells.set_handler, _cells.handler, _cells.empty = table[_SET_HANDLER], id(capsule), id(np.empty)
        _cells.limit = min(tuning.max_kept_bytes, _count_memory(tuning.max_kept_bytes) // tuning.kept_part)
        _keep_for_ever((library, name, capsule, _cells, _handler))
        doc = "allocate(shape, dtype) -> ndarray whose elements are undefined"
        allocate = library.make_builtin("allocate", "jitcore_allocate", doc)
        drop = ctypes.PYFUNCTYPE(None)(library.address("jitcore_drop"))
        return (allocate, drop) if _is_ours(allocate((tuning.large_bytes,), np.uint8)) else plain


def find_numpy_table():
    """NumPy's table of C functions, or None where it has no memory handlers."""
    umath = getattr(np, "_core", None) or np.core
    umath = umath._multiarray_umath
    if tuple(map(int, np.__version__.split(".")[:2])) < (1, 22):
        return None
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = _POINTER, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get_pointer(umath._ARRAY_API, None), ctypes.POINTER(_POINTER))


def _keep_for_ever(thing: object) -> None:
    """Arrays may outlive every module: they are freed when the interpreter has nearly ended."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _is_ours(array: numpy.ndarray) -> bool:
    """Whether NumPy took the array's memory from here."""
    start = array.ctypes.data
    capacity = _INT64.from_address(start - _LINE).value
    return start % _LINE == 0 and capacity >= array.nbytes + _LINE and array.flags.owndata


def _count_memory(usual: int) -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return usual


def _asks_for_huge_pages() -> bool:
    return sys.platform == "linux" and os.environ.get("NUMPY_MADVISE_HUGEPAGE") != "0"


def _describe_module(tuning: Runtime) -> tuple[str, str, Callable[[], str]]:
    return "memory", f"huge pages: {_asks_for_huge_pages()}", functools.partial(_render, tuning)


# The line before an array's memory tells the capacity of its block, and the block. Capacities are rounded up
# by at most an eighth, so that arrays of about the same size use each other's blocks. All functions are
# `optnone`: compiling them well takes longer than a process's arrays would make up for.
def _render(tuning: Runtime) -> str:
    w = writing.RuntimeWriter(tuning, "noinline optnone")
    w.declare(_Cells.declaration)
    _write_lock(w)
    _write_kept(w)
    _write_new(w)
    _write_handler(w)
    _write_free(w)
    _write_realloc(w)
    _write_allocate(w)
    return w.text()


_cell = _Cells.locate
#: The address and the capacity of a block.
_BLOCK = "[2 x i64]"


def _write_lock(w: RuntimeWriter) -> None:
    with w.function("internal void @lock()"):
        with w.repeat() as until:
            before = w.let(f"atomicrmw xchg ptr {_cell('lock')}, i64 1 acquire")
            until(w.compare("eq", before, 0))
            w.call("sched_yield")
    with w.function("internal void @unlock()"):
        w.store_atomic(0, _cell("lock"), order="release")


def _write_kept(w: RuntimeWriter) -> None:
    """take: takes one of the blocks that are kept out of these, under the lock. find: the latest one of a
    capacity, or null. drop: gives all of them back."""
    with w.function("internal ptr @take(i64 %place)", None):
        at = w.element(_cell("blocks"), "%place", _BLOCK)
        block, capacity = w.load(at, "ptr"), w.item(at, 1, "i64")
        w.store(w.sub(w.load(_cell("kept")), capacity), _cell("kept"))
        count = w.sub(w.load(_cell("count")), 1)
        w.store(count, _cell("count"))
        later = w.mul(w.sub(count, "%place"), 16)
        w.call("llvm.memmove.p0.p0.i64", at, w.element(at, 1, _BLOCK), later, "false")
        w.do(f"ret ptr {block}")
    with w.function("internal ptr @find(i64 %capacity)", None):
        w.call("lock")
        count = w.load(_cell("count"))
        with w.loop(0, count) as k:
            place = w.sub(w.sub(count, 1), k)
            have = w.item(w.element(_cell("blocks"), place, _BLOCK), 1, "i64")
            with w.when(w.compare("eq", have, "%capacity")):
                block = w.call("take", place)
                w.call("unlock")
                w.do(f"ret ptr {block}")
        w.call("unlock")
        w.do("ret ptr null")
    with w.function("void @jitcore_drop()"):
        w.call("lock")
        with w.repeat() as until:
            count = w.load(_cell("count"))
            until(w.compare("eq", count, 0))
            w.call("free", w.call("take", w.sub(count, 1)))
        w.call("unlock")


def _write_new(w: RuntimeWriter) -> None:
    """round: the capacity of the blocks for a size. make: a new block, or null."""
    with w.function("internal i64 @round(i64 %size)", None):
        total = w.add("%size", _LINE << _LINES_BITS)
        zeros = w.call("llvm.ctlz.i64", total, "true")
        step = w.let(f"shl i64 1, {w.maximum(w.sub(60, zeros), 12)}")  # an eighth of the power of two below
        up = w.add(total, w.sub(step, 1))
        w.do(f"ret i64 {w.let(f'and i64 {up}, {w.sub(0, step)}')}")
    with w.function("internal ptr @make(i64 %capacity)", None):
        slot = w.let("alloca ptr")
        is_huge = w.compare("uge", "%capacity", w.tuning.huge_bytes)
        given = slot, w.choose(is_huge, _HUGE_PAGE, _LINE), "%capacity"
        with w.when(w.compare("ne", w.call("posix_memalign", *given), 0, "i32")):
            w.call("jitcore_drop")
            with w.when(w.compare("ne", w.call("posix_memalign", *given), 0, "i32")):
                w.do("ret ptr null")
        block = w.load(slot, "ptr")
        if _asks_for_huge_pages():
            with w.when(is_huge):
                w.call("madvise", block, "%capacity", 14)  # MADV_HUGEPAGE
        w.do(f"ret ptr {block}")


def _write_handler(w: RuntimeWriter) -> None:
    with w.function("ptr @jitcore_malloc(ptr %context, i64 %size)", None):
        capacity = w.call("round", "%size")
        found = w.variable(w.call("find", capacity), "ptr")
        with w.when(w.is_null(w.load(found, "ptr"))):
            w.store(w.call("make", capacity), found, "ptr")
        block = w.load(found, "ptr")
        with w.when(w.is_null(block)):
            w.do("ret ptr null")
        page = w.let(f"lshr i64 {w.let(f'ptrtoint ptr {block} to i64')}, 12")
        mixed = w.mul(page, -7046029254386353131)  # a random line, always the same for a block
        line = w.let(f"lshr i64 {mixed}, {64 - _LINES_BITS}")
        head = w.at(block, w.mul(line, _LINE))
        w.store(capacity, head)
        w.store(block, w.at(head, 8), "ptr")
        w.do(f"ret ptr {w.at(head, _LINE)}")
    with w.function("ptr @jitcore_calloc(ptr %context, i64 %count, i64 %each)", None):
        size = w.mul("%count", "%each")
        memory = w.call("jitcore_malloc", "%context", size)
        with w.when(w.compare("ne", memory, "null", "ptr")):
            w.call("llvm.memset.p0.i64", memory, 0, size, "false")
        w.do(f"ret ptr {memory}")


def _write_free(w: RuntimeWriter) -> None:
    with w.function("void @jitcore_free(ptr %context, ptr %memory, i64 %size)"):
        with w.when(w.is_null("%memory")):
            w.do("ret void")
        head = w.at("%memory", -_LINE)
        capacity, block, limit = w.load(head), w.item(head, 1), w.load(_cell("limit"))
        is_small = w.compare("slt", capacity, w.tuning.large_bytes)
        is_large = w.compare("sgt", capacity, limit)
        with w.when(w.let(f"or i1 {is_small}, {is_large}")):
            w.call("free", block)
            w.do("ret void")
        w.call("lock")
        with w.repeat() as until:
            count, kept = w.load(_cell("count")), w.add(w.load(_cell("kept")), capacity)
            has_place, has_room = w.compare("ne", count, _MAX_BLOCKS), w.compare("sle", kept, limit)
            until(w.let(f"and i1 {has_place}, {has_room}"))
            w.call("free", w.call("take", 0))
        place = w.element(_cell("blocks"), count, _BLOCK)
        w.store(block, place, "ptr")
        w.store(capacity, w.at(place, 8))
        w.store(w.add(count, 1), _cell("count"))
        w.store(kept, _cell("kept"))
        w.call("unlock")


def _write_realloc(w: RuntimeWriter) -> None:
    with w.function("ptr @jitcore_realloc(ptr %context, ptr %memory, i64 %size)", None):
        new = w.call("jitcore_malloc", "%context", "%size")
        with w.when(w.let(f"or i1 {w.is_null(new)}, {w.is_null('%memory')}")):
            w.do(f"ret ptr {new}")
        old_size = w.sub(w.load(w.at("%memory", -_LINE)), _LINE << _LINES_BITS)
        w.call("llvm.memcpy.p0.p0.i64", new, "%memory", w.minimum(old_size, "%size"), "false")
        w.call("jitcore_free", "%context", "%memory", old_size)
        w.do(f"ret ptr {new}")


def _write_allocate(w: RuntimeWriter) -> None:
    """numpy.empty under our handler."""
    with w.function("ptr @jitcore_allocate(ptr %self, ptr %args, i64 %nargs)", None):
        set_handler = w.load(_cell("set_handler"), "ptr")
        before = w.let(f"call ptr {set_handler}(ptr {w.load(_cell('handler'), 'ptr')})")
        with w.when(w.is_null(before)):
            w.do("ret ptr null")
        array = w.call("PyObject_Vectorcall", w.load(_cell("empty"), "ptr"), "%args", "%nargs", "null")
        after = w.let(f"call ptr {set_handler}(ptr {before})")
        w.call("Py_DecRef", before)
        with w.when(w.compare("ne", after, "null", "ptr")):
            w.call("Py_DecRef", after)
        w.do(f"ret ptr {array}")


def write_arena(size: int, names: dict) -> str:
    """The line of Python that gets the block `schedule.buffers` for one call of a program.

    names: where what the line uses is added."""
    names |= {"make_arena": choose_allocator(size), "arena_dtype": np.dtype(np.uint8)}
    return f"arena = make_arena({size}, arena_dtype)"
