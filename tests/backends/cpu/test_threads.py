"""`jitcore_parallel_for`: right results, concurrency, nesting, forks, affinity; in every layer.

What concerns a whole process (forks, start of threads, missing TBB) runs in a process of its own, with a
timeout: the failure to be excluded is one that hangs or kills.
"""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from jitcore.backends.cpu.native import libraries
from jitcore.backends.cpu.runtime import launch, threads
from jitcore.process import concurrency

# increment: adds 1 to dims[0] doubles with grain dims[1]. visit: the same, and writes each interval's length
# at its start into buffers[1]. sweep: the same as visit, by `jitcore_parallel_sweep`, and writes into buffers[1]
# how many intervals there were so far, which buffers[2] counts. nested: a loop over dims[0] rows, each an inner loop over dims[1] columns.
KERNELS = """
declare void @jitcore_parallel_for(ptr, ptr, ptr, i64, i64)
declare void @jitcore_parallel_sweep(ptr, ptr, ptr, i64, i64)

define internal void @add_one(ptr %buffers, ptr %dims, i64 %start, i64 %stop) {
enter:
  %x = load ptr, ptr %buffers
  br label %head
head:
  %i = phi i64 [ %start, %enter ], [ %following, %work ]
  %more = icmp slt i64 %i, %stop
  br i1 %more, label %work, label %done
work:
  %at = getelementptr double, ptr %x, i64 %i
  %old = load double, ptr %at
  %new = fadd double %old, 1.0
  store double %new, ptr %at
  %following = add i64 %i, 1
  br label %head
done:
  ret void
}

define internal void @note_interval(ptr %buffers, ptr %dims, i64 %start, i64 %stop) {
  call void @add_one(ptr %buffers, ptr %dims, i64 %start, i64 %stop)
  %notes.slot = getelementptr ptr, ptr %buffers, i64 1
  %notes = load ptr, ptr %notes.slot
  %at = getelementptr i64, ptr %notes, i64 %start
  %length = sub i64 %stop, %start
  store i64 %length, ptr %at
  ret void
}

define internal void @note_turn(ptr %buffers, ptr %dims, i64 %start, i64 %stop) {
  call void @add_one(ptr %buffers, ptr %dims, i64 %start, i64 %stop)
  %notes.slot = getelementptr ptr, ptr %buffers, i64 1
  %notes = load ptr, ptr %notes.slot
  %count.slot = getelementptr ptr, ptr %buffers, i64 2
  %count = load ptr, ptr %count.slot
  %before = atomicrmw add ptr %count, i64 1 seq_cst
  %turn = add i64 %before, 1
  %at = getelementptr i64, ptr %notes, i64 %start
  store i64 %turn, ptr %at
  ret void
}

define internal void @add_one_to_rows(ptr %buffers, ptr %dims, i64 %start, i64 %stop) {
enter:
  %x = load ptr, ptr %buffers
  %columns.at = getelementptr i64, ptr %dims, i64 1
  %columns = load i64, ptr %columns.at
  %inner_buffers = alloca ptr
  br label %head
head:
  %row = phi i64 [ %start, %enter ], [ %following, %work ]
  %more = icmp slt i64 %row, %stop
  br i1 %more, label %work, label %done
work:
  %offset = mul i64 %row, %columns
  %row.at = getelementptr double, ptr %x, i64 %offset
  store ptr %row.at, ptr %inner_buffers
  call void @jitcore_parallel_for(ptr @add_one, ptr %inner_buffers, ptr %dims, i64 %columns, i64 1)
  %following = add i64 %row, 1
  br label %head
done:
  ret void
}

define i64 @increment(ptr %buffers, ptr %dims) {
  %n = load i64, ptr %dims
  %grain.at = getelementptr i64, ptr %dims, i64 1
  %grain = load i64, ptr %grain.at
  call void @jitcore_parallel_for(ptr @add_one, ptr %buffers, ptr %dims, i64 %n, i64 %grain)
  ret i64 0
}

define i64 @visit(ptr %buffers, ptr %dims) {
  %n = load i64, ptr %dims
  %grain.at = getelementptr i64, ptr %dims, i64 1
  %grain = load i64, ptr %grain.at
  call void @jitcore_parallel_for(ptr @note_interval, ptr %buffers, ptr %dims, i64 %n, i64 %grain)
  ret i64 0
}

define i64 @sweep(ptr %buffers, ptr %dims) {
  %n = load i64, ptr %dims
  %grain.at = getelementptr i64, ptr %dims, i64 1
  %grain = load i64, ptr %grain.at
  call void @jitcore_parallel_sweep(ptr @note_turn, ptr %buffers, ptr %dims, i64 %n, i64 %grain)
  ret i64 0
}

define i64 @nested(ptr %buffers, ptr %dims) {
  %n = load i64, ptr %dims
  call void @jitcore_parallel_for(ptr @add_one_to_rows, ptr %buffers, ptr %dims, i64 %n, i64 1)
  ret i64 0
}
"""


