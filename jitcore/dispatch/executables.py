"""The cache of executables: one for everything that computes the same, whichever function asked for it.

In: a key that says what a program computes, and how to build it. Out: a `SharedExecutable`. Bounded by
`config.cache_size`, thread-safe.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from jitcore.config import drop_oldest
from jitcore.core.aval import ShapedArray
from jitcore.dispatch.backend import Executable
from jitcore.process.concurrency import Lock


class SharedExecutable:
    """An executable and its bound forms, one for each tuple of input shapes."""

    def __init__(self, executable: Executable):
        self.executable = executable
        self._lock = Lock()
        self._bound: dict[tuple, Callable[..., list[np.ndarray]]] = {}

    def bind(self, in_avals: Sequence[ShapedArray]) -> tuple[Callable[..., list[np.ndarray]], int]:
        """`Executable.bind`, done once for these shapes. Returns: that; how often this made it compile."""
        shapes = tuple(aval.shape for aval in in_avals)
        run = self._bound.get(shapes)
        if run is not None:
            return run, 0
        with self._lock:
            run, before = self._bound.get(shapes), self.executable.compiles
            if run is None:
                run = self._bound[shapes] = self.executable.bind(in_avals)
                drop_oldest(self._bound)
            return run, self.executable.compiles - before


class ExecutableCache:
    """Shared executables by key; the least recently used one is dropped."""

    def __init__(self):
        self._lock = Lock()
        self._executables: OrderedDict[tuple, SharedExecutable] = OrderedDict()
        self._building: dict[tuple, Lock] = {}

    def find_or_build(self, key: tuple, build: Callable[[], Executable]) -> SharedExecutable:
        """The executable of this key; of several threads that miss it one builds and the others wait."""
        found = self._find(key)
        if found is not None:
            return found
        with self._lock:
            building = self._building.setdefault(key, Lock())
        try:
            with building:
                found = self._find(key)
                if found is None:
                    found = SharedExecutable(build())
                    self._add(key, found)
        finally:
            with self._lock:
                self._building.pop(key, None)
        return found

    def _find(self, key: tuple) -> SharedExecutable | None:
        with self._lock:
            found = self._executables.get(key)
            if found is not None:
                self._executables.move_to_end(key)
            return found

    def _add(self, key: tuple, executable: SharedExecutable) -> None:
        with self._lock:
            self._executables[key] = executable
            drop_oldest(self._executables)

    def clear(self) -> None:
        with self._lock:
            self._executables.clear()

    def __len__(self) -> int:
        return len(self._executables)


executables = ExecutableCache()
