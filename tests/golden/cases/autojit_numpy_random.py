"""A function that seeds a generator."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def add_noise(x):
    np.random.seed(3)
    return x + np.random.rand(len(x))


add_noise(np.ones(3))
