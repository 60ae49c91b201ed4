"""A result whose size depends on values."""

import numpy as np

from jitcore import jit


@jit
def sum_positive(x):
    return x[x > 0].sum()


sum_positive(np.linspace(-1, 1, 5))
