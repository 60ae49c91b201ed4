"""A function of NumPy without a traced form."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def find_type(x):
    return np.min_scalar_type(x)


find_type(np.ones(8))
