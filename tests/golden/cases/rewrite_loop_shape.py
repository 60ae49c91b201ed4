"""An array that grows in a loop."""

import jitcore.numpy as jnp
from jitcore import jit


def double(n):
    values = jnp.zeros(2)
    while n > 0:
        values = jnp.concatenate([values, values])
        n = n - 1
    return values


jit(double, rewrite=True)(3)
