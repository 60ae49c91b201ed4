"""A counted loop whose body changes the shape of its carry."""

import jitcore.numpy as jnp
from jitcore import jit, lax


@jit
def repeat(x):
    return lax.fori_loop(0, 3, lambda i, x: jnp.stack([x, x]), x)


repeat(jnp.ones(2))
