"""Threads of compiled kernels: the native function `jitcore_parallel_for`.

In: calls from kernels. Out: the kernel's loop body, run over all of its range by the threads of this process.
Stage: run time.

    void jitcore_parallel_for(void (*body)(i8** buffers, i64* dims, i64 start, i64 stop),
                              i8** buffers, i64* dims, i64 n, i64 grain)

calls `body` on disjoint intervals that cover [0, n), each but the last at least `grain` long, from several
threads, and returns when all are done. It may be called from several threads at a time, with or without the
GIL, and from within a body. Which interval runs where is not determined: a body that accumulates must do so
per block of its own choice.

`jitcore_parallel_sweep` is the same for ranges that lie in order in memory. Every other loop goes back
through its range, in shorter pieces, and so meets first what the loop before has left in the second caches.

Three layers can do it:

- pool: threads of jitcore's own (`pool.py`). A short loop takes 0.1 us more than without threads.
- tbb: Numba's TBB pool (1 us), where there are no POSIX threads, and on request. It is one extension module,
  which is loaded without the rest of Numba. Numba's other pools either abort when two threads enter them or
  kill forked children, so they are never used.
- serial: in the caller.

No thread starts before the first call that is worth sharing.

Where processes fork, the main thread alone enters TBB; others use the pool. TBB has a lock that each loop and
each of its threads takes in passing. A child forked meanwhile finds it taken, and Numba's handler of forks
waits for it there, for ever. TBB stops its threads before a fork, and the lock is free, only if the forking
thread alone has entered.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.machine.tuning import Runtime
from jitcore.backends.cpu.native import images, libraries
from jitcore.backends.cpu.native.images import Cells, fill
from jitcore.backends.cpu.runtime import interrupts
from jitcore.backends.cpu.runtime.pool import PoolCells, render_pool, reset_pool
from jitcore.config import config
from jitcore.process.concurrency import available_cores, default_threads

SYMBOL = "jitcore_parallel_for"
SWEEP_SYMBOL = "jitcore_parallel_sweep"

#: Layers by the number under which native code knows them.
LAYERS = ("serial", "pool", "tbb")

_SERIAL, _POOL, _TBB = range(3)
_TBB_POOL = "numba.np.ufunc.tbbpool"
_OLDEST_TBB = 12060  # interface version; what Numba's pool is built for
_TBB_FILES = {"linux": "libtbb.so.12", "darwin": "libtbb.12.dylib", "win32": "tbb12.dll"}


class _Cells(Cells):
    symbol = "jitcore_thread_cells"
    _fields_ = (
        ("num_threads", ctypes.c_int64),
        ("layer", ctypes.c_int64),
        ("tbb_parallel_for", ctypes.c_void_p),
        ("tbb_user", ctypes.c_uint64),  # the one thread that enters TBB
        ("sweeps", ctypes.c_int64),  # loops that went to or fro so far
    )


_cells, _pool_cells = _Cells(), PoolCells()
_may_start_tbb = True  # until it was tried; never in a forked child


def get_num_threads() -> int:
    """Threads a parallel kernel may use, the calling one included."""
    return _cells.num_threads or config.num_threads or default_threads()


def set_num_threads(count: int) -> None:
    """Let parallel kernels of all Python threads use `count` threads; 0: the default, as it is now.

    Raises: ValueError for a count that is not an int of at least 0."""
    if not isinstance(count, int) or count < 0:
        raise ValueError(f"number of threads is an int of at least 0, not {count!r}")
    _cells.num_threads = count or default_threads()


def open_pool() -> str:
    """Make `jitcore_parallel_for`; later calls return at once. Returns: the layer.

    Cost: 3 ms the first time."""
    with images.link_lock:
        _open_symbol()
        return LAYERS[_cells.layer]


def set_layer(name: str) -> None:
    """Use the layer `name` from now on.

    Raises: ValueError for an unknown name; RuntimeError for a layer that is missing here, as TBB is in a
        forked child and until the main thread has asked for it."""
    if name not in LAYERS:
        raise ValueError(f"threading layer is one of {', '.join(LAYERS)}, not {name!r}")
    open_pool()
    wanted = LAYERS.index(name)
    if wanted == _TBB:
        _start_tbb()
    if (wanted == _TBB and not _cells.tbb_parallel_for) or (wanted == _POOL and not interrupts.has_threads()):
        raise RuntimeError(f"threading layer {name} is not available; this process has {describe()['layer']}")
    _cells.layer = wanted


def describe() -> dict[str, object]:
    """The threading layer for people: layer, threads, cores, tbb (version of the interface, or None)."""
    layer, library = open_pool(), _load_tbb()
    return {
        "layer": layer,
        "threads": get_num_threads(),
        "cores": available_cores(),
        "tbb": None if library is None else library.TBB_runtime_interface_version(),
    }


@functools.cache
def _open_symbol() -> libraries.Library:
    """Load the adapter and arrange for forks."""
    config.subscribe("num_threads", set_num_threads)
    if interrupts.has_threads():
        reset_pool(_pool_cells)
        interrupts.reset()
        _cells.layer, _cells.tbb_user = _POOL, threading.main_thread().ident
        os.register_at_fork(after_in_child=_reset_after_fork)
    else:
        _start_tbb()
        _cells.layer = _TBB if _cells.tbb_parallel_for else _SERIAL
    library = libraries.find_or_compile(*_describe_adapter())[0]
    _keep_for_ever(library, _cells, _pool_cells, interrupts.cells)
    return library


def _describe_adapter() -> tuple[str, str, Callable[[], str]]:
    render = functools.partial(_render_adapter, host.MACHINE.tuning.runtime)
    return "threads", f"pool: {interrupts.has_threads()}", render


def _open_parallel_for(symbol: str) -> int:
    return _open_symbol().address(symbol)


def _foresee_parallel_for(symbol: str) -> None:
    libraries.compile_ahead(*_describe_adapter())


for _symbol in (SYMBOL, SWEEP_SYMBOL, *interrupts.SYMBOLS):
    images.provide(_symbol, _open_parallel_for, _foresee_parallel_for)


def _keep_for_ever(*objects: object) -> None:
    """The threads of the pools go on when the interpreter has ended."""
    for kept in objects:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


def _reset_after_fork() -> None:
    """In a forked child only the forking thread lives, and no thread of a pool."""
    global _may_start_tbb
    _may_start_tbb = False
    _cells.tbb_parallel_for = None
    _cells.layer = min(_cells.layer, _POOL)
    reset_pool(_pool_cells)
    interrupts.reset()


def _start_tbb() -> None:
    """Start Numba's TBB pool if this thread may and this process can have it."""
    global _may_start_tbb
    is_main = threading.current_thread() is threading.main_thread()
    if not _may_start_tbb or (interrupts.has_threads() and not is_main):
        return
    _may_start_tbb = False
    pool = None if _load_tbb() is None else _load_tbb_pool()
    if pool is not None:
        _keep_for_ever(pool)  # at its end it would wait for its threads, which may be of another process
        ctypes.CFUNCTYPE(None, ctypes.c_int)(pool.launch_threads)(_count_numba_threads())
        _cells.tbb_parallel_for = pool.parallel_for


