"""Frames: loops of scalar code, whose rounds are too short to ask whether they have to end, are told.

In: a function that runs such loops, and a frame that its caller keeps for it. Out: at each tick of
`interrupts` the handlers of Python's signals run; where one raises, the call is left. Stage: run time.

The ticker sends the threads that are in frames a signal of its own, as Go's runtime does. Its handler looks.
It may do so, though handlers of signals may do next to nothing, because it does it only where the thread is
in a round of such a loop (`inside`), which holds no lock and calls nothing but arithmetic. Then the loop goes
on at the next instruction, or its frame is left by `longjmp`. The rounds themselves cost nothing.

    Thread *jitcore_enter_frame(Frame *)          the thread is told from now on while `inside` is set; null:
                                                  it is not, as there are too many
    void jitcore_leave_frame(Thread *, Frame *)
"""

from __future__ import annotations

import ctypes
import signal

__all__ = ["ENTER_SYMBOL", "FRAME_SIZE", "INSIDE_OFFSET", "LEAVE_SYMBOL", "MAX_THREADS", "PLACE_OFFSET",
           "SYMBOLS", "Thread", "render"]

ENTER_SYMBOL, LEAVE_SYMBOL = "jitcore_enter_frame", "jitcore_leave_frame"
SYMBOLS = ENTER_SYMBOL, LEAVE_SYMBOL
#: Threads that are told.
MAX_THREADS = 256
#: A frame: the one around it, whether its thread is inside of a loop, where `setjmp` notes the place.
INSIDE_OFFSET, PLACE_OFFSET, FRAME_SIZE = 8, 16, 16 + 1024


class Thread(ctypes.Structure):
    """A thread that has run loops of scalar code, its innermost frame, whether it is being told."""

    _fields_ = (("ident", ctypes.c_int64), ("frame", ctypes.c_int64), ("told", ctypes.c_int64))


def _list_signals() -> list[int]:
    """The signals that the ticker may send: it takes the first that nobody else handles. Go's, which means
    nothing by itself, then those of the highest numbers."""
    last = int(getattr(signal, "SIGRTMAX", signal.SIGURG))
    return [int(signal.SIGURG), *range(last, last - 4, -1)]


def render() -> str:
    """LLVM text of `void tell_threads()` and the functions above. It is part of `interrupts`."""
    text, signals = _TEXT, _list_signals()
    for name, value in (("ENTER", ENTER_SYMBOL), ("LEAVE", LEAVE_SYMBOL), ("THREADS", MAX_THREADS),
                        ("PLACE", PLACE_OFFSET), ("UNBLOCK", int(signal.SIG_UNBLOCK)),
                        ("CANDIDATES", len(signals)),
                        ("SIGNALS", ", ".join(f"i32 {number}" for number in signals))):
        text = text.replace(f"%%{name}%%", str(value))
    return text


_TEXT = """
%Thread = type { i64, i64, i64 }
@signals = private constant [%%CANDIDATES%% x i32] [%%SIGNALS%%]

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
  %is_last = icmp eq i64 %k_1, %%CANDIDATES%%
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
  %more = icmp ult i64 %k_1, %%THREADS%%
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
  %more = icmp ult i64 %k, %%THREADS%%
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

define ptr @%%ENTER%%(ptr %frame) {
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
  %tick = call i64 @%%BEGIN%%()
  br label %done
done:
  ret ptr %thread
}

define void @%%LEAVE%%(ptr %thread, ptr %frame) {
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
  %unblocked = call i32 @pthread_sigmask(i32 %%UNBLOCK%%, ptr %set, ptr null)
  store atomic i64 0, ptr %inside.at monotonic, align 8
  %stops = call i64 @%%LOOK%%()
  %has_to_leave = icmp ne i64 %stops, 0
  br i1 %has_to_leave, label %leave, label %stay
leave:
  call void @%%LEAVE%%(ptr %thread, ptr %frame)
  %place = getelementptr i8, ptr %frame, i64 %%PLACE%%
  call void @_longjmp(ptr %place, i32 1)
  unreachable
stay:
  store atomic i64 1, ptr %inside.at monotonic, align 8
  br label %done
done:
  ret void
}
"""
