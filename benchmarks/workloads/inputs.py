"""Random inputs of the workloads, the same in every run."""

from __future__ import annotations

import math

import numpy as np


def make_normal(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Standard normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def make_uniform(low: float, high: float, *shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Numbers between low and high."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def make_square(size: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """A square matrix of standard normal numbers with `size` elements, rounded to a whole side."""
    side = math.isqrt(size)
    return make_normal(side, side, dtype=dtype, seed=seed)
