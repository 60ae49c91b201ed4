"""A function of NumPy whose result has a size that depends on values."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def list_kinds(x):
    return np.unique_values(x)


list_kinds(np.arange(3))
