"""Arrays of different shapes on the two sides of a condition."""

import jitcore.numpy as jnp
from jitcore import jit


def choose(x):
    if x > 0:
        y = jnp.zeros(3)
    else:
        y = jnp.zeros(2)
    return y * 2


jit(choose, rewrite=True)(1.0)
