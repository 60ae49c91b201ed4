"""A slice that ends at a traced value."""

import numpy as np

from jitcore import jit


@jit
def head_sum(x, n):
    return x[:n].sum()


head_sum(np.ones(5), 3)
