"""Random inputs of the workloads, the same in every run."""

from __future__ import annotations

import numpy as np


def make_normal(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Standard normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def make_uniform(low: float, high: float, *shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Numbers between low and high."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def make_integers(limit: int, *shape: int, seed: int = 0) -> np.ndarray:
    """int32 from 0 to limit - 1."""
    return np.random.default_rng(seed).integers(0, limit, shape, dtype=np.int32)


def make_distinct(size: int, dtype: str, seed: int = 0) -> np.ndarray:
    """`size` different numbers in random order: normal ones, or integers of all 32 bits."""
    generator = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "i":
        drawn = generator.integers(-(2**31), 2**31, 2 * size, dtype=dtype)
    else:
        drawn = generator.standard_normal(2 * size).astype(dtype)
    return generator.permutation(np.unique(drawn))[:size]


def make_permutation(size: int) -> np.ndarray:
    """The int32 from 0 to size - 1 in random order."""
    return np.random.default_rng(0).permutation(size).astype(np.int32)
