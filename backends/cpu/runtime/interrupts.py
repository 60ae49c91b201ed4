"""How native loops that run for long hear of signals: Ctrl-C ends them as it ends Python's.

In: loops that ask in their rounds whether time has passed, and loops of scalar code, whose rounds are too
short to ask anything (`render.function` and `render.loop_functions` have them). Out: where a signal's
handler has raised, native code that returns `RAISED`, with the exception set. Stage: run time.

A thread of its own, the ticker, counts: a tick is a word in memory that loops compare with what they saw
last. It counts only while somebody listens: who looks asks for one more tick. At a tick the main thread lets
Python run the handlers of signals, whoever has installed them, as only it may. Where one raises, the level
that stops is published, and threads that work for the main thread leave their loops too. Levels count
handlers that call native code themselves: what they interrupt is not what they were called from.

Loops of scalar code are told: who calls one keeps a frame for it, and the ticker sends the threads that are
in frames a signal of its own, as Go's runtime does. Its handler looks. It may, though handlers of signals may
do next to nothing, because it does so only where the thread is in a round of such a loop (`inside`), which
holds no lock and calls nothing but arithmetic. Then the loop goes on at the next instruction, or its frame is
left by `longjmp`. The rounds themselves cost nothing.

    i64 jitcore_begin_loops()   the tick as it is, there will be another one; where something stops, one
                                that is past, so that the first round of each piece of a loop looks
    i64 jitcore_look()          run handlers; whether what this thread works for stops
    i64 jitcore_poll(i64 *seen) look, if there was a tick that was not seen
    i64 jitcore_is_stopped()    whether what this thread works for was stopped
    void jitcore_end_stop()     takes the level back, at the end of the entry point: all threads have left
    Thread *jitcore_enter_frame(Frame *)          the thread is told while `inside` is set; null: too many are
    void jitcore_leave_frame(Thread *, Frame *)

Other threads are not interrupted, as none of Python's is; those that keep the GIL give it to others.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading

from jitcore.backends.cpu.native.images import Cells, fill

BEGIN_SYMBOL, LOOK_SYMBOL, POLL_SYMBOL = "jitcore_begin_loops", "jitcore_look", "jitcore_poll"
STOPPED_SYMBOL, END_SYMBOL = "jitcore_is_stopped", "jitcore_end_stop"
ENTER_SYMBOL, LEAVE_SYMBOL = "jitcore_enter_frame", "jitcore_leave_frame"
SYMBOLS = BEGIN_SYMBOL, LOOK_SYMBOL, POLL_SYMBOL, STOPPED_SYMBOL, END_SYMBOL, ENTER_SYMBOL, LEAVE_SYMBOL

#: Threads of the pool that leave loops early.
MAX_WORKERS = 256
#: Threads that are told.
MAX_THREADS = 256
#: A frame: the one around it, whether its thread is inside of a loop, where `setjmp` notes the place.
INSIDE_OFFSET, PLACE_OFFSET, FRAME_SIZE = 8, 16, 16 + 1024


class _Worker(ctypes.Structure):
    """A thread of the pool, and the level of the main thread that it works for, or -1."""

    _fields_ = (("ident", ctypes.c_int64), ("level", ctypes.c_int64))


class _Thread(ctypes.Structure):
    """A thread that has run loops of scalar code, its innermost frame, whether it is being told."""

    _fields_ = (("ident", ctypes.c_int64), ("frame", ctypes.c_int64), ("told", ctypes.c_int64))


class Interrupts(Cells):
    symbol = "jitcore_interrupt_cells"
    _fields_ = (
        ("tick", ctypes.c_int64),  # where the cells begin: loops read it there
        ("armed", ctypes.c_int64),  # whether there will be another tick
        ("stop", ctypes.c_int64),  # the level that stops, 0: none
        ("level", ctypes.c_int64),  # of what the main thread runs: 1, and more in handlers
        ("main", ctypes.c_int64),  # the main thread
        ("started", ctypes.c_int64),  # whether there is a ticker
        ("mutex", ctypes.c_int64 * 16),
        ("condition", ctypes.c_int64 * 16),
        ("workers", _Worker * (MAX_WORKERS + 1)),  # the last one is of all that have none
        ("threads", _Thread * MAX_THREADS),
    )


cells = Interrupts()


def reset() -> None:
    """Makes the cells those of a process without a ticker, whose main thread is the one that forked."""
    cells.clear()
    cells.level, cells.main = 1, threading.main_thread().ident
    library = ctypes.CDLL(None)
    library.pthread_mutex_init(ctypes.byref(cells, Interrupts.mutex.offset), None)
    library.pthread_cond_init(ctypes.byref(cells, Interrupts.condition.offset), None)


def has_threads() -> bool:
    """Whether this system has POSIX threads, and signals for them: those that can fork do."""
    return hasattr(os, "fork")


# -- native code --------------------------------------------------------------------------------------------
def _list_signals() -> list[int]:
    """The signals that the ticker may send: it takes the first that nobody else handles. Go's, which means
    nothing by itself, then those of the highest numbers."""
    last = int(getattr(signal, "SIGRTMAX", signal.SIGURG))
    return [int(signal.SIGURG), *range(last, last - 4, -1)]


def render(tick: int) -> str:
    """LLVM text of the functions. They stand in one library with those of `threads`. tick: microseconds."""
    if not has_threads():
        heads = f"{BEGIN_SYMBOL}()", f"{LOOK_SYMBOL}()", f"{STOPPED_SYMBOL}()", f"{POLL_SYMBOL}(ptr)"
        answers = "\n".join(f"define i64 @{head} {{\n  ret i64 0\n}}" for head in heads)
        return f"{answers}\ndefine void @{END_SYMBOL}() {{\n  ret void\n}}"
    signals = _list_signals()
    text = fill(_TEXT, Interrupts, interval=tick, begin=BEGIN_SYMBOL, look=LOOK_SYMBOL, poll=POLL_SYMBOL,
                stopped=STOPPED_SYMBOL, end=END_SYMBOL, count=MAX_WORKERS, enter=ENTER_SYMBOL,
                leave=LEAVE_SYMBOL, told=MAX_THREADS, place=PLACE_OFFSET, unblock=int(signal.SIG_UNBLOCK),
                candidates=len(signals), signals=", ".join(map("i32 {}".format, signals)))
    return f"{Interrupts.declaration}\n{text}"


_TEXT = """
declare i64 @pthread_self()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @usleep(i32)
declare i32 @PyErr_CheckSignals()
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyGILState_Check()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)

