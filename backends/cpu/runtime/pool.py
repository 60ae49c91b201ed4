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

from jitcore.backends.cpu.machine.tuning import Runtime
from jitcore.backends.cpu.native.images import Cells, fill
from jitcore.backends.cpu.runtime import interrupts

_SLOTS = 32
_LINE = 8  # words of a cache line: of each slot, and of each field that many threads read
_X86 = "void @llvm.x86.sse2.pause()", "void @llvm.x86.sse2.pause()"
_ARM = "void @llvm.aarch64.hint(i32)", "void @llvm.aarch64.hint(i32 1)"
#: Machine -> how the instruction is declared and called that tells the processor that a thread waits.
_PAUSES = {"x86_64": _X86, "AMD64": _X86, "aarch64": _ARM, "arm64": _ARM}


class PoolCells(Cells):
    """slots: a job, how many threads use it, whether it is taken, how many may, whether its caller sleeps."""

    symbol = "jitcore_pool_cells"
    _fields_ = (
        ("mutex", ctypes.c_int64 * 2 * _LINE),
        ("work", ctypes.c_int64 * 2 * _LINE),  # the condition on which idle threads sleep
        ("done", ctypes.c_int64 * 2 * _LINE),  # that on which callers sleep
        ("started", ctypes.c_int64 * _LINE),  # threads of the pool
        ("sleeping", ctypes.c_int64 * _LINE),  # of these sleep
        ("epoch", ctypes.c_int64 * _LINE),  # jobs there have been
        ("slots", ctypes.c_int64 * _LINE * _SLOTS),
    )


def reset_pool(cells: PoolCells) -> None:
    """Makes the cells those of a pool without threads. The system has POSIX threads."""
    library = ctypes.CDLL(None)
    cells.clear()
    library.pthread_mutex_init(ctypes.byref(cells, PoolCells.mutex.offset), None)
    for condition in (PoolCells.work, PoolCells.done):
        library.pthread_cond_init(ctypes.byref(cells, condition.offset), None)


def render_pool(tuning: Runtime) -> str:
    """LLVM text of `void share_by_pool(%Job *job, i64 pieces, i64 threads)`. It calls `run_pieces`."""
    declared, called = _PAUSES.get(platform.machine(), ("", ""))
    text = fill(_TEXT, interrupts.Interrupts, PoolCells, max_workers=interrupts.MAX_WORKERS, count=_SLOTS,
                spins=tuning.spins, yields=tuning.yields, pause=f"call {called}" if called else "")
    head = f"{PoolCells.declaration}\n{interrupts.Interrupts.declaration}\n"
    return head + (f"declare {declared}\n" if declared else "") + text


