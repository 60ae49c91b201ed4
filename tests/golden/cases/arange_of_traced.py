"""`arange` of an argument that is not static."""

import jitcore.numpy as jnp
from jitcore import jit


@jit
def count(n):
    return jnp.arange(n)


count(3)
