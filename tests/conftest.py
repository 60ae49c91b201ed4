"""What holds for every test: nothing comes from disk, so that compiles can be counted, and nothing stays there.

Processes that tests start inherit it; tests of the disk cache name a folder of their own.
"""

import ctypes
import gc
import os
import sys
from pathlib import Path

import pytest

os.environ["JITCORE_CACHE_DIR"] = ""
# Idle threads of OpenBLAS sleep. As they are, they keep the processors from the other test processes.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

_STATM = Path("/proc/self/statm")
_RISE = 1_000_000_000  # bytes by which a test process may grow before it drops what JAX has compiled
_most_resident = 1_500_000_000


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Bounds the memory of test processes: JAX, the reference of many tests, keeps about a megabyte for each
    of its thousands of operations and shapes."""
    global _most_resident
    if "jax" in sys.modules and _STATM.exists() and count_resident() > _most_resident:
        sys.modules["jax"].clear_caches()
        gc.collect()
        if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
            libc.malloc_trim(0)
        _most_resident = max(_most_resident, count_resident() + _RISE)


def count_resident() -> int:
    """Bytes of memory that this process holds. Linux tells."""
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
