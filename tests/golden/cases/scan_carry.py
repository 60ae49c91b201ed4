"""A scan that starts with an integer and adds numbers with a fraction."""

import numpy as np

import jitcore.numpy as jnp
from jitcore import jit, lax


@jit
def sum_all(values):
    return lax.scan(lambda total, value: (total + value, None), jnp.int32(0), values)


sum_all(np.linspace(0, 1, 5))
