"""A list that grows as long as values say."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def halves(x):
    found = []
    while x[0] > 1:
        x = x / 2
        found.append(x)
    return found


halves(np.array([8.0]))
