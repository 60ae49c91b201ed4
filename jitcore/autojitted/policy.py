"""Which Python numbers are part of a program and which are its inputs.

In: the numbers of the calls of one function, each found by a path. Out: static or traced. An int is static
until it has had a few values; a float is traced. A number whose value Python needed while tracing is static
for good.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from jitcore.config import drop_oldest

#: Values of an int after which it is traced, if that works.
VALUES_BEFORE_TRACING = 3
#: Values of a number that has to be static for which programs are made.
MAX_STATIC_VALUES = 16
#: Programs that are made for arguments of the same kinds, because code or variables are not what they were;
#: when there were more, the calls for each other one.
MAX_VERSIONS, CALLS_PER_VERSION = 32, 64
#: Programs that are made of one loop.
MAX_PROGRAMS = 32

Path = tuple


class NumberPolicy:
    """Args: names of parameters that are always static; of those whose ints have another value each time."""

    def __init__(self, static_names: Iterable[str], varying_names: Iterable[str] = ()):
        self._names = frozenset(static_names)
        self._varying = frozenset(varying_names)
        self._pinned: set[Path] = set()
        self._traced: set[Path] = set()
        self._values: dict[Path, set] = {}
        self._versions: dict[Hashable, int] = {}

    def is_static(self, path: Path, value: Any) -> bool:
        if path[0] in self._names:
            return True
        if path in self._pinned:
            self._note(path, value)
            return True
        if value.__class__ is not int or path[0] in self._varying:
            return False
        if path not in self._traced and self._note(path, value) >= VALUES_BEFORE_TRACING:
            self._traced.add(path)
        return path not in self._traced

    def _note(self, path: Path, value: Any) -> int:
        values = self._values.setdefault(path, set())
        if len(values) <= MAX_STATIC_VALUES:
            values.add(value)
        return len(values)

    def may_make_version(self, specs: Hashable) -> bool:
        """Whether one more program is made for arguments of the same kinds; of many, one in some calls."""
        self._versions[specs] = count = self._versions.get(specs, 0) + 1
        drop_oldest(self._versions)
        return count <= MAX_VERSIONS or count % CALLS_PER_VERSION == 0

    def pin(self, paths: Iterable[Path]) -> None:
        """Numbers whose value is needed while tracing."""
        self._pinned.update(paths)

    def unpin(self, paths: Iterable[Path]) -> None:
        self._pinned.difference_update(paths)

    def find_exhausted(self, paths: Iterable[Path]) -> Path | None:
        """A number that has to be static and has had too many values."""
        for path in paths:
            if path in self._pinned and len(self._values.get(path, ())) > MAX_STATIC_VALUES:
                return path
        return None

    @property
    def pinned(self) -> frozenset[Path]:
        return frozenset(self._pinned)