def _load_tbb_pool():
    """Numba's module around TBB, or None. Numba finds it loaded when it is imported later."""
    if _TBB_POOL in sys.modules:
        return sys.modules[_TBB_POOL]
    package = importlib.util.find_spec("numba")
    for folder in (package.submodule_search_locations or ()) if package is not None else ():
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            path = os.path.join(folder, *_TBB_POOL.split(".")[1:-1], "tbbpool" + suffix)
            if os.path.exists(path):
                spec = importlib.util.spec_from_file_location(_TBB_POOL, path)
                try:
                    pool = importlib.util.module_from_spec(spec)
                    spec.loader.exec_module(pool)
                except ImportError:  # made for another TBB
                    return None
                return pool
    return None


def _count_numba_threads() -> int:
    """Threads that Numba would start: the pool is Numba's too. Each call says how many it wants."""
    numba_config = sys.modules.get("numba.core.config")
    if numba_config is not None:
        return numba_config.NUMBA_NUM_THREADS
    text = os.environ.get("NUMBA_NUM_THREADS", "")
    return max(int(text), 1) if text.isdecimal() else available_cores()


@functools.cache
def _load_tbb() -> ctypes.CDLL | None:
    """TBB, with its symbols visible to Numba's pool, or None."""
    for candidate in _list_tbb_paths():
        try:
            library = ctypes.CDLL(candidate, mode=ctypes.RTLD_GLOBAL)
            version = library.TBB_runtime_interface_version()
        except (OSError, AttributeError):
            continue
        return library if version >= _OLDEST_TBB else None
    return None


