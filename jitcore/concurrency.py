"""What the caches need for threads and forks, and Python's own locks and cached properties lack.

In: nothing. Out: `Lock`, which a forked child finds free, and `cached_attribute`, which holds no lock at all.
Stage: before all others; this module imports nothing of jitcore.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["Lock", "cached_attribute"]

T = TypeVar("T")


class Lock:
    """A lock for `with`.

    The thread that has it may take it again: the garbage collector may run a finaliser anywhere, and that may
    call a jitted function. In a forked child it is free unless the forking thread has it: the others, which
    would give it back, are not there. What it protects has to be whole between any two of its changes.
    """

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


class cached_attribute(Generic[T]):  # noqa: N801  it is used as a decorator
    """A property that is computed once. Threads that ask for it at once may compute it each, and keep one.

    `functools.cached_property` of Python 3.11 has one lock for all objects of a class, held while the value
    is computed: threads would compile one after the other, and a child forked meanwhile would never compile.
    """

    def __init__(self, compute: Callable[[Any], T]):
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_attribute[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance, owner):
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self._compute(instance))
