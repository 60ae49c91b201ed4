"""A function that asks."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def scale(x):
    return x * float(input())


scale(np.ones(3))
