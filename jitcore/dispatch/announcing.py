"""People who wait for a compiler for more than two seconds read one line on standard error about what it
compiles.

In: for which function a thread compiles, and when it does. `config.announce_compiles` turns it off.
"""

from __future__ import annotations

import _thread
import contextlib
import sys
import threading
import time
from collections.abc import Iterator

from jitcore.config import config

__all__ = ["announce_slow", "name_compile"]

PATIENCE = 2.0  # seconds


class _Compile:
    """A function that is being compiled."""

    __slots__ = ("name", "start", "is_announced")

    def __init__(self, name: str):
        self.name, self.start, self.is_announced = name, time.monotonic(), False


class _Current(threading.local):
    compile: _Compile | None = None


_current = _Current()


@contextlib.contextmanager
def name_compile(name: str) -> Iterator[None]:
    """Says for which function this thread does what it does in the block; blocks of one name count as one."""
    outer = _current.compile
    if outer is None or outer.name != name:
        _current.compile = _Compile(name)
    try:
        yield
    finally:
        _current.compile = outer


@contextlib.contextmanager
def announce_slow() -> Iterator[None]:
    """Around the work of a compiler: announces the function when it takes too long. Cost: 10 us, a thread."""
    compile = _current.compile
    if compile is None or not config.announce_compiles:
        yield
        return
    is_done = _thread.allocate_lock()
    is_done.acquire()
    # `threading` would wait until the thread runs: milliseconds on a busy machine.
    _thread.start_new_thread(_wait, (compile, is_done))
    try:
        yield
    finally:
        is_done.release()


def _wait(compile: _Compile, is_done: _thread.LockType) -> None:
    patience = compile.start + PATIENCE - time.monotonic()
    if is_done.acquire(timeout=max(patience, 0.0)) or compile.is_announced:
        return
    compile.is_announced = True
    if sys.stderr is not None:  # a program with windows only has none
        print(f"jitcore: compiling {compile.name} for {PATIENCE:g} s ...", file=sys.stderr, flush=True)
