"""An array of Python objects."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def double(values):
    return values + values


double(np.array([1, None]))
