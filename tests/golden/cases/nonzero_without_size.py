"""`nonzero` of a traced array, whose result has no known size."""

import numpy as np

import jitcore.numpy as jnp
from jitcore import jit


@jit
def find(x):
    return jnp.nonzero(x)


find(np.array([0.0, 1.0, 2.0]))
