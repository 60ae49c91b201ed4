"""A store into a NumPy array in a loop of traced length."""

import numpy as np

from jitcore import jit


def count(n):
    counts = np.zeros(1)
    while n > 0:
        counts[0] = 1
        n = n - 1
    return counts.sum()


jit(count, rewrite=True)(3)
