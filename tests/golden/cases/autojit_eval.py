"""A function that evaluates text."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def apply(x, formula):
    return eval(formula)


apply(np.ones(3), "x + 1")