; The ticker: a tick some time after each that was asked for.
define internal ptr @count_ticks(ptr %ignored) {
enter:
  %locked = call i32 @pthread_mutex_lock(ptr $MUTEX)
  br label %check
check:
  %armed = load atomic i64, ptr $ARMED seq_cst, align 8
  %is_idle = icmp eq i64 %armed, 0
  br i1 %is_idle, label %sleep, label %wait
sleep:
  %slept = call i32 @pthread_cond_wait(ptr $CONDITION, ptr $MUTEX)
  br label %check
wait:
  %unlocked = call i32 @pthread_mutex_unlock(ptr $MUTEX)
  %waited = call i32 @usleep(i32 $INTERVAL)
  store atomic i64 0, ptr $ARMED seq_cst, align 8
  %before = atomicrmw add ptr $TICK, i64 1 seq_cst
  call void @tell_threads()
  %locked_again = call i32 @pthread_mutex_lock(ptr $MUTEX)
  br label %check
}

define internal void @arm() {
enter:
  %handle = alloca ptr
  %arming = cmpxchg ptr $ARMED, i64 0, i64 1 seq_cst seq_cst
  %is_new = extractvalue { i64, i1 } %arming, 1
  br i1 %is_new, label %lock, label %done
lock:
  %locked = call i32 @pthread_mutex_lock(ptr $MUTEX)
  %started = load i64, ptr $STARTED
  %is_started = icmp ne i64 %started, 0
  br i1 %is_started, label %wake, label %start
start:
  %failure = call i32 @pthread_create(ptr %handle, ptr null, ptr @count_ticks, ptr null)
  %is_made = icmp eq i32 %failure, 0
  br i1 %is_made, label %detach, label %wake
detach:
  %thread = load ptr, ptr %handle
  %detached = call i32 @pthread_detach(ptr %thread)
  store i64 1, ptr $STARTED
  br label %wake
wake:
  %woken = call i32 @pthread_cond_signal(ptr $CONDITION)
  %unlocked = call i32 @pthread_mutex_unlock(ptr $MUTEX)
  br label %done
done:
  ret void
}