def _list_tbb_paths() -> Iterator[str]:
    """Where TBB may be, best first: its wheel's folder, which the loader ignores, then the loader's."""
    name = _TBB_FILES.get(sys.platform)
    if name is None:
        return
    usual = os.path.join(sys.prefix, "Library" if sys.platform == "win32" else "lib", name)
    if os.path.exists(usual):
        yield usual
    metadata = importlib.import_module("importlib.metadata")  # which takes 20 ms to load
    try:
        files = metadata.files("tbb") or []
    except metadata.PackageNotFoundError:
        files = []
    paths = [os.path.realpath(file.locate()) for file in files if file.name == name]
    yield from filter(os.path.exists, paths)
    yield name


def locate_count() -> tuple[str, str]:
    """How LLVM text declares, and addresses, the number of threads that loops are shared out to."""
    return _Cells.declaration, _Cells.locate("num_threads")


def _render_adapter(tuning: Runtime) -> str:
    """LLVM text of the front end, of all layers this system can have, and of what ends loops."""
    text = _join_texts((
        _Cells.declaration,
        _JOB_TEXT,
        _USER_TEXT if interrupts.has_threads() else _ANY_USER_TEXT,
        _render_front(tuning),
        fill(_TBB_TEXT, _Cells),
        render_pool(tuning) if interrupts.has_threads() else _NO_POOL_TEXT,
        interrupts.render(tuning.tick),
    ))
    # Not optimised by LLVM, which takes a fifth of the time: what they do beside their loops takes no longer.
    return _DEFINITION.sub(r"\1 noinline optnone {", text)


_DEFINITION = re.compile(r"^(define [^{]*?)(?: #\d+)? \{$", re.MULTILINE)


def _join_texts(texts: Iterable[str]) -> str:
    """One module: what several texts declare is declared once, and what one of them defines is not."""
    lines = "\n".join(texts).split("\n")
    known = {found[1] for line in lines if (found := _DEFINED.match(line))}
    kept = []
    for line in lines:
        found = _DECLARED.match(line)
        if found is None or found[1] not in known:
            kept.append(line)
        if found is not None:
            known.add(found[1])
    return "\n".join(kept)


_DEFINED = re.compile(r"define [^@]*@([\w.]+)\(")
_DECLARED = re.compile(r"(?:declare [^@]*)?@([\w.]+)(?:\(| = external)")


