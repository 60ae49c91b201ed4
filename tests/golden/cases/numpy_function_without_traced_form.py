"""A NumPy function that cannot be traced."""

import numpy as np

from jitcore import jit


@jit
def f(x):
    return np.busday_count(x, x + 5)


f(np.arange(3))
