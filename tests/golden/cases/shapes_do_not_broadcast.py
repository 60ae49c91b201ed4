"""Operands whose shapes do not fit."""

import numpy as np

from jitcore import jit


@jit
def f(x, y):
    return x + y


f(np.ones((2, 3)), np.ones(4))