# One call in progress, on its caller's stack: what to run, how it is cut, and whether its pieces are run from
# the last one to the first.
_JOB_TEXT = """
%Job = type { ptr, ptr, ptr, i64, i64, i64, i1 }  ; body, buffers, dims, n, length, pieces, goes back

declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)

define internal i1 @goes_back(ptr %job) {
  %goes_back.at = getelementptr %Job, ptr %job, i32 0, i32 6
  %goes_back = load i1, ptr %goes_back.at
  ret i1 %goes_back
}

define internal void @run_pieces(ptr %job, i64 %first, i64 %past) {
  %body = load ptr, ptr %job
  %buffers.at = getelementptr %Job, ptr %job, i32 0, i32 1
  %buffers = load ptr, ptr %buffers.at
  %dims.at = getelementptr %Job, ptr %job, i32 0, i32 2
  %dims = load ptr, ptr %dims.at
  %n.at = getelementptr %Job, ptr %job, i32 0, i32 3
  %n = load i64, ptr %n.at
  %length.at = getelementptr %Job, ptr %job, i32 0, i32 4
  %length = load i64, ptr %length.at
  %start = mul i64 %first, %length
  %open_stop = mul i64 %past, %length
  %stop = call i64 @llvm.smin.i64(i64 %open_stop, i64 %n)
  call void %body(ptr %buffers, ptr %dims, i64 %start, i64 %stop)
  ret void
}

define internal void @run_all(ptr %job, i64 %pieces) {
enter:
  %goes_back = call i1 @goes_back(ptr %job)
  br i1 %goes_back, label %back, label %go_on
go_on:
  call void @run_pieces(ptr %job, i64 0, i64 %pieces)
  br label %done
back:
  %past = phi i64 [ %pieces, %enter ], [ %first, %back ]
  %first = sub i64 %past, 1
  call void @run_pieces(ptr %job, i64 %first, i64 %past)
  %more = icmp sgt i64 %first, 0
  br i1 %more, label %back, label %done
done:
  ret void
}
"""


def _render_front(tuning: Runtime) -> str:
    """The exported functions: cut the range into pieces and hand them to the layer."""
    return f"""
define void @{SYMBOL}(ptr %body, ptr %buffers, ptr %dims, i64 %n, i64 %grain) {{
  call void @share(ptr %body, ptr %buffers, ptr %dims, i64 %n, i64 %grain, i1 false)
  ret void
}}

define void @{SWEEP_SYMBOL}(ptr %body, ptr %buffers, ptr %dims, i64 %n, i64 %grain) {{
  %sweeps = load atomic i64, ptr {_Cells.locate("sweeps")} monotonic, align 8
  %sweeps_1 = add i64 %sweeps, 1
  store atomic i64 %sweeps_1, ptr {_Cells.locate("sweeps")} monotonic, align 8
  %is_odd = trunc i64 %sweeps to i1
  call void @share(ptr %body, ptr %buffers, ptr %dims, i64 %n, i64 %grain, i1 %is_odd)
  ret void
}}

define internal void @share(ptr %body, ptr %buffers, ptr %dims, i64 %n, i64 %asked_grain, i1 %goes_back) {{
enter:
  %job = alloca %Job
  %is_empty = icmp sle i64 %n, 0
  br i1 %is_empty, label %done, label %cut
cut:
  %threads = load atomic i64, ptr {_Cells.locate("num_threads")} monotonic, align 8
  %grain = call i64 @llvm.smax.i64(i64 %asked_grain, i64 1)
  %most_of_grain = udiv i64 %n, %grain
  %many = mul i64 %threads, {tuning.many_grains}
  %is_long = icmp sgt i64 %most_of_grain, %many
  %is_cut = or i1 %is_long, %goes_back
  %pieces_each = select i1 %is_cut, i64 {tuning.pieces_each}, i64 1
  %most_of_threads = mul i64 %threads, %pieces_each
  %most = select i1 %goes_back, i64 %n, i64 %most_of_grain
  %few = call i64 @llvm.smin.i64(i64 %most, i64 %most_of_threads)
  %wanted = call i64 @llvm.smax.i64(i64 %few, i64 1)
  %n_1 = sub i64 %n, 1
  %least_length_1 = udiv i64 %n_1, %wanted
  %least_length = add i64 %least_length_1, 1
  %is_fine = icmp sge i64 %least_length, {tuning.fine_piece}
  %up = select i1 %is_fine, i64 {tuning.whole_lines - 1}, i64 0
  %least_up = add i64 %least_length, %up
  %length_mask = xor i64 %up, -1
  %length = and i64 %least_up, %length_mask
  %last = udiv i64 %n_1, %length
  %pieces = add i64 %last, 1
  %job.0 = insertvalue %Job poison, ptr %body, 0
  %job.1 = insertvalue %Job %job.0, ptr %buffers, 1
  %job.2 = insertvalue %Job %job.1, ptr %dims, 2
  %job.3 = insertvalue %Job %job.2, i64 %n, 3
  %job.4 = insertvalue %Job %job.3, i64 %length, 4
  %job.5 = insertvalue %Job %job.4, i64 %pieces, 5
  %job.6 = insertvalue %Job %job.5, i1 %goes_back, 6
  store %Job %job.6, ptr %job
  %most_threads = call i64 @llvm.smin.i64(i64 %threads, i64 %most_of_grain)
  %is_alone = icmp sle i64 %most_threads, 1
  br i1 %is_alone, label %run_here, label %choose
choose:
  %layer = load atomic i64, ptr {_Cells.locate("layer")} monotonic, align 8
  %is_serial = icmp eq i64 %layer, {_SERIAL}
  br i1 %is_serial, label %run_here, label %hand_out
run_here:
  call void @run_all(ptr %job, i64 %pieces)
  br label %done
hand_out:
  %is_tbb = call i1 @may_enter_tbb(i64 %layer)
  br i1 %is_tbb, label %share_tbb, label %share_pool
share_tbb:
  call void @share_by_tbb(ptr %job, i64 %pieces, i64 %most_threads)
  br label %done
share_pool:
  call void @share_by_pool(ptr %job, i64 %pieces, i64 %most_threads)
  br label %done
done:
  ret void
}}
"""