define i64 @$BEGIN() {
enter:
  %tick = load atomic i64, ptr $TICK seq_cst, align 8
  %armed = load atomic i64, ptr $ARMED seq_cst, align 8
  %is_armed = icmp ne i64 %armed, 0
  br i1 %is_armed, label %done, label %ask
ask:
  call void @arm()
  br label %done
done:
  %stop = load atomic i64, ptr $STOP monotonic, align 8
  %stops = icmp ne i64 %stop, 0
  %passed = zext i1 %stops to i64
  %seen = sub i64 %tick, %passed
  ret i64 %seen
}

; Short programs keep the GIL, and a loop may make them long.
define internal void @let_others_run() {
  %state = call ptr @PyEval_SaveThread()
  call void @PyEval_RestoreThread(ptr %state)
  ret void
}

define i64 @$LOOK() {
enter:
  call void @arm()
  %stop = load atomic i64, ptr $STOP seq_cst, align 8
  %self = call i64 @pthread_self()
  %main = load i64, ptr $MAIN
  %is_main = icmp eq i64 %self, %main
  br i1 %is_main, label %look, label %other
look:
  %level = load i64, ptr $LEVEL
  %is_stopped = icmp eq i64 %stop, %level
  br i1 %is_stopped, label %leave, label %ask
ask:
  %above = add i64 %level, 1
  store i64 %above, ptr $LEVEL
  %gil = call i32 @PyGILState_Ensure()
  call void @let_others_run()
  %raised = call i32 @PyErr_CheckSignals()
  call void @PyGILState_Release(i32 %gil)
  store i64 %level, ptr $LEVEL
  %has_raised = icmp ne i32 %raised, 0
  br i1 %has_raised, label %publish, label %stay
publish:
  store atomic i64 %level, ptr $STOP seq_cst, align 8
  %before = atomicrmw add ptr $TICK, i64 1 seq_cst
  br label %leave
other:
  %is_none = icmp eq i64 %stop, 0
  br label %search
search:
  %k = phi i64 [ 0, %other ], [ %k_1, %next ]
  %more = icmp ult i64 %k, $COUNT
  br i1 %more, label %compare, label %pythons
pythons:
  %has_gil = call i32 @PyGILState_Check()
  %is_without = icmp eq i32 %has_gil, 0
  br i1 %is_without, label %stay, label %yield
yield:
  call void @let_others_run()
  br label %stay
compare:
  %ident.at = getelementptr [2 x i64], ptr $WORKERS, i64 %k
  %ident = load atomic i64, ptr %ident.at monotonic, align 8
  %is_self = icmp eq i64 %ident, %self
  br i1 %is_self, label %found, label %next
next:
  %k_1 = add i64 %k, 1
  br label %search
found:
  %served.at = getelementptr i64, ptr %ident.at, i64 1
  %served = load atomic i64, ptr %served.at monotonic, align 8
  %is_equal = icmp eq i64 %served, %stop
  %is_some = xor i1 %is_none, true
  %is_served = and i1 %is_equal, %is_some
  br i1 %is_served, label %leave, label %stay
leave:
  ret i64 1
stay:
  ret i64 0
}