_TEXT = """
%Slot = type [8 x i64]
; A job as the pool sees it: the job, its pieces, the shares they are cut into, how many of each are taken.
; The level that it works for, see `interrupts`.
%Shared = type { ptr, i64, i64, [$COUNT x i64], i64 }
%Worker = type { i64, i64 }

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_cond_timedwait(ptr, ptr, ptr)
declare i32 @clock_gettime(i32, ptr)
declare i64 @jitcore_begin_loops()
declare i64 @jitcore_look()
declare i64 @jitcore_poll(ptr)
declare i32 @sched_yield()
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)

; The pieces of share `me`, counted around, then those of the shares behind it.
define internal void @take_pieces(ptr %shared, i64 %me) {
enter:
  %seen.at = alloca i64
  %tick = call i64 @jitcore_begin_loops()
  store i64 %tick, ptr %seen.at
  %job = load ptr, ptr %shared
  %pieces.at = getelementptr %Shared, ptr %shared, i32 0, i32 1
  %pieces = load i64, ptr %pieces.at
  %shares.at = getelementptr %Shared, ptr %shared, i32 0, i32 2
  %shares = load i64, ptr %shares.at
  %goes_back = call i1 @goes_back(ptr %job)
  br label %choose
choose:
  %turn = phi i64 [ 0, %enter ], [ %turn_1, %next ]
  %behind = add i64 %me, %turn
  %share = urem i64 %behind, %shares
  %share_1 = add i64 %share, 1
  %pieces_before = mul i64 %share, %pieces
  %low = udiv i64 %pieces_before, %shares
  %pieces_with = mul i64 %share_1, %pieces
  %high = udiv i64 %pieces_with, %shares
  %last = sub i64 %high, 1
  %taken.at = getelementptr %Shared, ptr %shared, i32 0, i32 3, i64 %share
  br label %take
take:
  %taken = atomicrmw add ptr %taken.at, i64 1 monotonic
  %from_low = add i64 %low, %taken
  %from_high = sub i64 %last, %taken
  %first = select i1 %goes_back, i64 %from_high, i64 %from_low
  %is_left = icmp slt i64 %from_low, %high
  br i1 %is_left, label %run, label %next
run:
  %past = add i64 %first, 1
  call void @run_pieces(ptr %job, i64 %first, i64 %past)
  %looked = call i64 @jitcore_poll(ptr %seen.at)
  %stops = icmp ne i64 %looked, 0
  br i1 %stops, label %done, label %take
next:
  %turn_1 = add i64 %turn, 1
  %more = icmp slt i64 %turn_1, %shares
  br i1 %more, label %choose, label %done
done:
  ret void
}

; Where a thread of the pool says what it works for.
define internal ptr @find_worker(i64 %me) {
  %place = sub i64 %me, 1
  %known = call i64 @llvm.smin.i64(i64 %place, i64 $MAX_WORKERS)
  %worker = getelementptr %Worker, ptr $WORKERS, i64 %known
  ret ptr %worker
}

; Work at the job of a slot, if it is still there and lets one more thread in. Returns whether it did.
define internal i1 @use_slot(ptr %slot, i64 %me) {
enter:
  %users.at = getelementptr i64, ptr %slot, i64 1
  %limit.at = getelementptr i64, ptr %slot, i64 3
  %asleep.at = getelementptr i64, ptr %slot, i64 4
  %others = atomicrmw add ptr %users.at, i64 1 seq_cst
  %job = load atomic ptr, ptr %slot seq_cst, align 8
  %is_over = icmp eq ptr %job, null
  br i1 %is_over, label %leave, label %compare
compare:
  %limit = load i64, ptr %limit.at
  %is_room = icmp slt i64 %others, %limit
  br i1 %is_room, label %run, label %leave
run:
  %level.at = getelementptr %Shared, ptr %job, i32 0, i32 4
  %level = load i64, ptr %level.at
  %worker = call ptr @find_worker(i64 %me)
  %served.at = getelementptr %Worker, ptr %worker, i32 0, i32 1
  store atomic i64 %level, ptr %served.at monotonic, align 8
  call void @take_pieces(ptr %job, i64 %me)
  store atomic i64 -1, ptr %served.at monotonic, align 8
  %taken_out = cmpxchg ptr %slot, ptr %job, ptr null seq_cst seq_cst
  br label %leave
leave:
  %has_run = phi i1 [ false, %enter ], [ false, %compare ], [ true, %run ]
  %users = atomicrmw sub ptr %users.at, i64 1 seq_cst
  %asleep = load atomic i64, ptr %asleep.at seq_cst, align 8
  %is_last = icmp eq i64 %users, 1
  %sleeps = icmp ne i64 %asleep, 0
  %wakes = and i1 %is_last, %sleeps
  br i1 %wakes, label %wake, label %done
wake:
  %locked = call i32 @pthread_mutex_lock(ptr $MUTEX)
  %woken = call i32 @pthread_cond_broadcast(ptr $DONE)
  %unlocked = call i32 @pthread_mutex_unlock(ptr $MUTEX)
  br label %done
done:
  ret i1 %has_run
}

; A thread of the pool, whose number counts from 1.
define internal ptr @serve(ptr %number) {
enter:
  %me = ptrtoint ptr %number to i64
  %worker = call ptr @find_worker(i64 %me)
  %self = call i64 @pthread_self()
  store atomic i64 %self, ptr %worker monotonic, align 8
  br label %scan
scan:
  %epoch = load atomic i64, ptr $EPOCH seq_cst, align 8
  br label %next
next:
  %k = phi i64 [ 0, %scan ], [ %k_1, %after ]
  %found = phi i1 [ false, %scan ], [ %found_1, %after ]
  %more = icmp ult i64 %k, $COUNT
  br i1 %more, label %look, label %decide
look:
  %slot = getelementptr %Slot, ptr $SLOTS, i64 %k
  %job = load atomic ptr, ptr %slot seq_cst, align 8
  %is_empty = icmp eq ptr %job, null
  br i1 %is_empty, label %after, label %use
use:
  %has_run = call i1 @use_slot(ptr %slot, i64 %me)
  %found_now = or i1 %found, %has_run
  br label %after
after:
  %found_1 = phi i1 [ %found, %look ], [ %found_now, %use ]
  %k_1 = add i64 %k, 1
  br label %next
decide:
  br i1 %found, label %scan, label %spin
spin:
  %i = phi i64 [ 0, %decide ], [ %i_1, %pause ]
  %now = load atomic i64, ptr $EPOCH monotonic, align 8
  %is_new = icmp ne i64 %now, %epoch
  br i1 %is_new, label %scan, label %pause
pause:
  %yielded = call i32 @sched_yield()
  %i_1 = add i64 %i, 1
  %is_long = icmp uge i64 %i_1, $YIELDS
  br i1 %is_long, label %lie_down, label %spin
lie_down:
  %locked = call i32 @pthread_mutex_lock(ptr $MUTEX)
  %before = atomicrmw add ptr $SLEEPING, i64 1 seq_cst
  br label %check
check:
  %then = load atomic i64, ptr $EPOCH seq_cst, align 8
  %is_same = icmp eq i64 %then, %epoch
  br i1 %is_same, label %sleep, label %rise
sleep:
  %slept = call i32 @pthread_cond_wait(ptr $WORK, ptr $MUTEX)
  br label %check
rise:
  %after_sleep = atomicrmw sub ptr $SLEEPING, i64 1 seq_cst
  %unlocked = call i32 @pthread_mutex_unlock(ptr $MUTEX)
  br label %scan
}

define internal void @start_threads(i64 %wanted) {
enter:
  %handle = alloca ptr
  %locked = call i32 @pthread_mutex_lock(ptr $MUTEX)
  br label %check
check:
  %started = load i64, ptr $STARTED
  %more = icmp slt i64 %started, %wanted
  br i1 %more, label %start, label %done
start:
  %started_1 = add i64 %started, 1
  %number = inttoptr i64 %started_1 to ptr
  %failure = call i32 @pthread_create(ptr %handle, ptr null, ptr @serve, ptr %number)
  %is_started = icmp eq i32 %failure, 0
  br i1 %is_started, label %detach, label %done
detach:
  %thread = load ptr, ptr %handle
  %detached = call i32 @pthread_detach(ptr %thread)
  store atomic i64 %started_1, ptr $STARTED monotonic, align 8
  br label %check
done:
  %unlocked = call i32 @pthread_mutex_unlock(ptr $MUTEX)
  ret void
}

; Wake as many idle threads as may help.
define internal void @wake_threads(i64 %wanted) {
enter:
  %locked = call i32 @pthread_mutex_lock(ptr $MUTEX)
  %sleeping = load atomic i64, ptr $SLEEPING seq_cst, align 8
  %are_few = icmp sge i64 %wanted, %sleeping
  br i1 %are_few, label %wake_all, label %wake_some
wake_all:
  %all = call i32 @pthread_cond_broadcast(ptr $WORK)
  br label %done
wake_some:
  %k = phi i64 [ 0, %enter ], [ %k_1, %wake_some ]
  %one = call i32 @pthread_cond_signal(ptr $WORK)
  %k_1 = add i64 %k, 1
  %more = icmp slt i64 %k_1, %wanted
  br i1 %more, label %wake_some, label %done
done:
  %unlocked = call i32 @pthread_mutex_unlock(ptr $MUTEX)
  ret void
}

; Wait until nobody uses a slot whose job is taken out.
define internal void @wait_for_users(ptr %slot) {
enter:
  %until = alloca [2 x i64]
  %users.at = getelementptr i64, ptr %slot, i64 1
  %asleep.at = getelementptr i64, ptr %slot, i64 4
  br label %spin
spin:
  %i = phi i64 [ 0, %enter ], [ %i_1, %pause ]
  %users = load atomic i64, ptr %users.at seq_cst, align 8
  %is_free = icmp eq i64 %users, 0
  br i1 %is_free, label %done, label %pause
pause:
  $PAUSE
  %i_1 = add i64 %i, 1
  %is_long = icmp uge i64 %i_1, $SPINS
  br i1 %is_long, label %lie_down, label %spin
lie_down:
  %locked = call i32 @pthread_mutex_lock(ptr $MUTEX)
  store atomic i64 1, ptr %asleep.at seq_cst, align 8
  br label %check
check:
  %left = load atomic i64, ptr %users.at seq_cst, align 8
  %is_over = icmp eq i64 %left, 0
  br i1 %is_over, label %rise, label %sleep
sleep:
  ; The handlers of signals may have to run meanwhile.
  %clock = call i32 @clock_gettime(i32 0, ptr %until)
  %nanoseconds.at = getelementptr i64, ptr %until, i64 1
  %nanoseconds = load i64, ptr %nanoseconds.at
  %later = add i64 %nanoseconds, 100000000
  %seconds = load i64, ptr %until
  %carry = udiv i64 %later, 1000000000
  %later_seconds = add i64 %seconds, %carry
  %later_nanoseconds = urem i64 %later, 1000000000
  store i64 %later_seconds, ptr %until
  store i64 %later_nanoseconds, ptr %nanoseconds.at
  %slept = call i32 @pthread_cond_timedwait(ptr $DONE, ptr $MUTEX, ptr %until)
  %is_woken = icmp eq i32 %slept, 0
  br i1 %is_woken, label %check, label %look
look:
  %let_go = call i32 @pthread_mutex_unlock(ptr $MUTEX)
  %looked = call i64 @jitcore_look()
  %taken = call i32 @pthread_mutex_lock(ptr $MUTEX)
  br label %check
rise:
  store atomic i64 0, ptr %asleep.at seq_cst, align 8
  %unlocked = call i32 @pthread_mutex_unlock(ptr $MUTEX)
  br label %done
done:
  ret void
}

define internal void @share_by_pool(ptr %job, i64 %pieces, i64 %threads) {
enter:
  %shared = alloca %Shared
  %most = call i64 @llvm.smin.i64(i64 %pieces, i64 %threads)
  %shares = call i64 @llvm.smin.i64(i64 %most, i64 $COUNT)
  %shared.0 = insertvalue %Shared zeroinitializer, ptr %job, 0
  %shared.1 = insertvalue %Shared %shared.0, i64 %pieces, 1
  %shared.2 = insertvalue %Shared %shared.1, i64 %shares, 2
  %self = call i64 @pthread_self()
  %main = load i64, ptr $MAIN
  %is_main = icmp eq i64 %self, %main
  %its_level = load i64, ptr $LEVEL
  %level = select i1 %is_main, i64 %its_level, i64 -1
  %shared.3 = insertvalue %Shared %shared.2, i64 %level, 4
  store %Shared %shared.3, ptr %shared
  %wanted = sub i64 %most, 1
  %started = load atomic i64, ptr $STARTED monotonic, align 8
  %are_few = icmp slt i64 %started, %wanted
  br i1 %are_few, label %start, label %search
start:
  call void @start_threads(i64 %wanted)
  br label %search
search:
  %k = phi i64 [ 0, %enter ], [ 0, %start ], [ %k_1, %try_next ]
  %slot = getelementptr %Slot, ptr $SLOTS, i64 %k
  %taken.at = getelementptr i64, ptr %slot, i64 2
  %taking = cmpxchg ptr %taken.at, i64 0, i64 1 seq_cst seq_cst
  %is_mine = extractvalue { i64, i1 } %taking, 1
  br i1 %is_mine, label %publish, label %try_next
try_next:
  %k_1 = add i64 %k, 1
  %more = icmp ult i64 %k_1, $COUNT
  br i1 %more, label %search, label %alone
alone:
  call void @run_all(ptr %job, i64 %pieces)
  ret void
publish:
  %limit.at = getelementptr i64, ptr %slot, i64 3
  store i64 %wanted, ptr %limit.at
  store atomic ptr %shared, ptr %slot seq_cst, align 8
  %jobs = atomicrmw add ptr $EPOCH, i64 1 seq_cst
  %sleeping = load atomic i64, ptr $SLEEPING seq_cst, align 8
  %sleep = icmp ne i64 %sleeping, 0
  br i1 %sleep, label %wake, label %work
wake:
  call void @wake_threads(i64 %wanted)
  br label %work
work:
  call void @take_pieces(ptr %shared, i64 0)
  store atomic ptr null, ptr %slot seq_cst, align 8
  call void @wait_for_users(ptr %slot)
  store atomic i64 0, ptr %taken.at seq_cst, align 8
  ret void
}
"""
