"""Work that is done ahead: what will be needed soon is made by a second thread meanwhile.

In: functions that make something, under keys. Out: what they made, when it is asked for. Stage: beside
compilation; a program's module is translated while those that it will call are, see `symbols.foresee`.

Who asks for what nobody has begun makes it itself, and who has to wait makes something else that waits. The
thread ends when nothing is left to begin.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import Any

from jitcore.backends.cpu.native.translate import in_second_lane
from jitcore.process.concurrency import Lock

__all__ = ["begin", "finish"]


class _Job:
    """make: gives what is asked for; None if there is nothing, or it failed: who needs it tries again."""

    __slots__ = ("make", "made", "is_begun", "is_done")

    def __init__(self, make: Callable[[], Any]):
        self.make, self.made = make, None
        self.is_begun, self.is_done = False, threading.Event()

    def run(self) -> None:
        try:
            self.made = self.make()
        except Exception:
            self.made = None
        finally:
            self.is_done.set()


_lock = Lock()
_jobs: dict[Hashable, _Job] = {}  # what nobody has asked for yet
_worker: threading.Thread | None = None


def begin(key: Hashable, make: Callable[[], Any]) -> None:
    """Lets `make` run soon, unless something of this key waits for being asked for.

    It runs in the second lane of `translate`, or in that of who asks for what it makes."""
    global _worker
    with _lock:
        if key in _jobs:
            return
        _jobs[key] = _Job(make)
        if _worker is not None:
            return
        _worker = threading.Thread(target=_work, name="jitcore compiler")
    try:
        _worker.start()
    except RuntimeError:  # there can be no more threads, or the interpreter ends
        with _lock:
            _worker = None


def finish(key: Hashable) -> Any:
    """What was made under a key, once; None if nothing was."""
    with _lock:
        job = _jobs.pop(key, None)
        if job is None:
            return None
        is_mine, job.is_begun = not job.is_begun, True
    if is_mine:
        job.run()
    while not job.is_done.is_set():
        other = _take_next()
        if other is None:
            job.is_done.wait()
        else:
            other.run()
    return job.made


def _take_next() -> _Job | None:
    with _lock:
        job = next((job for job in _jobs.values() if not job.is_begun), None)
        if job is not None:
            job.is_begun = True
        return job


def _work() -> None:
    global _worker
    with in_second_lane() as lane_lock:
        while True:
            with lane_lock:
                job = _take_next()
                if job is not None:
                    job.run()
                    continue
            with _lock:
                if all(job.is_begun for job in _jobs.values()):
                    _worker = None
                    return


def _forget() -> None:
    """In a forked child, which does not have the thread."""
    global _worker
    _worker = None
    _jobs.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
