"""A computation in extended precision."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def total(x):
    return x.astype(np.longdouble).sum()


total(np.ones(3))