class Kernels:
    """The compiled kernels, called with arrays."""

    def __init__(self):
        threads.open_pool()
        self.library = libraries.compile_module(KERNELS, "parallel")

    def run(self, symbol, dims, *arrays, holding=False):
        launchers = launch.open_launchers()
        call = launchers.holding if holding else launchers.releasing
        dims = np.array(dims, dtype=np.int64)
        assert call(self.library.address(symbol), dims.ctypes.data, *arrays) == 0


@pytest.fixture(scope="module")
def kernels():
    return Kernels()


@pytest.fixture(params=threads.LAYERS)
def layer(request, kernels):
    """Each layer in turn, with the threads of a larger machine than the test may run on."""
    before = threads.open_pool(), threads.get_num_threads()
    try:
        threads.set_layer(request.param)
    except RuntimeError:
        pytest.skip(f"no layer {request.param} here")
    threads.set_num_threads(4)
    yield request.param
    threads.set_layer(before[0])
    threads.set_num_threads(before[1])


@pytest.mark.parametrize("holding", [False, True])
@pytest.mark.parametrize("num_threads", [1, 2, 7])
def test_every_index_runs_once(kernels, layer, num_threads, holding):
    threads.set_num_threads(num_threads)
    for n in (-3, 0, 1, 2, 3, 8, 9, 100, 1001, 12345):
        for grain in (-1, 0, 1, 3, 10, 5000, 10**12):
            x = np.zeros(max(n, 0) + 1)
            kernels.run("increment", (n, grain), x, holding=holding)
            np.testing.assert_array_equal(x[:-1], 1.0)
            assert x[-1] == 0.0


def test_intervals_cover_and_respect_the_grain(kernels, layer):
    n, grain = 10_007, 300
    x, lengths = np.zeros(n), np.zeros(n, dtype=np.int64)
    kernels.run("visit", (n, grain), x, lengths)
    starts = np.flatnonzero(lengths)
    np.testing.assert_array_equal(np.cumsum(lengths[starts]), [*starts[1:], n])
    assert (lengths[starts][:-1] >= grain).all()
    assert starts.size == 1 if layer == "serial" else starts.size > 1


@pytest.mark.parametrize("n", [100_003, 1_000_000])
def test_fine_pieces_begin_at_whole_lines(kernels, layer, n):
    """Of few iterations, they may begin anywhere."""
    x, lengths = np.zeros(n), np.zeros(n, dtype=np.int64)
    kernels.run("visit", (n, 300), x, lengths)
    starts = np.flatnonzero(lengths)
    assert starts.size == 1 or (lengths[starts[0]] >= 1024 and (starts % 64 == 0).all())
    np.testing.assert_array_equal(np.cumsum(lengths[starts]), [*starts[1:], n])


def test_one_thread_runs_in_the_caller(kernels, layer):
    threads.set_num_threads(1)
    x, lengths = np.zeros(1000), np.zeros(1000, dtype=np.int64)
    kernels.run("visit", (1000, 1), x, lengths)
    assert lengths[0] == 1000


@pytest.mark.parametrize(("n", "grain"), [(1, 1), (7, 1), (10_007, 300), (100_003, 300), (1_000_000, 400_000)])
def test_sweeps_go_to_and_fro(kernels, layer, n, grain):
    """Every other one takes its pieces from the last to the first."""
    x, orders = np.zeros(n), []
    for num_threads in (1, 1, 4, 4):
        threads.set_num_threads(num_threads)
        turns, count = np.zeros(n, dtype=np.int64), np.zeros(1, dtype=np.int64)
        kernels.run("sweep", (n, grain), x, turns, count)
        orders.append(turns[turns > 0].tolist())
        assert sorted(orders[-1]) == [*range(1, count[0] + 1)]
    np.testing.assert_array_equal(x, 4)
    to, fro = sorted(orders[:2], key=len)
    assert to == [1] and fro == [*range(len(fro), 0, -1)]
    assert len(fro) > 4 or n < 4


def test_nested_loops(kernels, layer):
    for _ in range(20):
        x = np.zeros((40, 500))
        kernels.run("nested", x.shape, x)
        np.testing.assert_array_equal(x, 1.0)


