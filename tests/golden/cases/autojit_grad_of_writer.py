"""The derivative of a function that changes its argument."""

import numpy as np

from jitcore import autojit, grad


@autojit
def loss(x):
    x *= 2
    return x.sum()


grad(loss)(np.ones(3))
