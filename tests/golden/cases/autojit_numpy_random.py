"""A function that draws random numbers."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def add_noise(x):
    return x + np.random.rand(len(x))


add_noise(np.ones(3))
