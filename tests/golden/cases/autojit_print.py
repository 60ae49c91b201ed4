"""A function that prints."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def norm(x):
    total = np.sqrt((x * x).sum())
    print("norm", total)
    return x / total


norm(np.ones(3))
