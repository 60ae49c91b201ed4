"""`and` between arrays of conditions."""

import numpy as np

import jitcore.numpy as jnp
from jitcore import jit


@jit
def clip(x):
    return jnp.where(x > 0 and x < 1, x, 0)


clip(np.linspace(-1, 2, 5))
