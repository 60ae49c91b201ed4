"""A text made of a traced number."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def label(x):
    return "mean " + str(x.mean())


label(np.ones(3))
