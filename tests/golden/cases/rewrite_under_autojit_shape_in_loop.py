"""An array that grows in a loop."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def double(x):
    values = np.zeros(2)
    while x[0] > 0:
        values = np.concatenate([values, values])
        x = x - 1
    return values


double(np.ones(1))
