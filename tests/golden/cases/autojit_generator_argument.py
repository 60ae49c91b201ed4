"""A random generator as an argument."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def add_noise(x, rng):
    return x + rng.random(len(x))


add_noise(np.ones(3), np.random.default_rng(0))