define i64 @$STOPPED() {
enter:
  %stop = load atomic i64, ptr $STOP monotonic, align 8
  %is_none = icmp eq i64 %stop, 0
  br i1 %is_none, label %go_on, label %look
look:
  %stops = call i64 @$LOOK()
  ret i64 %stops
go_on:
  ret i64 0
}

define void @$END() {
enter:
  store atomic i64 0, ptr $STOP seq_cst, align 8
  ret void
}

define i64 @$POLL(ptr %seen.at) {
enter:
  %seen = load i64, ptr %seen.at
  %tick = load atomic i64, ptr $TICK monotonic, align 8
  %is_new = icmp ne i64 %seen, %tick
  br i1 %is_new, label %look, label %stay
look:
  store i64 %tick, ptr %seen.at
  %stops = call i64 @$LOOK()
  ret i64 %stops
stay:
  ret i64 0
}

%Thread = type { i64, i64, i64 }
@signals = private constant [$CANDIDATES x i32] [$SIGNALS]

declare i32 @pthread_kill(i64, i32)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigaction(i32, ptr, ptr)
declare ptr @signal(i32, ptr)
declare i32 @sigemptyset(ptr)
declare i32 @sigaddset(ptr, i32)
declare void @_longjmp(ptr, i32) noreturn

; A signal that is handled by `hear` and by nobody else; 0: there is none.
define internal i32 @choose_signal() {
enter:
  %action = alloca [64 x i64]
  br label %next
next:
  %k = phi i64 [ 0, %enter ], [ %k_1, %skip ]
  %number.at = getelementptr i32, ptr @signals, i64 %k
  %number = load i32, ptr %number.at
  %failure = call i32 @sigaction(i32 %number, ptr null, ptr %action)
  %handler = load i64, ptr %action
  %is_mine = icmp eq i64 %handler, ptrtoint (ptr @hear to i64)
  br i1 %is_mine, label %done, label %check
check:
  %is_free = icmp ult i64 %handler, 2 ; SIG_DFL, SIG_IGN
  br i1 %is_free, label %install, label %skip
install:
  %replaced = call ptr @signal(i32 %number, ptr @hear)
  br label %done
done:
  ret i32 %number
skip:
  %k_1 = add i64 %k, 1
  %is_last = icmp eq i64 %k_1, $CANDIDATES
  br i1 %is_last, label %none, label %next
none:
  ret i32 0
}

; Send the signal to threads that have frames. They stay until they have been told.
define internal void @tell_threads() {
enter:
  br label %next
next:
  %k = phi i64 [ 0, %enter ], [ %k_1, %after ]
  %thread = getelementptr %Thread, ptr $THREADS, i64 %k
  %ident = load atomic i64, ptr %thread seq_cst, align 8
  %is_end = icmp eq i64 %ident, 0
  br i1 %is_end, label %done, label %mark
mark:
  %frame.at = getelementptr %Thread, ptr %thread, i32 0, i32 1
  %told.at = getelementptr %Thread, ptr %thread, i32 0, i32 2
  store atomic i64 1, ptr %told.at seq_cst, align 8
  %frame = load atomic i64, ptr %frame.at seq_cst, align 8
  %is_out = icmp eq i64 %frame, 0
  br i1 %is_out, label %after, label %tell
tell:
  %number = call i32 @choose_signal()
  %is_none = icmp eq i32 %number, 0
  br i1 %is_none, label %after, label %send
send:
  %sent = call i32 @pthread_kill(i64 %ident, i32 %number)
  br label %after
after:
  store atomic i64 0, ptr %told.at seq_cst, align 8
  %k_1 = add i64 %k, 1
  %more = icmp ult i64 %k_1, $TOLD
  br i1 %more, label %next, label %done
done:
  ret void
}

