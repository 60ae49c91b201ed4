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

import numpy as np

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.machine.tuning import Runtime
from jitcore.backends.cpu.native import images, libraries
from jitcore.backends.cpu.native.images import Cells, fill

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


def choose_allocator(nbytes: int) -> Callable[..., np.ndarray]:
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
def _open(tuning: Runtime) -> tuple[Callable[..., np.ndarray], Callable[[], None]]:
    """(what makes arrays, what gives kept blocks back), NumPy's own where this process allows no other."""
    with images.link_lock:
        plain = np.empty, lambda: None
        if not hasattr(os, "fork"):  # without posix_memalign
            return plain
        table = _find_numpy_table()
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


def _find_numpy_table():
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


def _is_ours(array: np.ndarray) -> bool:
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


def _render(tuning: Runtime) -> str:
    advise = f"call i32 @madvise(ptr %block, i64 %capacity, i32 {14})" if _asks_for_huge_pages() else ""
    return fill(_TEXT, _Cells, line=_LINE, slack=_LINE << _LINES_BITS, shift=64 - _LINES_BITS,
                large=tuning.large_bytes, most=_MAX_BLOCKS, huge_page=_HUGE_PAGE, huge=tuning.huge_bytes,
                advise=f"%advised = {advise}" if advise else "")


