"""Tables of what was computed, within `config.cache_size`.

In: keys and values. Out: the values that were added last, or used last.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from jitcore.config import config
from jitcore.process.concurrency import Lock

__all__ = ["RecentlyUsed", "drop_oldest"]


def drop_oldest(table: dict) -> None:
    """Keeps a table of signatures within `config.cache_size`: a static argument may be new in every call."""
    while len(table) > max(config.cache_size, 1):
        del table[next(iter(table))]


class RecentlyUsed:
    """A table for all threads that keeps what was used last, within `config.cache_size`."""

    def __init__(self):
        self._lock = Lock()
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
            drop_oldest(self._found)

    def clear(self) -> None:
        with self._lock:
            self._found.clear()

    def __len__(self) -> int:
        return len(self._found)
