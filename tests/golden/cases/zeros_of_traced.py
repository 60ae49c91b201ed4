"""A shape that depends on an argument that is not static."""

import jitcore.numpy as jnp
from jitcore import jit


@jit
def make_grid(n):
    return jnp.zeros((n, 2))


make_grid(3)
