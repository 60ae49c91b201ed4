"""An attribute that a traced array does not have."""

import numpy as np

from jitcore import autojit


@autojit(strict=True)
def address(x):
    return x.ctypes.data


address(np.ones(3))
