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
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.machine.tuning import Runtime
from jitcore.backends.cpu.native import images, libraries
from jitcore.backends.cpu.native.images import Cells
from jitcore.backends.cpu.runtime import interrupts
from jitcore.backends.cpu.runtime.pool import PoolCells, reset_pool, write_pool
from jitcore.config import config
from jitcore.process.concurrency import available_cores, default_threads
from jitcore.process.lazy import LazyModule

if TYPE_CHECKING:
    from jitcore.backends.cpu.native.text_writer import RuntimeWriter

#: It is loaded where the code is not on disk.
writing = LazyModule("jitcore.backends.cpu.native.text_writer")

SYMBOL = "jitcore_parallel_for"
SWEEP_SYMBOL = "jitcore_parallel_sweep"
#: Of both, and of the bodies that they run.
PARALLEL_TYPE, BODY_TYPE = "void (ptr, ptr, ptr, i64, i64)", "void (ptr, ptr, i64, i64)"

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


class _Job(ctypes.Structure):
    """One call in progress, on its caller's stack: what to run, how it is cut, and whether its pieces are run
    from the last one to the first."""

    _fields_ = (
        ("body", ctypes.c_void_p),
        ("buffers", ctypes.c_void_p),
        ("dims", ctypes.c_void_p),
        ("n", ctypes.c_int64),
        ("length", ctypes.c_int64),
        ("goes_back", ctypes.c_int64),
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
    # Not optimised by LLVM, which takes a fifth of the time: what they do beside their loops takes no longer.
    w = writing.RuntimeWriter(tuning, "noinline optnone")
    w.declare(_Cells.declaration)
    _write_job(w)
    interrupts.write_functions(w, tuning.tick)
    _write_tbb(w)
    if interrupts.has_threads():
        write_pool(w)
    else:
        with w.function("internal void @share_by_pool(ptr %job, i64 %pieces, i64 %threads)"):
            w.call("run_all", "%job", "%pieces")
    _write_front(w)
    return w.text()


_cell = _Cells.locate


def _write_job(w: RuntimeWriter) -> None:
    with w.function("internal i1 @goes_back(ptr %job)", None):
        w.do(f"ret i1 {w.load(w.part('%job', _Job.goes_back), 'i1')}")
    with w.function("internal void @run_pieces(ptr %job, i64 %first, i64 %past)"):
        body, buffers, dims = (w.load(w.part("%job", field), "ptr")
                               for field in (_Job.body, _Job.buffers, _Job.dims))
        n, length = w.load(w.part("%job", _Job.n)), w.load(w.part("%job", _Job.length))
        start, stop = w.mul("%first", length), w.minimum(w.mul("%past", length), n)
        w.call(body, buffers, dims, start, stop, type=BODY_TYPE)
    with w.function("internal void @run_all(ptr %job, i64 %pieces)"):
        with w.when(w.compare("eq", w.call("goes_back", "%job"), "false", "i1")):
            w.call("run_pieces", "%job", 0, "%pieces")
            w.do("ret void")
        with w.loop(0, "%pieces") as k:
            past = w.sub("%pieces", k)
            w.call("run_pieces", "%job", w.sub(past, 1), past)


def _write_front(w: RuntimeWriter) -> None:
    """The exported functions: cut the range into pieces and hand them to the layer."""
    arguments = "ptr %body, ptr %buffers, ptr %dims, i64 %n, i64 %grain"
    names = re.findall(r"%\w+", arguments)
    with w.function(f"internal void @share({arguments}, i1 %goes_back)"):
        _write_share(w)
    with w.function(f"void @{SYMBOL}({arguments})"):
        w.call("share", *names, "false")
    with w.function(f"void @{SWEEP_SYMBOL}({arguments})"):
        sweeps = w.load_atomic(_cell("sweeps"), order="monotonic")
        w.store_atomic(w.add(sweeps, 1), _cell("sweeps"), order="monotonic")
        w.call("share", *names, w.let(f"trunc i64 {sweeps} to i1"))


def _write_share(w: RuntimeWriter) -> None:
    tuning, job = w.tuning, w.let(f"alloca [{ctypes.sizeof(_Job) // 8} x i64]")
    with w.when(w.compare("sle", "%n", 0)):
        w.do("ret void")
    threads = w.load_atomic(_cell("num_threads"), order="monotonic")
    most_of_grain = w.div("%n", w.maximum("%grain", 1))
    is_long = w.compare("sgt", most_of_grain, w.mul(threads, tuning.many_grains))
    pieces_each = w.choose(w.let(f"or i1 {is_long}, %goes_back"), tuning.pieces_each, 1)
    most = w.choose("%goes_back", "%n", most_of_grain)
    wanted = w.maximum(w.minimum(most, w.mul(threads, pieces_each)), 1)
    last = w.sub("%n", 1)
    least_length = w.add(w.div(last, wanted), 1)
    up = w.choose(w.compare("sge", least_length, tuning.fine_piece), tuning.whole_lines - 1, 0)
    length = w.let(f"and i64 {w.add(least_length, up)}, {w.let(f'xor i64 {up}, -1')}")
    pieces = w.add(w.div(last, length), 1)
    for name in ("body", "buffers", "dims"):
        w.store(f"%{name}", w.part(job, getattr(_Job, name)), "ptr")
    w.store("%n", w.part(job, _Job.n))
    w.store(length, w.part(job, _Job.length))
    w.store("%goes_back", w.part(job, _Job.goes_back), "i1")
    most_threads = w.minimum(threads, most_of_grain)
    layer = w.load_atomic(_cell("layer"), order="monotonic")
    is_alone, is_serial = w.compare("sle", most_threads, 1), w.compare("eq", layer, _SERIAL)
    with w.cases() as case:
        with case(w.let(f"or i1 {is_alone}, {is_serial}")):
            w.call("run_all", job, pieces)
        with case(w.call("may_enter_tbb", layer)):
            w.call("share_by_tbb", job, pieces, most_threads)
        w.call("share_by_pool", job, pieces, most_threads)


def _write_tbb(w: RuntimeWriter) -> None:
    """may_enter_tbb: whether this thread enters TBB, in the layer that is chosen. share_by_tbb: Numba's pool
    runs generalised ufuncs over dimensions[0]. The one "array" has base 0 and stride 1, so that its address,
    as each task receives it, is the number of the task's first piece."""
    with w.function("internal i1 @may_enter_tbb(i64 %layer)", "ret i1 false"):
        with w.when(w.compare("eq", "%layer", _TBB)):
            is_user = "true"
            if interrupts.has_threads():
                is_user = w.compare("eq", w.call("pthread_self"), w.load(_cell("tbb_user")))
            w.do(f"ret i1 {is_user}")
    with w.function("internal void @run_tbb_task(ptr %args, ptr %dimensions, ptr %steps, ptr %job)"):
        first = w.load("%args")
        w.call("run_pieces", "%job", first, w.add(first, w.load("%dimensions")))
    with w.function("internal void @share_by_tbb(ptr %job, i64 %pieces, i64 %threads)"):
        args, dimensions, steps = w.variable(0), w.variable("%pieces"), w.variable(1)
        parallel_for, most = w.load(_cell("tbb_parallel_for"), "ptr"), w.let("trunc i64 %threads to i32")
        w.do(f"call void {parallel_for}(ptr @run_tbb_task, ptr {args}, ptr {dimensions}, ptr {steps}, "
             f"ptr %job, i64 0, i64 1, i32 {most})")
