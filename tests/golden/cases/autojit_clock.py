"""A function that reads a clock."""

from time import perf_counter

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def work(x):
    start = perf_counter()
    return x.sum(), perf_counter() - start


work(np.ones(3))
