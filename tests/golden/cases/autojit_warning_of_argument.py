"""The warning about an argument that cannot be passed to a program."""

import warnings

import numpy as np

from jitcore import AutojitWarning, autojit

warnings.simplefilter("error", AutojitWarning)


@autojit
def count(x, words):
    return x * len(words)


count(np.ones(3), {"a", "b"})
