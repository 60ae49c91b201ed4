"""A long loop that cannot be compiled as a loop."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def labels(x):
    names = []
    for i in range(20_000):
        names.append(f"{i}")
        x = x + i
    return x, names


labels(np.ones(3))
