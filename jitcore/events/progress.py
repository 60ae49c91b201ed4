"""Progress of slow compiles: one line for who waits, in a terminal or in a notebook, gone when it is done.

In: events. Out: the line, two seconds after a first call or a build has begun, with the function, what is
being done and for how long. `config.announce_compiles` turns it off; nothing is shown where nobody looks, as
in a file.
"""

from __future__ import annotations

import _thread
import sys
import threading
from time import perf_counter

from jitcore.events.publishing import Event
from jitcore.process.lazy import LazyModule

ipython = LazyModule("IPython.display")

PATIENCE, REFRESH = 2.0, 0.5  # seconds
_WIDTH = 100


class _Wait(threading.local):
    """The events that this thread is in, and what ends when the outermost does."""

    stack: list[Event] | None = None
    is_done: _thread.LockType | None = None


_wait = _Wait()
_shown = _thread.allocate_lock()  # of several threads that compile, one shows its line


def read(event: Event) -> None:
    """Cost: a thread for each outermost event, 10 us."""
    if event.seconds is None:
        if _wait.stack is None:
            if not event.name or event.kind == "annotation":
                return
            _wait.stack, _wait.is_done = [], _thread.allocate_lock()
            _wait.is_done.acquire()
            # `threading` would wait until the thread runs: milliseconds on a busy machine.
            _thread.start_new_thread(_show, (_wait.stack, _wait.is_done))
        _wait.stack.append(event)
    elif _wait.stack and event is _wait.stack[-1]:
        _wait.stack.pop()
        if not _wait.stack:
            _wait.is_done.release()
            _wait.stack = None


def _show(stack: list[Event], is_done: _thread.LockType) -> None:
    if is_done.acquire(timeout=PATIENCE) or not _shown.acquire(blocking=False):
        return
    try:
        line = _open_line()
        while True:
            events = list(stack)
            if events:
                line.show(describe(events, perf_counter()))
            if is_done.acquire(timeout=REFRESH):
                break
        line.erase()
    finally:
        _shown.release()


def describe(events: list[Event], now: float) -> str:
    """What happens, outermost event first."""
    first, last = events[0], events[-1]
    step = f" ({last.facts['step']})" if "step" in last.facts else ""
    inner = last.name if last.name != first.name else ""
    what = " of ".join(filter(None, (f"{last.kind}{step}", inner)))
    return f"jitcore: compiling {first.name}: {what}, {now - first.start:.0f} s"


class _TerminalLine:
    def __init__(self):
        self._stream = sys.stderr

    def show(self, text: str) -> None:
        self._stream.write(f"\r\x1b[K{text[:_WIDTH]}")
        self._stream.flush()

    def erase(self) -> None:
        self._stream.write("\r\x1b[K")
        self._stream.flush()


class _NotebookLine:
    def __init__(self):
        self._handle = ipython.display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, text: str) -> None:
        self._handle.update({"text/plain": text}, raw=True)

    erase = lambda self: self.show("")  # noqa: E731


def _open_line() -> _TerminalLine | _NotebookLine:
    return _TerminalLine() if sys.stderr.isatty() else _NotebookLine()
