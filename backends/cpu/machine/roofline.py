"""The roofline of this machine: how fast its memory and its processor are, measured once.

In: nothing, or what was measured before, from disk. Out: `Roofline`: bytes and operations of a second that
jitcore's own best kernels reach with all threads, and the least time that they allow a program.
Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52 (2009).
"""

from __future__ import annotations

import functools
import hashlib
import json
import operator
import platform
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.runtime import threads
from jitcore.dispatch import disk_cache
from jitcore.dispatch.function import find_function
from jitcore.dispatch.options import JitOptions
from jitcore.loopir.program import Program

#: Bytes of an array that is swept, beside the caches; size of matrices; runs, of which the best counts.
_LEAST_BYTES, _MOST_BYTES, _MATRIX, _RUNS = 32 << 20, 256 << 20, 1024, 5


class Roofline(NamedTuple):
    """bandwidth: bytes of a second, of a sweep that reads two arrays and writes one; flops32, flops64:
    operations of a second in a product of matrices. machine: its name and processor; threads: that took
    part."""

    machine: str
    threads: int
    bandwidth: float
    flops32: float
    flops64: float

    def allow(self, program: Program, flops: float, moved: float) -> float:
        """Seconds that a program takes at least."""
        is_single = all(buffer.dtype.itemsize <= 4 or buffer.dtype.kind not in "fc"
                        for buffer in (*program.inputs, *program.outputs))
        return max(moved / self.bandwidth, flops / (self.flops32 if is_single else self.flops64))


@functools.cache
def measure() -> Roofline:
    """From disk, if this machine was measured before. Cost: a second."""
    count = threads.describe()["threads"]
    machine = f"{platform.node()}, {host.cpu_name()}"
    key = hashlib.sha256(f"roofline {machine} {count}".encode()).digest()
    stored = disk_cache.find_or_make(key, lambda: json.dumps(_measure(machine, count)._asdict()).encode())
    return Roofline(**json.loads(stored))


def _measure(machine: str, count: int) -> Roofline:
    size = min(max(4 * max(host.cache_sizes()), _LEAST_BYTES), _MOST_BYTES) // 8
    bandwidth = 3 * 8 * size / _time(lambda a, b: a + 3.0 * b, np.ones(size), np.ones(size))
    rates = [2 * _MATRIX**3 / _time(operator.matmul, *[np.ones((_MATRIX, _MATRIX), dtype)] * 2)
             for dtype in (np.float32, np.float64)]
    return Roofline(machine, count, bandwidth, *rates)


def _time(function: Callable[..., Any], *arguments: np.ndarray) -> float:
    run = partial(find_function(function, JitOptions(backend="cpu")).call, function, None, arguments, {})
    run()
    seconds = []
    for _ in range(_RUNS):
        start = perf_counter()
        run()
        seconds.append(perf_counter() - start)
    return min(seconds)
