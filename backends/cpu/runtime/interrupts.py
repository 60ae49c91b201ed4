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
from typing import TYPE_CHECKING

from jitcore.backends.cpu.native.images import Cells

if TYPE_CHECKING:
    from jitcore.backends.cpu.native.text_writer import RuntimeWriter

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


class Worker(ctypes.Structure):
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
        ("workers", Worker * (MAX_WORKERS + 1)),  # the last one is of all that have none
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


def write_functions(w: RuntimeWriter, tick: int) -> None:
    """The functions, for a library that has more. tick: microseconds."""
    if not has_threads():
        for head in (f"{BEGIN_SYMBOL}()", f"{LOOK_SYMBOL}()", f"{STOPPED_SYMBOL}()", f"{POLL_SYMBOL}(ptr)"):
            with w.function(f"i64 @{head}", "ret i64 0"):
                pass
        with w.function(f"void @{END_SYMBOL}()"):
            pass
        return
    w.declare(Interrupts.declaration)
    _write_telling(w)
    _write_ticker(w, tick)
    _write_look(w)
    _write_questions(w)
    _write_frames(w)
    _write_handler(w)


_cell = Interrupts.locate


def _write_telling(w: RuntimeWriter) -> None:
    """choose_signal: one that is handled by `hear` and by nobody else; 0: there is none. find_thread: the
    entry of this thread, made if there is none; null where there is no room. tell_threads: sends the signal
    to threads that have frames, which stay until they have been told."""
    signals = _list_signals()
    numbers = ", ".join(map("i32 {}".format, signals))
    w.declare(f"@signals = private constant [{len(signals)} x i32] [{numbers}]")
    with w.function("internal i32 @choose_signal()", "ret i32 0"):
        action = w.let("alloca [64 x i64]")
        with w.loop(0, len(signals)) as k:
            number = w.load(w.element("@signals", k, "i32"), "i32", 4)
            w.call("sigaction", number, "null", action)
            handler = w.load(action)
            with w.when(w.compare("eq", handler, "ptrtoint (ptr @hear to i64)")):
                w.do(f"ret i32 {number}")
            with w.when(w.compare("ult", handler, 2)):  # SIG_DFL, SIG_IGN
                w.call("signal", number, "@hear")
                w.do(f"ret i32 {number}")
    with w.function("internal ptr @find_thread()", "ret ptr null"):
        own = w.call("pthread_self")
        with w.loop(0, MAX_THREADS) as k:
            thread = w.element(_cell("threads"), k, "[3 x i64]")
            ident = w.load_atomic(thread, order="monotonic")
            with w.when(w.compare("eq", ident, own)):
                w.do(f"ret ptr {thread}")
            with w.when(w.compare("eq", ident, 0)), w.when(w.replace_atomic(thread, 0, own)):
                w.do(f"ret ptr {thread}")
    with w.function("internal void @tell_threads()"):
        with w.loop(0, MAX_THREADS) as k:
            thread = w.element(_cell("threads"), k, "[3 x i64]")
            ident, told = w.load_atomic(thread), w.part(thread, _Thread.told)
            with w.when(w.compare("eq", ident, 0)):
                w.do("ret void")
            w.store_atomic(1, told)
            with w.when(w.compare("ne", w.load_atomic(w.part(thread, _Thread.frame)), 0)):
                number = w.call("choose_signal")
                with w.when(w.compare("ne", number, 0, "i32")):
                    w.call("pthread_kill", ident, number)
            w.store_atomic(0, told)


def _write_ticker(w: RuntimeWriter, tick: int) -> None:
    """count_ticks: the ticker, a tick some time after each that was asked for. arm: asks for one."""
    mutex = _cell("mutex")
    with w.function("internal ptr @count_ticks(ptr %ignored)", "unreachable"):
        w.call("pthread_mutex_lock", mutex)
        with w.repeat():
            with w.repeat() as until:
                until(w.compare("ne", w.load_atomic(_cell("armed")), 0))
                w.call("pthread_cond_wait", _cell("condition"), mutex)
            w.call("pthread_mutex_unlock", mutex)
            w.call("usleep", tick)
            w.store_atomic(0, _cell("armed"))
            w.add_atomic(1, _cell("tick"))
            w.call("tell_threads")
            w.call("pthread_mutex_lock", mutex)
    with w.function("internal void @arm()"):
        handle = w.let("alloca ptr")
        with w.when(w.replace_atomic(_cell("armed"), 0, 1)):
            w.call("pthread_mutex_lock", mutex)
            with w.when(w.compare("eq", w.load(_cell("started")), 0)):
                failure = w.call("pthread_create", handle, "null", "@count_ticks", "null")
                with w.when(w.compare("eq", failure, 0, "i32")):
                    w.call("pthread_detach", w.load(handle, "ptr"))
                    w.store(1, _cell("started"))
            w.call("pthread_cond_signal", _cell("condition"))
            w.call("pthread_mutex_unlock", mutex)


