"""A differentiated value handed to a library that needs its memory."""

import numpy as np

from jitcore import grad


def f(x):
    return np.array(x) * x


grad(f)(1.0)