; The entry of this thread, made if there is none; null where there is no room.
define internal ptr @find_thread() {
enter:
  %self = call i64 @pthread_self()
  br label %next
next:
  %k = phi i64 [ 0, %enter ], [ %k_1, %skip ]
  %more = icmp ult i64 %k, $TOLD
  br i1 %more, label %look, label %none
look:
  %thread = getelementptr %Thread, ptr $THREADS, i64 %k
  %ident = load atomic i64, ptr %thread monotonic, align 8
  %is_self = icmp eq i64 %ident, %self
  br i1 %is_self, label %found, label %check
check:
  %is_free = icmp eq i64 %ident, 0
  br i1 %is_free, label %take, label %skip
take:
  %taking = cmpxchg ptr %thread, i64 0, i64 %self seq_cst seq_cst
  %is_taken = extractvalue { i64, i1 } %taking, 1
  br i1 %is_taken, label %found, label %skip
skip:
  %k_1 = add i64 %k, 1
  br label %next
found:
  ret ptr %thread
none:
  ret ptr null
}

define ptr @$ENTER(ptr %frame) {
enter:
  %thread = call ptr @find_thread()
  %is_none = icmp eq ptr %thread, null
  br i1 %is_none, label %done, label %link
link:
  %frame.at = getelementptr %Thread, ptr %thread, i32 0, i32 1
  %around = load i64, ptr %frame.at
  store i64 %around, ptr %frame
  %inside.at = getelementptr i64, ptr %frame, i64 1
  store atomic i64 0, ptr %inside.at monotonic, align 8
  %address = ptrtoint ptr %frame to i64
  store atomic i64 %address, ptr %frame.at release, align 8
  %tick = call i64 @$BEGIN()
  br label %done
done:
  ret ptr %thread
}

define void @$LEAVE(ptr %thread, ptr %frame) {
enter:
  %is_none = icmp eq ptr %thread, null
  br i1 %is_none, label %done, label %unlink
unlink:
  %frame.at = getelementptr %Thread, ptr %thread, i32 0, i32 1
  %told.at = getelementptr %Thread, ptr %thread, i32 0, i32 2
  %around = load i64, ptr %frame
  store atomic i64 %around, ptr %frame.at seq_cst, align 8
  br label %wait
wait:
  %told = load atomic i64, ptr %told.at seq_cst, align 8
  %is_told = icmp ne i64 %told, 0
  br i1 %is_told, label %wait, label %done
done:
  ret void
}

; The handler of the signal.
define internal void @hear(i32 %number) {
enter:
  %set = alloca [32 x i64]
  %thread = call ptr @find_thread()
  %is_none = icmp eq ptr %thread, null
  br i1 %is_none, label %done, label %find
find:
  %frame.at = getelementptr %Thread, ptr %thread, i32 0, i32 1
  %address = load i64, ptr %frame.at
  %is_out = icmp eq i64 %address, 0
  br i1 %is_out, label %done, label %check
check:
  %frame = inttoptr i64 %address to ptr
  %inside.at = getelementptr i64, ptr %frame, i64 1
  %inside = load atomic i64, ptr %inside.at monotonic, align 8
  %is_inside = icmp ne i64 %inside, 0
  br i1 %is_inside, label %look, label %done
look:
  ; Handlers of Python's may call native loops, and the signal's handler may not return.
  %emptied = call i32 @sigemptyset(ptr %set)
  %added = call i32 @sigaddset(ptr %set, i32 %number)
  %unblocked = call i32 @pthread_sigmask(i32 $UNBLOCK, ptr %set, ptr null)
  store atomic i64 0, ptr %inside.at monotonic, align 8
  %stops = call i64 @$LOOK()
  %has_to_leave = icmp ne i64 %stops, 0
  br i1 %has_to_leave, label %leave, label %stay
leave:
  call void @$LEAVE(ptr %thread, ptr %frame)
  %place = getelementptr i8, ptr %frame, i64 $PLACE
  call void @_longjmp(ptr %place, i32 1)
  unreachable
stay:
  store atomic i64 1, ptr %inside.at monotonic, align 8
  br label %done
done:
  ret void
}
"""