def _write_look(w: RuntimeWriter) -> None:
    with w.function("internal void @let_others_run()"):
        # Short programs keep the GIL, and a loop may make them long.
        w.call("PyEval_RestoreThread", w.call("PyEval_SaveThread"))
    with w.function(f"i64 @{LOOK_SYMBOL}()", None):
        w.call("arm")
        stop, own = w.load_atomic(_cell("stop")), w.call("pthread_self")
        with w.when(w.compare("eq", own, w.load(_cell("main")))):
            _write_main_look(w, stop)
        with w.loop(0, MAX_WORKERS) as k:
            worker = w.element(_cell("workers"), k, "[2 x i64]")
            with w.when(w.compare("eq", w.load_atomic(worker, order="monotonic"), own)):
                level = w.load_atomic(w.part(worker, Worker.level), order="monotonic")
                is_some, is_equal = w.compare("ne", stop, 0), w.compare("eq", level, stop)
                is_served = w.let(f"and i1 {is_some}, {is_equal}")
                w.do(f"ret i64 {w.let(f'zext i1 {is_served} to i64')}")
        with w.when(w.compare("ne", w.call("PyGILState_Check"), 0, "i32")):
            w.call("let_others_run")
        w.do("ret i64 0")


def _write_main_look(w: RuntimeWriter, stop: str) -> None:
    """What the main thread does: it runs handlers, at a level above its own."""
    level = w.load(_cell("level"))
    with w.when(w.compare("eq", stop, level)):
        w.do("ret i64 1")
    w.store(w.add(level, 1), _cell("level"))
    gil = w.call("PyGILState_Ensure")
    w.call("let_others_run")
    raised = w.call("PyErr_CheckSignals")
    w.call("PyGILState_Release", gil)
    w.store(level, _cell("level"))
    with w.when(w.compare("ne", raised, 0, "i32")):
        w.store_atomic(level, _cell("stop"))
        w.add_atomic(1, _cell("tick"))
        w.do("ret i64 1")
    w.do("ret i64 0")


def _write_questions(w: RuntimeWriter) -> None:
    with w.function(f"i64 @{BEGIN_SYMBOL}()", None):
        tick = w.load_atomic(_cell("tick"))
        with w.when(w.compare("eq", w.load_atomic(_cell("armed")), 0)):
            w.call("arm")
        stops = w.compare("ne", w.load_atomic(_cell("stop"), order="monotonic"), 0)
        w.do(f"ret i64 {w.sub(tick, w.let(f'zext i1 {stops} to i64'))}")
    with w.function(f"i64 @{STOPPED_SYMBOL}()", "ret i64 0"):
        with w.when(w.compare("ne", w.load_atomic(_cell("stop"), order="monotonic"), 0)):
            w.do(f"ret i64 {w.call(LOOK_SYMBOL)}")
    with w.function(f"void @{END_SYMBOL}()"):
        w.store_atomic(0, _cell("stop"))
    with w.function(f"i64 @{POLL_SYMBOL}(ptr %seen)", "ret i64 0"):
        seen, tick = w.load("%seen"), w.load_atomic(_cell("tick"), order="monotonic")
        with w.when(w.compare("ne", seen, tick)):
            w.store(tick, "%seen")
            w.do(f"ret i64 {w.call(LOOK_SYMBOL)}")


def _write_frames(w: RuntimeWriter) -> None:
    with w.function(f"ptr @{ENTER_SYMBOL}(ptr %frame)", None):
        thread = w.call("find_thread")
        with w.when(w.compare("ne", thread, "null", "ptr")):
            w.store(w.load(w.part(thread, _Thread.frame)), "%frame")
            w.store_atomic(0, w.at("%frame", INSIDE_OFFSET), order="monotonic")
            w.store_atomic("%frame", w.part(thread, _Thread.frame), "ptr", "release")
            w.call(BEGIN_SYMBOL)
        w.do(f"ret ptr {thread}")
    with w.function(f"void @{LEAVE_SYMBOL}(ptr %thread, ptr %frame)"):
        with w.when(w.compare("ne", "%thread", "null", "ptr")):
            w.store_atomic(w.load("%frame"), w.part("%thread", _Thread.frame))
            with w.repeat() as until:
                until(w.compare("eq", w.load_atomic(w.part("%thread", _Thread.told)), 0))


def _write_handler(w: RuntimeWriter) -> None:
    """The handler of the signal."""
    with w.function("internal void @hear(i32 %number)"):
        signals = w.let("alloca [32 x i64]")
        thread = w.call("find_thread")
        with w.when(w.is_null(thread)):
            w.do("ret void")
        frame = w.load(w.part(thread, _Thread.frame), "ptr")
        with w.when(w.is_null(frame)):
            w.do("ret void")
        inside = w.at(frame, INSIDE_OFFSET)
        with w.when(w.compare("ne", w.load_atomic(inside, order="monotonic"), 0)):
            # Handlers of Python's may call native loops, and the signal's handler may not return.
            w.call("sigemptyset", signals)
            w.call("sigaddset", signals, "%number")
            w.call("pthread_sigmask", int(signal.SIG_UNBLOCK), signals, "null")
            w.store_atomic(0, inside, order="monotonic")
            with w.when(w.compare("ne", w.call(LOOK_SYMBOL), 0)):
                w.call(LEAVE_SYMBOL, thread, frame)
                w.call("_longjmp", w.at(frame, PLACE_OFFSET), 1)
                w.do("unreachable")
            w.store_atomic(1, inside, order="monotonic")
