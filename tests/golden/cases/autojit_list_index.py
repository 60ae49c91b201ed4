"""A list indexed by an element of an array."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def choose(names, x):
    return names[int(x[0])]


choose(["a", "b"], np.ones(3, int))