@pytest.mark.parametrize("symbol", ["increment", "nested"])
def test_many_python_threads_at_a_time(kernels, layer, symbol):
    calls = 1000 if symbol == "increment" else 100
    dims = (3000, 100) if symbol == "increment" else (30, 100)
    arrays = [np.zeros(3000) for _ in range(8)]

    def work(x):
        for _ in range(calls):
            kernels.run(symbol, dims, x)

    workers = [threading.Thread(target=work, args=(x,), daemon=True) for x in arrays]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=100)
    assert not any(worker.is_alive() for worker in workers)
    for x in arrays:
        np.testing.assert_array_equal(x, calls)
    assert not any(slot.job or slot.users or slot.taken for slot in threads._pool_cells.slots)


def test_settings_are_checked(kernels):
    for bad in (-1, 2.0, "2"):
        with pytest.raises(ValueError, match="int of at least 0"):
            threads.set_num_threads(bad)
    with pytest.raises(ValueError, match="one of serial, pool, tbb, not 'omp'"):
        threads.set_layer("omp")
    assert set(threads.describe()) == {"layer", "threads", "cores", "tbb"}


def test_set_num_threads_zero_means_all(kernels):
    threads.set_num_threads(3)
    assert threads.get_num_threads() == 3
    threads.set_num_threads(0)
    assert threads.get_num_threads() == concurrency.default_threads()


PRELUDE = """
import os, sys, threading
import numpy as np
from tests.backends.cpu.test_threads import Kernels, threads

def works(kernels, times=20):
    x = np.zeros(100_000)
    for _ in range(times):
        kernels.run("increment", (x.size, 1), x)
    return bool((x == times).all())

def fork(kernels, leave=os._exit):
    pid = os.fork()
    if pid == 0:
        leave(0 if works(kernels) else 3)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))


def run_process(body, prelude=PRELUDE, **environment):
    """Run Python code after a prelude in a process of its own. Returns: the words it prints."""
    env = {**os.environ, "PYTHONPATH": ROOT, **environment}
    command = [sys.executable, "-c", prelude + body]
    result = subprocess.run(command, timeout=60, capture_output=True, text=True, env=env)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc, sets affinity")
#: Numba's wheels of some versions have no pool that uses TBB.
needs_tbb = pytest.mark.skipif(threads._load_tbb() is None or threads._load_tbb_pool() is None, reason="no layer tbb here")
PARALLEL_LAYERS = pytest.mark.parametrize("name", ["pool", pytest.param("tbb", marks=needs_tbb)])


@needs_fork
@PARALLEL_LAYERS
@pytest.mark.parametrize("leave", ["os._exit", "sys.exit"])
def test_fork_after_parallel_use(name, leave):
    body = f"""
kernels = Kernels(); threads.set_layer({name!r}); assert works(kernels)
print(fork(kernels, {leave}), works(kernels), fork(kernels, {leave}), works(kernels), threads.open_pool())
"""
    assert run_process(body) == ["0", "True", "0", "True", name]


@needs_fork
@PARALLEL_LAYERS
def test_fork_while_other_threads_compute(name):
    body = f"""
kernels = Kernels(); threads.set_layer({name!r}); stop = threading.Event()
def work():
    while not stop.is_set():
        assert works(kernels, 5)
workers = [threading.Thread(target=work) for _ in range(3)]
[worker.start() for worker in workers]
codes = [fork(kernels) for _ in range(10)]
stop.set(); [worker.join() for worker in workers]
print(set(codes), works(kernels))
"""
    # Numba's pool may say, before or after, that it could not stop its threads; the child does not use them.
    assert "{0} True" in " ".join(run_process(body))


@needs_fork
def test_the_main_thread_alone_enters_tbb(kernels, layer, monkeypatch):
    if layer != "tbb":
        pytest.skip("it is about TBB")
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int)
    parallel_for, entered = kind(threads._cells.tbb_parallel_for), set()

    @kind
    def note_thread(*args):
        entered.add(threading.get_ident())
        parallel_for(*args)

    monkeypatch.setattr(threads._cells, "tbb_parallel_for", ctypes.cast(note_thread, ctypes.c_void_p).value)
    arrays = [np.zeros((30, 100)) for _ in range(4)]
    workers = [threading.Thread(target=kernels.run, args=("nested", x.shape, x)) for x in arrays[1:]]
    for worker in workers:
        worker.start()
    kernels.run("nested", arrays[0].shape, arrays[0])
    for worker in workers:
        worker.join()
    np.testing.assert_array_equal(arrays, 1.0)
    assert entered == {threading.main_thread().ident}


@needs_fork
@PARALLEL_LAYERS
def test_fork_from_a_python_thread(name):
    body = f"""
kernels = Kernels(); threads.set_layer({name!r}); codes = []; assert works(kernels)
worker = threading.Thread(target=lambda: codes.append(fork(kernels))); worker.start(); worker.join()
print(codes, works(kernels))
"""
    assert run_process(body) == ["[0]", "True"]


@needs_fork
def test_forked_worker_pool():
    body = """
