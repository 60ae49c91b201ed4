"""Floating-point errors as exceptions."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def invert(x):
    with np.errstate(divide="raise"):
        return 1 / x


invert(np.ones(3))
