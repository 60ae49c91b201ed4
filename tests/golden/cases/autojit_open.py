"""A function that reads a file."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def scale(x, path):
    factor = float(open(path).read())
    return x * factor


scale(np.ones(3), "factor.txt")
