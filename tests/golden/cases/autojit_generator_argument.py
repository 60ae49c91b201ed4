"""A distribution that programs cannot draw from."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def add_noise(x, rng):
    return x + rng.dirichlet(x)


add_noise(np.ones(3), np.random.default_rng(0))
