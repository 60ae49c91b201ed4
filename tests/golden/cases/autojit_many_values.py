"""A number that decides a shape, with too many values."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def start(n):
    return np.zeros(n)


for n in range(40):
    start(n)
