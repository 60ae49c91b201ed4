"""Facts about this processor that the CPU backend decides by.

In: what LLVM and the operating system say. Out: name, features, vector width, cache sizes. Stage: before
scheduling (tile sizes) and rendering (vector width). Every fact is found once per process, but for the cores
that it may use now.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jitcore.backends.cpu import host

__all__ = ["CacheSizes", "cache_sizes", "cpu_features", "cpu_name", "list_fused_operations",
           "native_vector_bytes"]

_CACHE_FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class CacheSizes(NamedTuple):
    """Bytes of data cache that one core sees: first two levels its own, the third as a rule shared."""

    l1: int
    l2: int
    l3: int


# What the smallest common 64-bit processors have, for systems that do not tell.
_DEFAULT_SIZES = CacheSizes(l1=32 << 10, l2=512 << 10, l3=4 << 20)


@functools.cache
def cpu_features() -> frozenset[str]:
    """Names of the instruction-set features that kernels may use, in LLVM's spelling, such as "avx512f".

    They are the features of Numba's target, so settings such as NUMBA_ENABLE_AVX=0 count.
    """
    listed = host.find_target().features.split(",")
    return frozenset(feature[1:] for feature in listed if feature.startswith("+"))


@functools.cache
def cpu_name() -> str:
    """LLVM's name of the processor kernels are compiled for, such as "znver4"; "generic" where unknown."""
    return host.find_target().cpu


def is_zen() -> bool:
    """Whether kernels are compiled for one of AMD's Zen cores."""
    return cpu_name().startswith("znver")


@functools.cache
def native_vector_bytes() -> int:
    """Bytes of the widest vector register: 64 with AVX-512, 32 with AVX, else 16 (SSE2, NEON)."""
    features = cpu_features()
    if "avx512f" in features:
        return 64
    return 32 if "avx" in features else 16


@functools.cache
def list_fused_operations() -> tuple[str, ...]:
    """Operations on arrays of complex numbers of which NumPy makes multiply-adds on this processor."""
    x = np.array([1 + 2.0**-30 + 1j])
    is_rounded = (x * x).real[0] == 2.0**-29  # the square of the real part has one bit more
    return () if is_rounded else ("mul", "square")


@functools.cache
def cache_sizes() -> CacheSizes:
    """Sizes of the data caches from Linux's sysfs; typical ones elsewhere and for levels it does not list."""
    return read_cache_sizes(_CACHE_FOLDER)


def read_cache_sizes(folder: Path) -> CacheSizes:
    """Sizes listed under `folder`, laid out as /sys/devices/system/cpu/cpu0/cache is."""
    found = {}
    for index in sorted(folder.glob("index*")):
        try:
            kind, level, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
        except OSError:
            continue
        match = re.fullmatch(r"(\d+)([KMG]?)", size)
        if match and kind in ("Data", "Unified"):
            found[f"l{level}"] = int(match[1]) * _UNITS[match[2]]
    return _DEFAULT_SIZES._replace(**{level: found[level] for level in CacheSizes._fields if level in found})