# The line before an array's memory tells the capacity of its block, and the block. Capacities are rounded up
# by at most an eighth, so that arrays of about the same size use each other's blocks. All functions are
# `optnone`: compiling them well takes longer than a process's arrays would make up for.
_TEXT = """
%Block = type { ptr, i64 }

@jitcore_memory_cells = external global i8

declare i64 @llvm.ctlz.i64(i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
declare i32 @sched_yield()
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @Py_DecRef(ptr)

define internal void @lock() noinline optnone {
enter:
  br label %try
try:
  %before = atomicrmw xchg ptr $LOCK, i64 1 acquire
  %is_mine = icmp eq i64 %before, 0
  br i1 %is_mine, label %done, label %wait
wait:
  %ignored = call i32 @sched_yield()
  br label %try
done:
  ret void
}

define internal void @unlock() noinline optnone {
  store atomic i64 0, ptr $LOCK release, align 8
  ret void
}

define internal i64 @round(i64 %size) noinline optnone {
  %total = add i64 %size, $SLACK
  %zeros = call i64 @llvm.ctlz.i64(i64 %total, i1 true)
  %shift = sub i64 60, %zeros  ; an eighth of the power of two below
  %is_small = icmp slt i64 %shift, 12
  %bits = select i1 %is_small, i64 12, i64 %shift
  %step = shl i64 1, %bits
  %most = add i64 %step, -1
  %up = add i64 %total, %most
  %mask = sub i64 0, %step
  %capacity = and i64 %up, %mask
  ret i64 %capacity
}

; Takes block %place out of those that are kept, under the lock.
define internal ptr @take(i64 %place) noinline optnone {
  %at = getelementptr %Block, ptr $BLOCKS, i64 %place
  %block = load ptr, ptr %at
  %capacity.at = getelementptr %Block, ptr %at, i32 0, i32 1
  %capacity = load i64, ptr %capacity.at
  %kept = load i64, ptr $KEPT
  %kept_now = sub i64 %kept, %capacity
  store i64 %kept_now, ptr $KEPT
  %count = load i64, ptr $COUNT
  %count_now = sub i64 %count, 1
  store i64 %count_now, ptr $COUNT
  %next = getelementptr %Block, ptr %at, i64 1
  %later = sub i64 %count_now, %place
  %bytes = shl i64 %later, 4
  call void @llvm.memmove.p0.p0.i64(ptr %at, ptr %next, i64 %bytes, i1 false)
  ret ptr %block
}

; The latest block of a capacity, or null.
define internal ptr @find(i64 %capacity) noinline optnone {
enter:
  call void @lock()
  %count = load i64, ptr $COUNT
  br label %test
test:
  %left = phi i64 [ %count, %enter ], [ %place, %look ]
  %is_none = icmp eq i64 %left, 0
  br i1 %is_none, label %done, label %look
look:
  %place = sub i64 %left, 1
  %at = getelementptr %Block, ptr $BLOCKS, i64 %place, i32 1
  %have = load i64, ptr %at
  %fits = icmp eq i64 %have, %capacity
  br i1 %fits, label %found, label %test
found:
  %block = call ptr @take(i64 %place)
  br label %done
done:
  %result = phi ptr [ null, %test ], [ %block, %found ]
  call void @unlock()
  ret ptr %result
}

define void @jitcore_drop() noinline optnone {
enter:
  call void @lock()
  br label %test
test:
  %count = load i64, ptr $COUNT
  %is_done = icmp eq i64 %count, 0
  br i1 %is_done, label %done, label %drop
drop:
  %place = sub i64 %count, 1
  %block = call ptr @take(i64 %place)
  call void @free(ptr %block)
  br label %test
done:
  call void @unlock()
  ret void
}

define internal ptr @make(i64 %capacity) noinline optnone {
enter:
  %slot = alloca ptr
  %is_huge = icmp uge i64 %capacity, $HUGE
  %align = select i1 %is_huge, i64 $HUGE_PAGE, i64 $LINE
  %failure = call i32 @posix_memalign(ptr %slot, i64 %align, i64 %capacity)
  %has_failed = icmp ne i32 %failure, 0
  br i1 %has_failed, label %again, label %made
again:
  call void @jitcore_drop()
  %second = call i32 @posix_memalign(ptr %slot, i64 %align, i64 %capacity)
  %is_over = icmp ne i32 %second, 0
  br i1 %is_over, label %none, label %made
made:
  %block = load ptr, ptr %slot
  br i1 %is_huge, label %advise, label %done
advise:
  $ADVISE
  br label %done
done:
  ret ptr %block
none:
  ret ptr null
}

define ptr @jitcore_malloc(ptr %context, i64 %size) noinline optnone {
enter:
  %capacity = call i64 @round(i64 %size)
  %known = call ptr @find(i64 %capacity)
  %is_known = icmp ne ptr %known, null
  br i1 %is_known, label %start, label %new
new:
  %made = call ptr @make(i64 %capacity)
  %is_null = icmp eq ptr %made, null
  br i1 %is_null, label %fail, label %start
start:
  %block = phi ptr [ %known, %enter ], [ %made, %new ]
  %address = ptrtoint ptr %block to i64
  %page = lshr i64 %address, 12
  %mixed = mul i64 %page, -7046029254386353131  ; a random line, always the same for a block
  %line = lshr i64 %mixed, $SHIFT
  %distance = mul i64 %line, $LINE
  %head = getelementptr i8, ptr %block, i64 %distance
  store i64 %capacity, ptr %head
  %block.at = getelementptr i8, ptr %head, i64 8
  store ptr %block, ptr %block.at
  %memory = getelementptr i8, ptr %head, i64 $LINE
  ret ptr %memory
fail:
  ret ptr null
}

define ptr @jitcore_calloc(ptr %context, i64 %count, i64 %each) noinline optnone {
enter:
  %size = mul i64 %count, %each
  %memory = call ptr @jitcore_malloc(ptr %context, i64 %size)
  %is_null = icmp eq ptr %memory, null
  br i1 %is_null, label %done, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %memory, i8 0, i64 %size, i1 false)
  br label %done
done:
  ret ptr %memory
}

define void @jitcore_free(ptr %context, ptr %memory, i64 %size) noinline optnone {
enter:
  %is_null = icmp eq ptr %memory, null
  br i1 %is_null, label %done, label %read
read:
  %head = getelementptr i8, ptr %memory, i64 -$LINE
  %capacity = load i64, ptr %head
  %block.at = getelementptr i8, ptr %head, i64 8
  %block = load ptr, ptr %block.at
  %limit = load i64, ptr $LIMIT
  %is_small = icmp slt i64 %capacity, $LARGE
  %is_large = icmp sgt i64 %capacity, %limit
  %goes = or i1 %is_small, %is_large
  br i1 %goes, label %give, label %keep
give:
  call void @free(ptr %block)
  br label %done
keep:
  call void @lock()
  br label %test
test:
  %count = load i64, ptr $COUNT
  %kept = load i64, ptr $KEPT
  %kept_now = add i64 %kept, %capacity
  %is_full = icmp eq i64 %count, $MOST
  %is_over = icmp sgt i64 %kept_now, %limit
  %has_no_room = or i1 %is_full, %is_over
  br i1 %has_no_room, label %drop, label %add
drop:
  %oldest = call ptr @take(i64 0)
  call void @free(ptr %oldest)
  br label %test
add:
  %at = getelementptr %Block, ptr $BLOCKS, i64 %count
  store ptr %block, ptr %at
  %capacity.at = getelementptr %Block, ptr %at, i32 0, i32 1
  store i64 %capacity, ptr %capacity.at
  %count_now = add i64 %count, 1
  store i64 %count_now, ptr $COUNT
  store i64 %kept_now, ptr $KEPT
  call void @unlock()
  br label %done
done:
  ret void
}

define ptr @jitcore_realloc(ptr %context, ptr %memory, i64 %size) noinline optnone {
enter:
  %new = call ptr @jitcore_malloc(ptr %context, i64 %size)
  %is_null = icmp eq ptr %new, null
  %is_first = icmp eq ptr %memory, null
  %has_no_old = or i1 %is_null, %is_first
  br i1 %has_no_old, label %done, label %move
move:
  %head = getelementptr i8, ptr %memory, i64 -$LINE
  %capacity = load i64, ptr %head
  %old_size = sub i64 %capacity, $SLACK
  %grows = icmp slt i64 %old_size, %size
  %bytes = select i1 %grows, i64 %old_size, i64 %size
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %memory, i64 %bytes, i1 false)
  call void @jitcore_free(ptr %context, ptr %memory, i64 %old_size)
  br label %done
done:
  ret ptr %new
}

; numpy.empty under our handler.
define ptr @jitcore_allocate(ptr %self, ptr %args, i64 %nargs) noinline optnone {
enter:
  %set = load ptr, ptr $SET_HANDLER
  %ours = load ptr, ptr $HANDLER
  %before = call ptr %set(ptr %ours)
  %has_failed = icmp eq ptr %before, null
  br i1 %has_failed, label %fail, label %make
make:
  %empty = load ptr, ptr $EMPTY
  %array = call ptr @PyObject_Vectorcall(ptr %empty, ptr %args, i64 %nargs, ptr null)
  %after = call ptr %set(ptr %before)
  call void @Py_DecRef(ptr %before)
  %is_set = icmp ne ptr %after, null
  br i1 %is_set, label %drop, label %done
drop:
  call void @Py_DecRef(ptr %after)
  br label %done
done:
  ret ptr %array
fail:
  ret ptr null
}
"""


def write_arena(size: int, names: dict) -> str:
    """The line of Python that gets the block `schedule.buffers` for one call of a program.

    names: where what the line uses is added."""
    names |= {"make_arena": choose_allocator(size), "arena_dtype": np.dtype(np.uint8)}
    return f"arena = make_arena({size}, arena_dtype)"
