"""How often programs were traced and compiled in this process: what tests of caches assert."""

from __future__ import annotations

from typing import NamedTuple

from jitcore.process.concurrency import Lock


class CacheInfo(NamedTuple):
    """hits: calls served by a known signature; misses: calls that were not; traces: runs of the Python
    function; compiles: programs that a backend had to compile."""

    hits: int
    misses: int
    traces: int
    compiles: int


class Counters:
    """Process-wide totals of `traces` and `compiles`. Thread-safe."""

    def __init__(self):
        self._lock = Lock()
        self.traces = 0
        self.compiles = 0

    def add(self, traces: int = 0, compiles: int = 0) -> None:
        with self._lock:
            self.traces += traces
            self.compiles += compiles

    def __repr__(self) -> str:
        return f"Counters(traces={self.traces}, compiles={self.compiles})"


counters = Counters()
