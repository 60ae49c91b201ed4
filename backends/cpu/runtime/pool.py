"""The pool of POSIX threads that a process keeps for the loops of its kernels.

In: a job, which says what to run and how it is cut (`threads.py`). Out: its pieces, run by the caller and by
threads of the pool. Stage: run time.

Each thread begins with a share of its own, neighbours, which it finds in its cache when loops over the same
arrays follow each other. Who is done with it takes what is left of the other shares.

The caller puts its job into a free slot, wakes threads, and works along; when no piece is left it takes the
job out and waits until the slot has no users. A thread enters a slot as a user before it reads the job: from
then on the job, which lies on its caller's stack, stays. Who finds no free slot runs its loop alone. Threads
look for jobs for some microseconds before they sleep, as programs have loop after loop.

All state is in cells that outlive the interpreter, as the threads do. A forked child makes them anew and
starts threads of its own; nothing of the pool has to be stopped before a fork.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jitcore.backends.cpu.native.images import Cells
from jitcore.backends.cpu.runtime import interrupts

if TYPE_CHECKING:
    from jitcore.backends.cpu.native.text_writer import RuntimeWriter

_SLOTS = 32
_LINE = 8  # words of a cache line: of each slot, and of each field that many threads read
_X86, _ARM = ("llvm.x86.sse2.pause",), ("llvm.aarch64.hint", 1)
#: Machine -> the function, and its operands, that tells the processor that a thread waits.
_PAUSES = {"x86_64": _X86, "AMD64": _X86, "aarch64": _ARM, "arm64": _ARM}


class _Slot(ctypes.Structure):
    """A place for a job: how many threads use it, whether it is taken, how many may use it, whether its
    caller sleeps."""

    _fields_ = (
        ("job", ctypes.c_void_p),
        ("users", ctypes.c_int64),
        ("taken", ctypes.c_int64),
        ("limit", ctypes.c_int64),
        ("asleep", ctypes.c_int64),
        ("rest", ctypes.c_int64 * (_LINE - 5)),
    )


class _Shared(ctypes.Structure):
    """A job as the pool sees it, on its caller's stack: its pieces, the shares they are cut into, the level
    that it works for (see `interrupts`), how many pieces of each share are taken."""

    _fields_ = (
        ("job", ctypes.c_void_p),
        ("pieces", ctypes.c_int64),
        ("shares", ctypes.c_int64),
        ("level", ctypes.c_int64),
        ("taken", ctypes.c_int64 * _SLOTS),
    )


class PoolCells(Cells):
    symbol = "jitcore_pool_cells"
    _fields_ = (
        ("mutex", ctypes.c_int64 * 2 * _LINE),
        ("work", ctypes.c_int64 * 2 * _LINE),  # the condition on which idle threads sleep
        ("done", ctypes.c_int64 * 2 * _LINE),  # that on which callers sleep
        ("started", ctypes.c_int64 * _LINE),  # threads of the pool
        ("sleeping", ctypes.c_int64 * _LINE),  # of these sleep
        ("epoch", ctypes.c_int64 * _LINE),  # jobs there have been
        ("slots", _Slot * _SLOTS),
    )


def reset_pool(cells: PoolCells) -> None:
    """Makes the cells those of a pool without threads. The system has POSIX threads."""
    library = ctypes.CDLL(None)
    cells.clear()
    library.pthread_mutex_init(ctypes.byref(cells, PoolCells.mutex.offset), None)
    for condition in (PoolCells.work, PoolCells.done):
        library.pthread_cond_init(ctypes.byref(cells, condition.offset), None)


_cell = PoolCells.locate


def write_pool(w: RuntimeWriter) -> None:
    """`void share_by_pool(ptr job, i64 pieces, i64 threads)`. It calls `run_pieces` and `run_all`."""
    w.declare(PoolCells.declaration)
    _write_take_pieces(w)
    _write_use_slot(w)
    _write_serve(w)
    _write_threads(w)
    _write_wait(w)
    _write_share(w)


@contextmanager
def _mutex(w: RuntimeWriter) -> Iterator[None]:
    w.call("pthread_mutex_lock", _cell("mutex"))
    yield
    w.call("pthread_mutex_unlock", _cell("mutex"))


def _write_take_pieces(w: RuntimeWriter) -> None:
    """The pieces of share `me`, counted around, then those of the shares behind it."""
    with w.function("internal void @take_pieces(ptr %shared, i64 %me)"):
        seen = w.variable(w.call(interrupts.BEGIN_SYMBOL))
        job = w.load("%shared", "ptr")
        pieces, shares = (w.load(w.part("%shared", field)) for field in (_Shared.pieces, _Shared.shares))
        counts, goes_back = w.part("%shared", _Shared.taken), w.call("goes_back", job)
        with w.loop(0, shares) as turn:
            share = w.rem(w.add("%me", turn), shares)
            low = w.div(w.mul(share, pieces), shares)
            high = w.div(w.mul(w.add(share, 1), pieces), shares)
            last = w.sub(high, 1)
            with w.repeat() as until:
                taken = w.add_atomic(1, w.element(counts, share, "i64"), "monotonic")
                from_low = w.add(low, taken)
                until(w.compare("sge", from_low, high))
                first = w.choose(goes_back, w.sub(last, taken), from_low)
                w.call("run_pieces", job, first, w.add(first, 1))
                with w.when(w.compare("ne", w.call(interrupts.POLL_SYMBOL, seen), 0)):
                    w.do("ret void")


def _write_use_slot(w: RuntimeWriter) -> None:
    """find_worker: where a thread of the pool says what it works for. use_slot: works at the job of a slot,
    if it is still there and lets one more thread in. Returns whether it did."""
    with w.function("internal ptr @find_worker(i64 %me)", None):
        known = w.minimum(w.sub("%me", 1), interrupts.MAX_WORKERS)
        w.do(f"ret ptr {w.element(interrupts.Interrupts.locate('workers'), known, '[2 x i64]')}")
    with w.function("internal i1 @use_slot(ptr %slot, i64 %me)", None):
        has_run, users = w.variable("false", "i1"), w.part("%slot", _Slot.users)
        others = w.add_atomic(1, users)
        job = w.load_atomic("%slot", "ptr")
        with (w.when(w.compare("ne", job, "null", "ptr")),
              w.when(w.compare("slt", others, w.load(w.part("%slot", _Slot.limit))))):
            level = w.load(w.part(job, _Shared.level))
            served = w.part(w.call("find_worker", "%me"), interrupts.Worker.level)
            w.store_atomic(level, served, order="monotonic")
            w.call("take_pieces", job, "%me")
            w.store_atomic(-1, served, order="monotonic")
            w.replace_atomic("%slot", job, "null", "ptr")
            w.store("true", has_run, "i1")
        is_last = w.compare("eq", w.add_atomic(-1, users), 1)
        sleeps = w.compare("ne", w.load_atomic(w.part("%slot", _Slot.asleep)), 0)
        with w.when(w.let(f"and i1 {is_last}, {sleeps}")), _mutex(w):
            w.call("pthread_cond_broadcast", _cell("done"))
        w.do(f"ret i1 {w.load(has_run, 'i1')}")


def _write_serve(w: RuntimeWriter) -> None:
    """wait_for_jobs: until there was one more. serve: a thread of the pool, whose number counts from 1."""
    with w.function("internal void @wait_for_jobs(i64 %epoch)"):
        with w.loop(0, w.tuning.yields):
            now = w.load_atomic(_cell("epoch"), order="monotonic")
            with w.when(w.compare("ne", now, "%epoch")):
                w.do("ret void")
            w.call("sched_yield")
        with _mutex(w):
            w.add_atomic(1, _cell("sleeping"))
            with w.repeat() as until:
                until(w.compare("ne", w.load_atomic(_cell("epoch")), "%epoch"))
                w.call("pthread_cond_wait", _cell("work"), _cell("mutex"))
            w.add_atomic(-1, _cell("sleeping"))
    with w.function("internal ptr @serve(ptr %number)", "unreachable"):
        me, has_run = w.let("ptrtoint ptr %number to i64"), w.variable("false", "i1")
        w.store_atomic(w.call("pthread_self"), w.call("find_worker", me), order="monotonic")
        with w.repeat():
            epoch = w.load_atomic(_cell("epoch"))
            w.store("false", has_run, "i1")
            with w.loop(0, _SLOTS) as k:
                slot = w.element(_cell("slots"), k, f"[{_LINE} x i64]")
                with w.when(w.compare("ne", w.load_atomic(slot, "ptr"), "null", "ptr")):
                    found = w.call("use_slot", slot, me)
                    w.store(w.let(f"or i1 {w.load(has_run, 'i1')}, {found}"), has_run, "i1")
            with w.when(w.compare("eq", w.load(has_run, "i1"), "false", "i1")):
                w.call("wait_for_jobs", epoch)


def _write_threads(w: RuntimeWriter) -> None:
    """start_threads: as many as are wanted. wake_threads: as many idle ones as may help."""
    with w.function("internal void @start_threads(i64 %wanted)"):
        handle = w.let("alloca ptr")
        with _mutex(w), w.repeat() as until:
            started = w.load(_cell("started"))
            until(w.compare("sge", started, "%wanted"))
            following = w.add(started, 1)
            number = w.let(f"inttoptr i64 {following} to ptr")
            failure = w.call("pthread_create", handle, "null", "@serve", number)
            until(w.compare("ne", failure, 0, "i32"))
            w.call("pthread_detach", w.load(handle, "ptr"))
            w.store_atomic(following, _cell("started"), order="monotonic")
    with w.function("internal void @wake_threads(i64 %wanted)"), _mutex(w), w.cases() as case:
        with case(w.compare("sge", "%wanted", w.load_atomic(_cell("sleeping")))):
            w.call("pthread_cond_broadcast", _cell("work"))
        with w.loop(0, "%wanted"):
            w.call("pthread_cond_signal", _cell("work"))


def _write_wait(w: RuntimeWriter) -> None:
    """Waits until nobody uses a slot whose job is taken out."""
    with w.function("internal void @wait_for_users(ptr %slot)"):
        until_when = w.let("alloca [2 x i64]")  # seconds, nanoseconds
        users, asleep = w.part("%slot", _Slot.users), w.part("%slot", _Slot.asleep)
        with w.loop(0, w.tuning.spins):
            with w.when(w.compare("eq", w.load_atomic(users), 0)):
                w.do("ret void")
            if platform.machine() in _PAUSES:
                w.call(*_PAUSES[platform.machine()])
        with _mutex(w):
            w.store_atomic(1, asleep)
            with w.repeat() as until:
                until(w.compare("eq", w.load_atomic(users), 0))
                w.call("clock_gettime", 0, until_when)
                later = w.add(w.item(until_when, 1, "i64"), 100_000_000)
                w.store(w.add(w.load(until_when), w.div(later, 1_000_000_000)), until_when)
                w.store(w.rem(later, 1_000_000_000), w.element(until_when, 1, "i64"))
                slept = w.call("pthread_cond_timedwait", _cell("done"), _cell("mutex"), until_when)
                with w.when(w.compare("ne", slept, 0, "i32")):  # the handlers of signals may have to run
                    w.call("pthread_mutex_unlock", _cell("mutex"))
                    w.call(interrupts.LOOK_SYMBOL)
                    w.call("pthread_mutex_lock", _cell("mutex"))
            w.store_atomic(0, asleep)


def _write_share(w: RuntimeWriter) -> None:
    """take_slot: a free one, or null."""
    with w.function("internal ptr @take_slot()", "ret ptr null"), w.loop(0, _SLOTS) as k:
        slot = w.element(_cell("slots"), k, f"[{_LINE} x i64]")
        with w.when(w.replace_atomic(w.part(slot, _Slot.taken), 0, 1)):
            w.do(f"ret ptr {slot}")
    with w.function("internal void @share_by_pool(ptr %job, i64 %pieces, i64 %threads)"):
        shared = w.variable("zeroinitializer", f"[{ctypes.sizeof(_Shared) // 8} x i64]")
        most = w.minimum("%pieces", "%threads")
        is_main = w.compare("eq", w.call("pthread_self"), w.load(interrupts.Interrupts.locate("main")))
        level = w.choose(is_main, w.load(interrupts.Interrupts.locate("level")), -1)
        w.store("%job", shared, "ptr")
        w.store("%pieces", w.part(shared, _Shared.pieces))
        w.store(w.minimum(most, _SLOTS), w.part(shared, _Shared.shares))
        w.store(level, w.part(shared, _Shared.level))
        wanted = w.sub(most, 1)
        with w.when(w.compare("slt", w.load_atomic(_cell("started"), order="monotonic"), wanted)):
            w.call("start_threads", wanted)
        slot = w.call("take_slot")
        with w.when(w.is_null(slot)):
            w.call("run_all", "%job", "%pieces")
            w.do("ret void")
        w.store(wanted, w.part(slot, _Slot.limit))
        w.store_atomic(shared, slot, "ptr")
        w.add_atomic(1, _cell("epoch"))
        with w.when(w.compare("ne", w.load_atomic(_cell("sleeping")), 0)):
            w.call("wake_threads", wanted)
        w.call("take_pieces", shared, 0)
        w.store_atomic("null", slot, "ptr")
        w.call("wait_for_users", slot)
        w.store_atomic(0, w.part(slot, _Slot.taken))
