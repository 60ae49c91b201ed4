"""The gradient of a function whose result is an array."""

import numpy as np

from jitcore import grad


def square(x):
    return x * x


grad(square)(np.ones(3))
