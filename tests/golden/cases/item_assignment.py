"""An item of a traced array assigned in place."""

import numpy as np

from jitcore import jit


@jit
def set_first(x):
    x[0] = 1
    return x


set_first(np.zeros(3))
