"""A store into a NumPy array under a condition."""

import numpy as np

from jitcore import jit


def mark(x):
    flags = np.zeros(3)
    if x > 0:
        flags[0] = 1
    return x + flags.sum()


jit(mark, rewrite=True)(1.0)