# Whether this thread enters TBB, in the layer that is chosen.
_USER_TEXT = f"""
declare i64 @pthread_self()

define internal i1 @may_enter_tbb(i64 %layer) {{
  %is_tbb = icmp eq i64 %layer, {_TBB}
  br i1 %is_tbb, label %compare, label %refuse
compare:
  %self = call i64 @pthread_self()
  %user = load i64, ptr {_Cells.locate("tbb_user")}
  %is_user = icmp eq i64 %self, %user
  ret i1 %is_user
refuse:
  ret i1 false
}}
"""

_ANY_USER_TEXT = f"""
define internal i1 @may_enter_tbb(i64 %layer) {{
  %is_tbb = icmp eq i64 %layer, {_TBB}
  ret i1 %is_tbb
}}
"""

# Numba's pool runs generalised ufuncs over dimensions[0]. The one "array" has base 0 and stride 1, so that
# its address, as each task receives it, is the number of the task's first piece.
_TBB_TEXT = """
define internal void @run_tbb_task(ptr %args, ptr %dimensions, ptr %steps, ptr %job) {
  %first = load i64, ptr %args
  %count = load i64, ptr %dimensions
  %past = add i64 %first, %count
  call void @run_pieces(ptr %job, i64 %first, i64 %past)
  ret void
}

define internal void @share_by_tbb(ptr %job, i64 %pieces, i64 %threads) {
  %args = alloca i64
  %dimensions = alloca i64
  %steps = alloca i64
  store i64 0, ptr %args
  store i64 %pieces, ptr %dimensions
  store i64 1, ptr %steps
  %parallel_for = load ptr, ptr $TBB_PARALLEL_FOR
  %most = trunc i64 %threads to i32
  call void %parallel_for(ptr @run_tbb_task, ptr %args, ptr %dimensions, ptr %steps, ptr %job,
                          i64 0, i64 1, i32 %most)
  ret void
}
"""

_NO_POOL_TEXT = """
define internal void @share_by_pool(ptr %job, i64 %pieces, i64 %threads) {
  call void @run_pieces(ptr %job, i64 0, i64 %pieces)
  ret void
}
"""
