"""Two dtypes that meet while implicit promotion is forbidden."""

import numpy as np

from jitcore import config, jit


@jit
def add(x, y):
    return x + y


with config.override(numpy_dtype_promotion="strict"):
    add(np.ones(3, np.float32), np.arange(3))