import multiprocessing
kernels = Kernels(); assert works(kernels)
def task(number):
    return works(kernels)
with multiprocessing.get_context("fork").Pool(3) as pool:
    print(all(pool.map(task, range(12))))
"""
    assert run_process(body) == ["True"]


@needs_fork
@needs_tbb
def test_a_python_thread_opens_the_pool_and_the_main_thread_tbb():
    body = """
result = []
def open_in_thread():
    result.append(Kernels())
    try:
        threads.set_layer("tbb")
    except RuntimeError:
        result.append("refused")
worker = threading.Thread(target=open_in_thread); worker.start(); worker.join()
print(threads.open_pool(), result[1], works(result[0]), fork(result[0]), end=" ")
if threads.describe()["tbb"] is not None:
    threads.set_layer("tbb")
    assert threads.open_pool() == "tbb"
print(works(result[0]), fork(result[0]))
"""
    assert run_process(body) == ["pool", "refused", "True", "0", "True", "0"]


@needs_linux
def test_threads_start_with_the_first_loop_that_is_shared():
    body = """
count = lambda: len(os.listdir("/proc/self/task")) - before
known = set(os.listdir("/proc/self/task"))
kernels, x = Kernels(), np.zeros(1000)
for thread in set(threading.enumerate()) - {threading.main_thread()}:  # what compiles ahead
    thread.join()
while set(os.listdir("/proc/self/task")) - known:  # a thread lives on for a moment when Python has forgotten it
    os.sched_yield()
before = len(os.listdir("/proc/self/task"))
kernels.run("increment", (1000, 1000), x)
print(count(), end=" ")
threads.set_num_threads(3)
kernels.run("increment", (1000, 1), x)
print(count(), threads._pool_cells.started[0], end=" ")
threads.set_num_threads(2)
kernels.run("increment", (1000, 1), x)
print(count(), set(x) == {3})
"""
    # Two of the pool, and the ticker of `interrupts`.
    assert run_process(body) == ["0", "3", "2", "3", "True"]


def test_more_callers_than_slots(kernels, layer):
    """Who finds no slot of the pool free runs its loop alone."""
    slots = threads._pool_cells.slots
    if layer != "pool":
        pytest.skip("it is about the pool")
    for slot in slots:
        slot.taken = 1
    try:
        x, lengths = np.zeros(1000), np.zeros(1000, dtype=np.int64)
        kernels.run("visit", (1000, 1), x, lengths)
    finally:
        for slot in slots:
            slot.taken = 0
    np.testing.assert_array_equal(x, 1.0)
    assert lengths[0] == 1000


def test_without_tbb():
    body = """
threads._list_tbb_paths = lambda: []
threads._load_tbb.cache_clear()
kernels = Kernels()
print(threads.open_pool(), threads.describe()["tbb"], works(kernels))
try:
    threads.set_layer("tbb")
except RuntimeError as error:
    print("refused")
"""
    expected = "pool" if hasattr(os, "fork") else "serial"
    assert run_process(body) == [expected, "None", "True", "refused"]


def test_shares_the_process_with_numba():
    body = """
import numba
kernels = Kernels(); assert works(kernels)
@numba.njit(parallel=True)
def total(x):
    s = 0.0
    for i in numba.prange(x.size):
        s += x[i]
    return s
print(total(np.ones(1000)), works(kernels))
"""
    assert run_process(body) == ["1000.0", "True"]


@needs_linux
def test_no_thread_starts_at_import():
    # NumPy's BLAS has threads of its own, which start when it is imported.
    body = """
import os, sys, numpy
before = len(os.listdir("/proc/self/task"))
import jitcore
from jitcore.backends.cpu.machine import host as cpuinfo; from jitcore.backends.cpu.runtime import launch, threads; from jitcore.backends.cpu.native import libraries as native
print(len(os.listdir("/proc/self/task")) - before, "numba" in sys.modules)
"""
    assert run_process(body, prelude="") == ["0", "False"]


@needs_linux
def test_respects_affinity():
    core = min(os.sched_getaffinity(0))
    body = "print(threads.describe()['cores'], threads.get_num_threads(), works(Kernels()))"
    pinned = f"import os; os.sched_setaffinity(0, {{{core}}})\n"
    assert run_process(body, prelude=pinned + PRELUDE) == ["1", "1", "True"]


def test_environment_sets_the_number_of_threads():
    body = "kernels = Kernels(); print(threads.get_num_threads(), works(kernels))"
    assert run_process(body, JITCORE_NUM_THREADS="3") == ["3", "True"]
    assert run_process(body, JITCORE_NUM_THREADS="3", OMP_NUM_THREADS="5") == ["3", "True"]
    assert run_process(body, OMP_NUM_THREADS="5") == ["5", "True"]
