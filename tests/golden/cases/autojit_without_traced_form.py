"""A function of NumPy without a traced form."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def encode(x):
    return np.packbits(x)


encode(np.ones(8, bool))
