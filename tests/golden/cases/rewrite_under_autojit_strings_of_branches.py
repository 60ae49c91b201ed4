"""A word chosen by an element of an array."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def name_sign(x):
    word = "up" if x[0] > 0 else "down"
    return word


name_sign(np.ones(3))
