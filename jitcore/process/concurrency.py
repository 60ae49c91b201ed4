"""Threads, forks and processors: what the caches need, and Python's own locks and cached properties lack.

In: nothing, and what the operating system says. Out: `Lock`, which a forked child finds free;
`cached_attribute`, which holds no lock at all; `stop_at_end`, by which daemon threads stay out of C++ when
the interpreter ends; tables of what was used last; and how many processors this process may keep busy, by
its affinity, its control group and OMP_NUM_THREADS. Stage: before all others; this module imports nothing of
jitcore, and no setting of jitcore's is read here.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from types import FrameType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Lock:
    """A lock for `with`.

    The thread that has it may take it again: the garbage collector may run a finaliser anywhere, and that may
    call a jitted function. In a forked child it is free unless the forking thread has it: the others, which
    would give it back, are not there. What it protects has to be whole between any two of its changes."""

    __slots__ = ("_lock", "__weakref__")

    def __init__(self):
        self._lock = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def _renew_after_fork(self) -> None:
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def _renew_locks() -> None:
    for lock in list(_locks):
        lock._renew_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


# When the interpreter ends, CPython before 3.14 ends a daemon thread where it next waits for the GIL, by
# unwinding its stack. C++ that must not be unwound there ends the process instead, with "terminate called".
_MAX_WAIT = 1.0  # seconds
_ending_thread: int | None = None


def stop_at_end() -> None:
    """What a function calls first that goes into C++ which gives up the GIL or calls Python.

    Once the interpreter ends it returns in the ending thread only; others wait there for the end. One that
    has a `Lock` may go on, as the ending thread may need what the lock protects."""
    if _ending_thread is not None:
        _wait_for_end()


def _wait_for_end() -> None:
    if threading.get_ident() == _ending_thread or any(lock._lock._is_owned() for lock in list(_locks)):
        return
    never = threading.Lock()
    never.acquire()
    never.acquire()


def keep_threads_out() -> None:
    """Lets no other thread enter a function that calls `stop_at_end`, and waits until they have left.

    For `atexit`, after the import of the library that such functions call: its own hooks run later then."""
    global _ending_thread
    _ending_thread = threading.get_ident()
    last = time.monotonic() + _MAX_WAIT
    while _is_any_inside() and time.monotonic() < last:
        time.sleep(0.001)


def _is_any_inside() -> bool:
    frames = sys._current_frames().items()
    return any(_is_inside(frame) for ident, frame in frames if ident != _ending_thread)


def _is_inside(frame: FrameType | None) -> bool:
    if frame is None or frame.f_code is _wait_for_end.__code__:  # a thread that waits is never unwound
        return False
    while frame is not None:
        if stop_at_end.__name__ in frame.f_code.co_names:
            return True
        frame = frame.f_back
    return False


class cached_attribute:  # noqa: N801  it is used as a decorator
    """A property that is computed once. Threads that ask for it at once may compute it each, and keep one.

    `functools.cached_property` of Python 3.11 has one lock for all objects of a class, held while the value
    is computed: threads would compile one after the other, and a child forked meanwhile would never compile.
    """

    def __init__(self, compute: Callable[[Any], Any]):
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance, owner):
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self._compute(instance))


def default_threads() -> int:
    """Threads where no setting of jitcore's says how many: OMP_NUM_THREADS, else one for each core."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # the others are of nested loops
    return int(first) if first.isdecimal() and int(first) > 0 else available_cores()


def available_cores() -> int:
    """Cores this process may use: those of its affinity, and of them as many as its control group may keep
    busy."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = read_group_limit()
    return cores if limit is None else min(cores, limit)


@functools.cache
def read_group_limit(root: str = "/") -> int | None:
    """Processors' worth of time that this process's control group may use, rounded up; None: no limit.

    root: the folder in which proc and sys are found."""
    groups = _read(os.path.join(root, "proc/self/cgroup")).splitlines()
    mount = os.path.join(root, "sys/fs/cgroup")
    shares = [share for group in groups for share in _read_shares(mount, group)]
    return max(-int(-min(shares) // 1), 1) if shares else None


def _read_shares(mount: str, line: str) -> Iterator[float]:
    """The limits, in processors, that one line `number:controllers:path` leads to: of the group and of those
    around it."""
    _, controllers, path = line.split(":", 2)
    if not controllers:  # version 2
        for folder in _list_folders(mount, path):
            yield from _divide(*_read(f"{folder}/cpu.max").split())
    elif "cpu" in controllers.split(","):  # version 1, whose controllers have mounts of their own
        for folder in _list_folders(f"{mount}/{controllers}", path):
            quota, period = (_read(f"{folder}/cpu.cfs_{name}_us").split() for name in ("quota", "period"))
            yield from _divide(*quota, *period)


def _list_folders(mount: str, path: str) -> Iterator[str]:
    """A group's folder and those around it; in a container the mount itself may be the group's."""
    names = [name for name in path.split("/") if name]
    yield from ("/".join((mount, *names[:depth])) for depth in range(len(names), -1, -1))


def _read(path: str) -> str:
    """What a file holds; nothing where there is none that may be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def _divide(*words: str) -> Iterator[float]:
    """Quota by period, where both are there: "max" and -1 are no limit."""
    if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]):
        yield int(words[0]) / int(words[1])


# -- tables -------------------------------------------------------------------------------------------------
def drop_oldest(table: dict, most: int) -> None:
    """Keeps a table within so many entries, one at least: a static argument may be new in every call."""
    while len(table) > max(most, 1):
        del table[next(iter(table))]


class RecentlyUsed:
    """A table for all threads that keeps what was used last. most: tells how many entries."""

    def __init__(self, most: Callable[[], int]):
        self._lock, self._most = Lock(), most
        self._found: OrderedDict[Hashable, Any] = OrderedDict()

    def find(self, key: Hashable) -> Any:
        """What was added under this key, or None."""
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
            return found

    def add(self, key: Hashable, value: Any) -> None:
        with self._lock:
            self._found[key] = value
            drop_oldest(self._found, self._most())

    def clear(self) -> None:
        with self._lock:
            self._found.clear()

    def __len__(self) -> int:
        return len(self._found)
