"""A traced value converted to an ndarray."""

import numpy as np

from jitcore import jit


@jit
def f(x):
    return np.asarray(x) + 1


f(np.ones(3))
