"""An in-place operator on a NumPy array under a condition."""

import numpy as np

from jitcore import jit


def shift(x):
    values = np.zeros(3)
    if x > 0:
        values += 1
    return x + values.sum()


jit(shift, rewrite=True)(1.0)
