"""What the machine is, and what it can do at most: bandwidth of memory and caches, multiply-adds.

In: nothing. Out: bytes and operations per second, measured with small loops compiled by Numba, and a line of
text.
"""

from __future__ import annotations

import functools
import importlib.metadata
import math
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import numba
import numpy as np

from benchmarks.numba_loops import parallel_loop
from benchmarks.table import format_quantity
from benchmarks.timing import time_best

_PACKAGES = ("jitcore", "numpy", "scipy", "numba", "llvmlite", "jax", "numexpr")
_SECONDS = 0.1
#: Multiply-adds of one element between its load and its store, and elements of a thread.
_CHAIN, _ELEMENTS = 8, 1024
# Rows and columns of a product that shows how fast BLAS multiplies.
_SIDE = 1024
LARGE_BYTES = 400_000_000


@parallel_loop
def run_triad(a, b, c, scale, parts, repeats):
    for part in numba.prange(parts):
        own = slice(part * a.size // parts, (part + 1) * a.size // parts)
        into, first, second = a[own], b[own], c[own]
        for _ in range(repeats):
            for i in range(into.size):
                into[i] = first[i] + scale * second[i]


@parallel_loop(fastmath={"contract"})
def run_multiply_adds(x, factor, offset, repeats):
    for part in numba.prange(x.shape[0]):
        for _ in range(repeats):
            for i in range(x.shape[1]):
                value = x[part, i]
                for _ in range(_CHAIN):
                    value = value * factor + offset
                x[part, i] = value


def count_threads() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def find_free_memory() -> float:
    """Bytes that programs may take without swapping; infinite where the system does not tell."""
    if not os.path.exists("/proc/meminfo"):
        return math.inf
    with open("/proc/meminfo") as lines:
        facts = dict(line.split(":", 1) for line in lines)
    return int(facts["MemAvailable"].split()[0]) * 1024.0


@contextmanager
def limit_threads(threads: int) -> Iterator[None]:
    """Numba's loops in this thread use as many threads."""
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, before))
    try:
        yield
    finally:
        numba.set_num_threads(before)


def measure_bandwidth(size: float, threads: int = 0, dtype: str = "float32") -> float:
    """Bytes per second of a stream triad whose arrays hold about `size` bytes together (within a factor of
    two).

    Args:
        threads: 0 stands for all cores."""
    rounded = 2.0 ** (2 * round(math.log2(max(size, 1000)) / 2))
    return _measure_triad(min(rounded, LARGE_BYTES), threads or count_threads(), dtype)


@functools.cache
def _measure_triad(size: float, threads: int, dtype: str) -> float:
    number = np.dtype(dtype).type
    count = max(64, int(size) // (3 * np.dtype(dtype).itemsize))
    a, b, c = (np.ones(count, dtype) for _ in range(3))
    repeats = max(1, int(4_000_000 // size))  # a parallel region costs more than a small triad
    with limit_threads(threads):
        run_triad(a, b, c, number(0.5), threads, repeats)
        seconds = time_best(lambda: run_triad(a, b, c, number(0.5), threads, repeats), _SECONDS)
    rate = 3 * a.nbytes * repeats / seconds
    return max(rate, _measure_triad(size, 1, dtype)) if threads > 1 else rate  # more threads can do no less


@functools.cache
def measure_peak(dtype: str = "float32", threads: int = 0) -> float:
    """Floating-point operations per second of fused multiply-adds in registers, two for each; not less than
    these threads' share of what BLAS reaches: LLVM takes only half of wide registers on some processors."""
    threads, number, repeats = threads or count_threads(), np.dtype(dtype).type, 5000
    x = np.ones((threads, _ELEMENTS), dtype)
    with limit_threads(threads):
        run_multiply_adds(x, number(0.5), number(0.25), repeats)
        seconds = time_best(lambda: run_multiply_adds(x, number(0.5), number(0.25), repeats), 2 * _SECONDS)
    rate = max(2.0 * _CHAIN * x.size * repeats / seconds, _measure_product(dtype) * threads / count_threads())
    return max(rate, measure_peak(dtype, 1)) if threads > 1 else rate


@functools.cache
def _measure_product(dtype: str) -> float:
    x = np.ones((_SIDE, _SIDE), dtype)
    return 2.0 * _SIDE**3 / time_best(lambda: x @ x, 2 * _SECONDS)


def format_rate(rate: float, unit: str) -> str:
    """Three digits: 61.2 GB/s, 1.2 TFLOP/s."""
    return format_quantity(rate, tuple((f"{prefix}{unit}/s", scale) for prefix, scale in
                                       (("T", 1e12), ("G", 1e9), ("M", 1e6))))


def describe_limits() -> str:
    """Triad bandwidth and peak of multiply-adds, of one thread and of all."""
    parts = []
    for threads in sorted({1, count_threads()}):
        rates = [f"triad {name} {format_rate(measure_bandwidth(LARGE_BYTES, threads, dtype), 'B')} (memory), "
                 f"{format_rate(measure_bandwidth(12e6, threads, dtype), 'B')} (12 MB), "
                 f"multiply-add {format_rate(measure_peak(dtype, threads), 'FLOP')}"
                 for name, dtype in (("f32", "float32"), ("f64", "float64"))]
        parts.append(f"{threads} thread{'s' * (threads > 1)}: {'; '.join(rates)}")
    return "\n".join(f"- {part}" for part in parts)


def find_processor() -> str:
    """The processor as the code generator names it."""
    from jitcore.dispatch.backend import list_backends

    cpu = list_backends()[0].get("cpu")
    return cpu.describe().get("processor", platform.machine()) if cpu is not None else platform.machine()


def describe_machine() -> str:
    """Processor, threads, system, and versions of the libraries, on one line."""
    versions = [f"{name} {version}" for name in _PACKAGES if (version := find_version(name))]
    return (f"{find_processor()}, threads: {count_threads()}, {platform.system()}, "
            f"Python {platform.python_version()}, {', '.join(versions)}")


def find_version(package: str) -> str:
    """Its version; "" if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
