"""The warning about calls that end with exceptions."""

import warnings

import numpy as np

from jitcore import AutojitWarning, autojit

warnings.simplefilter("error", AutojitWarning)


@autojit
def pick(x, i):
    return x[i]


for i in (1, 2, 3, 7, 8, 9):
    try:
        pick(np.ones(5), i)
    except IndexError:
        pass
